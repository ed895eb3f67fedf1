//! A tail lends keys to a cache: what it says, for what writes and reads wait, and when that ends.

mod either;

use super::*;
use cluster::{CacheId, CacheSpec};
use wire::{CacheAnswerBody, CacheCopy, CacheMessage, CacheRenewBody, LoanNumber};

/// The incarnation of the cache.
const BORROWER: u64 = 900;

/// What a tail has told the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LenderMessage {
    Lent { loan: u64, from: u64, version: u64, value: Vec<u8>, ends: u64, ms: u32 },
    NotLent(Code),
    Granted { from: u64, ms: u32 },
    Update { loan: u64, version: u64, value: Vec<u8>, ends: u64 },
    Recall { loan: u64, key: Vec<u8> },
}

/// A chain whose keyspace is to be cached, with a cache.
fn chain(count: u16) -> Chain {
    let mut chain = Chain::new(count);
    chain.map.keyspaces[0].hot = HotPolicy::Cache;
    chain.map.caches = vec![CacheSpec { id: CacheId(0), endpoint: port(CACHE), shards: 1 }];
    chain.map.revision = Revision::new(2);
    chain.map.check().unwrap();
    chain.install();
    chain
}

impl Chain {
    fn tail(&self) -> usize {
        usize::from(self.map.partitions[0].tail().unwrap().0)
    }

    /// The cache says something to the tail.
    fn say(&mut self, op: Op, borrower: u64, key: &[u8], seq: u64, version: u64, body: &[u8]) {
        let header = self.stamped(Op::Get, key, seq);
        let mut header = Header { op: op as u8, client: borrower, chain_len: 0, node: 0, ..header };
        CacheCopy { version: wire::Version::new(version) }.put(&mut header);
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[body, key]);
        let tail = self.tail();
        self.deliver(tail, port(CACHE), &datagram);
    }

    fn fetch(&mut self, borrower: u64, key: &[u8]) -> LenderMessage {
        self.say(Op::CacheFetch, borrower, key, 7, 0, &[]);
        self.told().pop().expect("it is answered")
    }

    fn lender(&self) -> u64 {
        self.tail() as u64
    }

    fn answer(&mut self, key: &[u8], loan: u64, held: Option<u64>) {
        let lender = self.lender();
        let fixed =
            CacheAnswerBody { lender, loan: LoanNumber::new(loan), held: held.is_some().into() };
        self.say(Op::CacheAnswer, BORROWER, key, 0, held.unwrap_or(0), &fixed.to_bytes());
    }

    fn renew(&mut self) -> Vec<LenderMessage> {
        let fixed = CacheRenewBody { lender: self.lender() }.to_bytes();
        self.say(Op::CacheRenew, BORROWER, &[], 8, 0, &fixed);
        self.told()
    }

    /// What the cache was told since it was looked at last, but for reports.
    fn told(&mut self) -> Vec<LenderMessage> {
        let sent = std::mem::take(&mut self.to_cache);
        sent.iter().filter_map(|datagram| told(datagram)).collect()
    }

    fn read(&mut self, key: &[u8]) {
        let seq = self.next();
        let header = self.stamped(Op::Get, key, seq);
        self.send(&header, &[key]);
    }
}

fn told(datagram: &[u8]) -> Option<LenderMessage> {
    let packet = Packet::parse(datagram).unwrap();
    let header = Header::read(packet.header());
    let version = CacheCopy::of(&header).version.get();
    let Body::Cache(message) = packet.body().unwrap() else { panic!("{packet:?}") };
    Some(match message {
        CacheMessage::Loan { fixed, value, .. } => LenderMessage::Lent {
            loan: fixed.loan.get(),
            from: fixed.from.get(),
            version,
            value: value.to_vec(),
            ends: fixed.expiry_ms,
            ms: fixed.lasts_ms,
        },
        CacheMessage::NoLoan { .. } => {
            LenderMessage::NotLent(Code::from_wire(header.code).unwrap())
        }
        CacheMessage::Grant(fixed) => {
            LenderMessage::Granted { from: fixed.from.get(), ms: fixed.lasts_ms }
        }
        CacheMessage::Update { fixed, value, .. } => LenderMessage::Update {
            loan: fixed.loan.get(),
            version,
            value: value.to_vec(),
            ends: fixed.expiry_ms,
        },
        CacheMessage::Recall { fixed, key } => {
            LenderMessage::Recall { loan: fixed.loan.get(), key: key.to_vec() }
        }
        CacheMessage::Report(_) => return None,
        other => panic!("a tail does not say {other:?}"),
    })
}

