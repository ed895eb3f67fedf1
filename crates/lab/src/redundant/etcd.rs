//! The etcd of several controllers: a member on the host of each, which is told what
//! `docs/operating/controllers.md` recommends.

use crate::hosts::Hosts;
use crate::place::Place;
use crate::process::tied;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Where members answer controllers, and each other.
const CLIENTS: u16 = 2379;
const PEERS: u16 = 2380;

/// Between two signs of life of the member that leads, and for how long others go without one, in
/// milliseconds.
const HEARTBEAT: &str = "50";
const ELECTION: &str = "500";

/// Where this member answers.
pub fn member(hosts: &Hosts, index: u8) -> SocketAddr {
    hosts.at(Place::Site(index), CLIENTS)
}

/// All of it, as the configuration of controllers names it.
pub(super) fn store(hosts: &Hosts, count: u8) -> String {
    let members: Vec<String> = (0..count).map(|it| member(hosts, it).to_string()).collect();
    format!("etcd://{}/keyway", members.join(","))
}

/// The program of a member, with its data below this directory.
pub(super) fn command(hosts: &Hosts, index: u8, count: u8, dir: &Path) -> Command {
    let clients = format!("http://{}", member(hosts, index));
    let peer = |index| format!("http://{}", hosts.at(Place::Site(index), PEERS));
    let peers: Vec<String> = (0..count).map(|it| format!("{it}={}", peer(it))).collect();
    let mut command = tied(Path::new("etcd"));
    command.args(["--name", &index.to_string()]);
    command.arg("--data-dir").arg(dir.join(format!("etcd-{index}")));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peer(index)]);
    command.args(["--initial-advertise-peer-urls", &peer(index)]);
    command.args(["--initial-cluster", &peers.join(",")]);
    command.args(["--heartbeat-interval", HEARTBEAT, "--election-timeout", ELECTION]);
    command
}
