//! Scripts of partitions that are made of others.

use super::*;
use crate::engine::Engine as _;
use cluster::{Making, Origin};

/// Keys before this one go to the first part.
const CUT: &[u8] = b"m";

impl Chain {
    /// Closes the first partition, lets it settle, and makes two of it with the same nodes.
    fn split(&mut self) {
        self.close();
        self.split_map();
        self.install();
        self.run();
    }

    fn close(&mut self) {
        let nodes: Vec<u16> = self.map.partitions[0].chain.iter().map(|it| it.0).collect();
        self.change(&nodes, false, false);
        self.install();
        self.run();
    }

    fn split_map(&mut self) {
        self.map.revision = self.map.revision.next(0);
        let revision = self.map.revision;
        let whole = self.map.partitions.remove(0);
        let cut = self.map.keyspaces[0].match_value(CUT);
        let members = whole.chain.iter().copied().zip(whole.since.iter().copied()).collect();
        let made = Making { revision, origins: vec![Origin { partition: whole.id, members }] };
        let half = |id: u32, first: Match, last: Match| Partition {
            id: PartitionId(id),
            first,
            last,
            epoch: Epoch(1),
            opened: Epoch(1),
            open: true,
            since: vec![revision; whole.chain.len()],
            made: Some(made.clone()),
            ..whole.clone()
        };
        let halves = [half(2, whole.first, Match(cut.0 - 1)), half(3, cut, whole.last)];
        self.map.partitions = halves.to_vec();
        self.map.check().unwrap();
    }

    /// Closes both parts, lets them settle, and makes one of them.
    fn merge(&mut self) {
        self.map.revision = self.map.revision.next(0);
        for part in &mut self.map.partitions {
            (part.open, part.epoch) = (false, Epoch(part.epoch.0 + 1));
        }
        self.install();
        self.run();
        self.map.revision = self.map.revision.next(0);
        let revision = self.map.revision;
        let second = self.map.partitions.pop().unwrap();
        let first = self.map.partitions.pop().unwrap();
        let origins = [&first, &second].map(|it| Origin {
            partition: it.id,
            members: it.chain.iter().copied().zip(it.since.iter().copied()).collect(),
        });
        self.map.partitions = vec![Partition {
            id: PartitionId(4),
            last: second.last,
            epoch: Epoch(1),
            opened: Epoch(1),
            open: true,
            since: vec![revision; first.chain.len()],
            made: Some(Making { revision, origins: origins.to_vec() }),
            ..first
        }];
        self.map.check().unwrap();
        self.install();
        self.run();
    }

    /// Requests go to this part from now on.
    fn turn_to(&mut self, part: usize) {
        self.map.partitions.rotate_left(part);
    }

    fn records(&self, node: usize) -> usize {
        self.nodes[node].engine().len()
    }
}

#[test]
fn both_parts_know_the_clients_of_the_whole_and_each_its_keys() {
    for chain_of in [1, 3] {
        let mut chain = Chain::new(chain_of);
        chain.lag = 9;
        for round in 0..2 {
            chain.put(b"a", format!("a{round}").as_bytes());
            chain.put(b"z", format!("z{round}").as_bytes());
        }
        chain.run();
        chain.replies.clear();
        let seq = chain.seq;
        chain.split();
        for (part, key, other) in [(0, b"a", b"z"), (1, b"z", b"a")] {
            chain.turn_to(part);
            let value = [&key[..], b"1"].concat();
            assert_eq!(chain.get(key), Some(value), "{chain_of} nodes");
            assert_eq!(chain.get_code(other), Code::NotOwner);
            // A late copy of a write of either part, and a new one.
            for again in [seq - 1, seq] {
                chain.put_again(again, key, b"again", 0);
                chain.run();
                assert!(matches!(chain.only_reply().version, 3 | 4), "it is answered once more");
            }
            chain.put(key, b"new");
            chain.run();
            assert_eq!(chain.only_reply().version, 5, "versions go on");
            assert_eq!(chain.get(key).as_deref(), Some(&b"new"[..]));
            chain.turn_to(2 - part);
        }
    }
}

