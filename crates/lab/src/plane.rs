//! Which data plane the rack's switch has.

use crate::rack::{LabHost, Rack};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where packets are switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plane {
    /// In the switch's process, over a UDP socket.
    User,
    /// In the kernel, at the drivers of the switch's ports.
    Xdp,
    /// In the routes of the switch's kernel, by the addresses of keys; the rack has IPv6 then.
    Routes,
    /// In an Open vSwitch that links the hosts, by the addresses of keys; the rack has IPv6 then.
    #[value(name = "openflow")]
    #[serde(rename = "openflow")]
    OpenFlow,
}

impl Plane {
    /// What `keyway switch` is told for it, if these are the ports that packets come through.
    pub fn arguments(self, ports: &str) -> Vec<String> {
        match self {
            Self::User => Vec::new(),
            Self::Xdp => ["--plane", "xdp", "--ports", ports].map(str::to_owned).into(),
            Self::Routes | Self::OpenFlow => ["--plane", self.name()].map(str::to_owned).into(),
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Xdp => "xdp",
            Self::Routes => "routes",
            Self::OpenFlow => "openflow",
        }
    }

    /// Where packets of the protocol reach a host: caches and nodes answer from there, too.
    pub fn address_of(self, place: LabHost) -> IpAddr {
        if self.has_content() { place.address6().into() } else { place.address().into() }
    }

    /// Whether keys have addresses, and members IPv6 addresses.
    pub fn has_content(self) -> bool {
        matches!(self, Self::Routes | Self::OpenFlow)
    }

    /// Whether a bridge links the hosts, and not a router.
    pub fn has_bridge(self) -> bool {
        self == Self::OpenFlow
    }
}

/// Ports that requests and replies come through.
pub fn ports(rack: &Rack) -> String {
    let ports: Vec<String> = rack.sides().map(LabHost::port).collect();
    ports.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_of_clients_nodes_and_caches_are_named_and_not_the_controllers() {
        let rack = Rack { lab: "lab".into(), nodes: 2, caches: 1, clients: 1 };
        assert_eq!(ports(&rack), "p-c0,p-n1,p-n2,p-k1");
        assert!(Plane::User.arguments("p-n1").is_empty());
        assert_eq!(Plane::Xdp.arguments("p-n1"), ["--plane", "xdp", "--ports", "p-n1"]);
        assert_eq!(Plane::Routes.arguments("p-n1"), ["--plane", "routes"]);
        assert_eq!(Plane::OpenFlow.arguments("p-n1"), ["--plane", "openflow"]);
    }
}
