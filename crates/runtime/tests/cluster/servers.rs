//! Each role as a server of its own, reached by the controller over HTTP.

use crate::setup::get;
use client::blocking::Client;
use client::{Options, PutOptions};
use cluster::NodeId;
use runtime::config::Config;
use runtime::server::{Server, StartError};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::tempdir;

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
fn config(dir: &Path, nodes: usize) -> Config {
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
fn wait_ready(controller: &Server) {
    let roles = controller.roles().controller.as_ref().unwrap();
    roles.wait_ready(Duration::from_secs(30)).unwrap();
}

#[test]
fn roles_find_each_other_whatever_the_order_they_start_in() {
    let dir = tempdir().unwrap();
    let config = config(dir.path(), 2);
    let controller = Server::start_controller(&config).unwrap();
    let _second = Server::start_node(&config, NodeId(2)).unwrap();
    let _switch = Server::start_switch(&config, 0).unwrap();
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
    let _switch = Server::start_switch(&config, 0).unwrap();
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
    let switch = Server::start_switch(&config, 0).unwrap();
    let _node = Server::start_node(&config, NodeId(1)).unwrap();
    let controller = Server::start_controller(&config).unwrap();
    wait_ready(&controller);
    switch.stop();
    let _switch = Server::start_switch(&config, 0).unwrap();

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
