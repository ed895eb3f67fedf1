//! Creating keyspaces: cuts, chains, refusals.

use super::member::content_on;
use super::world::{World, config, hash, node};
use crate::{ControllerConfig, CreateError, KeyspaceSpec, MemberState, SwitchStatus};
use cluster::{Capabilities, ContentRouting, KeyspaceKind, Member, NoAddresses, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn range(prefix: &[u8], partitions: u32, splits: &[&[u8]]) -> KeyspaceSpec {
    KeyspaceSpec {
        name: "r".into(),
        kind: KeyspaceKind::Range { prefix: prefix.to_vec() },
        partitions,
        replicas: 1,
        splits: splits.iter().map(|key| key.to_vec()).collect(),
        hot: cluster::HotPolicy::default(),
    }
}

#[test]
fn each_node_is_head_middle_and_tail_of_equally_many() {
    let mut world = World::settled(12, 1);
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 48, 3)).unwrap();
    let mut roles: BTreeMap<(NodeId, usize), u32> = BTreeMap::new();
    for partition in &world.map().partitions {
        for (role, id) in partition.chain.iter().enumerate() {
            *roles.entry((*id, role)).or_default() += 1;
        }
    }
    assert_eq!(roles.len(), 12 * 3);
    assert!(roles.values().all(|n| *n == 4), "{roles:?}");
    assert_eq!(world.map().partitions[11].chain, [NodeId(11), NodeId(0), NodeId(1)]);
}

#[test]
fn small_keyspaces_take_turns_at_the_nodes() {
    let mut world = World::settled(4, 1);
    let now = world.now;
    for name in ["a", "b", "c", "d"] {
        world.controller.create_keyspace(now, hash(name, 1, 1)).unwrap();
    }
    let heads: Vec<u16> = world.map().partitions.iter().map(|p| p.chain[0].0).collect();
    assert_eq!(heads, [0, 1, 2, 3]);
    let map = world.map();
    assert!(map.keyspaces.iter().all(|k| k.replicas == 1));
    assert!(map.partitions.iter().all(|p| p.open && !p.has_learner && p.since.len() == 1));
}

#[test]
fn even_cuts_differ_by_one_at_most() {
    for partitions in [1, 2, 3, 7, 128, 4_096, 65_535] {
        let mut world = World::settled(3, 1);
        let now = world.now;
        world.controller.create_keyspace(now, hash("a", partitions, 1)).unwrap();
        let widths = || world.controller.map().partitions.iter().map(|p| p.last.0 - p.first.0);
        let (least, most) = (widths().min().unwrap(), widths().max().unwrap());
        assert!(most - least <= 1, "{partitions} partitions: {least:x} to {most:x}");
        assert_eq!(world.controller.map().check(), Ok(()));
    }
}

#[test]
fn a_range_keyspace_is_cut_at_the_keys_asked_for() {
    let mut world = World::settled(3, 1);
    let now = world.now;
    let spec = range(b"user", 3, &[b"user3", b"user3x-and-so-on-for-long"]);
    let id = world.controller.create_keyspace(now, spec).unwrap();
    let map = world.map();
    let keyspace = map.keyspace("r").unwrap();
    let of = |key: &[u8]| map.partition_of(id, keyspace.match_value(key)).unwrap().id.0;
    assert_eq!([of(b"a"), of(b"user"), of(b"user2zz")], [1, 1, 1]);
    assert_eq!([of(b"user3"), of(b"user3a"), of(b"user3x")], [2, 2, 2]);
    assert_eq!([of(b"user3x-and-so-on-for-long"), of(b"user9"), of(b"v")], [3, 3, 3]);
    assert_eq!(map.partitions[1].first, keyspace.match_value(b"user3"));
    assert_eq!(map.check(), Ok(()));
}

#[test]
fn a_keyspace_that_cannot_be_is_refused_and_changes_nothing() {
    let mut world = World::settled(3, 1);
    let now = world.now;
    world.controller.create_keyspace(now, hash("taken", 1, 1)).unwrap();
    let before = world.map();
    let cut_hash = KeyspaceSpec { splits: vec![b"m".to_vec()], ..hash("a", 2, 1) };
    let long_prefix = vec![b'p'; wire::PREFIX_MAX + 1];
    let room = wire::PARTITIONS_MAX - 1;
    let cases = [
        (hash("", 1, 1), CreateError::Name),
        (hash("white space", 1, 1), CreateError::Name),
        (hash(&"x".repeat(wire::NAME_MAX + 1), 1, 1), CreateError::Name),
        (hash("taken", 1, 1), CreateError::Exists),
        (hash("a", 0, 1), CreateError::Partitions { room }),
        (hash("a", 65_536, 1), CreateError::Partitions { room }),
        (hash("a", u32::MAX, 1), CreateError::Partitions { room }),
        (hash("a", 1, 0), CreateError::Replicas { most: 3 }),
        (hash("a", 1, 4), CreateError::Replicas { most: 3 }),
        (cut_hash, CreateError::SplitsOfHash),
        (range(&long_prefix, 1, &[]), CreateError::Prefix),
        (range(b"", 2, &[b"a", b"b"]), CreateError::SplitCount { found: 2 }),
        (range(b"", 3, &[b"b", b"a"]), CreateError::Split { index: 1 }),
        (range(b"", 3, &[b"a", b"a"]), CreateError::Split { index: 1 }),
        (range(b"", 2, &[b""]), CreateError::Split { index: 0 }),
        (range(b"k", 2, &[b"x"]), CreateError::Split { index: 0 }),
        // They differ, but not within the 16 bytes that the switch sees.
        (
            range(b"", 3, &[b"0123456789abcdefX", b"0123456789abcdefY"]),
            CreateError::Split { index: 1 },
        ),
    ];
    for (spec, refusal) in cases {
        let name = format!("{spec:?}");
        assert_eq!(world.controller.create_keyspace(now, spec), Err(refusal.clone()), "{name}");
        assert!(!refusal.to_string().is_empty());
    }
    assert_eq!(world.map(), before);
}

