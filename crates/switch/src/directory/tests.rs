//! What is taken, what is kept, and what is forgotten.

use super::*;
use cluster::{HotEntry, KeyspaceId, Match, NodeId, Selection};
use wire::{DirectoryClock, Generation, Revision, Version};

const INCARNATION: Incarnation = Incarnation(5);
const KEY: (KeyspaceId, u64) = (KeyspaceId(1), 0xfeed);

fn now(ms: u64) -> Instant {
    Instant::from_unix_ms(1_000 + ms)
}

fn key(keyhash: u64, generation: u64, first: u16, readers: u16) -> HotEntry {
    HotEntry {
        keyspace: KEY.0,
        key: b"key".to_vec(),
        keyhash,
        match_value: Match(0),
        generation: Generation::new(generation),
        first,
        readers,
        delegation: None,
    }
}

fn places(nodes: &[u16]) -> Vec<Option<(NodeId, Incarnation)>> {
    nodes.iter().map(|id| Some((NodeId(*id), Incarnation(u64::from(*id))))).collect()
}

/// Nodes 1 to 4 in their places, and one key with readers 2 and 3.
fn order(revision: u64, generation: u64) -> HotOrder {
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection: Selection::Random,
        places: places(&[1, 2, 3, 4]),
        keys: vec![key(KEY.1, generation, 1, 2)],
        ..HotOrder::default()
    }
}

fn lease(from: u64, duration_ms: u64) -> Lease {
    Lease {
        cluster: cluster::ClusterId(0),
        incarnation: INCARNATION,
        revision: Revision::NONE,
        from: now(from),
        duration_ms,
    }
}

/// An active switch's, with a lease for 100 ms.
fn active() -> Directory {
    let directory = Directory::new(INCARNATION);
    directory.follow(Revision::new(1), true, false);
    directory.renew(now(0), Revision::new(1), &lease(0, 100), false);
    directory
}

/// The floor of the key, whether it is proven, and which of the readers hold it; none if the key
/// is not hot.
fn entry(directory: &Directory) -> Option<(u64, bool, Vec<usize>)> {
    let table = directory.table();
    let row = table.find(KEY.0, KEY.1)?;
    let (floor, proven) = row.entry.floor();
    let holders = (0..row.readers()).filter(|reader| row.holds(*reader, floor)).collect();
    Some((floor.get(), proven, holders))
}

/// The key is proven at this version, and these nodes hold it.
fn fill(directory: &Directory, version: u64, nodes: &[u16]) {
    let table = directory.table();
    let row = table.find(KEY.0, KEY.1).unwrap();
    row.entry.raise(Version::new(version));
    row.entry.prove();
    nodes.iter().for_each(|node| table.holder(row, NodeId(*node), Some(Version::new(version))));
}

#[test]
fn orders_for_others_and_old_ones_are_ignored() {
    let directory = active();
    directory.install(&HotOrder { switch: Incarnation(6), ..order(4, 4) }).unwrap();
    assert_eq!((directory.revision(), entry(&directory)), (Revision::NONE, None));
    directory.install(&order(4, 4)).unwrap();
    assert_eq!(
        (directory.revision(), entry(&directory)),
        (Revision::new(4), Some((0, false, vec![])))
    );
    fill(&directory, 9, &[2]);
    for revision in [3, 4] {
        let late = HotOrder { keys: vec![], ..order(revision, 3) };
        directory.install(&late).unwrap();
        assert_eq!(entry(&directory), Some((9, true, vec![0])), "revision {revision}");
    }
}

