//! A cluster whose control plane asks for certificates: who may do what, and certificates that are
//! replaced while it runs.

pub(crate) mod asker;

use crate::config::Cluster;
use crate::full::Redis;
use crate::processes::Processes;
use asker::Asker;
use runtime::admin::{Access, ROUTES, Route};
use runtime::clock::Clock;
use runtime::identity::{Authority, Identity, Role, Validity};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::{TempDir, tempdir};
use testkit::program::{Up, run};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Where admin servers are, and of which role.
fn servers(processes: &Processes) -> [(Role, SocketAddr); 3] {
    let cluster = &processes.cluster;
    let controller = (Role::Controller, cluster.admins[0]);
    let switch = (Role::Switch, cluster.switch_admins[0]);
    [controller, switch, (Role::Node, cluster.nodes[2][1])]
}

/// What a role answers, with paths as they are asked.
fn routes_of(role: Role) -> impl Iterator<Item = (&'static Route, String)> {
    let is_there = move |route: &&Route| match (role, route.access) {
        (_, Access::Figures) => true,
        (Role::Controller, Access::Reading | Access::Changes | Access::Passes) => true,
        (Role::Controller, Access::Members) => route.path == "/v1/audit",
        (Role::Switch, Access::Members) => route.path != "/v1/audit",
        (Role::Switch, Access::Orders) => route.path == "/v1/order",
        (Role::Node, Access::Members) => route.path == "/v1/record",
        (Role::Node, Access::Orders) => true,
        _ => false,
    };
    ROUTES.iter().filter(is_there).map(|route| {
        let path = route.path.replace("{id}", "2");
        (route, if path == "/v1/alerts" { format!("{path}?heard=9") } else { path })
    })
}

/// A certificate of this role from an authority, kept elsewhere.
fn certificate(directory: &Path, place: &TempDir, role: Role, validity: Validity) -> PathBuf {
    let identity = Identity::new(role, "stranger").unwrap();
    let authority = Authority::open(directory).unwrap();
    let issued = authority.issue(&identity, &[], validity, true).unwrap().certificate;
    let moved = place.path().join(issued.file_name().unwrap());
    for extension in ["key", "crt"] {
        std::fs::rename(issued.with_extension(extension), moved.with_extension(extension)).unwrap();
    }
    moved
}

fn start() -> Processes {
    Processes::start(Cluster::new().secured(), &[1, 2, 3])
}

pub(crate) fn certs(processes: &Processes) -> PathBuf {
    processes.cluster.certs.clone().expect("it is secured")
}

#[test]
fn who_shows_no_good_certificate_or_one_of_another_role_changes_and_orders_nothing() {
    let processes = start();
    processes.ask("put greeting hello").expect(0);
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
    processes.ask("keyspace create more").expect(0);
    processes.ask("cluster pause-copies").expect(0);
    let status = processes.wait("copies are paused", |it| it["paused"] == true);
    assert_eq!((&status["security"], &status["envelopes"]), (&"mutual_tls".into(), &true.into()));
    let shown = processes.ask("status").expect(0).stdout;
    assert!(shown.contains("security  mutual TLS"), "{shown}");
    let doctor = processes.ask("doctor --security --json").expect(0).json();
    assert_eq!((&doctor["problems"], &doctor["security"][1]["grade"]), (&0.into(), &"ok".into()));

    let directory = certs(&processes);
    let ca = directory.join("ca.crt");
    let (other, kept, late) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    Authority::init(other.path()).unwrap();
    let good = Validity::days(1);
    let now = Clock::new().now().0 / 1_000_000_000;
    let over = Validity { from: now - 1000, until: now - 10 };
    let own = |role| certificate(&directory, &kept, role, good);
    let strangers: [(&str, Option<PathBuf>); 6] = [
        ("no certificate", None),
        ("a client's", Some(own(Role::Client))),
        ("a gateway's", Some(own(Role::Gateway))),
        ("a node's", Some(directory.join("node-3.crt"))),
        ("another authority's", Some(certificate(other.path(), &kept, Role::Admin, good))),
        ("an expired one", Some(certificate(&directory, &late, Role::Controller, over))),
    ];
    for (who, shown) in &strangers {
        let asker = Asker::new(&ca, shown.as_deref());
        for (role, at) in servers(&processes) {
            let closed = routes_of(role)
                .filter(|(it, _)| matches!(it.access, Access::Changes | Access::Orders));
            for (Route { method, .. }, path) in closed {
                let asked = asker.ask(method, at, &path, &[JSON]);
                let refused = matches!(asked.status, None | Some(401 | 403));
                assert!(refused, "{who}: {method} {path} at the {role}: {asked:?}");
            }
        }
    }
    reads(&processes, &strangers);
    let admin = Asker::new(&ca, Some(&directory.join("admin.crt")));
    let orders = Asker::new(&ca, Some(&directory.join("controller-0.crt")));
    let status = processes.status().expect("it is answered");
    assert_eq!(status["paused"], true, "nothing has changed");
    assert_eq!(status["keyspaces"].as_array().map(Vec::len), Some(3));
    assert_eq!(status["members"].as_array().map(Vec::len), Some(4));
    cross_site(&processes, &admin, &orders);
    assert_eq!(processes.status().expect("it is answered")["paused"], true);
    audited(&processes);
    complained(&processes, &strangers);
}

