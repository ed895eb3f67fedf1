//! Scripts of members that come back with less than the others hold: what they keep, and how they
//! forget the rest.

use super::*;
use crate::engine::{Engine as _, KeyRef};
use crate::replica::notes::{committed_name, pending_name, replaced_name, session_name};
use wire::{PartKey, UploadBody, Version};

const ID: PartitionId = PartitionId(1);

/// Notes of outcomes that an old store has.
const OUTCOMES: u64 = 5_000;

/// Notes that may be forgotten in a turn.
const AT_ONCE: usize = 1_024;

impl Chain {
    /// The second node comes back behind, and is to be sent what it lacks. That is the first thing
    /// it hears, or it was a member of a closed chain for a while.
    fn demote_second(&mut self, at_once: bool) {
        self.run();
        self.change(&[0, 1], false, false);
        self.install();
        self.run();
        if !at_once {
            self.restart(1);
            self.run();
        }
        self.change(&[0, 1], true, true);
        self.map.partitions[0].resumes = Some(Version::new(1));
        if at_once {
            self.restart(1);
        }
        self.install();
    }

    fn outcomes(&self) -> usize {
        self.nodes[1].engine().notes_named(ID, b's')
    }

    /// The second node has outcomes on record that nobody else knows of.
    fn note_outcomes(&mut self) {
        for client in 0..OUTCOMES {
            let name = session_name(1_000_000 + client, 1);
            self.nodes[1].engine_mut().note(ID, &name, Some(b"old"));
        }
    }
}

#[test]
fn parts_of_a_value_that_was_replaced_go_although_their_member_came_back_behind() {
    let mut chain = Chain::new(2);
    chain.put_big(b"k", 1, 3);
    chain.put(b"k", b"v");
    chain.run();
    assert_eq!(chain.nodes[1].engine().len(), 4, "readers may need them");
    assert_eq!(chain.nodes[1].engine().notes_named(ID, b'g'), 1);
    chain.demote_second(true);
    chain.run();
    assert!(chain.caught_up(1));
    let node = &chain.nodes[1];
    assert_eq!((node.uploads(), node.engine().len()), (0, 1), "they do not wait to be given up");
    assert_eq!(node.engine().notes_named(ID, b'g'), 0);
}

#[test]
fn a_member_that_begins_again_forgets_a_bounded_number_of_notes_in_a_turn() {
    for restarts in [false, true] {
        let mut chain = Chain::new(2);
        chain.put(b"a", b"1");
        chain.run();
        chain.note_outcomes();
        chain.demote_second(!restarts);
        chain.put(b"b", b"2");
        let mut turns = 0;
        while chain.outcomes() >= AT_ONCE {
            let before = chain.outcomes();
            chain.settle();
            assert!(!chain.caught_up(1), "what it took now it might forget");
            chain.pass(5 * MS);
            assert!(before - chain.outcomes() <= AT_ONCE, "{before} and {}", chain.outcomes());
            turns += 1;
            assert!(turns < 20, "it comes to an end");
            if restarts && turns == 1 {
                chain.restart(1);
            }
        }
        assert!(turns >= 2, "{turns} turns");
        chain.run();
        assert!(chain.caught_up(1));
        assert_eq!(chain.outcomes(), 1, "that of its client, which it was sent");
        assert_eq!(chain.nodes[1].engine().len(), 2);
    }
}

#[test]
fn what_a_store_says_of_the_parts_that_go_is_not_believed() {
    let mut chain = Chain::new(2);
    chain.put_big(b"kept", 1, 2);
    chain.put_big(b"gone", 2, 3);
    chain.put(b"gone", b"v");
    chain.run();
    let part = |key, number| {
        let upload = UploadBody { client: CLIENT, number };
        replaced_name(&PartKey { key, upload, index: 0 }.to_bytes())
    };
    let engine = chain.nodes[1].engine_mut();
    for (key, number) in [(&b"gone"[..], 2), (b"never", 3), (b"kept", 1)] {
        engine.note(ID, &part(key, number), Some(&u32::MAX.to_be_bytes()));
    }
    chain.change(&[0, 1], false, false);
    chain.install();
    chain.run();
    chain.restart(1);
    chain.run();
    let node = &chain.nodes[1];
    assert_eq!(node.counters().parts_dropped, 3);
    assert_eq!((node.uploads(), node.engine().len()), (0, 4), "the values, and the parts of one");
    assert_eq!(node.engine().notes_named(ID, b'g'), 0);
}

impl Chain {
    /// Delivers everything but what is for the last node, which gets lost.
    fn settle_but_for_the_last(&mut self) {
        let last = self.map.nodes.last().unwrap().endpoint;
        while !self.wires.is_empty() {
            self.wires.retain(|(_, to, _)| *to != last);
            if !self.wires.is_empty() {
                self.deliver_wire(0);
            }
        }
    }

    /// Of three writes the last node gets the second one alone. Then an older store of the second
    /// node is put back, in which the first sum is missing. As the first write of all is pending,
    /// nothing says that it is committed everywhere.
    fn write_and_age_second(&mut self) {
        self.put(b"a", b"1");
        self.settle_but_for_the_last();
        self.incr(b"k", 1);
        self.settle();
        self.incr(b"k", 1);
        self.settle_but_for_the_last();
        let key = KeyRef::of(&self.map.keyspaces[0].clone(), ID, b"k");
        let engine = self.nodes[1].engine_mut();
        engine.remove(&key);
        for name in [&committed_name(Version::new(2))[..], &pending_name(Version::new(3))] {
            engine.note(ID, name, None);
        }
    }

