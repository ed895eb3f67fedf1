//! Members of a chain that are compared while they serve.

use super::*;
use crate::engine::{Engine as _, KeyRef, Record};
use cluster::{Mutant, Verification, VerifyOrder};
use wire::Version;

/// What a member holds of a key: version, value, and whether it is deleted.
type HeldState = Option<(Version, Vec<u8>, bool)>;

const HEAD: usize = 0;
const MIDDLE: usize = 1;
const TAIL: usize = 2;

impl Chain {
    fn place<'a>(&self, key: &'a [u8]) -> KeyRef<'a> {
        let keyspace = &self.map.keyspaces[0];
        KeyRef {
            keyspace: KS,
            partition: PartitionId(1),
            ordered: keyspace.is_ordered(),
            match_value: keyspace.match_value(key),
            keyhash: keyspace.keyhash(key),
            key,
        }
    }

    fn holds_of(&self, at: usize, key: &[u8]) -> HeldState {
        let key = self.place(key);
        self.nodes[at]
            .engine()
            .read(&key, |record| record.map(|it| (it.version, it.value.to_vec(), it.tombstone)))
    }

    /// A member's store goes wrong.
    fn spoil(&mut self, at: usize, key: &[u8], held: Option<(Version, &[u8], bool)>) {
        let key = self.place(key);
        let engine = self.nodes[at].engine_mut();
        match held {
            None => engine.remove(&key),
            Some((version, value, tombstone)) => {
                let expiry_ms = if tombstone { u64::MAX >> 2 } else { 0 };
                engine.write(&key, &Record { version, expiry_ms, tombstone, value });
            }
        }
    }

    fn wish(&mut self, number: u64, mend: bool) {
        let order = VerifyOrder { number, partition: None, mend };
        for node in &mut self.nodes {
            node.install_verify(self.now, &order);
        }
    }

    /// Compares, and says what the tail has found.
    fn verify(&mut self, number: u64, mend: bool) -> Verification {
        self.wish(number, mend);
        for _ in 0..20_000 {
            self.pass(MS);
            self.settle();
            let tail = self.map.partitions[0].tail().unwrap();
            let report = self.nodes[usize::from(tail.0)].report(self.now);
            let said = report.verified.into_iter().find(|it| it.number == number && it.done);
            if let Some(said) = said {
                return said;
            }
        }
        panic!("it never ends");
    }

    fn with_keys(count: u16, keys: u32) -> Self {
        let mut chain = Self::of(count, KeyspaceKind::Hash);
        for n in 0..keys {
            chain.put(format!("key-{n}").as_bytes(), b"value");
            chain.settle();
        }
        chain.replies.clear();
        chain
    }
}

#[test]
fn members_that_hold_the_same_are_found_to() {
    let mut chain = Chain::with_keys(3, 2_000);
    for n in 0..300 {
        chain.del(format!("key-{n}").as_bytes());
        chain.settle();
    }
    let said = chain.verify(1, true);
    assert_eq!((said.found.keys, said.members, said.permille), (1_700, 3, 1_000));
    assert_eq!((said.found.different, said.found.moving, said.found.absurd), (0, 0, 0), "{said:?}");
    assert_eq!(chain.nodes.iter().map(|node| node.counters().mended).sum::<u64>(), 0);
}