#[test]
fn a_certificate_that_was_revoked_is_refused_until_it_is_made_anew() {
    let processes = start();
    let directory = certs(&processes);
    let dir = directory.display().to_string();
    processes.ask(&format!("certs issue admin alice --dir {dir}")).expect(0);
    let [(_, controller), ..] = servers(&processes);
    let stolen = Asker::new(&directory.join("ca.crt"), Some(&directory.join("admin-alice.crt")));
    let asks = |asker: &Asker| asker.status("GET", controller, "/v1/status");
    assert_eq!(asks(&stolen), Some(200));
    processes.ask(&format!("certs revoke admin/alice --dir {dir}")).expect(0);
    let refused = (0..200).any(|_| {
        std::thread::park_timeout(Duration::from_millis(50));
        asks(&stolen).is_none()
    });
    assert!(refused, "the file is looked at every second");
    let listed = processes.ask(&format!("certs list --dir {dir}")).expect(1).stdout;
    let line = listed.lines().find(|line| line.starts_with("admin/alice ")).unwrap();
    assert!(line.ends_with("revoked") && listed.matches("revoked").count() == 1, "{listed}");
    processes.ask(&format!("certs rotate admin/alice --dir {dir}")).expect(0);
    let next = Asker::new(&directory.join("ca.crt"), Some(&directory.join("admin-alice.crt")));
    assert_eq!((asks(&next), asks(&stolen)), (Some(200), None));
    processes.ask("put greeting hello").expect(0);
}

/// Who may read what, and that it is counted who may not.
fn reads(processes: &Processes, strangers: &[(&str, Option<PathBuf>)]) {
    let directory = certs(processes);
    let ca = directory.join("ca.crt");
    let [(_, controller), (_, switch), (_, node)] = servers(processes);
    // Who belongs to the cluster sees figures; who reads and writes keys, how it stands.
    let asks = |index: usize, at, path| {
        Asker::new(&ca, strangers[index].1.as_deref()).status("GET", at, path)
    };
    assert_eq!(asks(0, node, "/metrics"), Some(200), "from this machine");
    assert_eq!(asks(0, controller, "/v1/status"), Some(401));
    assert_eq!(asks(1, controller, "/v1/status"), Some(200));
    assert_eq!(asks(1, controller, "/v1/audit"), Some(403));
    assert_eq!(asks(1, node, "/metrics"), Some(200));
    assert_eq!(asks(3, controller, "/v1/map"), Some(403));
    assert_eq!(asks(4, node, "/metrics"), None);
    assert_eq!(asks(5, switch, "/metrics"), None);
    // Not even who runs the cluster gives orders, nor a controller what only people ask for.
    let admin = Asker::new(&ca, Some(&directory.join("admin.crt")));
    assert_eq!(admin.ask("PUT", node, "/v1/order", &[JSON]).status, Some(403));
    assert_eq!(admin.status("GET", node, "/v1/record"), Some(200));
    let orders = Asker::new(&ca, Some(&directory.join("controller-0.crt")));
    assert_eq!(orders.status("POST", controller, "/v1/copies/resume"), Some(403));

    let figures = admin.ask("GET", controller, "/metrics", &[]).body;
    for why in ["certificate", "anonymous", "role"] {
        let line = format!("keyway_admin_refused_total{{why=\"{why}\"}} ");
        let count = figures.lines().find_map(|it| it.strip_prefix(&line)).expect("it is counted");
        assert!(count.parse::<u64>().is_ok_and(|count| count > 5), "{line}{count}");
    }
}

