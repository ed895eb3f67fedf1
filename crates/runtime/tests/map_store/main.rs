//! The stores of a controller: what each of them must do, with a real etcd for that one.

mod etcd;

use cluster::{NodeId, NodeSpec, Term};
use controller::{Controller, ControllerConfig, Saved};
use machine::Instant;
use runtime::store::{
    Candidacy, Candidate, EmbeddedStore, Leadership, MapStore, SaveError, StoreError,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tempfile::TempDir;
use testkit::server::Server;
use testkit::skip;
use wire::Endpoint;

/// A state of a cluster with so many nodes.
fn saved(nodes: u16) -> Saved {
    let at = |port| Endpoint::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let node = |id| NodeSpec { id: NodeId(id), endpoint: at(20_000 + id), shards: 1 };
    let config = ControllerConfig {
        seed: 7,
        cluster: cluster::ClusterId(9),
        switches: vec![at(7_700)],
        nodes: (0..nodes).map(node).collect(),
        caches: Vec::new(),
        controls: BTreeMap::new(),
        poll_interval: controller::POLL_INTERVAL,
        lease: controller::LEASE,
        overlap: Duration::ZERO,
        copy_bytes_per_s: controller::COPY_BYTES_PER_S,
        hot_selection: cluster::Selection::default(),
        content: None,
        load_floor: controller::LOAD_FLOOR,
        split_bytes: controller::SPLIT_BYTES,
    };
    let now = Instant::from_unix_ms(1_800_000_000_000);
    let mut controller = Controller::new(config, None, now).expect("a sound configuration");
    controller.poll_save().expect("nothing is saved yet")
}

/// One whose map has so many partitions.
fn large(partitions: usize) -> Saved {
    let mut large = saved(1);
    large.map.partitions = vec![cluster::Partition::default(); partitions];
    large
}

/// Saves, and waits for what came of it.
fn save(store: &mut dyn MapStore, saved: &Saved) -> Result<(), SaveError> {
    store.save(saved);
    ended(store)
}

fn ended(store: &mut dyn MapStore) -> Result<(), SaveError> {
    for _ in 0..1_000 {
        if let Some(ended) = store.poll_saved() {
            return ended;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("a save has no end: {:?}", store.status());
}

/// What every store must do. `open` gives it anew, after the one before was dropped.
fn check(mut open: impl FnMut() -> Box<dyn MapStore>) {
    let mut store = open();
    assert_eq!(store.leadership(), Leadership::Certain);
    assert_eq!(store.load().expect("it can be read"), None);
    assert_eq!(store.poll_saved(), None);
    for nodes in [1, 50, 2] {
        save(&mut *store, &saved(nodes)).expect("there is room");
        assert_eq!(store.poll_saved(), None, "told once");
        drop(store);
        store = open();
        assert_eq!(store.load().expect("it can be read"), Some(saved(nodes)));
    }
    let newer = Saved { term: Term(8), ..saved(3) };
    for state in [&saved(4), &newer] {
        save(&mut *store, state).expect("there is room");
    }
    assert_eq!(store.load().expect("it can be read"), Some(newer));
    assert!(store.status().trouble.is_none(), "{:?}", store.status());
}

#[test]
fn the_embedded_store_does_what_a_store_must() {
    let dir = TempDir::new().unwrap();
    check(|| Box::new(EmbeddedStore::open(&dir.path().join("map")).unwrap()));
}
