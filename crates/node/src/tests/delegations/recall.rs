//! A delegation is over: its nodes tell what they hold, and the newest of it returns.

use super::*;
use crate::engine::Engine as _;
use crate::hot::held::{DELEGATED, name};
use crate::replica::pending::PENDING_MAX;
use wire::DelegationId;

#[test]
fn a_key_returns_when_all_but_the_spare_members_of_a_chain_have_told() {
    let (mut chain, delegated_at) = Chain::delegated(2, 1);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1, 2], b"one");
    assert!(chain.replies.is_empty(), "the second has to have it, too");
    chain.settle();
    assert_eq!(chain.only_reply().version, delegated_at + 1);
    assert_eq!(
        chain.read_hot(1, delegated_at + 1).0,
        Code::Ok,
        "the first was sent a copy as committed"
    );
    // Only the head has heard that the delegation is over.
    chain.give(OVER, None, &[0]);
    chain.come_home();
    assert_eq!(chain.get_code(HOT), Code::NotHere, "one of three says nothing");
    chain.give(OVER, None, &[2]);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"one"[..]));
}

#[test]
fn a_mutant_head_does_not_wait_for_the_others() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.nodes[0].mutant(Mutant::RecallEarly);
    chain.give(OVER, None, &[0]);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"1"[..]), "an acknowledged write is lost");
}

#[test]
fn a_write_that_only_a_part_of_its_chain_has_may_come_home_and_is_answered_then() {
    let (mut chain, delegated_at) = Chain::delegated(2, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1, 2], b"one");
    chain.wires.clear();
    assert_eq!(chain.read_hot(1, delegated_at + 1).0, Code::NotHere, "it is not committed");
    chain.order_delegation(OVER, None);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"one"[..]));
    chain.lag = 1;
    assert_eq!(chain.put_home(seq, delegated_at + 1, OVER, 0).version, delegated_at + 1);
}

#[test]
fn a_new_head_goes_on_bringing_a_key_home() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[2], b"one");
    chain.replies.clear();
    chain.reconfigure(&[1, 2], false, &[1, 2], true);
    chain.run();
    chain.put(HOT, b"2");
    assert!(delegated(&chain.only_reply()).is_some(), "the next member knows");
    chain.order_delegation(OVER, None);
    chain.come_home();
    assert_eq!(
        chain.get(HOT).as_deref(),
        Some(&b"one"[..]),
        "node 0 still answers what it is asked"
    );
}

#[test]
fn a_key_returns_when_its_home_has_room_again() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.give(OVER, None, &[0, 1, 2]);
    chain.pass(25 * MS); // All are asked.
    for client in 0..PENDING_MAX as u64 {
        chain.put_as(1_000 + client, &client.to_be_bytes());
    }
    chain.settle_but(Op::ChainWrite);
    assert_eq!(chain.nodes[0].pending(), PENDING_MAX - 1, "no place for the RECALL");
    chain.settle();
    chain.come_home();
    chain.replies.clear();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"one"[..]));
}

#[test]
fn nodes_are_told_of_an_end_a_few_times_however_often_the_chain_is_looked_after() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    chain.order_delegation(OVER, None);
    chain.come_home();
    chain.change(&[0, 1, 2], false, false); // While it is closed, that is every 5 ms.
    chain.install();
    chain.settle();
    let mut told = 0;
    for _ in 0..200 {
        chain.pass(5 * MS);
        let is_end = |bytes: &[u8]| Packet::parse(bytes).unwrap().op() == Op::DelegationEnd;
        told += chain.wires.iter().filter(|(_, _, bytes)| is_end(bytes)).count();
        chain.settle();
    }
    assert!((3..=9).contains(&told), "{told} to three nodes in a second");
    assert_eq!(chain.holds(), [0, 0, 0]);
}

/// The switch may not know what took the value delegated, and once the key has left nobody at its
/// tail sees to it that it does.
#[test]
fn that_there_is_no_value_is_not_told_by_the_tail_of_a_key_that_has_left() {
    let mut chain = Chain::with_hot_key();
    chain.lag = 100;
    chain.del(HOT);
    chain.settle_but(Op::HotPublish);
    chain.replies.clear();
    chain.del(HOT);
    let late = chain.wires.pop_front().unwrap();
    assert_eq!(Packet::parse(&late.2).unwrap().op(), Op::ChainWrite);
    let seq = chain.seq;
    chain.del(HOT); // Both rest on the first, and the DELEGATE on the last.
    chain.give(
        DELEGATION,
        Some(Delegation { number: DelegationId::new(DELEGATION), replicas: 1, copies: 0 }),
        &[0, 1, 2],
    );
    chain.settle_but(Op::HotPublish);
    chain.wires.clear(); // No publish comes back.
    assert!(chain.replies.is_empty(), "{:?}", chain.replies);
    assert_eq!(chain.read_hot(2, u64::MAX).0, Code::NotHere, "it has left");
    chain.wires.push_back(late);
    chain.settle_but(Op::HotPublish);
    assert!(chain.replies.is_empty(), "{:?}", chain.replies);
    let again = chain.stamped(Op::Del, HOT, seq);
    chain.send(&again, &[HOT]);
    assert!(chain.replies.is_empty(), "nor by the head, before that is published");
    chain.settle();
    chain.send(&again, &[HOT]);
    assert_eq!(chain.only_reply().code, Code::NotFound);
}

impl Chain {
    /// The second and the third have acknowledged a write. Then the disk of the second loses it,
    /// and the delegation ends. Only the third has not heard of that.
    fn lose_one_of_two_copies(&mut self, delegated_at: u64) {
        let seq = self.next();
        self.delegate(seq, delegated_at + 1, &[1, 2], b"one");
        self.settle();
        assert_eq!(self.only_reply().version, delegated_at + 1);
        self.nodes[1].engine_mut().note(DELEGATED, &name(KS, HOT), None);
        self.restart(1);
        self.give(OVER, None, &[0, 1]);
        self.come_home();
    }
}

#[test]
fn a_head_waits_for_who_is_silent_while_another_may_have_lost_what_it_had() {
    let (mut chain, delegated_at) = Chain::delegated(2, 0);
    chain.lose_one_of_two_copies(delegated_at);
    assert_eq!(chain.get_code(HOT), Code::NotHere, "the third may be the only one that has it");
    chain.give(OVER, None, &[2]);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"one"[..]));
}

#[test]
fn a_head_takes_who_is_silent_for_six_leases_for_gone() {
    let (mut chain, delegated_at) = Chain::delegated(2, 0);
    let lease = Lease {
        cluster: cluster::ClusterId(1),
        incarnation: Incarnation(0),
        revision: chain.map.revision,
        from: chain.now,
        duration_ms: 1_000,
    };
    chain.nodes[0].renew(&lease);
    chain.lose_one_of_two_copies(delegated_at);
    chain.pass(5_600 * MS);
    chain.come_home();
    assert_eq!(chain.get_code(HOT), Code::NotHere);
    chain.pass(200 * MS);
    chain.come_home();
    assert_eq!(chain.get(HOT).as_deref(), Some(&b"1"[..]));
}

#[test]
fn who_started_anew_takes_no_more_writes_of_a_delegation() {
    let (mut chain, delegated_at) = Chain::delegated(1, 0);
    chain.restart(1);
    let named = Delegation { number: DelegationId::new(DELEGATION), replicas: 1, copies: 0 };
    chain.give(DELEGATION + 1, Some(named), &[1]);
    let seq = chain.next();
    chain.delegate(seq, delegated_at + 1, &[1], b"one");
    assert_eq!(delegated(&chain.only_reply()), None, "it may have said that it takes none");
}
