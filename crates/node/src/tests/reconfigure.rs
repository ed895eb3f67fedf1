//! Scripts of chains that change: close, settle, open; learners; leases.

use super::*;
use crate::engine::Engine as _;
use crate::replica::Replica;
use wire::{ChainAnswer, Revision, Version};

impl Chain {
    /// Another epoch with this chain; the last of it is a learner if so.
    pub(super) fn change(&mut self, chain: &[u16], has_learner: bool, open: bool) {
        self.map.revision = self.map.revision.next(0);
        let revision = self.map.revision;
        let partition = &mut self.map.partitions[0];
        let before = partition.clone();
        partition.epoch.0 += 1;
        partition.chain = chain.iter().copied().map(NodeId).collect();
        let since = partition.chain.iter().map(|id| before.since(*id).unwrap_or(revision));
        partition.since = since.collect();
        (partition.has_learner, partition.open) = (has_learner, open);
        self.map.check().unwrap();
    }

    /// Lets everything happen that is on its way or due soon.
    pub(super) fn run(&mut self) {
        for _ in 0..20 {
            self.settle();
            self.pass(Duration::from_millis(20));
        }
        self.settle();
    }

    fn settled(&self, index: usize) -> bool {
        let epoch = self.map.partitions[0].epoch;
        let report = self.nodes[index].report(self.now);
        report.settled.iter().map(Settled::place).eq([(PartitionId(1), epoch)])
    }

    /// Closes, settles and opens.
    pub(super) fn reconfigure(
        &mut self,
        closed: &[u16],
        has_learner: bool,
        open: &[u16],
        joins: bool,
    ) {
        self.change(closed, has_learner, false);
        self.install();
        self.run();
        for id in closed {
            assert!(self.settled(usize::from(*id)), "node {id} has settled");
        }
        self.change(open, joins, true);
        self.install();
        self.run();
    }

    /// A chain of the first two nodes takes the third in as a learner; what that sets off is still
    /// on its way.
    pub(super) fn take_in_third(&mut self) {
        self.change(&[0, 1], false, false);
        self.install();
        self.run();
        self.change(&[0, 1, 2], true, true);
        self.install();
    }

    pub(super) fn caught_up(&self, index: usize) -> bool {
        !self.nodes[index].report(self.now).caught_up.is_empty()
    }
}

#[test]
fn a_closed_chain_serves_nobody_and_settles() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    chain.change(&[0, 1, 2], false, false);
    chain.install();
    assert!((0..3).all(|node| !chain.settled(node)), "a write is pending");
    chain.run();
    assert_eq!(chain.only_reply().version, 1, "the tail answers what was pending");
    assert!((0..3).all(|node| chain.settled(node)));
    assert_eq!(chain.get_code(b"a"), Code::Closed);
    chain.put(b"a", b"2");
    assert_eq!(chain.only_reply().code, Code::Closed);
    chain.change(&[2, 0, 1], false, true);
    chain.install();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    chain.put(b"a", b"3");
    chain.run();
    assert_eq!(chain.only_reply().version, 2, "the new head numbers on");
}

#[test]
fn a_write_survives_the_head_that_ordered_it() {
    let mut chain = Chain::new(3);
    let seq = chain.put(b"a", b"1");
    chain.deliver_wire(0); // The second member has it, the third has not.
    chain.wires.clear();
    chain.reconfigure(&[1, 2], false, &[1, 2], false);
    assert_eq!(chain.only_reply().version, 1);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    chain.put_again(seq, b"a", b"1", 0);
    chain.run();
    assert_eq!(chain.only_reply().version, 1, "the retry is answered, not applied");
}

#[test]
fn a_write_that_only_the_lost_head_had_never_was() {
    let mut chain = Chain::new(3);
    let seq = chain.put(b"a", b"1");
    chain.wires.clear();
    chain.reconfigure(&[1, 2], false, &[2, 1], false);
    assert!(chain.replies.is_empty());
    assert_eq!(chain.get(b"a"), None);
    chain.put_again(seq, b"a", b"1", 0);
    chain.run();
    assert_eq!(chain.only_reply().code, Code::Ok);
}