#[test]
fn a_key_that_stays_keeps_what_is_known_of_it() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    fill(&directory, 9, &[2, 3, 4]);
    assert_eq!(entry(&directory), Some((9, true, vec![0, 1])), "node 4 is no reader");
    let mut more = order(5, 4);
    more.keys.push(key(1, 5, 0, 4));
    directory.install(&more).unwrap();
    assert_eq!(entry(&directory), Some((9, true, vec![0, 1])));
    let reborn = vec![None, more.places[1], Some((NodeId(3), Incarnation(33))), more.places[3]];
    directory.install(&HotOrder { places: reborn, ..order(6, 4) }).unwrap();
    assert_eq!(
        entry(&directory),
        Some((9, true, vec![0])),
        "the holder of an earlier incarnation is gone"
    );
    directory.install(&HotOrder { keys: vec![key(KEY.1, 4, 0, 2)], ..order(7, 4) }).unwrap();
    assert_eq!(entry(&directory), Some((9, true, vec![1])), "node 2 is the other reader now");
    fill(&directory, 9, &[1]);
    let places = places(&[5, 1, 2, 3, 4]);
    directory
        .install(&HotOrder { places, keys: vec![key(KEY.1, 4, 1, 3)], ..order(8, 4) })
        .unwrap();
    assert_eq!(
        entry(&directory),
        Some((9, true, vec![0, 1])),
        "they moved, and there is a new one"
    );
    directory.install(&HotOrder { keys: vec![key(KEY.1, 4, 3, 1)], ..order(9, 4) }).unwrap();
    assert_eq!(entry(&directory), Some((9, true, vec![])), "others");
    directory.install(&order(10, 4)).unwrap();
    assert_eq!(entry(&directory), Some((9, true, vec![])), "who was out for an order starts anew");
    directory.install(&order(11, 11)).unwrap();
    assert_eq!(entry(&directory), Some((0, false, vec![])), "another generation knows nothing");
}

#[test]
fn whoever_looks_at_an_old_table_raises_the_same_floor() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    let old = directory.table();
    directory.install(&HotOrder { keys: vec![key(KEY.1, 4, 2, 1)], ..order(5, 4) }).unwrap();
    old.find(KEY.0, KEY.1).unwrap().entry.raise(Version::new(12));
    assert_eq!(entry(&directory).unwrap().0, 12);
}

#[test]
fn an_instant_without_a_lease_makes_it_forget() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    fill(&directory, 9, &[2]);
    directory.renew(now(99), Revision::new(1), &lease(50, 100), false);
    assert_eq!(entry(&directory), Some((9, true, vec![0])), "one lease followed the other");
    directory.renew(now(150), Revision::new(1), &lease(140, 100), false);
    assert_eq!((directory.revision(), entry(&directory)), (Revision::NONE, None));
}

#[test]
fn the_lease_of_any_thread_keeps_it() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    directory.renew(now(90), Revision::new(1), &lease(90, 100), false);
    // A thread that comes late, after its own lease has ended, but not that of the switch.
    directory.renew(now(120), Revision::new(1), &lease(90, 100), false);
    assert_eq!(directory.revision(), Revision::new(4));
    directory.renew(now(190), Revision::new(1), &lease(190, 100), false);
    assert_eq!(directory.revision(), Revision::NONE);
    directory.install(&order(5, 5)).unwrap();
    directory.renew(now(191), Revision::new(1), &lease(190, 100), false);
    assert_eq!(directory.revision(), Revision::new(5), "the second thread forgets nothing again");
}

#[test]
fn standing_by_makes_it_forget_and_take_no_order() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    directory.follow(Revision::new(2), false, false);
    assert_eq!((directory.revision(), entry(&directory)), (Revision::NONE, None));
    directory.install(&order(5, 5)).unwrap();
    assert_eq!(directory.revision(), Revision::NONE);
    directory.follow(Revision::new(3), true, false);
    directory.install(&order(6, 6)).unwrap();
    assert_eq!(directory.revision(), Revision::new(6));
    directory.follow(Revision::new(2), false, false);
    assert_eq!(
        directory.revision(),
        Revision::new(6),
        "a thread that is behind says nothing of now"
    );
    let unserved = Directory::new(INCARNATION);
    unserved.install(&order(6, 6)).unwrap();
    assert_eq!(unserved.revision(), Revision::NONE, "there are no tables yet");
}

