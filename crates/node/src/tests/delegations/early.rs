//! Delegated writes go on before they are on disk, and the last of a chain commits what all have
//! there.

use super::*;
use wire::{DelegationDurable, DelegationDurableBody, DelegationWriteBody};

impl Chain {
    /// Under a delegation with so many nodes in a chain, whose nodes sync apart.
    fn delegated_apart(replicas: u8, copies: u16) -> (Self, u64) {
        let (mut chain, delegated_at) = Self::delegated(replicas, copies);
        for node in &mut chain.nodes {
            node.engine_mut().sync_apart();
        }
        (chain, delegated_at)
    }

    /// The sync of a node ends, and what it says comes.
    fn sync(&mut self, index: usize) {
        self.end_sync(index);
        self.settle();
    }

    /// What the writes say that go on before they are on disk.
    fn said_unsynced(&self) -> Vec<u8> {
        let packets = self.wires.iter().map(|(_, _, bytes)| Packet::parse(bytes).unwrap());
        let early = packets.filter(|packet| packet.op() == Op::DelegationWrite);
        let bodies = early.map(|it| DelegationWriteBody::split(it.payload()).unwrap().0);
        bodies.map(|body| body.unsynced).collect()
    }

    /// A node tells another what its disk has.
    fn tell_on_disk(&mut self, way: (u16, u16), delegation: u64, version: u64) {
        let mut header = Header {
            op: Op::DelegationDurable as u8,
            node: way.0,
            key_len: u16::try_from(HOT.len()).unwrap(),
            ..self.stamped(Op::Put, HOT, 0)
        };
        DelegationDurable { version: Version::new(version) }.put(&mut header);
        let body = DelegationDurableBody { delegation: DelegationId::new(delegation) };
        self.forge_as(way, &header, &[&body.to_bytes(), HOT]);
    }
}

#[test]
fn a_write_goes_down_at_once_and_costs_one_sync() {
    for last_to_sync in 0..3 {
        let (mut chain, delegated_at) = Chain::delegated_apart(3, 0);
        let syncs = |chain: &Chain| -> Vec<u64> {
            chain.nodes.iter().map(|node| node.counters().syncs).collect()
        };
        let before = syncs(&chain);
        let seq = chain.next();
        chain.delegate(seq, delegated_at + 1, &[0, 1, 2], b"one");
        chain.settle();
        assert!(chain.nodes.iter().all(Node::is_syncing), "all disks work at the same time");
        for index in (0..3).filter(|index| *index != last_to_sync) {
            chain.sync(index);
        }
        assert!(chain.replies.is_empty(), "node {last_to_sync} could lose it");
        chain.sync(last_to_sync);
        assert_eq!(chain.only_reply().version, delegated_at + 1, "one sync is enough");
        let ended: Vec<u64> =
            syncs(&chain).iter().zip(before).map(|(now, then)| now - then).collect();
        assert!(ended.iter().all(|syncs| *syncs <= 2) && ended[last_to_sync] == 1, "{ended:?}");
        chain.sync_all();
        assert_eq!(chain.read_hot(2, delegated_at + 1), (Code::Ok, delegated_at + 1, false));
        assert_eq!(chain.holds(), [1; 3]);
    }
}

#[test]
fn a_write_says_who_does_not_have_it_on_disk() {
    let (mut chain, delegated_at) = Chain::delegated_apart(3, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1, 2], b"one");
    assert_eq!(chain.said_unsynced(), [0b001]);
    chain.deliver_wire(0);
    assert_eq!(chain.said_unsynced(), [0b011]);
    chain.wires.clear();
    // When it comes again after that, the first has it on disk.
    chain.end_sync(0);
    assert_eq!(chain.under_way(Op::DelegationDurable), 1);
    chain.wires.clear();
    chain.delegate(seq, delegated_at + 1, &[0, 1, 2], b"one");
    assert_eq!((chain.said_unsynced().len(), chain.under_way(Op::Put)), (0, 1));
    chain.deliver_wire(0);
    assert_eq!(chain.said_unsynced(), [0b010]);
}

#[test]
fn what_is_lost_of_what_disks_have_a_retry_says() {
    let (mut chain, delegated_at) = Chain::delegated_apart(3, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1, 2], b"one");
    chain.settle();
    for index in 0..3 {
        chain.end_sync(index);
        assert_eq!(chain.under_way(Op::DelegationDurable), usize::from(index < 2));
        chain.settle_without(Op::DelegationDurable);
    }
    assert!(chain.replies.is_empty());
    assert_eq!(chain.read_hot(2, delegated_at + 1).0, Code::NotHere, "it is not committed");
    chain.delegate(seq, delegated_at + 1, &[0, 1, 2], b"one");
    chain.settle();
    chain.sync_all();
    assert_eq!(chain.only_reply().version, delegated_at + 1);
    assert_eq!(chain.read_hot(2, delegated_at + 1).0, Code::Ok);
}