/// A key that is lent, in its first version.
fn lent(count: u16) -> Chain {
    let mut chain = chain(count);
    chain.put(b"k", b"one");
    chain.settle();
    chain.replies.clear();
    let told = chain.fetch(BORROWER, b"k");
    let value = b"one".to_vec();
    assert_eq!(told, LenderMessage::Lent { loan: 1, from: 1, version: 1, value, ends: 0, ms: 300 });
    chain
}

fn update(loan: u64, version: u64, value: &[u8]) -> LenderMessage {
    LenderMessage::Update { loan, version, value: value.to_vec(), ends: 0 }
}

#[test]
fn a_write_of_what_is_lent_waits_for_the_cache_and_reads_at_the_tail_wait_too() {
    for count in [1, 3] {
        let mut chain = lent(count);
        chain.put(b"k", b"two");
        chain.settle();
        assert_eq!(chain.told(), [update(1, 2, b"two")], "{count}");
        chain.read(b"k");
        assert!(chain.replies.is_empty(), "neither the old value nor the new: {count}");
        chain.read(b"other");
        assert_eq!(chain.only_reply().code, Code::NotFound, "nothing else waits");
        chain.answer(b"k", 1, Some(2));
        chain.settle();
        let replies: Vec<(Op, u64)> = chain.replies.iter().map(|it| (it.op, it.version)).collect();
        assert_eq!(replies, [(Op::PutReply, 2), (Op::GetReply, 2)], "{count}");
    }
}

#[test]
fn a_cache_that_does_not_answer_is_told_again_and_waited_for_until_its_lease_is_over() {
    let mut chain = lent(2);
    chain.put(b"k", b"two");
    chain.settle();
    assert_eq!(chain.told().len(), 1);
    chain.pass(MS * 5);
    assert_eq!(chain.told(), [update(1, 2, b"two")]);
    chain.pass(MS * 300);
    chain.settle();
    assert!(chain.replies.is_empty(), "its clock may be slow");
    chain.pass(MS * 6);
    chain.settle();
    assert_eq!(chain.only_reply().op, Op::PutReply);
    chain.told();
    let LenderMessage::Lent { loan, from, .. } = chain.fetch(BORROWER, b"k") else { panic!() };
    assert_eq!((loan, from), (2, 2), "what was lent before is void");
}

#[test]
fn a_lease_is_renewed_but_not_for_a_cache_that_owes_an_answer_for_long() {
    let mut chain = lent(2);
    chain.pass(MS * 100);
    assert_eq!(chain.renew(), [LenderMessage::Granted { from: 1, ms: 300 }]);
    chain.put(b"k", b"two");
    chain.settle();
    chain.told();
    assert_eq!(chain.renew(), [LenderMessage::Granted { from: 1, ms: 300 }], "it may answer yet");
    chain.pass(MS * 40);
    chain.told();
    assert_eq!(chain.renew(), []);
}

#[test]
fn who_says_not_to_hold_a_key_is_not_waited_for_and_holds_none_of_its_loans() {
    let mut chain = lent(2);
    let LenderMessage::Lent { loan: 2, .. } = chain.fetch(BORROWER, b"k") else { panic!() };
    chain.answer(b"k", 1, None);
    chain.put(b"k", b"two");
    chain.settle();
    assert_eq!(chain.told(), [update(2, 2, b"two")], "a late word ends no newer loan");
    chain.answer(b"k", 2, None);
    chain.settle();
    assert_eq!(chain.only_reply().op, Op::PutReply);
    chain.put(b"k", b"three");
    chain.settle();
    assert_eq!((chain.told(), chain.only_reply().version), (vec![], 3));
}

#[test]
fn a_key_has_one_holder_until_its_loan_is_over() {
    let mut chain = lent(2);
    let not_now = LenderMessage::NotLent(Code::NotServing);
    assert_eq!(chain.fetch(BORROWER + 1, b"k"), not_now, "another incarnation is another cache");
    chain.answer(b"k", 1, None);
    assert!(matches!(chain.fetch(BORROWER + 1, b"k"), LenderMessage::Lent { loan: 2, .. }));
}