/// What a page of another site has a browser send that has a certificate even.
fn cross_site(processes: &Processes, admin: &Asker, controller: &Asker) {
    let foreign: [(&str, &str); 5] = [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("host", "evil.example"),
    ];
    for (role, at) in servers(processes) {
        // There are no others, and these are there: whatever is not in the table is refused.
        let paths = routes_of(role).map(|(_, path)| path);
        let answers = paths.map(|path| admin.ask("PATCH", at, &path, &[JSON]).status);
        let answers: Vec<Option<u16>> = answers.collect();
        assert!(answers.len() > 3 && answers.iter().all(|it| *it == Some(405)), "{answers:?}");
        let changes = routes_of(role).filter(|(it, _)| it.method != "GET");
        for (Route { method, access, .. }, path) in changes {
            let asker = if *access == Access::Orders { controller } else { admin };
            for header in foreign {
                let asked = asker.ask(method, at, &path, &[JSON, header]);
                assert_eq!(asked.status, Some(403), "{header:?} {method} {path}: {asked:?}");
            }
            let form = ("content-type", "text/plain");
            let asked = asker.ask(method, at, &path, &[form]);
            assert_eq!(asked.status, Some(415), "{method} {path}: {asked:?}");
        }
    }
}

/// Changes are told with who has made them.
fn audited(processes: &Processes) {
    processes.ask("cluster keep-node 9").expect(3);
    let changes = processes.ask("cluster audit --json").expect(0).json_lines();
    let found: Vec<String> = changes
        .iter()
        .map(|it| format!("{}: {} {}", it["who"], it["what"], it["result"]).replace('"', ""))
        .collect();
    let expected = [
        "admin/admin: create keyspace more done",
        "admin/admin: pause copies done",
        "admin/admin: keep node 9 refused",
    ];
    assert_eq!(found, expected);
    assert!(changes[2]["why"].as_str().is_some_and(|why| why.contains('9')), "{changes:?}");
    let text = processes.ask("cluster audit").expect(0).stdout;
    assert!(text.contains("pause copies") && text.contains("127.0.0.1:"), "{text}");
}

/// Commands say what is wrong with certificates, and what to do.
fn complained(processes: &Processes, strangers: &[(&str, Option<PathBuf>)]) {
    let admin = processes.cluster.admins[0].to_string();
    let ask = |certs: Option<&Path>| {
        let mut arguments = vec!["status", "--admin", &admin];
        if let Some(certs) = certs {
            arguments.extend(["--certs", certs.to_str().unwrap()]);
        }
        run(&arguments)
    };
    let without = ask(None);
    assert!(without.code != Some(0) && without.stderr.contains("KEYWAY_CERTS"), "{without:?}");
    let late = strangers[5].1.as_deref();
    let directory = certs(processes);
    let ca = late.expect("it has one").with_file_name("ca.crt");
    std::fs::copy(directory.join("ca.crt"), ca).unwrap();
    let expired = ask(late).expect(2);
    assert!(expired.stderr.contains("has expired"), "{expired:?}");
    let none = ask(Some(&directory.join("admin-nobody.crt"))).expect(2);
    assert!(none.stderr.contains("keyway certs issue admin nobody"), "{none:?}");
    let node = ask(Some(&directory.join("node-1.crt"))).expect(3);
    assert!(node.stderr.contains("node/1 may not ask this"), "{node:?}");
}

/// How long processes take to see that files have changed, on a machine that is busy with tests.
const SEEN_MAX: Duration = Duration::from_secs(20);

