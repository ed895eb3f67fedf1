//! Processes that are killed, and what the others make of it: every key is served again by itself,
//! and nothing acknowledged is missing.

use crate::config::{Cluster, Shape};
use crate::processes::{Processes, node};
use crate::recovery::durable;
use client::PutOptions;
use client::blocking::Space;
use serde_json::Value;
use std::thread;
use std::time::Duration;

const KEYS: u32 = 100;

fn shape() -> Shape {
    Shape { nodes: 4, switches: 2, standby: true }
}

/// Writes every key.
fn write(space: &Space, value: &str) {
    for key in 0..KEYS {
        let key = format!("key-{key}");
        space.put(key.as_bytes(), value.as_bytes(), PutOptions::default()).into_result().unwrap();
    }
}

/// Reads every key back.
fn check(space: &Space, value: &str) {
    for key in 0..KEYS {
        let found = space.get(format!("key-{key}").as_bytes()).into_result().unwrap();
        let found = found.map(|it| String::from_utf8(it.value).unwrap());
        assert_eq!(found.as_deref(), Some(value), "key-{key}");
    }
}

/// What the status says of a member.
fn member(status: &Value, member: &Value) -> Value {
    let members = status["members"].as_array().unwrap();
    members.iter().find(|it| it["member"] == *member).cloned().unwrap_or_default()
}

/// Nodes in the chains of every partition.
fn chained(status: &Value) -> Vec<u64> {
    let keyspaces = status["keyspaces"].as_array().unwrap().iter();
    let partitions = keyspaces.flat_map(|it| it["partitions"].as_array().unwrap());
    partitions
        .flat_map(|it| it["chain"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()))
        .collect()
}

#[test]
fn a_killed_node_is_replaced_by_a_spare_one_and_nothing_is_lost() {
    let mut processes = Processes::start(Cluster::with(shape()), &[1, 2, 3, 4]);
    let space = processes.space();
    write(&space, "before");
    processes.kill(&node(1));
    // Also the keys of chains that have lost their head, or their tail.
    check(&space, "before");
    write(&space, "after");
    let status = processes.wait_replicated();
    assert!(!chained(&status).contains(&1), "{status:#}");
    assert_eq!(status["under_replicated"], 0);
    check(&space, "after");

    // It comes back without its memory, and is given new replicas.
    processes.run(&node(1));
    processes.wait("the node is back", |it| it["ready"] == true && chained(it).contains(&1));
    processes.wait_replicated();
    check(&space, "after");
}

/// Lines of the controller's log at most for a start and a loss: some about each of six members,
/// and some about each step of the chains.
const LINES_MAX: usize = 120;

/// Lines of the others, which say that they are there.
const MEMBER_LINES_MAX: usize = 12;

/// For how long nothing happens.
const QUIET: Duration = Duration::from_secs(3);

#[test]
fn a_loss_is_a_warning_and_the_log_of_who_has_nothing_to_say_stays_short() {
    let (cluster, _) = durable(4);
    let mut processes = Processes::start(cluster, &[1, 2, 3, 4]);
    let space = processes.space();
    write(&space, "before");
    thread::park_timeout(QUIET);
    processes.kill(&node(1));
    processes.wait("nobody counts on it", |status| !chained(status).contains(&1));
    processes.wait_replicated();
    let log = processes.log_of("controller");
    let losses = log.lines().filter(|line| line.contains("no client reaches: node 1"));
    let losses: Vec<&str> = losses.collect();
    assert_eq!(losses.len(), 1, "{log}");
    assert!(losses.iter().all(|line| line.contains("WARN")), "{losses:?}");
    assert!(log.lines().count() < LINES_MAX, "{log}");
    for member in [&node(2), "switch --index 0"] {
        let log = processes.log_of(member);
        assert!(log.lines().count() < MEMBER_LINES_MAX, "{log}");
    }
}

#[test]
fn nodes_come_and_go_while_clients_read_and_write() {
    let mut processes = Processes::start(Cluster::with(shape()), &[1, 2, 3, 4]);
    let space = processes.space();
    write(&space, "first");
    let refused = processes.ask("cluster remove-node 2").expect(3);
    assert!(refused.stderr.contains("drain it first"), "{refused:?}");
    processes.ask("cluster drain-node 2").expect(0);
    write(&space, "second");
    let status = processes.wait("the node is empty", |status| !chained(status).contains(&2));
    assert_eq!(member(&status, &serde_json::json!({"node": 2}))["departing"], true);
    processes.ask("cluster remove-node 2").expect(0);
    processes.kill(&node(2));
    check(&space, "second");
    let too_few = processes.ask("cluster drain-node 3").expect(3);
    assert!(too_few.stderr.contains("add a node first"), "{too_few:?}");

    let [listen, control] = processes.cluster.nodes[1];
    let add = format!("cluster add-node 2 --listen {listen} --control {control}");
    processes.ask(&add).expect(0);
    assert!(processes.ask(&add).expect(3).stderr.contains("there is a node 2"));
    processes.run(&node(2));
    write(&space, "third");
    let balanced = |status: &Value| {
        status["copies"] == serde_json::json!([])
            && chained(status).iter().filter(|id| **id == 2).count() >= 10
    };
    processes.wait("the node has its share", balanced);
    check(&space, "third");
}

