//! The bridge that links hosts where keys have addresses: which ports it has, and what the switch
//! whose flows it follows is told of it.

use crate::hosts::{Hosts, mac_of, port_of};
use crate::openvswitch::{PORT, Port};
use crate::place::Place;
use std::fmt::Write as _;

/// A port for each host.
pub(super) fn ports(hosts: &Hosts) -> Vec<Port> {
    hosts.places().into_iter().map(port_of).collect()
}

/// Where the bridge finds its switch, and members behind which of its ports.
pub(super) fn openflow(hosts: &Hosts) -> String {
    let mut text =
        format!("\n[switch.openflow]\nlisten = \"127.0.0.1:{PORT}\"\n\n[switch.openflow.exits]\n");
    let members = hosts.places().into_iter();
    for place in members.filter(|it| matches!(it, Place::Node(_) | Place::Cache(_))) {
        let (address, mac, (port, _)) = (hosts.at(place, 0).ip(), mac_of(place), port_of(place));
        writeln!(text, "\"{address}\" = {{ mac = \"{mac}\", port = {port} }}")
            .expect("strings take everything");
    }
    text
}
