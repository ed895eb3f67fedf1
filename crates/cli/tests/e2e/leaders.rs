//! Controllers whose state is in an etcd: one leads, and another one when that fails.

use crate::config::Cluster;
use crate::processes::{Processes, node};
use runtime::clock::Clock;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use testkit::program::run;
use testkit::server::Server;
use testkit::skip;

const NAMES: [&str; 3] = ["first", "second", "third"];

/// How long it may take until another controller leads, on a machine that is busy with tests.
/// Alone it takes about a second.
const TAKEOVER_MAX: Duration = Duration::from_secs(15);

fn etcd(what: &str) -> Option<Server> {
    let server = Server::etcd(&[]);
    if server.is_none() {
        skip::report(what, "there is no etcd: apt-get install etcd-server etcd-client");
    }
    server
}

/// Long leases: what is looked at here is not what happens when they end.
fn lasting(mut cluster: Cluster) -> Cluster {
    cluster.text = cluster.text.replace("lease_ms = 1500", "lease_ms = 10000");
    cluster
}

/// A cluster with three controllers, each with its admin address, that serves.
fn start(etcd: &Server) -> (Processes, Vec<(&'static str, SocketAddr)>) {
    let cluster = lasting(Cluster::with_etcd(&etcd.url(), NAMES.len()));
    let mut processes = Processes::new(cluster);
    for id in 1..=3 {
        processes.run(&node(id));
    }
    processes.run("switch --index 0");
    let controllers = NAMES.map(|name| {
        let line = processes.run_as(name, "controller");
        (name, line.rsplit('/').next().unwrap_or_default().trim().parse().expect("an address"))
    });
    processes.wait_replicated();
    (processes, controllers.into())
}

/// What this controller answers to a question about the cluster.
fn answer(at: SocketAddr) -> Option<u16> {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent = config.timeout_global(Some(Duration::from_secs(2))).build().new_agent();
    agent.get(format!("http://{at}/v1/status")).call().ok().map(|it| it.status().as_u16())
}

/// Waits until one of these leads, and no other.
#[track_caller]
fn leader(of: &[(&'static str, SocketAddr)]) -> (&'static str, SocketAddr) {
    let mut clock = Clock::new();
    let give_up = clock.now() + TAKEOVER_MAX;
    while clock.now() < give_up {
        let leads = |it: &&(&str, SocketAddr)| answer(it.1) == Some(200);
        match of.iter().filter(leads).collect::<Vec<_>>()[..] {
            [one] => return *one,
            _ => std::thread::park_timeout(Duration::from_millis(20)),
        }
    }
    panic!("nobody leads alone: {:?}", of.iter().map(|it| answer(it.1)).collect::<Vec<_>>());
}

fn signal(signal: &str, id: u32) {
    let sent = Command::new("kill").args([signal, &id.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {signal} {id}");
}

fn term(processes: &Processes) -> u64 {
    processes.wait("somebody leads", |_| true)["term"].as_u64().expect("a number")
}

#[test]
fn another_controller_leads_when_the_leader_is_killed_and_one_that_wakes_up_is_not_obeyed() {
    let Some(etcd) = etcd("several controllers") else { return };
    let (mut processes, mut controllers) = start(&etcd);
    processes.ask("put greeting hello").expect(0);
    let killed = leader(&controllers);
    let before = term(&processes);
    processes.kill(killed.0);
    controllers.retain(|it| *it != killed);
    let stopped = leader(&controllers);
    processes.wait("its members answer it", |it| it["ready"] == true);
    let second = term(&processes);
    assert!(second > before);

    let id = processes.id_of(stopped.0);
    signal("-STOP", id);
    let others: Vec<_> = controllers.iter().copied().filter(|it| *it != stopped).collect();
    let last = leader(&others);
    let text = format!("status --json --admin {}", last.1);
    assert_ne!(processes.ask(&text).json()["term"], second);
    signal("-CONT", id);
    std::thread::park_timeout(Duration::from_secs(1));
    assert_eq!(leader(&controllers), last);
    // It stands by, and says who leads: commands ask there.
    let said = processes.ask(&format!("status --admin {}", stopped.1)).expect(0).stdout;
    assert!(said.contains("etcd://"), "{said}");
    processes.wait("everybody obeys", |it| it["ready"] == true);
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
    processes.ask("put greeting again").expect(0);

    // One that ends in good order is not waited for.
    signal("-TERM", processes.id_of(last.0));
    assert_eq!(leader(&controllers), stopped);
    processes.wait("everybody obeys", |it| it["ready"] == true);
}

#[test]
fn the_doctor_looks_at_the_etcd_of_a_configuration() {
    let Some(mut etcd) = etcd("what the doctor says of an etcd") else { return };
    let cluster = Cluster::with_etcd(&etcd.url(), 1);
    let config = cluster.file(&cluster.text).display().to_string();
    let doctor = || run(&["--json", "doctor", "--config", &config]);
    // This one was started without the options that our page gives it.
    let said = doctor().expect(0).json();
    let check = &said["etcd"][0]["checks"][0];
    assert_eq!((&check["grade"], &said["problems"]), (&"warning".into(), &0.into()), "{said:#}");
    assert!(check["remedy"].as_str().unwrap().contains("--election-timeout=500"), "{said:#}");
    etcd.kill();
    let said = doctor().expect(1).json();
    assert_eq!(said["etcd"][0]["checks"][0]["grade"], "problem", "{said:#}");

    let with = |store: &str| cluster.text.replace("etcd://", store);
    let path = cluster.file(&with("etcds://")).display().to_string();
    let refused = run(&["doctor", "--config", &path]).expect(2);
    assert!(refused.stderr.contains("ca in [controller.etcd]"), "{refused:?}");
    let from = format!("etcds://127.0.0.1:{}/keyway", etcd.port);
    let to = cluster.controller_data().with_file_name("moved").display().to_string();
    let moved = run(&["controller", "migrate-store", "--from", &from, "--to", &to]);
    assert!(moved.code != Some(0) && moved.stderr.contains("there is no --config"), "{moved:?}");
}

#[test]
fn while_etcd_stands_still_the_cluster_serves_on_and_afterwards_changes_again() {
    let Some(etcd) = etcd("a cluster whose etcd stands still") else { return };
    let (processes, _) = start(&etcd);
    processes.ask("put greeting hello").expect(0);
    etcd.pause();
    for _ in 0..20 {
        assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
        std::thread::park_timeout(Duration::from_millis(100));
    }
    processes.ask("put greeting again").expect(0);
    processes.wait("it is said", |it| it["store"]["silent_ms"].as_u64() > Some(1_000));
    let created = processes.ask("keyspace create more --timeout 3s");
    assert_ne!(created.code, Some(0), "{created:?}");
    etcd.resume();
    processes.wait("one leads", |it| it["ready"] == true && it["trouble"].is_null());
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "again");
    processes.ask("keyspace create others").expect(0);
}

#[test]
fn a_state_moves_into_an_etcd_and_back_and_is_never_written_over() {
    let Some(etcd) = etcd("the state of a controller that moves into an etcd") else { return };
    let cluster = lasting(Cluster::new());
    let text = cluster.text.clone();
    let directory = cluster.controller_data();
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    processes.ask("put greeting hello").expect(0);
    let before = processes.wait_replicated();
    let (from, to) = (directory.display().to_string(), format!("{}/keyway", etcd.url()));
    let migrate = |processes: &Processes, from: &str, to: &str| {
        processes.ask(&format!("controller migrate-store --from {from} --to {to} --json"))
    };
    let refused = migrate(&processes, &from, &to).expect(3);
    assert!(refused.stdout.contains("stop all controllers"), "{refused:?}");
    processes.kill("controller");
    assert_eq!(migrate(&processes, &from, &to).expect(0).json()["cluster"], before["cluster"]);
    let refused = migrate(&processes, &from, &to).expect(3);
    assert!(refused.stdout.contains("has a controller's state already"), "{refused:?}");

    let setting = format!("data = {directory:?}");
    assert!(text.contains(&setting));
    processes.configure(&text.replace(&setting, &format!("store = {to:?}")));
    processes.run("controller");
    let after = processes.wait_replicated();
    assert_eq!(after["cluster"], before["cluster"]);
    assert_eq!(after["store"]["kind"], "etcd");
    assert!(after["term"].as_u64() > before["term"].as_u64());
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");

    processes.kill("controller");
    let back = directory.with_file_name("back").display().to_string();
    migrate(&processes, &to, &back).expect(0);
    processes.configure(&text.replace(&setting, &format!("data = {back:?}")));
    processes.run("controller");
    let last = processes.wait_replicated();
    assert!(last["term"].as_u64() > after["term"].as_u64());
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
}