#[test]
fn copies_can_be_paused_and_a_drain_cancelled() {
    let processes = Processes::start(Cluster::with(shape()), &[1, 2, 3, 4]);
    processes.ask("cluster pause-copies").expect(0);
    assert_eq!(processes.status().unwrap()["paused"], true);
    // Its exit code says whether all keys are served, which changes for a moment.
    let text = processes.ask("status").stdout;
    assert!(text.contains("keyway cluster resume-copies"), "{text}");
    processes.ask("cluster drain-node 2").expect(0);
    let text = processes.ask("status").stdout;
    assert!(text.contains("leaving"), "{text}");
    processes.ask("cluster keep-node 2").expect(0);
    processes.ask("cluster resume-copies").expect(0);
    let status = processes.wait_replicated();
    assert!(chained(&status).contains(&2), "{status:#}");
    assert_eq!(status["paused"], false);
    assert!(processes.ask("cluster keep-node 9").expect(3).stderr.contains("no node 9"));
}

#[test]
fn clients_go_on_when_the_active_switch_is_killed() {
    let mut processes = Processes::start(Cluster::with(shape()), &[1, 2, 3, 4]);
    let space = processes.space();
    write(&space, "before");
    assert_eq!(processes.status().unwrap()["active_switch"], 0);
    processes.kill("switch --index 0");
    check(&space, "before");
    write(&space, "after");
    let status = processes.status().unwrap();
    assert_eq!(status["active_switch"], 1, "{status:#}");

    // It comes back empty, is filled, and stands by.
    processes.run("switch --index 0");
    let status = processes.wait("the switch is back", |status| status["ready"] == true);
    assert_eq!(status["active_switch"], 1, "{status:#}");
    check(&space, "after");
    let text = processes.ask("status").expect(0).stdout;
    let line = text.lines().find(|line| line.contains("switch 0")).unwrap();
    assert!(line.contains("standby"), "{text}");
}

#[test]
fn a_controller_that_stands_by_takes_over_when_the_first_is_killed() {
    let mut processes = Processes::start(Cluster::with(shape()), &[1, 2, 3, 4]);
    let line = processes.run("controller --standby");
    assert!(line.contains("stands by"), "{line}");
    let space = processes.space();
    write(&space, "before");
    let revision = processes.status().unwrap()["revision"].clone();
    // A third one, without --standby, is told why it does not start.
    let config = processes.cluster.file(&processes.cluster.text);
    let third = processes.ask(&format!("controller --config {}", config.display())).expect(5);
    assert!(third.stderr.contains("--standby"), "{third:?}");

    processes.kill("controller");
    check(&space, "before");
    write(&space, "after");
    let status = processes.wait("the other one serves", |status| status["ready"] == true);
    assert_eq!(status["revision"], revision, "nothing had to change");
    check(&space, "after");
    // The first comes back and stands by in turn, at its own address.
    let line = processes.run("controller --standby --log info");
    assert!(line.contains("stands by") && line.contains(&processes.cluster.admins[0].to_string()));
    processes.kill("controller --standby");
    write(&space, "last");
    processes.wait("the first one serves again", |status| status["ready"] == true);
    check(&space, "last");
}

#[test]
fn keyspaces_of_the_configuration_are_created_however_the_nodes_come_and_go() {
    let shape = Shape { nodes: 2, switches: 1, standby: false };
    let mut cluster = Cluster::with(shape);
    cluster.text = cluster.text.replace("partitions = 16\n", "partitions = 16\nreplicas = 2\n");
    cluster.text = cluster.text.replace("partitions = 8\n", "partitions = 8\nreplicas = 2\n");
    cluster.text = cluster.text.replace("[controller]\n", "[controller]\nlease_ms = 1500\n");
    let mut processes = Processes::begin(cluster, &[1]);
    let state = |status: &Value, id: u64| {
        let id = serde_json::json!({ "node": id });
        member(status, &id)["state"].as_str().unwrap_or_default().to_owned()
    };
    processes.wait("node 1 was heard", |it| state(it, 1) == "ready");
    let ran = processes.ask("put a b").expect(3);
    assert!(ran.stderr.contains("the cluster is starting: keyspace \"default\""), "{ran:#?}");
    assert!(ran.stderr.contains("not heard of yet: node 2"), "{ran:#?}");
    assert!(!ran.stderr.contains("to create it"), "{ran:#?}");
    let ran = processes.ask("gateway --listen 127.0.0.1:0").expect(3);
    assert!(ran.stderr.contains("the cluster is starting: keyspace \"default\""), "{ran:#?}");
    processes.kill(&node(1));
    let lease_left = |status: &Value| {
        let left = &member(status, &serde_json::json!({ "node": 1 }))["lease_ms_left"];
        left.as_u64().unwrap_or(u64::MAX)
    };
    let gone = |it: &Value| state(it, 1) == "silent" && lease_left(it) == 0;
    processes.wait("node 1 is gone, and its lease is over", gone);
    processes.run(&node(2));
    // All nodes have been heard of now, and one of them does not answer.
    let status = processes.wait("node 2 was heard", |it| state(it, 2) == "ready");
    assert_eq!(status["ready"], false, "{status:#}");
    assert_eq!(status["awaited"][0]["name"], "default", "{status:#}");
    processes.run(&node(1));
    let status = processes.wait("it is ready", |it| it["ready"] == true);
    assert_eq!(status["keyspaces"].as_array().unwrap().len(), 2, "{status:#}");
    processes.ask("put a b").expect(0);
}
