//! The admin server: metrics, health, status, and the control transport over HTTP.

use crate::setup::{get, in_memory, post, put};
use cluster::{Incarnation, Install, Order, Report, SwitchTables};
use runtime::admin::Admin;
use runtime::driver::SwitchDriver;
use runtime::roles::Roles;
use runtime::up::Embedded;
use std::collections::BTreeMap;
use std::io::Write as _;
use wire::metric::{Kind, Metric};
use wire::{Revision, layout::metric};

const SWITCH_METRICS: [Metric; 17] = [
    metric::SWITCH_PACKETS,
    metric::SWITCH_EMITTED,
    metric::SWITCH_DROPPED,
    metric::SWITCH_UNSENT,
    metric::SWITCH_IN_KERNEL,
    metric::SWITCH_OVERFLOWED,
    metric::SWITCH_PARTITION_READS,
    metric::SWITCH_PARTITION_WRITES,
    metric::SWITCH_HOT_MULTIGET_KEYS,
    metric::SWITCH_HOT_REVISION,
    metric::SWITCH_HOT_DELEGATED_WRITES,
    metric::SWITCH_HOT_DOUBTED,
    metric::SWITCH_HOT_CROWDED,
    metric::SWITCH_CACHED_READS,
    metric::SWITCH_CACHE_RULES,
    metric::SWITCH_TABLE_REVISION,
    metric::SWITCH_LEASED,
];

const NODE_METRICS: [Metric; 42] = [
    metric::NODE_BY_ADDRESS,
    metric::NODE_LOANS,
    metric::NODE_PARKED,
    metric::NODE_ROOM,
    metric::NODE_MEMORY_BYTES,
    metric::NODE_UPLOAD_BYTES,
    metric::NODE_STORED_KEYS,
    metric::NODE_STORED_BYTES,
    metric::NODE_REQUESTS,
    metric::NODE_REPLIES,
    metric::NODE_DROPPED,
    metric::NODE_UNSENT,
    metric::NODE_OVERFLOWED,
    metric::NODE_RESENDS,
    metric::NODE_DUPLICATES,
    metric::NODE_SUPERSEDED,
    metric::NODE_EXPIRED,
    metric::NODE_VERIFIED,
    metric::NODE_DIFFERENCES,
    metric::NODE_MENDED,
    metric::NODE_ABSURD,
    metric::NODE_COLLECTED,
    metric::NODE_PARTS_DROPPED,
    metric::NODE_NOTES_IGNORED,
    metric::NODE_SCANNED,
    metric::NODE_LONG_TURNS,
    metric::NODE_UPLOADS,
    metric::NODE_PENDING,
    metric::NODE_SESSIONS,
    metric::NODE_SESSIONS_ENDED,
    metric::NODE_SESSIONS_FORGOTTEN,
    metric::NODE_SYNCS,
    metric::NODE_CPU_SECONDS,
    metric::NODE_WAITING,
    metric::NODE_PARTITIONS,
    metric::NODE_HOT_KEYS,
    metric::NODE_HOT_COPIES,
    metric::NODE_HOT_DELEGATED_WRITES,
    metric::NODE_HOT_DELEGATED_KEYS,
    metric::NODE_HOT_READS,
    metric::NODE_HOT_COPIES_SENT,
    metric::NODE_LEASED,
];

/// What every process tells.
const PROGRAM_METRICS: [Metric; 9] = [
    metric::BUILD_INFO,
    metric::ROLE_UP,
    metric::PROCESS_CPU_SECONDS,
    metric::PROCESS_OPEN_FDS,
    metric::PROCESS_MAX_FDS,
    metric::PROCESS_THREADS,
    metric::PROCESS_VIRTUAL_MEMORY_BYTES,
    metric::PROCESS_RESIDENT_MEMORY_BYTES,
    metric::PROCESS_START_TIME_SECONDS,
];

const CONTROLLER_METRICS: [Metric; 14] = [
    metric::CONTROLLER_MAP_REVISION,
    metric::CONTROLLER_MEMBERS_READY,
    metric::CONTROLLER_ORDERS,
    metric::CONTROLLER_ACTIVE,
    metric::CONTROLLER_TERM,
    metric::CONTROLLER_STORE_SILENT_SECONDS,
    metric::CONTROLLER_ACTIVE_SWITCH,
    metric::CONTROLLER_EPOCHS,
    metric::CONTROLLER_PARTITIONS,
    metric::CONTROLLER_STORED_KEYS,
    metric::CONTROLLER_STORED_BYTES,
    metric::CONTROLLER_HOT_KEYS,
    metric::CONTROLLER_PLACEMENT_CHANGES,
    metric::CONTROLLER_NODE_LOAD_RATIO,
];

