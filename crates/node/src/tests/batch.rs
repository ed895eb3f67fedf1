//! Scripts of batches: what they check and write, what waits for them, and what they wait for.

use super::bounds::manifest;
use super::hot::HOT;
use super::*;
use wire::big::EXPIRY_BIG;
use wire::{
    BatchReplyBody, Change, Condition, HotAnswer, PartKey, Revision, Step, UploadBody, Version,
};

/// A step that writes whatever is there.
fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Step<'a> {
    Step { key, condition: Condition::Any, change: Change::Put { value, expiry_ms: 0 } }
}

fn on<'a>(condition: Condition, step: Step<'a>) -> Step<'a> {
    Step { condition, ..step }
}

fn check(key: &[u8], condition: Condition) -> Step<'_> {
    Step { key, condition, change: Change::None }
}

impl Chain {
    pub(super) fn batch(&mut self, steps: &[Step<'_>]) -> u64 {
        let seq = self.next();
        self.batch_again(seq, steps);
        seq
    }

    fn batch_again(&mut self, seq: u64, steps: &[Step<'_>]) {
        let mut payload = Vec::new();
        steps.iter().for_each(|step| wire::push_step(&mut payload, step));
        let header = self.stamped(Op::Batch, steps[0].key, seq);
        self.send(&header, &[&payload]);
    }

    /// The only reply: its code, its version, and the step that failed.
    pub(super) fn batch_reply(&mut self) -> (Code, u64, u8) {
        let reply = self.only_reply();
        assert_eq!(reply.op, Op::BatchReply);
        if !reply.code.is_decided() {
            return (reply.code, reply.version, 0);
        }
        let (BatchReplyBody { step }, _) = BatchReplyBody::split(&reply.payload).unwrap();
        (reply.code, reply.version, step)
    }

    /// How many datagrams of this kind are on the way.
    pub(super) fn under_way(&self, op: Op) -> usize {
        let is = |bytes: &[u8]| Packet::parse(bytes).unwrap().op() == op;
        self.wires.iter().filter(|(_, _, bytes)| is(bytes)).count()
    }
}

#[test]
fn a_batch_writes_all_of_its_keys_under_one_version_or_none() {
    for members in [1, 3] {
        let mut chain = Chain::new(members);
        chain.batch(&[put(b"a", b"1"), put(b"b", b"2")]);
        chain.settle();
        assert_eq!(chain.batch_reply(), (Code::Ok, 1, 0));
        let delete = Step { change: Change::Delete, ..put(b"b", b"") };
        let steps = [
            on(Condition::Version(Version::new(1)), put(b"a", b"3")),
            on(Condition::Present, delete),
            check(b"c", Condition::Absent),
        ];
        chain.batch(&steps);
        chain.settle();
        assert_eq!(chain.batch_reply(), (Code::Ok, 2, 0));
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
        assert_eq!(chain.get(b"b"), None);
        chain.batch(&[put(b"b", b"4"), on(Condition::Version(Version::new(1)), put(b"a", b"5"))]);
        chain.settle();
        assert_eq!(chain.batch_reply(), (Code::CasMismatch, 0, 1));
        chain.batch(&[check(b"b", Condition::Present), put(b"a", b"5")]);
        chain.settle();
        assert_eq!(chain.batch_reply(), (Code::CasMismatch, 0, 0));
        assert_eq!(chain.get(b"b"), None);
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
        assert_eq!(chain.nodes.iter().map(Node::pending).sum::<usize>(), 0);
    }
}

#[test]
fn a_batch_makes_values_of_parts_if_all_of_them_are_there() {
    let mut chain = Chain::of(3, KeyspaceKind::Hash);
    let seal = |key, manifest| {
        let change = Change::Put { value: manifest, expiry_ms: EXPIRY_BIG };
        Step { change, ..put(key, b"") }
    };
    let [first, second, third] = [1, 2, 3].map(|number| manifest(number, 2));
    for (key, number, parts) in [(b"a", 1, 2), (b"b", 2, 1)] {
        (0..parts).for_each(|index| chain.put_part(key, number, index));
    }
    chain.settle();
    chain.replies.clear();
    let both = [seal(b"a", &first), seal(b"b", &second)];
    chain.batch(&both);
    chain.settle();
    assert_eq!(chain.batch_reply().0, Code::PartsMissing, "of the second one is missing");
    assert_eq!((chain.get(b"a"), chain.get(b"b")), (None, None));
    chain.put_part(b"b", 2, 1);
    chain.batch(&both);
    assert_eq!(chain.batch_reply().0, Code::Settling, "it is on its way");
    chain.settle();
    chain.replies.clear();
    chain.batch(&both);
    chain.settle();
    assert_eq!(chain.batch_reply().0, Code::Ok);
    assert_eq!(chain.get(b"a").as_deref(), Some(&first[..]));
    assert_eq!(chain.get(b"b").as_deref(), Some(&second[..]));
    // What a batch that is pending makes a value, nobody makes one once more.
    (0..2).for_each(|index| chain.put_part(b"a", 3, index));
    chain.settle();
    chain.replies.clear();
    chain.batch(&[seal(b"a", &third), put(b"b", b"1")]);
    chain.batch(&[seal(b"a", &third)]);
    chain.settle();
    let codes: Vec<Code> = chain.replies.drain(..).map(|reply| reply.code).collect();
    assert_eq!(codes, [Code::Ok, Code::PartsMissing]);
    // Parts themselves are no steps, and what is no manifest is no value of parts.
    let part = PartKey { key: b"a", upload: UploadBody { client: CLIENT, number: 1 }, index: 0 };
    for step in [put(&part.to_bytes(), b"p"), seal(b"a", b"no manifest")] {
        chain.batch(&[step]);
        assert_eq!(chain.batch_reply().0, Code::BadRequest);
    }
}

/// The switch counts the first key of a batch alone, and nobody wants to know of keys that are not
/// hot.
#[test]
fn writes_of_a_hot_key_that_are_later_steps_are_told_of_once_by_the_head() {
    let mut chain = Chain::hot_of(3);
    for _ in 0..20 {
        chain.batch(&[put(HOT, b"1"), put(b"cold", b"1")]);
        chain.batch(&[put(b"cold", b"1"), check(HOT, Condition::Any)]);
        chain.batch(&[put(b"cold", b"1"), put(HOT, b"1")]);
    }
    let later = chain.now + MS * 100;
    let told = |node: &Node<Noted>| node.report(later).hot;
    let of_head = told(&chain.nodes[0]);
    let steps = of_head.iter().map(|it| (&it.key[..], it.writes, it.steps));
    assert_eq!(steps.collect::<Vec<_>>(), [(&b"cold"[..], 600, 0), (HOT, 600, 200)]);
    assert!(chain.nodes[1..].iter().all(|node| told(node).is_empty()));
}

#[test]
fn a_retry_of_a_batch_is_answered_and_not_applied() {
    let mut chain = Chain::new(3);
    let seq = chain.batch(&[on(Condition::Absent, put(b"a", b"1")), put(b"b", b"1")]);
    chain.lag = 2;
    chain.batch_again(seq, &[on(Condition::Absent, put(b"a", b"1")), put(b"b", b"1")]);
    chain.settle();
    assert_eq!(chain.batch_reply().0, Code::Ok, "while it is pending, nobody else answers");
    let failed = chain.batch(&[put(b"b", b"2"), check(b"a", Condition::Absent)]);
    chain.settle();
    assert_eq!(chain.batch_reply(), (Code::CasMismatch, 0, 1));
    chain.batch_again(seq, &[on(Condition::Absent, put(b"a", b"1")), put(b"b", b"1")]);
    assert_eq!(chain.batch_reply(), (Code::Ok, 1, 0));
    chain.del(b"a");
    chain.settle();
    chain.only_reply();
    chain.batch_again(failed, &[put(b"b", b"2"), check(b"a", Condition::Absent)]);
    assert_eq!(chain.batch_reply(), (Code::CasMismatch, 0, 1), "as it was then");
    assert_eq!(chain.get(b"b").as_deref(), Some(&b"1"[..]));
}

#[test]
fn what_is_written_after_a_batch_does_not_overtake_it() {
    let mut chain = Chain::new(2);
    chain.put(b"a", b"0");
    chain.settle();
    chain.only_reply();
    chain.batch(&[check(b"a", Condition::Present), put(b"b", b"1")]);
    let late = chain.wires.pop_front().unwrap();
    // Neither a plain write of what it only checked nor one behind that.
    chain.put(b"a", b"1");
    chain.incr(b"a", 1);
    chain.settle();
    assert!(chain.replies.is_empty(), "{:?}", chain.replies);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"0"[..]));
    chain.wires.push_back(late);
    chain.settle();
    chain.pass(60 * MS);
    chain.settle();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"2"[..]));
    assert_eq!(chain.get(b"b").as_deref(), Some(&b"1"[..]));
    assert_eq!(chain.nodes.iter().map(Node::pending).sum::<usize>(), 0);
}