#[test]
fn a_keyspace_whose_keys_could_have_no_content_addresses_is_refused_where_keys_have_some() {
    let (prefix, port) = ("fd77:1::/48".parse().unwrap(), 7_800);
    let content = Some(ContentRouting { prefix, port });
    let mut world = World::of(ControllerConfig { content, ..config(1, 1) });
    world.settle();
    let now = world.now;
    let cases = [
        (range(b"", 1, &[]), NoAddresses::Ordered, "choose kind = \"hash\""),
        (hash("twelve", 12, 1), NoAddresses::Partitions(12), "choose a power of two"),
    ];
    for (spec, why, advice) in cases {
        let refused = world.controller.order_keyspace(now, spec).unwrap_err();
        assert_eq!(refused, CreateError::NoAddresses(why));
        assert!(refused.to_string().contains(advice), "{refused}");
    }
    world.controller.order_keyspace(now, hash("sixteen", 16, 1)).unwrap();
    let keyspace = world.map().keyspace("sixteen").unwrap().clone();
    assert_eq!((keyspace.content, keyspace.copies_hot_keys()), (content, false));
}

#[test]
fn what_a_switch_says_that_it_can_do_is_in_the_status() {
    let mut world = World::new(1, 1);
    let content = content_on(Capabilities::ADDRESSES);
    world.member(Member::Switch(0)).content = Some(content.clone());
    world.settle();
    let status = world.status();
    let said: Vec<_> = status.members.into_iter().filter_map(|it| it.switch).collect();
    let capabilities = Capabilities { delegates: false, ..Capabilities::PROGRAM };
    assert_eq!(said, [SwitchStatus { capabilities, content: Some(content) }]);
}

#[test]
fn keyspaces_end_at_their_limit() {
    let mut world = World::settled(1, 1);
    let now = world.now;
    for n in 0..wire::KEYSPACES_MAX {
        world.controller.create_keyspace(now, hash(&format!("k{n}"), 1, 1)).unwrap();
    }
    let refused = world.controller.create_keyspace(now, hash("more", 1, 1));
    assert_eq!(refused, Err(CreateError::Keyspaces));
}

#[test]
fn nodes_that_were_never_heard_are_waited_for_a_while_before_anything_is_placed() {
    let mut world = World::new(3, 1);
    world.member(node(1)).alive = false;
    world.settle();
    let now = world.now;
    let refused = world.controller.create_keyspace(now, hash("a", 6, 2));
    assert_eq!(refused, Err(CreateError::NodesUnknown(vec![NodeId(1)])));
    // Who never starts is not waited for.
    let mut without = world.clone();
    without.live_for(Duration::from_secs(10));
    let now = without.now;
    without.controller.create_keyspace(now, hash("a", 6, 2)).unwrap();
    assert!(without.live_until(|it| it.status().covered) < Duration::from_secs(1));
    assert!(without.map().partitions.iter().all(|it| !it.chain.contains(&NodeId(1))));

    world.member(node(1)).alive = true;
    world.live();
    let now = world.now;
    world.controller.create_keyspace(now, hash("a", 6, 2)).unwrap();
    world.settle();
    assert!(world.status().ready);
}

#[test]
fn nothing_is_placed_on_nodes_that_are_silent_forgetful_or_departing() {
    let mut world = World::with_keyspace(5, 1, 1, 1);
    // Node 0 holds the only partition.
    world.member(node(0)).wipe(999);
    world.kill(node(1));
    let now = world.now;
    world.controller.drain_node(now, NodeId(2)).unwrap();
    world.live_for(Duration::from_secs(1));
    assert_eq!(world.state_of(node(0)), MemberState::Forgotten);
    let now = world.now;
    let refused = world.controller.create_keyspace(now, hash("b", 4, 3));
    assert_eq!(refused, Err(CreateError::Replicas { most: 2 }));
    let id = world.controller.create_keyspace(now, hash("b", 4, 2)).unwrap();
    let map = world.map();
    let placed = map.partitions.iter().filter(|p| p.keyspace == id);
    let used: BTreeSet<u16> = placed.flat_map(|p| p.chain.iter().map(|n| n.0)).collect();
    assert_eq!(used, BTreeSet::from([3, 4]));
}

#[test]
fn a_specification_reads_as_people_write_it() {
    let text = r#"{"name":"log","kind":"range","prefix":[117],"partitions":2,"replicas":3}"#;
    let spec: KeyspaceSpec = serde_json::from_str(text).unwrap();
    assert_eq!(spec.kind, KeyspaceKind::Range { prefix: b"u".to_vec() });
    assert_eq!(spec.splits, Vec::<Vec<u8>>::new());
    let hash: KeyspaceSpec =
        serde_json::from_str(r#"{"name":"h","kind":"hash","partitions":1,"replicas":1}"#).unwrap();
    assert_eq!(hash.kind, KeyspaceKind::Hash);
}