/// These have samples only once something was asked, while something is copied, or keys are hot,
/// with a limit or a disk, when replicas were compared, with certificates or envelopes.
const COPY_METRICS: [Metric; 16] = [
    metric::NODE_PARTITION_SCANNED,
    metric::NODE_PARTITION_BYTES_IN,
    metric::NODE_PARTITION_BYTES_OUT,
    metric::ENVELOPES_REFUSED,
    metric::NODE_LATENCY_SECONDS,
    metric::NODE_MEMORY_MAX_BYTES,
    metric::NODE_DISK_FREE_BYTES,
    metric::NODE_DISK_FLOOR_BYTES,
    metric::NODE_DISK_USED_BYTES,
    metric::CONTROLLER_NODE_ROOM_RATIO,
    metric::CONTROLLER_COPY_RATIO,
    metric::CONTROLLER_COPY_BYTES,
    metric::CONTROLLER_VERIFIED_AGE_SECONDS,
    metric::SWITCH_HOT_READS,
    metric::SWITCH_HOT_WRITES,
    metric::CERTIFICATE_LEFT_SECONDS,
];

/// Of the process, whatever its role.
const PROCESS_METRICS: [Metric; 9] = [
    metric::LEADER_TERM,
    metric::ORDERS_REFUSED,
    metric::ADMIN_CONNECTIONS,
    metric::ADMIN_CONNECTIONS_MAX,
    metric::ADMIN_TURNED_AWAY,
    metric::ADMIN_REFUSED,
    metric::FILES_OPEN,
    metric::FILES_RESERVED,
    metric::FILES_MAX,
];

/// What a sample's line begins with, labels without values.
fn sample_of(metric: &Metric) -> (String, Vec<String>) {
    let suffix = match metric.kind {
        Kind::Counter => "_total",
        Kind::Gauge => "",
        Kind::Histogram => "_count",
    };
    let labels = metric.labels.iter().map(|label| format!("{label}=\"")).collect();
    (format!("{}{suffix}", metric.name), labels)
}

fn assert_exposed(text: &str, metric: &Metric) {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let header = format!("# TYPE {} {kind}\n", metric.name);
    assert_eq!(text.matches(&header).count(), 1, "{header} once in\n{text}");
    assert!(text.contains(&format!("# HELP {} {}", metric.name, metric.help)), "{}", metric.name);
    let (name, labels) = sample_of(metric);
    let is_sample = |line: &str| {
        let rest = line.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label.as_str()))
    };
    assert!(text.lines().any(is_sample), "no sample of {name} {labels:?} in\n{text}");
}

#[test]
fn every_metric_of_every_role_is_exposed_and_no_other() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let answer = get(cluster.admin(), "/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.content_type.starts_with("application/openmetrics-text"));
    assert!(answer.body.ends_with("# EOF\n"));
    let all = SWITCH_METRICS.iter().chain(&NODE_METRICS).chain(&CONTROLLER_METRICS);
    let all = all.chain(&PROCESS_METRICS);
    let all = all.chain(&PROGRAM_METRICS);
    all.clone().for_each(|metric| assert_exposed(&answer.body, metric));
    let copies = COPY_METRICS.iter().map(|metric| format!("# TYPE {} ", metric.name));
    copies.for_each(|header| assert!(answer.body.contains(&header), "{}", answer.body));
    assert_eq!(answer.body.matches("# TYPE ").count(), all.count() + COPY_METRICS.len());
    assert!(answer.body.contains("keyway_controller_partitions{state=\"open\"} 32\n"));
    for node in 1..=3 {
        let sample = format!("keyway_node_partitions{{node=\"{node}\"}} 32\n");
        assert!(answer.body.contains(&sample), "{sample} in {}", answer.body);
    }
    assert!(answer.body.contains("keyway_controller_members_ready{role=\"node\"} 3\n"));
    assert!(answer.body.contains("keyway_switch_leased{} 1\n"));
    assert!(answer.body.contains("keyway_node_leased{node=\"3\"} 1\n"));
    for role in ["switch", "node-1", "node-3", "controller"] {
        let sample = format!("keyway_role_up{{role=\"{role}\"}} 1\n");
        assert!(answer.body.contains(&sample), "{sample} in {}", answer.body);
    }
    assert_eq!(complaints(&answer.body), Vec::<String>::new());
}