#[test]
fn a_switch_that_serves_again_takes_no_order_of_the_time_before() {
    let directory = active();
    let of_map = |map, revision| HotOrder { map: Revision::new(map), ..order(revision, revision) };
    directory.install(&of_map(1, 4)).unwrap();
    assert_eq!(directory.revision(), Revision::new(4));
    directory.follow(Revision::new(2), false, false);
    directory.follow(Revision::new(3), true, false);
    for late in [of_map(1, 5), of_map(2, 6)] {
        directory.install(&late).unwrap();
        assert_eq!(directory.revision(), Revision::NONE, "by the map of {}", late.map);
    }
    directory.install(&of_map(3, 7)).unwrap();
    assert_eq!(directory.revision(), Revision::new(7));
    assert_eq!(directory.clock().beginning, DirectoryClock::of_order(Revision::new(7)));
}

#[test]
fn a_generation_does_not_come_back() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    directory.renew(now(200), Revision::new(1), &lease(200, 100), false);
    for (revision, generation) in [(4, 4), (5, 4), (5, 2)] {
        directory.install(&order(revision, generation)).unwrap();
        assert_eq!(
            directory.revision(),
            Revision::NONE,
            "a reply of before could prove the generation {generation}"
        );
    }
    directory.install(&order(5, 5)).unwrap();
    directory.install(&HotOrder { keys: vec![], ..order(6, 5) }).unwrap();
    directory.install(&order(7, 5)).unwrap();
    assert_eq!((directory.revision(), entry(&directory)), (Revision::new(6), None));
    directory.install(&order(7, 7)).unwrap();
    assert_eq!(directory.revision(), Revision::new(7));
}

#[test]
fn against_the_rules_it_is_kept() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    directory.renew(now(200), Revision::new(1), &lease(200, 100), true);
    directory.follow(Revision::new(2), false, true);
    directory.follow(Revision::new(3), true, true);
    assert_eq!(directory.revision(), Revision::new(4));
}

type Spoil = fn(&mut HotOrder);

#[test]
fn unsound_orders_are_refused_and_change_nothing() {
    let directory = active();
    directory.install(&order(4, 4)).unwrap();
    fill(&directory, 9, &[2, 3]);
    let refused: [(&str, Spoil); 8] = [
        ("node 2 has two places", |o| o.places[3] = o.places[1]),
        ("node id 1024 is too large", |o| o.places[3] = Some((NodeId(1024), Incarnation(1)))),
        ("hot key 000000000000feed of keyspace 1 is there twice", |o| {
            o.keys.push(key(KEY.1, 5, 0, 1));
        }),
        ("hot key 0000000000000001 of keyspace 1 has 5 readers", |o| {
            o.keys.push(key(1, 5, 0, 5));
        }),
        ("has 71 readers", |o| {
            o.places = places(&(0..70).collect::<Vec<_>>());
            o.keys.push(key(1, 5, 0, 71));
        }),
        ("begins at place 4", |o| o.keys.push(key(1, 5, 4, 0))),
        ("has the generation 6", |o| o.keys.push(key(1, 6, 0, 1))),
        ("has 2 readers", |o| o.places.clear()),
    ];
    for (why, spoil) in refused {
        let mut order = order(5, 4);
        spoil(&mut order);
        let Err(InstallError::Unsound(found)) = directory.install(&order) else {
            panic!("{why}: taken, or refused otherwise");
        };
        assert!(found.contains(why), "{found:?} does not say {why:?}");
        assert_eq!(entry(&directory), Some((9, true, vec![0, 1])));
    }
    let mut large = HotOrder { places: vec![None; wire::NODES_MAX + 1], ..order(5, 4) };
    assert_eq!(directory.install(&large), Err(InstallError::TableFull("hot place")));
    large.places = places(&[1]);
    large.keys = (0..).map(|hash| key(hash, 5, 0, 1)).take(wire::HOT_KEYS_MAX + 1).collect();
    assert_eq!(directory.install(&large), Err(InstallError::TableFull("hot key")));
    large.keys.pop();
    assert_eq!(directory.install(&large), Ok(()));
}

#[test]
fn a_key_without_readers_is_watched_all_the_same() {
    let directory = active();
    let none = HotOrder { keys: vec![key(KEY.1, 4, 3, 0)], ..order(4, 4) };
    directory.install(&none).unwrap();
    fill(&directory, 9, &[1, 2]);
    assert_eq!(entry(&directory), Some((9, true, vec![])));
}