#[test]
fn what_one_of_three_holds_wrongly_is_found_and_made_right() {
    for at in [HEAD, MIDDLE, TAIL] {
        let mut chain = Chain::with_keys(3, 600);
        chain.del(b"key-9");
        chain.settle();
        let good = |chain: &Chain, key: &str| chain.holds_of((at + 1) % 3, key.as_bytes());
        let version = |chain: &Chain, key: &str| good(chain, key).unwrap().0;
        let [same, old] = [version(&chain, "key-5"), version(&chain, "key-6").before()];
        chain.spoil(at, b"key-5", Some((same, b"vaLue", false)));
        chain.spoil(at, b"key-6", Some((old, b"before", false)));
        chain.spoil(at, b"key-7", None);
        chain.spoil(at, b"key-8", Some((Version::ABOVE_ALL, b"forged", false)));
        chain.spoil(at, b"key-9", Some((Version::new(10), b"back from the dead", false)));
        chain.spoil(at, b"key-nobody-wrote", Some((Version::new(3), b"what", false)));

        let found = chain.verify(1, false);
        assert_eq!((found.found.different, found.found.mended), (6, 0), "at {at}: {found:?}");
        assert_eq!(found.found.absurd, 1, "at {at}: {found:?}");
        assert_eq!(chain.holds_of(at, b"key-7"), None, "it was not asked to mend");

        let mended = chain.verify(2, true);
        let left: Vec<_> =
            mended.found.first.iter().filter(|it| !it.mended).map(|it| &it.key).collect();
        // Two who never collected a deletion may have lost it, for all that is known.
        assert_eq!(left, [b"key-nobody-wrote"], "at {at}: {mended:?}");
        for n in 5..10 {
            let key = format!("key-{n}");
            assert_eq!(chain.holds_of(at, key.as_bytes()), good(&chain, &key), "{key} at {at}");
        }
        assert_eq!(chain.get(b"key-9"), None);
        assert_eq!(chain.nodes[at].counters().mended, 5);
        assert_eq!(chain.verify(3, true).found.different, 1);
    }
}

#[test]
fn a_deleted_key_that_one_member_shows_is_found_also_when_the_deletion_was_collected() {
    let mut chain = Chain::with_keys(3, 20);
    chain.del(b"key-3");
    chain.settle();
    chain.pass(Duration::from_secs(100_000));
    chain.settle();
    assert_eq!(chain.holds_of(HEAD, b"key-3"), None, "it was collected");
    chain.spoil(MIDDLE, b"key-3", Some((Version::new(4), b"value", false)));
    let said = chain.verify(1, true);
    assert_eq!((said.found.different, said.found.mended), (1, 1), "{said:?}");
    assert_eq!(chain.holds_of(MIDDLE, b"key-3"), None);
}

#[test]
fn of_two_that_differ_neither_is_overwritten_but_a_lost_value_comes_back() {
    let mut chain = Chain::with_keys(2, 40);
    let version = chain.holds_of(0, b"key-1").unwrap().0;
    chain.spoil(1, b"key-1", Some((version, b"vaLue", false)));
    chain.spoil(0, b"key-2", None);
    let said = chain.verify(1, true);
    assert_eq!((said.found.different, said.found.mended, said.found.left()), (2, 1, 1), "{said:?}");
    assert_eq!(chain.holds_of(1, b"key-1"), Some((version, b"vaLue".to_vec(), false)));
    assert_eq!(chain.holds_of(0, b"key-2"), chain.holds_of(1, b"key-2"));
    let left = said.found.first.iter().find(|it| !it.mended).unwrap();
    assert_eq!((&left.key[..], &left.versions[..]), (&b"key-1"[..], &[Some(version); 2][..]));
}

#[test]
fn writes_meanwhile_are_no_differences_and_are_not_lost() {
    let mut chain = Chain::with_keys(3, 300);
    chain.spoil(TAIL, b"key-77", None);
    chain.wish(1, true);
    let mut rng = machine::Rng::new(4);
    let mut written = std::collections::BTreeMap::new();
    for n in 0..4_000_u64 {
        let key = format!("key-{}", rng.below(70));
        let value = n.to_string();
        chain.put(key.as_bytes(), value.as_bytes());
        written.insert(key, value);
        chain.pass(MS);
        // Some of it is always under way.
        for _ in 0..chain.wires.len().saturating_sub(2) {
            chain.deliver_wire(0);
        }
    }
    chain.settle();
    let said = chain.verify(1, true);
    assert_eq!((said.found.different, said.found.mended), (1, 1), "{said:?}");
    for (key, value) in written {
        for at in [HEAD, MIDDLE, TAIL] {
            assert_eq!(chain.holds_of(at, key.as_bytes()).unwrap().1, value.as_bytes(), "{key}");
        }
    }
    assert_eq!(chain.holds_of(TAIL, b"key-77"), chain.holds_of(HEAD, b"key-77"));
}