#[test]
fn without_its_tail_the_chain_commits_what_the_tail_may_have_answered() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    chain.deliver_wire(0);
    chain.deliver_wire(0); // The acknowledgement to the head.
    while chain.replies.is_empty() {
        chain.deliver_wire(0);
    }
    chain.wires.clear(); // The tail has answered; nobody else knows that it is committed.
    chain.replies.clear();
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_learner_gets_values_deletes_sessions_and_what_is_written_meanwhile() {
    let mut chain = Chain::new(3);
    chain.reconfigure(&[0, 1], false, &[0, 1], false);
    chain.lag = 1_000; // The client has not heard of any outcome yet.
    let old = chain.put(b"old", b"1");
    for n in 0..200u32 {
        chain.put(format!("k{n}").as_bytes(), &[b'v'; 100]);
    }
    chain.put(b"gone", b"1");
    chain.run();
    chain.del(b"gone");
    chain.run();
    chain.replies.clear();
    chain.reconfigure(&[0, 1], false, &[0, 1, 2], true);
    chain.put(b"k7", b"newer");
    chain.run();
    assert!(chain.caught_up(2));
    assert_eq!(chain.only_reply().code, Code::Ok);
    chain.reconfigure(&[0, 1, 2], true, &[2], false);
    assert_eq!(chain.get(b"k7").as_deref(), Some(&b"newer"[..]));
    assert_eq!(chain.get(b"k199").as_deref(), Some(&[b'v'; 100][..]));
    assert_eq!(chain.get(b"gone"), None);
    chain.put_again(old, b"old", b"1", 0);
    assert_eq!(chain.only_reply().version, 1, "the session came along");
    chain.put(b"old", b"2");
    assert_eq!(chain.only_reply().version, 205, "versions go on");
}

#[test]
fn the_copy_goes_no_faster_than_it_may() {
    let mut chain = Chain::new(2);
    chain.reconfigure(&[0], false, &[0], false);
    for n in 0..400u32 {
        chain.put(format!("k{n}").as_bytes(), &[b'v'; 1000]);
    }
    chain.replies.clear();
    chain.map.copy_bytes_per_s = 0;
    chain.reconfigure(&[0], false, &[0, 1], true);
    chain.run();
    assert_eq!(chain.nodes[0].report(chain.now).copies[0].permille, 0, "it is paused");
    chain.map.copy_bytes_per_s = 200_000;
    chain.map.revision = chain.map.revision.next(0);
    chain.install();
    let started = chain.now;
    while !chain.caught_up(1) {
        chain.settle();
        chain.pass(MS);
        assert!(chain.now.since(started) < Duration::from_secs(10), "400 kB at 200 kB/s");
    }
    let took = chain.now.since(started);
    assert!(took > Duration::from_millis(1_900), "{took:?}");
    assert_eq!(chain.nodes[0].report(chain.now).copies[0].permille, 1_000);
}

#[test]
fn a_node_that_joins_again_forgets_what_it_held() {
    let mut chain = Chain::new(2);
    chain.put(b"gone", b"1");
    chain.run();
    chain.reconfigure(&[0], false, &[0], false);
    chain.del(b"gone");
    chain.run();
    chain.pass(Duration::from_secs(120)); // The tombstone is collected.
    chain.run();
    assert_eq!(chain.nodes[0].engine().len(), 0);
    chain.reconfigure(&[0], false, &[0, 1], true);
    chain.run();
    chain.reconfigure(&[0, 1], true, &[1], false);
    assert_eq!(chain.get(b"gone"), None);
}

#[test]
fn packets_of_an_earlier_epoch_are_refused() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    let (from, _, late) = chain.wires[0].clone();
    chain.run();
    chain.replies.clear();
    chain.reconfigure(&[0, 1, 2], false, &[0, 1, 2], false);
    chain.deliver(1, from, &late);
    assert_eq!(chain.nodes[1].counters().dropped(DropReason::StaleEpoch), 1);
}

#[test]
fn a_node_without_a_lease_is_silent() {
    let mut chain = Chain::new(1);
    chain.put(b"a", b"1");
    chain.replies.clear();
    let now = chain.now;
    let lease = Lease {
        cluster: cluster::ClusterId(1),
        incarnation: Incarnation(0),
        revision: Revision::new(9),
        from: now,
        duration_ms: 1_000_000,
    };
    let mut node = Node::new(config(0, 0), Noted::new(0), now);
    node.install(now, &chain.map.assignment(NodeId(0), StoreId(0), port(SWITCH)));
    node.renew(&lease); // For a newer revision than it has.
    chain.nodes[0] = node;
    let header = chain.stamped(Op::Get, b"a", 99);
    chain.send(&header, &[b"a"]);
    assert!(chain.replies.is_empty());
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::NoLease), 1);
    chain.nodes[0].renew(&Lease { revision: Revision::new(1), duration_ms: 5, ..lease });
    chain.send(&header, &[b"a"]);
    assert_eq!(chain.replies.len(), 1);
    chain.now = now + 5 * MS;
    chain.send(&header, &[b"a"]);
    assert_eq!(chain.replies.len(), 1, "the lease has ended");
}

#[test]
fn requests_come_from_the_active_switch_or_straight_from_a_client() {
    let mut chain = Chain::new(1);
    let header = chain.stamped(Op::Get, b"a", 1);
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"a"]);
    chain.deliver(0, port(SWITCH + 1), &datagram);
    assert_eq!(chain.nodes[0].counters().dropped(DropReason::NotFromSwitch), 1);
}

