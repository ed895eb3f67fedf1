//! The bridge that links hosts where keys have addresses: which ports it has, and what the switch
//! whose flows it follows is told of it.

use crate::hosts::{Hosts, mac_of, port_of};
use crate::openvswitch::{Port, section};
use crate::place::Place;

/// A port for each host.
pub(super) fn ports(hosts: &Hosts) -> Vec<Port> {
    hosts.places().into_iter().map(port_of).collect()
}

/// Where the bridge finds its switch, and members behind which of its ports.
pub(super) fn openflow(hosts: &Hosts) -> String {
    let places = hosts.places().into_iter();
    let members = places.filter(|it| matches!(it, Place::Node(_) | Place::Cache(_)));
    let exit = |place| (hosts.at(place, 0).ip(), mac_of(place), port_of(place).0);
    format!("\n{}", section(members.map(exit)))
}