#[test]
fn deletions_are_not_shown_by_a_cache_and_values_in_parts_are_not_lent() {
    let recalled = |chain: &mut Chain| {
        chain.settle();
        assert_eq!(chain.told(), [LenderMessage::Recall { loan: 1, key: b"k".to_vec() }]);
        assert!(chain.replies.is_empty());
        chain.answer(b"k", 1, None);
        chain.settle();
        assert_eq!(chain.only_reply().code, Code::Ok);
    };
    let mut chain = lent(2);
    chain.del(b"k");
    recalled(&mut chain);
    assert_eq!(
        chain.fetch(BORROWER, b"k"),
        LenderMessage::NotLent(Code::NotFound),
        "there is no value"
    );
    let mut chain = lent(2);
    chain.put_big(b"k", 1, 1);
    recalled(&mut chain);
    assert_eq!(
        chain.fetch(BORROWER, b"k"),
        LenderMessage::NotLent(Code::NotFound),
        "it is a manifest"
    );
}

#[test]
fn a_value_that_ends_is_lent_with_its_end_and_called_back_when_that_has_come() {
    let mut chain = lent(2);
    let ends = chain.now.unix_ms() + 200;
    let seq = chain.next();
    chain.put_again(seq, b"k", b"two", ends);
    chain.settle();
    assert_eq!(
        chain.told(),
        [LenderMessage::Update { loan: 1, version: 2, value: b"two".to_vec(), ends }]
    );
    chain.answer(b"k", 1, Some(2));
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::Ok);
    let told = chain.fetch(BORROWER, b"k");
    let value = b"two".to_vec();
    assert_eq!(told, LenderMessage::Lent { loan: 2, from: 1, version: 2, value, ends, ms: 300 });
    chain.now = chain.now + MS * 200;
    assert_eq!(chain.fetch(BORROWER, b"k"), LenderMessage::NotLent(Code::NotFound), "it has ended");
    chain.read(b"k");
    chain.settle();
    let told = chain.told();
    assert_eq!(
        told,
        [LenderMessage::Recall { loan: 2, key: b"k".to_vec() }],
        "the tombstone waits"
    );
    assert_eq!(chain.only_reply().code, Code::Expiring);
    chain.read(b"k");
    assert!(chain.replies.is_empty(), "a cache may show neither, and nor does the tail");
    chain.answer(b"k", 2, None);
    chain.settle();
    assert_eq!(chain.only_reply().code, Code::NotFound);
}

#[test]
fn writes_that_come_meanwhile_are_told_together_and_reads_come_between() {
    let mut chain = lent(2);
    for value in [b"2", b"3", b"4"] {
        chain.put(b"k", value);
    }
    chain.settle();
    assert_eq!(chain.told(), [update(1, 2, b"2")]);
    chain.read(b"k");
    chain.answer(b"k", 1, Some(2));
    chain.settle();
    let replies: Vec<(Op, u64)> = chain.replies.drain(..).map(|it| (it.op, it.version)).collect();
    assert_eq!(replies, [(Op::PutReply, 2), (Op::GetReply, 2)]);
    assert_eq!(chain.told(), [update(1, 4, b"4")], "the newest, and nothing between");
    chain.answer(b"k", 1, Some(4));
    chain.settle();
    let replies: Vec<(Op, u64)> = chain.replies.drain(..).map(|it| (it.op, it.version)).collect();
    assert_eq!(replies, [(Op::PutReply, 3), (Op::PutReply, 4)]);
}

#[test]
fn a_partition_changes_its_epoch_when_all_of_its_loans_are_over() {
    let mut chain = lent(2);
    let tail = chain.tail();
    let before = chain.map.clone();
    chain.map.revision = Revision::new(3);
    chain.map.partitions[0].epoch = Epoch(5);
    chain.map.partitions[0].open = false;
    chain.install();
    let now = chain.now;
    assert_eq!(chain.nodes[tail].report(now).revision, Revision::new(2), "it waits");
    assert_eq!(chain.told(), [LenderMessage::Recall { loan: 1, key: vec![] }]);
    let after = std::mem::replace(&mut chain.map, before);
    assert_eq!(chain.fetch(BORROWER, b"k"), LenderMessage::NotLent(Code::NotServing));
    chain.answer(&[], 1, None);
    chain.map = after;
    chain.pass(MS * 5);
    let now = chain.now;
    assert_eq!(chain.nodes[tail].report(now).revision, Revision::new(3));
}