#[test]
fn data_of_another_cluster_is_left_alone() {
    let mut chain = Chain::new(1);
    chain.put(b"a", b"1");
    chain.replies.clear();
    chain.map.revision = chain.map.revision.next(0);
    chain.map.cluster = ClusterId(2);
    chain.install();
    let report = chain.nodes[0].report(chain.now);
    assert_eq!((report.revision, report.cluster), (Revision::new(1), Some(ClusterId(1))));
}

#[test]
fn a_commit_brings_what_it_was_computed_from() {
    let mut chain = Chain::new(2);
    chain.reconfigure(&[0], false, &[0], false);
    chain.reconfigure(&[0], false, &[0, 1], true);
    chain.replies.clear();
    chain.put(b"a", b"1");
    chain.incr(b"a", 1);
    chain.incr(b"a", 1);
    while chain.nodes[0].pending() > 0 {
        // Of what the learner says, the head hears only that the last one is committed.
        let (from, to, bytes) = chain.wires.pop_back().unwrap();
        let ChainAnswer { version, .. } =
            ChainAnswer::read(Packet::parse(&bytes).unwrap().header());
        if to == port(101) {
            chain.deliver(1, from, &bytes);
        } else if version == Version::new(3) {
            chain.deliver(0, from, &bytes);
        }
        if chain.wires.is_empty() {
            chain.pass(Duration::from_millis(500));
        }
    }
    let versions: Vec<u64> = chain.replies.iter().map(|reply| reply.version).collect();
    assert_eq!(versions, [1, 2, 3], "in order, though only the last was heard of");
    chain.replies.clear();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"3"[..]));
}

/// An older copy of a store is put back. The versions of what is pending in it may have been given
/// to other writes since. Who is in the chain when it opens tells.
#[test]
fn what_was_pending_before_the_chain_was_opened_again_is_set_aside_until_it_opens() {
    // The chain that opens, whether its last is copied to, and what is pending and held then.
    let alone = ([0, 1], true, (0, 0, 1));
    for (order, copies, then) in [([0, 1], false, (1, 0, 0)), ([1, 0], false, (0, 0, 0)), alone] {
        let mut chain = Chain::new(2);
        let mut engine = Some(Noted::new(0));
        let mut start = |chain: &Chain, put: bool| {
            let mut node = Node::new(config(0, RATE), engine.take().unwrap(), chain.now);
            node.install(chain.now, &chain.map.assignment(NodeId(0), StoreId(0), port(SWITCH)));
            node.renew(&Lease {
                cluster: ClusterId(1),
                incarnation: Incarnation(0),
                revision: chain.map.revision,
                from: chain.now,
                duration_ms: 1 << 40,
            });
            if put {
                let header = chain.stamped(Op::Put, b"b", 1);
                let mut datagram = Vec::new();
                let body = PutBody { expiry_ms: 0 }.to_bytes();
                wire::emit(&mut datagram, &header, &[&body, b"b", b"never sent on"]);
                node.handle_packet(chain.now, port(SWITCH), 0, &datagram);
            }
            node.flush().unwrap();
            let replica = &node.replicas[&PartitionId(1)];
            let (pending, aside) = (replica.pending.len(), replica.aside.len());
            let held = engine.insert(node.into_engine()).len();
            (pending, aside, held)
        };
        assert_eq!(start(&chain, true), (1, 0, 0));
        assert_eq!(start(&chain, false), (1, 0, 0), "the chain did not go on meanwhile");
        for open in [false, true] {
            chain.change(&[0, 1], false, open);
        }
        chain.map.partitions[0].opened = chain.map.partitions[0].epoch;
        chain.change(&order, false, false);
        assert_eq!(start(&chain, false), (0, 1, 0), "the chain went on");
        assert_eq!(start(&chain, false), (0, 1, 0), "that is on record");
        chain.change(&order, copies, true);
        assert_eq!(start(&chain, false), then, "the head knows of no other write so named");
        assert_eq!(start(&chain, false), then);
    }
}

/// A closed head that had committed it says so by CHAIN_STABLE.
#[test]
fn what_is_set_aside_is_not_taken_for_committed() {
    let partition = Chain::new(1).map.partitions[0].clone();
    let mut replica = Replica::new(partition, NodeId(0), false, true);
    let [before, aside, after] = [4, 5, 9].map(Version::new);
    replica.aside.insert(aside, Box::default());
    replica.raise_stable(after);
    assert!(replica.knows(before) && !replica.knows(aside));
    replica.aside.clear();
    replica.raise_stable(after);
    assert!(replica.knows(aside));
}