/// What `promtool check metrics` and the conventions of Prometheus have against a page.
fn complaints(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut heads: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            if heads.insert(name, (kind.to_owned(), false)).is_some() {
                found.push(format!("{name} is there twice"));
            }
            if !page.contains(&format!("# HELP {name} ")) {
                found.push(format!("{name} has no help"));
            }
            let base = ["seconds", "bytes", "ratio"].into_iter().find(|unit| name.ends_with(unit));
            let unit = base.map(|unit| format!("# UNIT {name} {unit}"));
            if unit.is_some_and(|unit| !page.lines().any(|line| line == unit)) {
                found.push(format!("{name} does not say its unit"));
            }
            let last = name.rsplit('_').next().unwrap();
            let wrong = ["total", "ms", "us", "micros", "millis", "permille", "percent", "count"];
            if wrong.contains(&last) {
                found.push(format!("{name} ends in {last}"));
            }
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let suffixes = ["_total", "_bucket", "_sum", "_count"];
            let base = suffixes.into_iter().find_map(|it| name.strip_suffix(it));
            let family = [Some(name), base].into_iter().flatten().find(|it| heads.contains_key(it));
            let Some(family) = family else {
                found.push(format!("{name} has no type"));
                continue;
            };
            let (kind, _) = heads.get_mut(family).unwrap();
            if (kind == "counter") != name.ends_with("_total") {
                found.push(format!("{name} is a {kind}"));
            }
        }
    }
    found
}

#[test]
fn the_lint_complains_of_what_promtool_complains_of() {
    let page = "# HELP a_ms A.\n# TYPE a_ms gauge\na_ms{} 1\n# TYPE b counter\nb{} 1\nc 2\n\
                # HELP d_seconds D.\n# TYPE d_seconds gauge\nd_seconds{} 1\n";
    let found = complaints(page);
    let expected = [
        "a_ms ends in ms",
        "b has no help",
        "b is a counter",
        "c has no type",
        "d_seconds does not say its unit",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_process_is_ready_when_its_roles_have_leases() {
    let switch =
        SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 1, Incarnation(1), None, None).unwrap();
    let roles = Roles { switch: Some(switch.handle()), ..Roles::default() };
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap();
    assert_eq!(get(admin.local(), "/healthz").status, 200);
    let answer = get(admin.local(), "/readyz");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("the switch has no lease"), "{}", answer.body);
    let cluster = Embedded::start(&in_memory()).unwrap();
    let answer = get(cluster.admin(), "/readyz");
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"status\":\"ready\"}"));
}

#[test]
fn a_crowd_that_asks_nothing_keeps_nobody_from_the_admin_server() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let mut crowd = Vec::new();
    for index in 0..400 {
        let mut stream = std::net::TcpStream::connect(cluster.admin()).unwrap();
        // Some of them begin a request.
        stream.write_all(&b"GET /healthz HTTP/1.1\r\n"[..index % 20]).unwrap();
        crowd.push(stream);
    }
    assert_eq!(get(cluster.admin(), "/healthz").status, 200);
    let text = get(cluster.admin(), "/metrics").body;
    let value = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
    };
    let most = value("keyway_admin_connections_max{kind=\"other\"}");
    assert!(most < 400 && value("keyway_admin_connections{kind=\"other\"}") <= most);
    assert!(value("keyway_admin_turned_away_total{why=\"full\"}") >= 400 - most);
    assert!(value("keyway_files_max{}") >= value("keyway_files_open{}"));
}

#[test]
fn a_switch_alone_exposes_its_own_metrics() {
    let switch =
        SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 1, Incarnation(1), None, None).unwrap();
    let roles = Roles { switch: Some(switch.handle()), ..Roles::default() };
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap();
    let text = get(admin.local(), "/metrics").body;
    let types = SWITCH_METRICS.iter().map(|it| format!("# TYPE {} ", it.name));
    assert!(types.into_iter().all(|header| text.contains(&header)), "{text}");
    assert!(!text.contains("keyway_node_") && !text.contains("keyway_controller_"), "{text}");
}