#[test]
fn a_cache_that_is_gone_holds_up_a_change_for_as_long_as_its_lease() {
    let mut chain = lent(2);
    let tail = chain.tail();
    chain.map.revision = Revision::new(3);
    chain.map.partitions[0].epoch = Epoch(5);
    chain.install();
    chain.pass(MS * 305);
    let now = chain.now;
    assert_eq!(chain.nodes[tail].report(now).revision, Revision::new(2));
    chain.pass(MS * 5);
    let now = chain.now;
    assert_eq!(chain.nodes[tail].report(now).revision, Revision::new(3));
}

#[test]
fn nothing_is_lent_without_the_right_to_or_in_a_keyspace_that_is_not_cached() {
    let mut chain = Chain::new(1);
    chain.map.caches = vec![CacheSpec { id: CacheId(0), endpoint: port(CACHE), shards: 1 }];
    chain.map.revision = Revision::new(2);
    chain.install();
    chain.put(b"k", b"one");
    assert_eq!(chain.fetch(BORROWER, b"k"), LenderMessage::NotLent(Code::NotFound));
    let header = chain.stamped(Op::Get, b"k", 1);
    let header = Header { op: Op::CacheFetch as u8, client: BORROWER, chain_len: 0, ..header };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"k"]);
    chain.deliver(0, port(77), &datagram);
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::NotFromMember), 1);
}

#[test]
fn a_miss_is_believed_from_caches_and_answered_through_the_switch() {
    let mut chain = lent(1);
    let seq = chain.next();
    let header = chain.stamped(Op::Get, b"k", seq);
    let header = Header { hop_flags: wire::hop_flag::MISSED, ..header };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"k"]);
    chain.deliver(0, port(CACHE), &datagram);
    assert_eq!(chain.only_reply().version, 1);
    chain.deliver(0, port(77), &datagram);
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::NotFromSwitch), 1);
}

/// The keys that the cache was told of since it was looked at last, with how often each is read.
fn reported(chain: &mut Chain) -> Vec<(Vec<u8>, u32)> {
    let mut reported = Vec::new();
    for datagram in std::mem::take(&mut chain.to_cache) {
        let packet = Packet::parse(&datagram).unwrap();
        let Ok(Body::Cache(CacheMessage::Report(keys))) = packet.body() else { continue };
        for (it, key) in keys.iter() {
            let header = chain.stamped(Op::Get, key, 1);
            let place = (it.keyspace, it.partition, it.epoch, it.match_value, it.keyhash);
            let Header { keyspace, partition, epoch, match_value, keyhash, .. } = header;
            assert_eq!(place, (keyspace, partition, epoch, match_value, keyhash));
            reported.push((key.to_vec(), it.rate));
        }
    }
    reported
}

#[test]
fn a_node_tells_its_cache_each_second_which_keys_are_read_most() {
    let mut chain = lent(1);
    chain.pass(MS * 1_000);
    chain.to_cache.clear();
    for _ in 0..100 {
        chain.get(b"k");
        // That no cache could have answered.
        let seq = chain.next();
        let header = chain.stamped(Op::Get, b"tail", seq);
        chain.send(&Header { flags: wire::flag::AT_HOME, ..header }, &[b"tail"]);
        chain.put(b"written", b"much");
    }
    (0..20).for_each(|_| drop(chain.get(b"less")));
    chain.pass(MS * 900);
    assert_eq!(reported(&mut chain), []);
    assert_eq!(chain.nodes[0].report_due(), Some(chain.now + MS * 100));
    chain.pass(MS * 100);
    assert_eq!(reported(&mut chain), [(b"k".to_vec(), 50), (b"less".to_vec(), 10)]);
    chain.map.keyspaces[0].hot = HotPolicy::Replicate;
    chain.map.revision = Revision::new(3);
    chain.install();
    (0..100).for_each(|_| drop(chain.get(b"k")));
    chain.pass(MS * 1_000);
    assert_eq!(reported(&mut chain), [], "it may not be cached any more");
    assert_eq!(Chain::new(1).nodes[0].report_due(), None, "there is no cache");
}

