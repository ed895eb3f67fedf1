//! Which data plane the rack's switch has.

use crate::rack::{LabHost, Rack};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Where packets are switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plane {
    /// In the switch's process, over a UDP socket.
    User,
    /// In the kernel, at the drivers of the switch's ports.
    Xdp,
}

impl Plane {
    /// What `keyway switch` is told for it, if these are the ports that packets come through.
    pub fn arguments(self, ports: &str) -> Vec<String> {
        match self {
            Self::User => Vec::new(),
            Self::Xdp => ["--plane", "xdp", "--ports", ports].map(str::to_owned).into(),
        }
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
    }
}
