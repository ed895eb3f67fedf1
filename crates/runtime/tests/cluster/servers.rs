//! Each role as a server of its own, reached by the controller over HTTP.

use crate::setup::{delete, get, post};
use client::blocking::Client;
use client::{Options, PutOptions};
use cluster::NodeId;
use runtime::clock::Clock;
use runtime::config::{Config, EngineKind, NodeSection};
use runtime::server::{Server, StartError};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::tempdir;
use wire::{DropReason, Op};

/// An address that nobody uses, and that the system gives to nobody by itself: those begin at port
/// 32768.
fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed) + std::process::id() * 64;
        let port = u16::try_from(10_000 + turn % 20_000).unwrap();
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        if UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok() {
            return at;
        }
    }
}

/// A configuration of a cluster in memory, with two replicas or as many as there are nodes.
pub(crate) fn config(dir: &Path, nodes: usize) -> Config {
    let mut text = format!(
        "[cluster]\nseed = 7\n\
         [switch]\nservice = \"{}\"\nadmin = \"{}\"\n\
         [controller]\nadmin = \"{}\"\ndata = {:?}\n",
        free_address(),
        free_address(),
        free_address(),
        dir.join("controller")
    );
    for node in 1..=nodes {
        let (listen, admin) = (free_address(), free_address());
        text += &format!("[[node]]\nid = {node}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n");
    }
    let replicas = nodes.min(2);
    text += &format!(
        "[[keyspace]]\nname = \"users\"\nkind = \"hash\"\npartitions = 8\nreplicas = {replicas}\n"
    );
    let path = dir.join("keyway.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path).unwrap()
}

/// Waits until the controller says that all is ready.
pub(crate) fn wait_ready(controller: &Server) {
    let roles = controller.roles().controller.as_ref().unwrap();
    roles.wait_ready(Duration::from_secs(30)).unwrap();
}

#[test]
fn roles_find_each_other_whatever_the_order_they_start_in() {
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 2);
    let controller = Server::start_controller(&config).unwrap();
    let _second = Server::start_node(&config, NodeId(2)).unwrap();
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _first = Server::start_node(&config, NodeId(1)).unwrap();
    wait_ready(&controller);

    let client = Client::connect(config.switches[0].service, Options::default()).unwrap();
    let users = client.keyspace("users").unwrap();
    users.put(b"ada", b"1", PutOptions::default()).into_result().unwrap();
    let found = users.get(b"ada").into_result().unwrap();
    assert_eq!(found.map(|it| it.value), Some(b"1".to_vec()));
    let status = get(controller.admin(), "/v1/status").json();
    assert_eq!(status["ready"], true);
}

#[test]
fn a_cluster_outlives_its_controller_which_comes_back_with_the_map() {
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 2);
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _nodes = [1, 2].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    let map = get(controller.admin(), "/v1/map").body;
    controller.stop();

    let client = Client::connect(config.switches[0].service, Options::default()).unwrap();
    let users = client.keyspace("users").unwrap();
    users.put(b"ada", b"1", PutOptions::default()).into_result().unwrap();

    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    assert_eq!(get(controller.admin(), "/v1/map").body, map);
}

#[test]
fn a_switch_that_starts_anew_is_given_its_tables_again() {
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 1);
    let switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _node = Server::start_node(&config, NodeId(1)).unwrap();
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    switch.stop();
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();

    // The client asks again until the switch forwards.
    let client = Client::connect(config.switches[0].service, Options::default()).unwrap();
    let users = client.keyspace("users").unwrap();
    users.put(b"ada", b"1", PutOptions::default()).into_result().unwrap();
}

#[test]
fn a_node_that_is_not_configured_does_not_start() {
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 1);
    let error = Server::start_node(&config, NodeId(9)).unwrap_err();
    assert!(matches!(error, StartError::UnknownNode(NodeId(9))));
}

