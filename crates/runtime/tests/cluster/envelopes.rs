//! A cluster whose packets are in envelopes, and what it does with all others.

use client::blocking::Client;
use client::{Options, Outcome, PutOptions};
use cluster::{CacheSpec, HotPolicy, Incarnation, Member, NodeId};
use controller::{ControllerConfig, KeyspaceSpec};
use envelope::{Allowed, Passes, RingPorts, Secret, Secrets};
use node::engine::memory::MemoryEngine;
use runtime::driver::{
    ClassRights, ControllerDriver, ControllerPlan, KeyPlan, MemberHandle, NodeDriver, NodeLimits,
    PassWish, SwitchDriver, in_process,
};
use runtime::identity::{SecretSource, Security};
use runtime::keyring::Keyring;
use runtime::net::Socket;
use runtime::store::EmbeddedStore;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use wire::{EnvelopeRefusal, Header, Op};

/// The class of those who may read alone.
const READER: &str = "client/reader";

struct Cluster {
    controller: ControllerDriver,
    switch: SwitchDriver,
    _nodes: Vec<NodeDriver>,
    _store: tempfile::TempDir,
}

fn node(id: u16) -> NodeDriver {
    let sockets = Socket::bind_row("127.0.0.1:0".parse().unwrap(), 2).unwrap();
    let engines = (0..2).map(|_| MemoryEngine::new(cluster::StoreId(id.into()))).collect();
    let (incarnation, limits) = (Incarnation(id.into()), NodeLimits::default());
    NodeDriver::start(NodeId(id), incarnation, sockets, engines, limits, Some(Keyring::default()))
        .unwrap()
}

impl Cluster {
    fn start() -> Self {
        let keyring = Some(Keyring::default());
        let at = "127.0.0.1:0".parse().unwrap();
        let switch = SwitchDriver::start(at, 2, Incarnation(9), None, keyring).unwrap();
        let nodes: Vec<NodeDriver> = (1..=3).map(node).collect();
        let config = ControllerConfig {
            seed: 7,
            cluster: cluster::ClusterId(9),
            switches: vec![switch.service().into()],
            nodes: nodes.iter().map(NodeDriver::spec).collect(),
            caches: Vec::<CacheSpec>::new(),
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
        let spec = KeyspaceSpec {
            name: "default".into(),
            kind: cluster::KeyspaceKind::Hash,
            partitions: 8,
            replicas: 3,
            splits: Vec::new(),
            hot: HotPolicy::Off,
        };
        let mut members =
            vec![(Member::Switch(0), in_process(MemberHandle::Switch(switch.handle())).unwrap())];
        for it in &nodes {
            let line = in_process(MemberHandle::Node(it.handle())).unwrap();
            members.push((Member::Node(it.spec().id), line));
        }
        let secrets = Arc::new(Secrets::new(Secret::new([7; 32])));
        let read = Allowed { read: true, ..Allowed::default() };
        let reader =
            ClassRights { whose: READER.to_owned(), elsewhere: read, keyspaces: BTreeMap::new() };
        let keys = KeyPlan {
            secrets: SecretSource::new(move || Arc::clone(&secrets)),
            classes: vec![reader],
            fixed: vec![RingPorts { first: switch.service(), ports: 1 }],
            content: None,
        };
        let plan = ControllerPlan {
            config,
            keyspaces: vec![spec],
            members,
            security: Security::default(),
            keys: Some(keys),
        };
        let store = tempfile::tempdir().unwrap();
        let map = Box::new(EmbeddedStore::open(&store.path().join("map")).unwrap());
        let controller = ControllerDriver::start(plan, map).unwrap();
        controller.handle().wait_ready(Duration::from_secs(20)).unwrap();
        Self { controller, switch, _nodes: nodes, _store: store }
    }

    fn client(&self, class: Option<&str>) -> Client {
        let class = class.map(str::to_owned);
        let wish = PassWish { whose: "client/a".to_owned(), class, renew: None };
        let pass = self.controller.handle().pass(wish).unwrap();
        let passes = pass.map(Passes::new);
        let options = Options { deadline: Duration::from_secs(5), passes, ..Options::default() };
        Client::connect(self.switch.service(), options).unwrap()
    }

    /// What the switch refused for this reason.
    fn refused(&self, why: EnvelopeRefusal) -> u64 {
        let roles =
            runtime::roles::Roles { switch: Some(self.switch.handle()), ..Default::default() };
        let page = runtime::metrics::expose(&roles);
        let name = why.name();
        let row = format!("keyway_envelopes_refused_total{{role=\"switch\",why=\"{name}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&row)).unwrap();
        line.parse().unwrap()
    }
}

#[test]
fn clients_with_a_pass_are_served_within_their_rights_and_nobody_else_is() {
    let cluster = Cluster::start();
    let space = cluster.client(None).keyspace("default").unwrap();
    let (key, value) = (b"a key", b"a value");
    assert!(matches!(space.put(key, value, PutOptions::default()), Outcome::Done(_)));
    for n in 0..50 {
        assert!(
            matches!(
                space.put(format!("k{n}").as_bytes(), value, PutOptions::default()),
                Outcome::Done(_)
            ),
            "{n}"
        );
    }
    let found = space.get(key).into_result().unwrap().unwrap();
    assert_eq!(found.value, value);
    let keys: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let many = space.mget(&keys);
    assert!(many.into_iter().all(|it| it.into_result().unwrap().is_some()));
    assert!(cluster.refused(EnvelopeRefusal::NoCookie) > 0);

    let reader = cluster.client(Some(READER)).keyspace("default").unwrap();
    assert_eq!(reader.get(key).into_result().unwrap().unwrap().value, value);
    assert!(matches!(reader.put(key, b"other", PutOptions::default()), Outcome::Unknown(_)));
    assert!(cluster.refused(EnvelopeRefusal::Right) > 0);
    assert_eq!(space.get(key).into_result().unwrap().unwrap().value, value);

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut bare = Vec::new();
    let get = Header { client: 5, seq: 1, op: Op::Get as u8, ..Header::default() };
    wire::emit(&mut bare, &get, &[key]);
    let service: SocketAddr = cluster.switch.service();
    socket.send_to(&bare, service).unwrap();
    assert!(socket.recv(&mut [0; 2_000]).is_err(), "nobody answers");
    assert_eq!(cluster.refused(EnvelopeRefusal::Bare), 1);
}
