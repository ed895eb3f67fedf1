//! Writes go on before they are on disk, and the last of a chain commits what all have there.

use super::*;
use wire::ChainWrite;

impl Chain {
    /// A chain whose nodes sync apart and send writes on early; all of that is durable.
    fn early(count: u16) -> Self {
        let mut chain = Self::new(count);
        chain.sync_apart();
        chain.map.partitions[0].sends_early = true;
        chain.next_epoch(true);
        chain.sync_all();
        chain
    }

    /// The next epoch, open or closed.
    fn next_epoch(&mut self, open: bool) {
        self.map.revision = Revision::new(self.map.revision.get() + 1);
        let partition = &mut self.map.partitions[0];
        partition.epoch = Epoch(partition.epoch.0 + 1);
        (partition.open, partition.opened) =
            (open, if open { partition.epoch } else { partition.opened });
        self.install();
    }

    /// Every sync ends, and everything comes, until nothing is left to do, also what can wait.
    pub(super) fn sync_all(&mut self) {
        for _ in 0..4 {
            while !self.wires.is_empty() || self.nodes.iter().any(Node::is_syncing) {
                self.settle();
                for index in 0..self.nodes.len() {
                    self.end_sync(index);
                }
            }
            self.pass(5 * MS);
        }
    }

    /// The messages of an operation that are on their way, and take them away.
    fn take_wires(&mut self, op: Op) -> Vec<Vec<u8>> {
        let is_it = |bytes: &[u8]| Packet::parse(bytes).unwrap().op() == op;
        let (taken, left) = self.wires.drain(..).partition(|(_, _, bytes)| is_it(bytes));
        self.wires = left;
        let taken: VecDeque<(Endpoint, Endpoint, Vec<u8>)> = taken;
        taken.into_iter().map(|(_, _, bytes)| bytes).collect()
    }

    fn all_settled(&self) -> Vec<Settled> {
        self.nodes.iter().flat_map(|node| node.report(self.now).settled).collect()
    }
}

#[test]
fn a_write_goes_down_at_once_and_is_answered_when_all_have_it_on_disk() {
    for last_to_sync in 0..3 {
        let mut chain = Chain::early(3);
        chain.put(b"a", b"1");
        chain.settle();
        assert!(chain.nodes.iter().all(|node| node.is_syncing() && node.pending() == 1));
        for index in (0..3).filter(|index| *index != last_to_sync) {
            chain.end_sync(index);
            chain.settle();
        }
        assert!(chain.replies.is_empty(), "node {last_to_sync} could lose it");
        chain.end_sync(last_to_sync);
        chain.settle();
        assert_eq!(chain.only_reply().version, 1, "one sync is enough");
        assert!(!chain.nodes[2].is_syncing(), "nobody waits for what it has committed");
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
        chain.sync_all();
        assert_eq!(chain.nodes.iter().map(Node::pending).sum::<usize>(), 0);
        assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    }
}

#[test]
fn a_write_says_who_does_not_have_it_on_disk() {
    let mut chain = Chain::early(3);
    chain.put(b"a", b"1");
    let unsynced = |bytes: &[u8]| {
        ChainWrite::of(&Header::read(Packet::parse(bytes).unwrap().header())).unsynced
    };
    assert_eq!(unsynced(&chain.wires[0].2), 0b001);
    chain.deliver_wire(0);
    assert_eq!(unsynced(&chain.wires[0].2), 0b011);
    // When it is sent again after that it has.
    chain.wires.clear();
    chain.end_sync(0);
    chain.wires.clear();
    chain.pass(60 * MS);
    let again = chain.take_wires(Op::ChainWrite);
    assert_eq!(again.iter().map(|bytes| unsynced(bytes)).collect::<Vec<_>>(), [0b000, 0b011]);
}

#[test]
fn what_is_lost_of_what_disks_have_is_said_again() {
    let mut chain = Chain::early(3);
    chain.put(b"a", b"1");
    chain.settle();
    for index in 0..3 {
        chain.end_sync(index);
        assert_eq!(chain.take_wires(Op::ChainDurable).len(), usize::from(index < 2));
        chain.settle();
    }
    assert!(chain.replies.is_empty());
    for _ in 0..4 {
        chain.pass(200 * MS);
        chain.sync_all();
    }
    assert_eq!(chain.only_reply().version, 1);
}