/// Waits until the status is as wanted.
fn wait(controller: &Server, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let mut status = Value::Null;
    for _ in 0..600 {
        status = get(controller.admin(), "/v1/status").json();
        if wanted(&status) {
            return status;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    panic!("after half a minute still not so: {what}; {status:#}");
}

fn member(status: &Value, member: &Value) -> Value {
    // A controller that is busy may have no status to tell.
    let mut members = status["members"].as_array().into_iter().flatten();
    members.find(|it| it["member"] == *member).cloned().unwrap_or_default()
}

#[test]
fn a_member_that_hangs_keeps_nobody_else_waiting() {
    let dir = tempdir().unwrap();
    let mut config = config(dir.path(), 3);
    // Long enough for a machine that is busy with other tests.
    config.controller.lease_ms = 2_000;
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let nodes = [1, 2, 3].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    let [_first, _second, third] = nodes;
    third.stop();
    // Connections are made, and nothing is ever answered: as with a process that was stopped.
    let hanging = TcpListener::bind(config.nodes[2].admin).unwrap();
    wait(&controller, "the third is replaced", |status| {
        let third = member(status, &json!({"node": 3}));
        status["replicated"] == true && status["covered"] == true && third["lease_ms_left"] == 0
    });
    hanging.accept().expect("the controller goes on asking");
    // Everybody else is asked all the time, whatever becomes of the orders to that one.
    let orders = get(controller.admin(), "/v1/status").json()["orders"].as_u64().unwrap();
    wait(&controller, "others are asked on", |status| {
        for other in [json!({"switch": 0}), json!({"node": 1}), json!({"node": 2})] {
            assert!(member(status, &other)["lease_ms_left"].as_u64() > Some(0), "{status:#}");
        }
        status["orders"].as_u64() > Some(orders + 20)
    });
}

#[test]
fn a_node_with_data_of_another_cluster_is_not_taken_in_and_the_status_says_why() {
    let dir = tempdir().unwrap();
    let mut config = config(dir.path(), 2);
    for node in &mut config.nodes {
        node.engine = EngineKind::Fjall;
        node.data = Some(dir.path().join(format!("node-{}", node.id)));
    }
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let nodes = [1, 2].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    controller.stop();
    nodes.into_iter().for_each(Server::stop);

    // A controller that knows nothing of them, and so begins another cluster.
    config.controller.data = dir.path().join("another");
    let controller = Server::start_controller(&config).unwrap();
    let _nodes = [1, 2].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let status = wait(&controller, "both are foreign", |status| {
        [1, 2].iter().all(|id| member(status, &json!({"node": id}))["state"] == "foreign")
    });
    let detail = member(&status, &json!({"node": 1}))["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("cluster"), "{detail}");
    assert_eq!(status["keyspaces"], json!([]));
}

#[test]
fn a_node_added_by_command_is_reached_again_by_the_next_controller() {
    let dir = tempdir().unwrap();
    let all = config(dir.path(), 3);
    let config = Config { nodes: all.nodes[..2].to_vec(), ..all.clone() };
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _nodes = [1, 2, 3].map(|id| Server::start_node(&all, NodeId(id)).unwrap());
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    let NodeSection { listen, admin, .. } = &all.nodes[2];
    let add = json!({"id": 3, "listen": listen, "shards": 1, "control": admin}).to_string();
    assert_eq!(post(controller.admin(), "/v1/nodes", &add).status, 200);
    assert_eq!(post(controller.admin(), "/v1/nodes", &add).status, 409);
    let ready = |status: &Value| {
        status["ready"] == true && member(status, &json!({"node": 3}))["state"] == "ready"
    };
    wait(&controller, "it is taken in", ready);
    controller.stop();
    let controller = Server::start_controller(&config).unwrap();
    wait(&controller, "it is reached again", ready);
    let gone = post(controller.admin(), "/v1/nodes/3/drain", "").status;
    assert_eq!(gone, 200);
    wait(&controller, "it is empty", |status| {
        let load = status["load"].as_array().unwrap();
        load.iter().any(|node| node["node"] == 3 && node["partitions"] == 0)
    });
    assert_eq!(delete(controller.admin(), "/v1/nodes/3").status, 200);
    let status = get(controller.admin(), "/v1/status").json();
    assert_eq!(member(&status, &json!({"node": 3})), Value::Null);
    assert_eq!(delete(controller.admin(), "/v1/nodes/three").status, 400);
}

#[test]
fn a_controller_that_stands_by_says_so_and_takes_over() {
    let dir = tempdir().unwrap();
    let mut config = config(dir.path(), 2);
    config.controller.standby_admin = Some(free_address());
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let _nodes = [1, 2].map(|id| Server::start_node(&config, NodeId(id)).unwrap());
    let first = Server::start_controller(&config).unwrap();
    wait_ready(&first);
    let second = Server::start_standby(&config).unwrap();
    assert!(second.stands_by());
    assert_eq!(Some(second.admin()), config.controller.standby_admin);
    let answer = get(second.admin(), "/v1/status");
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("stands by"), "{}", answer.body);
    assert_eq!(get(second.admin(), "/healthz").status, 200);
    assert!(get(second.admin(), "/metrics").body.contains("keyway_controller_active{} 0\n"));
    let error = Server::start_controller(&config).unwrap_err();
    assert!(matches!(error, StartError::Active { .. }), "{error}");

    let map = get(first.admin(), "/v1/map").body;
    first.stop();
    let handle = second.roles().controller.clone().unwrap();
    for _ in 0..600 {
        if handle.is_active() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    wait_ready(&second);
    assert_eq!(get(second.admin(), "/v1/map").body, map);
    assert!(!second.stands_by());
}

#[test]
fn what_finds_the_queue_of_a_limited_node_full_is_dropped_counted_and_asked_again() {
    // More than a queue holds, all at once.
    const REQUESTS: usize = 300;
    const RATE: NonZero<u32> = NonZero::new(200).unwrap();
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 1);
    let _switch = Server::start_switch(&config, 0, &[]).unwrap();
    let node = Server::start_limited_node(&config, NodeId(1), RATE).unwrap();
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    let options = Options { deadline: Duration::from_secs(60), ..Options::default() };
    let client = Client::connect(config.switches[0].service, options).unwrap();
    let users = client.keyspace("users").unwrap();

    let mut clock = Clock::new();
    let began = clock.now();
    std::thread::scope(|scope| {
        let ask = || users.get(b"ada").into_result().unwrap();
        let threads: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), None));
    });
    let least = Duration::from_secs_f64(REQUESTS as f64 / f64::from(RATE.get()));
    let took = clock.now().since(began);
    assert!(took >= least, "{REQUESTS} requests in {took:?}");
    let counted = node.roles().nodes[0].snapshot().unwrap().shards[0].counters.clone();
    assert!(counted.dropped(DropReason::QueueFull) > 0, "{counted:?}");
    assert!(counted.requests(Op::Get) >= REQUESTS as u64);
}
