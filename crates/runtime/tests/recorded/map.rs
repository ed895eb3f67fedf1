//! A controller's state in its file.

use crate::{fixtures, records};
use cluster::{
    Away, ClusterId, Epoch, Fence, HotPolicy, Incarnation, KeyName, Keyspace, KeyspaceId,
    KeyspaceKind, Map, Match, NodeId, NodeSpec, Partition, PartitionId, Returned, Standby, StoreId,
    Term,
};
use controller::Saved;
use runtime::store::{EmbeddedStore, MAP_FILE_FORMAT, MapStore as _};
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use wire::{Endpoint, Revision, Version};

fn name() -> String {
    format!("map-{MAP_FILE_FORMAT}")
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn map() -> Map {
    let node =
        |id: u16| NodeSpec { id: NodeId(id), endpoint: Endpoint::from(at(20_000 + id)), shards: 2 };
    Map {
        caches: Vec::new(),
        revision: Revision::new(90),
        cluster: ClusterId(0xc1),
        active_switch: 1,
        handing_over: true,
        fences: vec![Fence::new(NodeId(3), Revision::new(80))],
        copy_bytes_per_s: 1_000,
        nodes: (1..=3).map(node).collect(),
        keyspaces: vec![Keyspace {
            id: KeyspaceId(0x8001),
            name: "users".into(),
            kind: KeyspaceKind::Range { prefix: b"user:".to_vec() },
            seed: 7,
            replicas: 3,
            hot: HotPolicy::default(),
            content: None,
        }],
        partitions: vec![Partition {
            grown: false,
            made: None,
            sends_early: false,
            id: PartitionId(1),
            keyspace: KeyspaceId(0x8001),
            first: Match::MIN,
            last: Match::MAX,
            epoch: Epoch(9),
            chain: vec![NodeId(1), NodeId(2)],
            since: vec![Revision::new(5), Revision::new(6)],
            has_learner: true,
            open: false,
            opened: Epoch(8),
            returned: vec![Returned { node: NodeId(2), remembers: false, left: true }],
            resumes: Some(Version::new(40)),
            away: vec![Away { node: NodeId(3), since: Revision::new(5), left: Revision::new(80) }],
        }],
    }
}

fn saved() -> Saved {
    let key = KeyName { keyspace: KeyspaceId(0x8001), key: b"user:1\xff".to_vec() };
    Saved {
        format: controller::FORMAT,
        term: Term(4),
        seed: 11,
        switches: vec![at(7_700), at(7_701)],
        controls: [(NodeId(1), at(7_891))].into(),
        map: map(),
        stores: [(NodeId(1), StoreId(8))].into(),
        incarnations: [(NodeId(1), Incarnation(3))].into(),
        switch_incarnations: [(at(7_700), Incarnation(5))].into(),
        aged: [(NodeId(2), Revision::new(70))].into(),
        issued: [Revision::new(80), Revision::new(90)].into(),
        standbys: [(
            at(7_700),
            Standby { since: Revision::new(60), unnamed: Some(Revision::new(90)) },
        )]
        .into(),
        direct: None,
        departing: [NodeId(3)].into(),
        paused: true,
        placement_paused: false,
        pins: [key].into(),
        passes: 0,
        classes: [].into(),
        lease_ms: 10_000,
        next_keyspace: 0x8002,
        next_partition: 2,
    }
}

/// Everything that `before` says, `now` says as well; there may be more.
fn is_kept(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            before.iter().all(|(name, value)| now.get(name).is_some_and(|it| is_kept(value, it)))
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len()
                && before.iter().zip(now).all(|(one, other)| is_kept(one, other))
        }
        _ => before == now,
    }
}

#[test]
fn a_controllers_state_on_record_is_read_without_loss() {
    if records(&name()) {
        let dir = tempfile::tempdir().expect("a folder of ours");
        let mut store = EmbeddedStore::open(&dir.path().join("map")).expect("a new one");
        store.save(&saved());
        store.poll_saved().expect("it has ended").expect("there is room");
        fs::create_dir_all(fixtures()).expect("a folder of ours");
        fs::copy(dir.path().join("map"), fixtures().join(name())).expect("a file of ours");
    }
    let file = fs::read(fixtures().join(name())).expect("it is on record");
    let dir = tempfile::tempdir().expect("a folder of ours");
    let path = dir.path().join("map");
    fs::write(&path, &file).expect("a file of ours");
    let mut store = EmbeddedStore::open(&path).expect("it is whole");
    let found = store.load().expect("it is understood").expect("there is one");
    let value = file.splitn(3, |byte| *byte == b'\n').nth(2).expect("two lines before it");
    let before: Value = serde_json::from_slice(value).expect("plain data");
    let now = serde_json::to_value(&found).expect("plain data");
    assert!(is_kept(&before, &now), "{before:#}\nsays more than is understood: {now:#}");
    assert_eq!(found, saved());
}
