//! What builds have said to each other is understood: recorded orders and reports, a folder for
//! each version. `RECORD_FIXTURES=1 cargo test -p keyway-cluster --test fixtures` records those of
//! the present version that are not there yet.

use cluster::{
    Assignment, Away, Capabilities, ClusterId, ContentReport, Epoch, Fence, HotOrder, HotPolicy,
    Incarnation, Install, Keyspace, KeyspaceId, KeyspaceKind, Leader, Lease, Making, Map, Match,
    MemberReport, NodeId, NodeReport, NodeSpec, ORDERS_VERSION, ORDERS_VERSION_MIN, Order, Origin,
    Partition, PartitionId, Report, Returned, Settled, StoreId, SwitchCounters, Term, Versions,
};
use machine::Instant;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use wire::{Endpoint, Revision, Version};

fn folder(version: u16) -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("orders-{version}"))
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

/// Reads what each version has recorded under this name, and finds that nothing gets lost.
fn check<T: Serialize + DeserializeOwned>(name: &str, sample: &T) {
    let path = folder(ORDERS_VERSION).join(format!("{name}.json"));
    if std::env::var_os("RECORD_FIXTURES").is_some() && !path.exists() {
        fs::create_dir_all(folder(ORDERS_VERSION)).expect("a folder of ours");
        let text = serde_json::to_string_pretty(sample).expect("plain data");
        fs::write(&path, text + "\n").expect("a file of ours");
    }
    // The version before the first that has a number left no records.
    for version in (ORDERS_VERSION_MIN..=ORDERS_VERSION).filter(|it| *it > 0) {
        let path = folder(version).join(format!("{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        let read: T = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        let before: Value = serde_json::from_str(&text).expect("it was read");
        let now = serde_json::to_value(&read).expect("plain data");
        assert!(is_kept(&before, &now), "{path:?} says more than is understood: {now:#}");
    }
}

fn map() -> Map {
    let node = |id: u16| NodeSpec {
        id: NodeId(id),
        endpoint: Endpoint { addr: [u8::try_from(id).expect("few"); 16], port: 7_801 },
        shards: 2,
    };
    Map {
        revision: Revision::new(90),
        cluster: ClusterId(0xc1),
        fences: vec![Fence::new(NodeId(3), Revision::new(80))],
        copy_bytes_per_s: 1_000,
        nodes: (1..=3).map(node).collect(),
        keyspaces: vec![Keyspace {
            id: KeyspaceId(1),
            name: "default".into(),
            kind: KeyspaceKind::Hash,
            seed: 7,
            replicas: 3,
            hot: HotPolicy::default(),
            content: None,
        }],
        partitions: vec![Partition {
            grown: false,
            id: PartitionId(1),
            keyspace: KeyspaceId(1),
            first: Match::MIN,
            last: Match::MAX,
            epoch: Epoch(9),
            chain: vec![NodeId(1), NodeId(2)],
            since: vec![Revision::new(5), Revision::new(6)],
            has_learner: true,
            open: true,
            opened: Epoch(9),
            sends_early: true,
            returned: vec![Returned { node: NodeId(2), remembers: false, left: true }],
            resumes: Some(Version::new(40)),
            away: vec![Away { node: NodeId(3), since: Revision::new(5), left: Revision::new(80) }],
            made: Some(Making {
                revision: Revision::new(5),
                origins: vec![Origin {
                    partition: PartitionId(3),
                    members: vec![(NodeId(1), Revision::new(4))],
                }],
            }),
        }],
        ..Map::default()
    }
}

fn order(install: Install) -> Order {
    let lease = Lease {
        incarnation: Incarnation(4),
        cluster: ClusterId(0xc1),
        revision: Revision::new(90),
        from: Instant(1_000_000),
        duration_ms: 10_000,
    };
    Order {
        leader: Some(Leader { cluster: ClusterId(0xc1), term: Term(3) }),
        incarnation: Some(Incarnation(4)),
        install: Some(install),
        lease: Some(lease),
        direct: Some(lease),
        hot: Some(Arc::new(HotOrder { revision: Revision::new(70), ..HotOrder::default() })),
        version: ORDERS_VERSION,
        may_end: true,
        ..Order::default()
    }
}

fn report(state: MemberReport) -> Report {
    let versions = Versions { build: "0.1.0".into(), ..Versions::ours() };
    Report { incarnation: Incarnation(4), at: Instant(1_000_000), versions, keys: None, state }
}

#[test]
fn orders_and_reports_of_this_version_and_the_one_before_are_understood() {
    let assignment = Assignment {
        incarnation: Some(Incarnation(4)),
        aged: Revision::new(2),
        ..map().assignment(NodeId(3), StoreId(8), Endpoint { addr: [9; 16], port: 7_700 })
    };
    check("order-node", &order(Install::Assignment(assignment)));
    check("order-switch", &order(Install::Tables(map().switch_tables(0))));
    let settled = Settled {
        partition: PartitionId(1),
        epoch: Epoch(9),
        newest: Version::new(50),
        history: 1,
        digest: Some(2),
        collected: Version::new(30),
        base: Some(Version::new(40)),
        writes: Some(60),
        delegated: true,
    };
    let node = NodeReport {
        revision: Revision::new(90),
        store: StoreId(8),
        cluster: Some(ClusterId(0xc1)),
        past: vec![Incarnation(3)],
        recorded: Revision::new(90),
        settled: vec![settled],
        caught_up: vec![(PartitionId(1), Epoch(9))],
        vacating: vec![PartitionId(2)],
        leaving: true,
        ..NodeReport::default()
    };
    check("report-node", &report(MemberReport::Node(Box::new(node))));
    let switch = SwitchCounters {
        revision: Revision::new(90),
        cluster: Some(ClusterId(0xc1)),
        capabilities: Capabilities::PROGRAM,
        content: Some(ContentReport {
            plane: "routes".into(),
            capabilities: Capabilities::ADDRESSES,
            changes_per_second: Some(400),
            partitions: 256,
            rules: 1,
            pending: 0,
            refused: 0,
            unroutable: 0,
            trouble: Some("it does not answer".into()),
        }),
        leaving: true,
        ..SwitchCounters::default()
    };
    check("report-switch", &report(MemberReport::Switch(switch)));
    check("map", &map());
}