#[test]
fn each_shard_of_a_cache_is_a_borrower_of_its_own_and_told_of_its_own_keys() {
    let mut chain = lent(1);
    chain.map.caches[0].shards = 2;
    chain.map.revision = Revision::new(3);
    chain.install();
    chain.put(b"other", b"two");
    chain.settle();
    chain.replies.clear();
    // What the node says to the second shard, which asks for a key.
    let second = |chain: &mut Chain, key: &[u8]| {
        let header = chain.stamped(Op::Get, key, 7);
        let op = Op::CacheFetch as u8;
        let header = Header { op, client: BORROWER, chain_len: 0, node: 0, ..header };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[key]);
        let node = &mut chain.nodes[0];
        node.handle_packet(chain.now, port(CACHE + 1), 0, &datagram);
        node.flush().unwrap();
        let sent = node.poll_transmit().expect("it is answered");
        assert_eq!(sent.to, port(CACHE + 1));
        told(sent.payload).expect("it is about a loan")
    };
    let refused = LenderMessage::NotLent(Code::NotServing);
    assert_eq!(second(&mut chain, b"k"), refused, "the first shard holds it");
    let LenderMessage::Lent { .. } = second(&mut chain, b"other") else { panic!("not lent") };
    assert_eq!(chain.fetch(BORROWER, b"other"), refused, "the second shard holds it");
    let spec = chain.map.caches[0];
    let keys: Vec<Vec<u8>> = (0..16_u8).map(|it| vec![b'a' + it; 5]).collect();
    let keyspace = chain.map.keyspaces[0].clone();
    for key in &keys {
        (0..3).for_each(|_| drop(chain.get(key)));
    }
    chain.now = chain.now + MS * 1_000;
    let now = chain.now;
    chain.nodes[0].handle_timeout(now);
    chain.nodes[0].flush().unwrap();
    let mut heard = 0;
    while let Some(sent) = chain.nodes[0].poll_transmit() {
        let packet = Packet::parse(sent.payload).unwrap();
        let Ok(Body::Cache(CacheMessage::Report(reports))) = packet.body() else { continue };
        let shard = spec.shard_at(sent.to).expect("to a shard of the cache");
        for (_, key) in reports.iter() {
            assert_eq!(spec.shard_of(keyspace.keyhash(key)), shard, "{key:?}");
            heard += 1;
        }
    }
    assert_eq!(heard, keys.len());
}

#[test]
fn no_burst_alerts_the_controller_where_caches_are_to_hold_keys() {
    let mut chain = chain(1);
    let burst = |chain: &mut Chain| {
        let before = chain.nodes[0].alerts();
        (0..64).for_each(|_| drop(chain.get(b"k")));
        for _ in 0..64 {
            chain.put(b"k", b"much");
        }
        chain.nodes[0].alerts() - before
    };
    assert_eq!(burst(&mut chain), 0, "the controller can do nothing about it");
    chain.map.keyspaces[0].hot = HotPolicy::Replicate;
    chain.map.revision = Revision::new(3);
    chain.install();
    assert!(burst(&mut chain) > 0);
}

#[test]
fn a_loaded_node_tells_its_cache_at_once_of_a_key_that_is_suddenly_read_much() {
    let mut chain = lent(3);
    chain.to_cache.clear();
    let tail = chain.tail();
    let read = |chain: &mut Chain, waiting: u16| {
        let seq = chain.next();
        let header = chain.stamped(Op::Get, b"k", seq);
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[b"k"]);
        chain.nodes[tail].handle_packet(chain.now, port(SWITCH), waiting, &datagram);
        chain.drain(tail);
    };
    chain.now = chain.now + MS * 100;
    (0..20).for_each(|_| read(&mut chain, 0));
    assert_eq!(reported(&mut chain), [], "it has little to do");
    read(&mut chain, 10);
    assert_eq!(reported(&mut chain), [(b"k".to_vec(), 210)]);
    (0..20).for_each(|_| read(&mut chain, 10));
    assert_eq!(reported(&mut chain), [], "once is enough");
}