#[test]
fn certificates_and_the_authority_are_replaced_while_the_cluster_goes_on() {
    let processes = start();
    let directory = certs(&processes);
    let (kept, place) = (tempdir().unwrap(), directory.to_str().unwrap());
    let first = certificate(&directory, &kept, Role::Admin, Validity::days(1));
    let ca = directory.join("ca.crt");
    let first_ca = kept.path().join("first-ca.crt");
    std::fs::copy(&ca, &first_ca).unwrap();

    rotate(&processes, &first_ca, &["certs", "rotate", "--dir", place]);
    rotate(&processes, &first_ca, &["certs", "rotate", "--ca", "--dir", place]);
    let [(_, controller), ..] = servers(&processes);
    let old = Asker::new(&ca, Some(&first));
    assert_eq!(old.status("GET", controller, "/v1/status"), Some(200), "both are believed");
    rotate(&processes, &ca, &["certs", "rotate", "--dir", place]);
    assert_eq!(old.status("GET", controller, "/v1/status"), None, "the old one is not any more");

    // Who is asked to look at once does so, and does not end.
    let node = processes.id_of("node --id 1").to_string();
    let sent = std::process::Command::new("kill").args(["-HUP", &node]).status();
    assert!(sent.is_ok_and(|status| status.success()));

    // A file that cannot be used changes nothing.
    let files = ["crt", "key"].map(|it| directory.join("controller-0").with_extension(it));
    let good = std::fs::read(&files[1]).unwrap();
    std::fs::copy(directory.join("admin.key"), &files[1]).unwrap();
    std::thread::park_timeout(Duration::from_millis(2500));
    processes.ask("put greeting again").expect(0);
    assert_eq!(processes.status().expect("it answers")["ready"], true);
    std::fs::write(&files[1], good).unwrap();
}

/// Rotates, and waits until each process shows a new certificate. Nobody has been away meanwhile,
/// and orders have gone on.
fn rotate(processes: &Processes, ca: &Path, command: &[&str]) {
    let shown = || -> Vec<Vec<u8>> {
        let asker = Asker::new(ca, None);
        let of = |(_, at): (Role, SocketAddr)| asker.ask("GET", at, "/healthz", &[]).shown;
        servers(processes).into_iter().map(of).collect()
    };
    let before = shown();
    assert!(before.iter().all(|it| !it.is_empty()));
    let status = processes.status().expect("it answers");
    run(command).expect(0);
    let mut clock = Clock::new();
    let give_up = clock.now() + SEEN_MAX;
    while shown().iter().zip(&before).any(|(now, before)| now.is_empty() || now == before) {
        assert!(clock.now() < give_up, "the new certificates are not shown: {command:?}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let orders = status["orders"].as_u64().expect("a number") + 10;
    let after = processes.wait("orders go on", |it| it["orders"].as_u64() > Some(orders));
    assert_eq!(after["ready"], true);
    assert_eq!(after["term"], status["term"], "nothing was restarted");
    processes.ask("put greeting hello").expect(0);
}

#[test]
fn packets_of_a_cluster_in_one_process_are_in_envelopes_if_it_has_certificates() {
    let folder = tempdir().unwrap();
    let directory = folder.path().join("certs").display().to_string();
    run(&["certs", "init", "--dir", &directory]).expect(0);
    let size = ["--nodes", "3", "--caches", "1", "--partitions", "4", "--certs", &directory];
    let cluster = Up::start(&size);
    let shown = |words: &[&str]| cluster.run(&[words, &["--certs", &directory]].concat());
    shown(&["put", "greeting", "hello"]).expect(0);
    assert_eq!(shown(&["get", "greeting"]).expect(0).stdout, "hello");
    let keys: Vec<String> = (0..100).map(|n| format!("key{n}")).collect();
    for key in keys.iter().take(10) {
        shown(&["put", key, "value"]).expect(0);
    }
    let mget = [vec!["mget"], keys.iter().take(10).map(String::as_str).collect()].concat();
    assert_eq!(shown(&mget).expect(0).stdout.matches("value").count(), 10);
    let status = shown(&["status", "--json"]).expect(0).json();
    assert_eq!((&status["security"], &status["envelopes"]), (&"mutual_tls".into(), &true.into()));
    // The gateway within has a pass of its own.
    let mut redis = Redis::connect(cluster.redis.expect("a gateway by default"));
    assert_eq!(redis.ask(&["GET", "greeting"]), "hello");
    assert_eq!(redis.ask(&["SET", "greeting", "other"]), "+OK");
    assert_eq!(shown(&["get", "greeting"]).expect(0).stdout, "other");
    // Nobody else is answered.
    let bare = cluster.run(&["get", "greeting", "--timeout", "300ms"]);
    assert_ne!(bare.code, Some(0), "{bare:?}");
    assert_eq!(cluster.interrupt(), Some(0));
    std::fs::remove_file(format!("{directory}/envelope.key")).unwrap();
    let up = ["up", "--service", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", &directory];
    let ran = run(&up).expect(2);
    assert!(ran.stderr.contains("keyway certs rotate --envelopes --dir"), "{ran:?}");
}