#[test]
fn what_disks_have_may_be_known_before_the_write_has_come() {
    let mut chain = Chain::early(3);
    chain.put(b"a", b"1");
    chain.deliver_wire(0);
    let (from, to, write) = chain.wires.pop_front().unwrap();
    chain.end_sync(0);
    chain.end_sync(1);
    chain.settle();
    chain.wires.push_back((from, to, write));
    chain.settle();
    assert!(chain.replies.is_empty());
    chain.end_sync(2);
    assert_eq!(chain.only_reply().version, 1);
}

#[test]
fn what_a_write_was_computed_from_is_committed_with_it() {
    let mut chain = Chain::early(2);
    chain.incr(b"n", 1);
    chain.settle();
    chain.incr(b"n", 1);
    chain.settle();
    // The first sync has the first, the next one the second. Of the first nothing is heard.
    chain.end_sync(0);
    assert_eq!(chain.take_wires(Op::ChainDurable).len(), 1);
    chain.end_sync(1);
    chain.end_sync(0);
    chain.end_sync(1);
    assert!(chain.replies.is_empty());
    chain.settle();
    let versions: Vec<u64> = chain.replies.iter().map(|reply| reply.version).collect();
    assert_eq!(versions, [1, 2]);
    chain.replies.clear();
    assert_eq!(chain.get(b"n").as_deref(), Some(&b"2"[..]));
}

#[test]
fn what_a_closed_head_does_not_have_is_offered_to_it() {
    let mut chain = Chain::early(3);
    // A write that only the others have: the head lost it in a crash.
    chain.put(b"a", b"1");
    let write = chain.take_wires(Op::ChainWrite);
    let mut other = Chain::early(3);
    let head = other.map.nodes[0].endpoint;
    other.deliver(1, head, &write[0]);
    other.settle();
    assert_eq!(other.nodes.iter().map(Node::pending).collect::<Vec<_>>(), [0, 1, 1]);
    other.next_epoch(false);
    let settled = |chain: &Chain| chain.all_settled().len();
    for index in 0..3 {
        other.end_sync(index);
    }
    assert_eq!(settled(&other), 0, "the head waits for what the others have");
    other.sync_all();
    let settled = other.all_settled();
    assert!(settled.len() == 3 && settled.iter().all(|it| it.history == settled[0].history));
    assert_eq!(settled[0].newest.get(), 1);
    other.next_epoch(true);
    other.sync_all();
    other.replies.clear();
    assert_eq!(other.get(b"a").as_deref(), Some(&b"1"[..]));
    other.put(b"b", b"1");
    other.sync_all();
    assert_eq!(other.only_reply().version, 2, "no version is given out twice");
}

#[test]
fn a_closed_head_waits_until_everybody_has_nothing_to_offer() {
    let mut chain = Chain::early(2);
    chain.next_epoch(false);
    let mut said = 0;
    while chain.nodes.iter().any(Node::is_syncing) || !chain.wires.is_empty() {
        said += chain.take_wires(Op::ChainOffered).len();
        chain.settle();
        (0..2).for_each(|index| chain.end_sync(index));
    }
    assert!(said > 0 && chain.all_settled().is_empty());
    for _ in 0..4 {
        chain.pass(100 * MS);
        chain.sync_all();
    }
    assert_eq!(chain.all_settled().len(), 2, "it is said again");
}

#[test]
fn who_was_told_by_somebody_else_that_it_has_settled_goes_on_saying_what_it_offers() {
    let mut chain = Chain::early(2);
    chain.put(b"a", b"1");
    chain.sync_all();
    chain.put(b"a", b"2");
    chain.sync_all();
    chain.next_epoch(false);
    (0..2).for_each(|index| chain.end_sync(index));
    assert!(!chain.take_wires(Op::ChainOffered).is_empty(), "its head has not heard it");
    chain.forge((0, 1), Op::ChainStable, 1, &[&[0; 8]]);
    for _ in 0..4 {
        chain.pass(100 * MS);
        chain.sync_all();
    }
    assert_eq!(chain.all_settled().len(), 2);
}

#[test]
fn without_the_word_of_the_map_nothing_goes_before_it_is_on_disk() {
    let mut chain = Chain::early(2);
    chain.map.partitions[0].sends_early = false;
    chain.next_epoch(true);
    chain.sync_all();
    chain.put(b"a", b"1");
    assert!(chain.wires.is_empty());
    chain.sync_all();
    assert_eq!(chain.only_reply().version, 1);
}