#[test]
fn a_batch_waits_for_everything_that_it_was_computed_from() {
    let mut chain = Chain::new(2);
    chain.put(b"a", b"1");
    let late = chain.wires.pop_front().unwrap();
    chain.put(b"b", b"2");
    chain.settle();
    chain.only_reply();
    chain.batch(&[
        check(b"b", Condition::Version(Version::new(2))),
        on(Condition::Version(Version::new(1)), put(b"a", b"3")),
    ]);
    chain.settle();
    assert!(chain.replies.is_empty(), "the tail does not know of a's first value");
    chain.wires.push_back(late);
    chain.settle();
    chain.replies.clear();
    chain.pass(60 * MS);
    chain.settle();
    assert_eq!(chain.batch_reply(), (Code::Ok, 3, 0));
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
}

#[test]
fn an_expired_value_is_absent_to_a_batch() {
    let mut chain = Chain::new(2);
    let seq = chain.next();
    let expiry_ms = chain.now.unix_ms() + 10;
    chain.put_again(seq, b"a", b"1", expiry_ms);
    chain.settle();
    chain.only_reply();
    chain.now = chain.now + 20 * MS;
    chain.batch(&[put(b"b", b"1"), check(b"a", Condition::Absent)]);
    chain.settle();
    assert_eq!(chain.batch_reply(), (Code::Ok, 3, 0), "version 2 is the end of the value");
}