#[test]
fn what_was_made_is_on_record_and_the_whole_is_forgotten() {
    let mut chain = Chain::new(2);
    chain.lag = 9;
    for key in [b"a", b"b", b"y", b"z"] {
        chain.put(key, b"1");
    }
    chain.run();
    chain.replies.clear();
    chain.split();
    for node in 0..2 {
        assert!(chain.nodes[node].report(chain.now).vacating.is_empty(), "nothing is left");
        assert_eq!(chain.records(node), 4);
        let mut notes = 0;
        chain.nodes[node].engine().notes(PartitionId(1), |_, _| notes += 1);
        assert_eq!(notes, 0);
        chain.restart(node);
    }
    chain.put(b"a", b"2");
    chain.run();
    assert_eq!(chain.only_reply().version, 5);
    chain.put_again(1, b"a", b"again", 0);
    chain.run();
    assert_eq!(chain.only_reply().version, 1, "sessions are on record as well");
}

#[test]
fn a_node_that_was_down_makes_the_parts_of_what_it_finds_on_record() {
    let mut chain = Chain::new(2);
    chain.lag = 9;
    for key in [b"a", b"z"] {
        chain.put(key, b"1");
    }
    chain.run();
    chain.replies.clear();
    chain.close();
    chain.split_map();
    chain.install_at(0);
    // The other one starts anew before it hears of the parts.
    chain.restart(1);
    chain.run();
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
    chain.turn_to(1);
    assert_eq!(chain.get(b"z").as_deref(), Some(&b"1"[..]));
    chain.put_again(2, b"z", b"again", 0);
    chain.run();
    assert_eq!(chain.only_reply().version, 2);
}

#[test]
fn a_part_that_goes_to_nobody_here_is_forgotten_and_the_other_stays() {
    let mut chain = Chain::new(2);
    chain.lag = 9;
    for key in [b"a", b"b", b"z"] {
        chain.put(key, b"1");
    }
    chain.run();
    chain.close();
    chain.split_map();
    let second = &mut chain.map.partitions[1];
    (second.chain, second.since) = (vec![NodeId(0)], vec![second.since[0]]);
    chain.install();
    chain.run();
    assert_eq!((chain.records(0), chain.records(1)), (3, 2));
    assert_eq!(chain.get(b"a").as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_node_that_was_not_there_when_a_part_was_made_comes_with_nothing() {
    let mut chain = Chain::new(3);
    chain.put(b"a", b"1");
    chain.put(b"z", b"1");
    chain.run();
    // It leaves, and does not hear of it.
    chain.change(&[0, 1], false, false);
    chain.install_at(0);
    chain.install_at(1);
    chain.run();
    chain.split_map();
    chain.install_at(0);
    chain.install_at(1);
    chain.run();
    // Then it is taken in as a learner of one part, with all that it holds of the whole.
    chain.map.revision = chain.map.revision.next(0);
    let revision = chain.map.revision;
    let first = &mut chain.map.partitions[0];
    first.epoch = Epoch(2);
    first.has_learner = true;
    first.chain.push(NodeId(2));
    first.since.push(revision);
    chain.install_at(2);
    assert_eq!(chain.records(2), 0, "it has forgotten all before it takes anything");
    chain.install();
    chain.run();
    assert_eq!(chain.records(2), 1);
}

#[test]
fn what_becomes_one_knows_what_both_knew_and_numbers_above_both() {
    let mut chain = Chain::new(2);
    chain.lag = 20;
    chain.put(b"a", b"1");
    chain.put(b"z", b"1");
    chain.run();
    chain.replies.clear();
    chain.split();
    // Versions 3 and 4 of one part, 3 to 7 of the other.
    let mut last = [0; 2];
    for (part, key, writes) in [(0, b"a", 2), (1, b"z", 5)] {
        chain.turn_to(part);
        for _ in 0..writes {
            last[part] = chain.put(key, b"2");
            chain.run();
        }
        chain.turn_to(2 - part);
    }
    chain.replies.clear();
    for restarts in [false, true] {
        if restarts {
            chain.restart(0);
            chain.restart(1);
            chain.run();
        } else {
            chain.merge();
        }
        for key in [b"a", b"z"] {
            assert_eq!(chain.get(key).as_deref(), Some(&b"2"[..]));
        }
        for (seq, version) in [(last[0], 4), (last[1], 7)] {
            chain.put_again(seq, b"a", b"again", 0);
            chain.run();
            assert_eq!(chain.only_reply().version, version, "it is answered once more");
        }
        chain.put(b"b", b"3");
        chain.run();
        assert_eq!(chain.only_reply().version, 8 + u64::from(restarts));
    }
    assert_eq!(chain.records(0), 3);
}