#[test]
fn a_node_that_does_not_know_such_writes_gets_the_retry() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    chain.settle_without(Op::DelegationWrite);
    chain.end_sync(0);
    chain.settle_without(Op::DelegationDurable);
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    assert_eq!((chain.wires.len(), chain.under_way(Op::Put)), (1, 1));
    chain.settle();
    assert!(chain.replies.is_empty(), "the other disk has to have it, too");
    chain.sync(1);
    assert_eq!(chain.only_reply().version, delegated_at + 1);
}

#[test]
fn what_disks_have_may_be_known_before_the_write_has_come() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    let write = chain.wires.pop_front().unwrap();
    chain.sync(0);
    chain.wires.push_back(write);
    chain.settle();
    assert!(chain.replies.is_empty());
    chain.end_sync(1);
    assert_eq!(chain.only_reply().version, delegated_at + 1);
}

#[test]
fn a_newer_version_on_a_disk_stands_for_those_before_it() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    let seqs = [chain.next(), chain.next()];
    chain.delegate(seqs[0], delegated_at + 2, &[0, 1], b"two");
    chain.settle();
    // This one is overtaken at both, and nothing of it goes to a disk.
    chain.delegate(seqs[1], delegated_at + 1, &[0, 1], b"one");
    chain.settle();
    chain.sync(1);
    assert!(chain.replies.is_empty());
    chain.sync(0);
    let versions: Vec<u64> = chain.replies.iter().map(|reply| reply.version).collect();
    assert_eq!(versions, [delegated_at + 1, delegated_at + 2]);
    chain.replies.clear();
    chain.delegate(seqs[1], delegated_at + 1, &[0, 1], b"one");
    assert_eq!(chain.under_way(Op::Put), 1, "it is on disk by the newer one");
}

#[test]
fn only_what_is_told_of_that_version_and_delegation_by_those_of_the_chain_counts() {
    let (mut chain, delegated_at) = Chain::delegated_apart(3, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 3, &[0, 1, 2], b"three");
    chain.settle();
    chain.end_sync(2);
    chain.sync(0);
    chain.tell_on_disk((1, 2), DELEGATION, delegated_at + 2);
    chain.tell_on_disk((0, 2), DELEGATION, delegated_at + 9);
    chain.tell_on_disk((1, 2), DELEGATION - 1, delegated_at + 9);
    assert!(chain.replies.is_empty(), "node 1 could lose it");
    let dropped = |chain: &Chain| chain.nodes[2].counters().dropped(DropReason::NotFromMember);
    let before = dropped(&chain);
    let told = chain.nodes[2].counters().requests(Op::DelegationDurable);
    assert!(told >= 4);
    chain.tell_on_disk((0, 2), u64::MAX, delegated_at + 9);
    assert_eq!(chain.nodes[2].counters().dropped(DropReason::Implausible), 1);
    assert_eq!(dropped(&chain), before);
    chain.tell_on_disk((1, 2), DELEGATION, delegated_at + 3);
    assert_eq!(chain.only_reply().version, delegated_at + 3);
}

#[test]
fn what_waits_is_shown_to_nobody_and_comes_home() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    chain.settle();
    chain.end_sync(1);
    assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::NotHere);
    // Of the first nothing more is heard.
    chain.end_sync(0);
    chain.settle_without(Op::DelegationDurable);
    chain.give(OVER, None, &[0, 1, 2]);
    for _ in 0..8 {
        chain.sync_all();
        chain.pass(25 * MS);
    }
    chain.sync_all();
    chain.replies.clear();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"one"[..]));
    // What is told now is of a delegation that is over.
    chain.tell_on_disk((0, 1), DELEGATION, delegated_at + 1);
    assert!(chain.replies.is_empty());
}

#[test]
fn a_last_that_started_anew_waits_for_nothing_and_takes_no_retry() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    chain.settle();
    chain.end_sync(1);
    chain.restart(1);
    chain.give(DELEGATION + 1, named(), &[1]);
    chain.sync_all();
    chain.replies.clear();
    assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::NotHere, "it is not committed");
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    chain.settle();
    chain.sync_all();
    assert_eq!(delegated(&chain.only_reply()), None);
    assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::NotHere);
}

fn named() -> Option<Delegation> {
    Some(Delegation { number: DelegationId::new(DELEGATION), replicas: 2, copies: 0 })
}

#[test]
fn a_mutant_last_answers_what_only_its_own_disk_has() {
    let (mut chain, delegated_at) = Chain::delegated_apart(2, 0);
    chain.nodes[1].mutant(Mutant::AnswerUntold);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[0, 1], b"one");
    chain.settle();
    chain.end_sync(1);
    assert_eq!(chain.only_reply().version, delegated_at + 1);
}