    /// The second is started anew, and everybody settles in the closed chain.
    fn restart_second_and_settle(&mut self) {
        self.map.partitions[0].sends_early = true;
        self.restart(1);
        self.install();
        self.run();
        for (node, it) in self.nodes.iter().enumerate() {
            assert_eq!(it.report(self.now).settled.len(), 1, "node {node} has settled");
        }
    }
}

#[test]
fn a_member_that_lacks_the_base_of_a_pending_write_takes_it_all_the_same() {
    let mut chain = Chain::new(4);
    chain.write_and_age_second();
    chain.change(&[0, 1, 2, 3], false, false);
    chain.restart_second_and_settle();
    let histories = chain.nodes.iter().map(|node| node.report(chain.now).settled[0].history);
    let histories: Vec<u64> = histories.collect();
    assert!(histories[0] == histories[2] && histories[0] != histories[1], "it is found out");
}

/// Else the others would wait for the learner, which takes no write before it has its base.
#[test]
fn a_learner_catches_up_with_nobody_who_came_back_and_keeps_nobody_from_settling() {
    let mut chain = Chain::new(3);
    chain.lag = 1_000; // The client has not heard of any outcome yet.
    chain.write_and_age_second();
    // The chain was opened again since, so the second sets aside what is pending there, and passes
    // on nothing of what is stable.
    chain.change(&[0, 1, 2], true, true);
    chain.map.partitions[0].opened = chain.map.partitions[0].epoch;
    // The third has lost its disk before it had caught up.
    chain.nodes[2] = Node::new(config(2, RATE), Noted::new(2), chain.now);
    chain.change(&[0, 1, 2], true, false);
    chain.restart_second_and_settle();
    assert!(!chain.caught_up(2), "the second lacks a sum, and its outcome");
    chain.change(&[0, 2], true, true);
    chain.install();
    chain.run();
    assert!(chain.caught_up(2));
    let outcomes = |node: usize| chain.nodes[node].engine().notes_named(ID, b's');
    assert_eq!((outcomes(0), outcomes(2)), (3, 3));
}

impl Chain {
    /// What the first nodes say that they hold, once they have settled.
    fn settled_of(&self, count: usize) -> Vec<Settled> {
        self.nodes[..count].iter().map(|node| node.report(self.now).settled[0]).collect()
    }

    fn writes_of(&self, count: usize) -> Vec<Option<u64>> {
        self.settled_of(count).iter().map(|settled| settled.writes).collect()
    }
}

#[test]
fn who_lacks_writes_has_fewer_although_it_knows_of_newer_ones() {
    let mut chain = Chain::new(4);
    chain.write_and_age_second();
    chain.change(&[0, 1, 2, 3], false, false);
    chain.restart_second_and_settle();
    let newest: Vec<u64> = chain.settled_of(4).iter().map(|it| it.newest.get()).collect();
    assert_eq!(newest, [3; 4]);
    assert_eq!(chain.writes_of(4), [Some(3), Some(2), Some(3), Some(3)]);
}

#[test]
fn members_count_their_writes_through_restarts_changes_and_copies() {
    let mut chain = Chain::new(3);
    for number in 0..3 {
        chain.put(format!("k{number}").as_bytes(), b"v");
    }
    chain.run();
    chain.reconfigure(&[0, 1], false, &[1, 0], false);
    chain.put(b"a", b"1");
    chain.run();
    (0..2).for_each(|node| chain.restart(node));
    // The third comes with nothing, and is told the number.
    chain.reconfigure(&[1, 0], false, &[1, 0, 2], true);
    chain.put(b"b", b"2");
    chain.run();
    chain.change(&[1, 0, 2], true, false);
    chain.install();
    chain.run();
    assert_eq!(chain.writes_of(3), [Some(5); 3]);
}

#[test]
fn a_number_that_an_older_build_has_gone_on_without_counts_for_nothing() {
    let mut chain = Chain::new(2);
    let number = |chain: &Chain| {
        let mut found = None;
        let read = |name: &[u8], note: &[u8]| {
            if name == b"n" {
                found = Some(note.to_vec());
            }
        };
        chain.nodes[1].engine().notes(ID, read);
        found.expect("it is on record")
    };
    chain.put(b"a", b"1");
    chain.run();
    let old = number(&chain);
    chain.put(b"b", b"2");
    chain.run();
    chain.nodes[1].engine_mut().note(ID, b"n", Some(&old));
    chain.change(&[0, 1], false, false);
    chain.restart(1);
    let begun = chain.nodes[1].report(chain.now).settled;
    assert!(begun.iter().all(|it| it.writes.is_none()), "{begun:?}");
    chain.install();
    chain.run();
    assert_eq!(chain.writes_of(2), [Some(2); 2], "it holds what its head does, and is told");
}

/// Else it would take the sum of the head for its own, and nobody would see what it lacks.
#[test]
fn a_learner_that_comes_back_is_not_told_what_its_sum_should_be() {
    for restarts in [false, true] {
        let mut chain = Chain::new(3);
        chain.put(b"a", b"1");
        chain.run();
        chain.take_in_third();
        chain.run();
        assert!(chain.caught_up(2));
        chain.change(&[0, 1, 2], true, false);
        if restarts {
            chain.restart(2);
        }
        chain.install();
        chain.run();
        let settled = chain.settled_of(3);
        assert_eq!(settled[0].history == settled[2].history, !restarts);
        assert_eq!(settled[2].base.is_some(), restarts);
    }
}