#[test]
fn a_switch_that_is_not_in_the_kernel_has_nothing_to_explain() {
    let switch =
        SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 1, Incarnation(1), None, None).unwrap();
    let roles = Roles { switch: Some(switch.handle()), ..Roles::default() };
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap();
    let half = "8".repeat(32);
    let answer = get(admin.local(), &format!("/v1/explain?keyspace=1&match={half}"));
    assert_eq!(answer.status, 409);
    assert!(answer.error().contains("--plane xdp"), "{}", answer.body);
    for wrong in ["", "?keyspace=1", "?keyspace=x&match=0", "?keyspace=1&match=g"] {
        let answer = get(admin.local(), &format!("/v1/explain{wrong}"));
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(!answer.error().is_empty());
    }
    let hot = get(admin.local(), "/v1/explain/hot?keyspace=1&keyhash=00ff");
    assert_eq!((hot.status, hot.body.as_str()), (200, "null"), "no key is hot");
    for wrong in ["", "?keyspace=1", "?keyspace=1&keyhash=g"] {
        assert_eq!(get(admin.local(), &format!("/v1/explain/hot{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn a_healthy_process_says_so() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let answer = get(cluster.admin(), "/healthz");
    assert_eq!((answer.status, answer.json()["status"].as_str()), (200, Some("ok")));
}

#[test]
fn a_process_whose_threads_have_ended_says_that_instead() {
    let switch =
        SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 2, Incarnation(1), None, None).unwrap();
    let roles = Roles { switch: Some(switch.handle()), ..Roles::default() };
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap();
    drop(switch);
    let answer = get(admin.local(), "/healthz");
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("it has ended"), "{}", answer.body);
}

#[test]
fn status_and_map_are_shown() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let status = get(cluster.admin(), "/v1/status").json();
    assert_eq!(status["ready"], true);
    let map: cluster::Map =
        serde_json::from_str(&get(cluster.admin(), "/v1/map").body).expect("a map");
    map.check().unwrap();
    assert_eq!(status["revision"], map.revision.get());
    let names: Vec<&str> = map.keyspaces.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["default", "ordered"]);
}

#[test]
fn a_keyspace_can_be_created_once() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let spec = r#"{"name":"more","kind":"hash","partitions":4,"replicas":2}"#;
    let answer = post(cluster.admin(), "/v1/keyspaces", spec);
    assert_eq!((answer.status, answer.json()["id"].as_u64()), (201, Some(3)), "{}", answer.body);
    let again = post(cluster.admin(), "/v1/keyspaces", spec);
    assert_eq!((again.status, again.error().as_str()), (409, "there is a keyspace of that name"));
    let unsound = spec.replace("\"more\"", "\"m o r e\"");
    assert_eq!(post(cluster.admin(), "/v1/keyspaces", &unsound).status, 422);
}

#[test]
fn what_is_no_request_is_refused_with_a_reason() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let answer = get(cluster.admin(), "/nonsense");
    assert_eq!((answer.status, answer.error().as_str()), (404, "no such page here"));
    let answer = post(cluster.admin(), "/v1/keyspaces", "{");
    assert!((400..500).contains(&answer.status) && !answer.error().is_empty());
    let answer = post(cluster.admin(), "/v1/keyspaces", r#"{"name":"x"}"#);
    assert!((400..500).contains(&answer.status) && answer.error().contains("missing field"));
    // One byte over the limit: the server has then read all of it, and the connection stays whole.
    let huge = format!("\"{}\"", "x".repeat((16 << 20) - 1));
    assert_eq!(post(cluster.admin(), "/v1/keyspaces", &huge).status, 413);
    // A cluster in one process takes no orders from outside.
    assert_eq!(put(cluster.admin(), "/v1/order", "{}").status, 404);
}

#[test]
fn a_switch_takes_orders_over_http() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let map: cluster::Map = serde_json::from_str(&get(cluster.admin(), "/v1/map").body).unwrap();
    let switch =
        SwitchDriver::start("127.0.0.1:0".parse().unwrap(), 2, Incarnation(1), None, None).unwrap();
    let roles = Roles { switch: Some(switch.handle()), ..Roles::default() };
    let admin = Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap();
    let order = |order: &Order| {
        let answer = put(admin.local(), "/v1/order", &serde_json::to_string(order).unwrap());
        (answer.status, answer.body)
    };
    let report = |order_to_give: &Order| -> Report {
        let (status, body) = order(order_to_give);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let install = |tables| Order { install: Some(Install::Tables(tables)), ..Order::default() };
    assert_eq!(report(&Order::default()).revision(), Revision::NONE);
    let tables = map.switch_tables(0);
    let answer = report(&install(tables.clone()));
    assert_eq!((answer.incarnation, answer.revision()), (Incarnation(1), map.revision));
    let older = SwitchTables { revision: Revision::new(1), ..tables.clone() };
    assert_eq!(report(&install(older)).revision(), map.revision, "an old order changes nothing");
    let twice = [tables.partitions.clone(), tables.partitions.clone()].concat();
    let unsound = SwitchTables { revision: Revision::new(u64::MAX), partitions: twice, ..tables };
    assert_eq!(order(&install(unsound)).0, 422);
    let answer = put(admin.local(), "/v1/order", r#"{"install":7}"#);
    assert_eq!(answer.status, 400);
    assert!(answer.error().starts_with("not an order: "), "{}", answer.error());
    let answer = report(&Order::default());
    assert_eq!(answer.revision(), map.revision, "a bad order changes nothing");
}