#[test]
fn a_batch_of_a_hot_key_is_shown_when_the_switch_lets_nobody_answer_below_it() {
    for members in [1, 3] {
        let mut chain = Chain::hot_of(members);
        let before = chain.get(b"b");
        chain.batch(&[put(b"b", b"1"), put(HOT, b"2")]);
        assert_eq!(chain.under_way(Op::HotPublish), 1);
        assert_eq!(chain.under_way(Op::ChainWrite), 0, "the head keeps it back");
        chain.put(b"b", b"9");
        chain.settle_without(Op::HotPublish);
        assert!(chain.replies.is_empty(), "what comes after it waits: {:?}", chain.replies);
        assert_eq!(chain.get(b"b"), before);
        chain.pass(300 * MS);
        assert!(chain.under_way(Op::HotPublish) > 0, "asked for again");
        chain.settle();
        chain.pass(300 * MS);
        chain.settle();
        assert_eq!(chain.get(HOT).as_deref(), Some(&b"2"[..]));
        assert_eq!(chain.get(b"b").as_deref(), Some(&b"9"[..]));
        let codes: Vec<Code> = chain.replies.iter().map(|reply| reply.code).collect();
        assert_eq!(codes, [Code::Ok; 2]);
        assert_eq!(chain.nodes.iter().map(Node::pending).sum::<usize>(), 0);
    }
}

#[test]
fn a_hot_key_that_is_only_checked_is_published_as_it_was_found() {
    let mut chain = Chain::hot_of(3);
    chain.batch(&[put(b"b", b"1"), check(HOT, Condition::Version(Version::new(1)))]);
    let (_, _, publish) = chain.wires.front().unwrap();
    let header = Header::read(Packet::parse(publish).unwrap().header());
    assert_eq!(
        (header.op, HotAnswer::of(&header).version),
        (Op::HotPublish as u8, Version::new(1))
    );
    chain.settle();
    assert_eq!(chain.batch_reply().0, Code::Ok);
    // What a failed one has found is published as well.
    chain.put(HOT, b"2");
    chain.run();
    let newest = chain.replies.pop().unwrap().version;
    chain.replies.clear();
    chain.batch(&[put(b"b", b"1"), check(HOT, Condition::Version(Version::new(1)))]);
    let (_, _, publish) = chain.wires.front().unwrap();
    let header = Header::read(Packet::parse(publish).unwrap().header());
    assert_eq!(
        (header.op, HotAnswer::of(&header).version),
        (Op::HotPublish as u8, Version::new(newest))
    );
    chain.settle();
    assert_eq!(chain.batch_reply(), (Code::CasMismatch, 0, 1));
}

#[test]
fn keys_that_are_not_together_are_refused() {
    let mut chain = Chain::of(1, KeyspaceKind::Hash);
    let (mine, other) = (b"{t}a", b"{t}b");
    let whole = chain.map.partitions[0].clone();
    let at = chain.map.keyspaces[0].match_value(mine);
    let first = Partition { last: at, epoch: Epoch(5), ..whole.clone() };
    let second = Partition { id: PartitionId(2), first: Match(at.0 + 1), ..whole };
    chain.map.partitions = vec![first, second];
    chain.map.revision = Revision::new(2);
    let beyond = (0..).map(|n| format!("k{n}").into_bytes());
    let beyond = beyond.into_iter().find(|key| chain.map.keyspaces[0].match_value(key) > at);
    chain.install();
    chain.batch(&[put(mine, b"1"), put(other, b"1")]);
    assert_eq!(chain.batch_reply().0, Code::Ok);
    chain.batch(&[put(mine, b"2"), put(&beyond.unwrap(), b"1")]);
    assert_eq!(chain.batch_reply().0, Code::NotTogether);
    assert_eq!(chain.get(mine).as_deref(), Some(&b"1"[..]));
}

#[test]
fn parts_of_big_values_are_no_business_of_batches() {
    let mut chain = Chain::new(3);
    let upload = wire::UploadBody { client: 1, number: 1 };
    let part = wire::PartKey { key: b"a", upload, index: 0 }.to_bytes();
    let change = Change::Put { value: b"", expiry_ms: wire::big::EXPIRY_BIG };
    for step in [put(&part, b"1"), Step { change, ..put(b"a", b"") }] {
        chain.batch(&[put(b"a", b"1"), step]);
        chain.settle();
        assert_eq!(chain.batch_reply().0, Code::BadRequest);
        assert_eq!(chain.get(b"a"), None);
    }
}

#[test]
fn the_bytes_of_batches_are_counted_as_those_of_other_requests() {
    let mut chain = Chain::new(1);
    chain.batch(&[put(b"a", &[1; 100]), put(b"b", &[2; 100])]);
    chain.settle();
    let [count] = chain.nodes[0].report(chain.now).counts[..] else { panic!("one partition") };
    assert!(count.bytes_in > 200, "{count:?}");
}