#[test]
fn messages_that_are_lost_are_sent_again() {
    let mut chain = Chain::with_keys(3, 500);
    chain.spoil(HEAD, b"key-5", None);
    chain.spoil(TAIL, b"key-6", None);
    chain.wish(1, true);
    let mut rng = machine::Rng::new(9);
    for _ in 0..30_000 {
        chain.pass(MS);
        while !chain.wires.is_empty() {
            if rng.chance(1, 3) {
                chain.wires.pop_front();
            } else {
                chain.deliver_wire(0);
            }
        }
    }
    let said = chain.verify(1, true);
    assert_eq!((said.found.different, said.found.mended), (2, 2), "{said:?}");
}

#[test]
fn a_new_epoch_begins_the_comparison_anew_at_the_new_tail() {
    let mut chain = Chain::with_keys(3, 2_000);
    chain.spoil(MIDDLE, b"key-5", None);
    chain.wish(1, true);
    for _ in 0..20 {
        chain.pass(MS);
        chain.settle();
    }
    let said = chain.nodes[TAIL].report(chain.now).verified;
    assert!(said.len() == 1 && !said[0].done && said[0].found.keys > 0, "{said:?}");
    chain.map.revision = chain.map.revision.next(0);
    chain.map.partitions[0].epoch.0 += 1;
    chain.map.partitions[0].chain.swap(1, 2);
    chain.install();
    let said = chain.verify(1, true);
    assert_eq!((said.epoch.0, said.found.keys, said.found.mended), (5, 2_000, 1), "{said:?}");
    assert_eq!(chain.nodes[TAIL].report(chain.now).verified, [], "it is the tail no more");
}

#[test]
fn one_alone_has_nobody_to_be_compared_with() {
    let mut chain = Chain::with_keys(1, 20);
    let said = chain.verify(1, true);
    assert_eq!((said.members, said.found.keys, said.done), (1, 0, true));
}

#[test]
fn mends_come_from_members_alone_and_for_what_they_say_only() {
    let mut chain = Chain::with_keys(3, 20);
    let before = chain.holds_of(HEAD, b"key-1");
    let fixed = wire::ChainMendBody { state: 1, version: Version::new(7), ..Default::default() };
    let header = Header { node: 1, ..chain.stamped(Op::ChainMend, b"key-1", 0) };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[&fixed.to_bytes(), b"key-1", b"forged"]);
    chain.deliver(HEAD, port(55), &datagram);
    assert_eq!(chain.nodes[HEAD].counters().dropped(DropReason::NotFromMember), 1);
    chain.deliver(HEAD, port(101), &datagram);
    assert_eq!(chain.holds_of(HEAD, b"key-1"), before, "it does not hold what it is said to");
}

#[test]
fn the_mutants_are_seen() {
    for mutant in [Mutant::VerifyIgnoresDeletes, Mutant::VerifyMendsMinority] {
        let mut chain = Chain::with_keys(3, 50);
        chain.del(b"key-3");
        chain.settle();
        chain.nodes.iter_mut().for_each(|node| node.mutant(mutant));
        chain.spoil(HEAD, b"key-3", Some((Version::new(4), b"value", false)));
        chain.verify(1, true);
        let dead = |at| chain.holds_of(at, b"key-3").is_none_or(|(.., tombstone)| tombstone);
        assert!(![HEAD, MIDDLE, TAIL].into_iter().all(dead), "{mutant:?} was not noticed");
    }
}
