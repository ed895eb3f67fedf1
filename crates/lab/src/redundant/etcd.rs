//! The etcd of several controllers: a member on the host of each, which is told what
//! `docs/operating/controllers.md` recommends.

use crate::etcd::{Member, arguments};
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
    let at = |index| Member {
        clients: member(hosts, index),
        peers: hosts.at(Place::Site(index), PEERS),
    };
    let all: Vec<Member> = (0..count).map(at).collect();
    let mut command = tied(Path::new("etcd"));
    command.args(arguments(&all, index.into(), dir));
    command.args(["--heartbeat-interval", HEARTBEAT, "--election-timeout", ELECTION]);
    command
}
