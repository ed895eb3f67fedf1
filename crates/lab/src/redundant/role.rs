//! What the processes of a cluster are.

use std::fmt;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// What knows how the bridge is that links the hosts, and the process that is the bridge.
    BridgeDatabase,
    Bridge,
    /// A switch, by its position in the configuration.
    Switch(u8),
    /// A member of the etcd of the controllers.
    Etcd(u8),
    /// One of the controllers: one is active, the others stand by.
    Controller(u8),
    /// A storage node, by its id.
    Node(u8),
    /// A gateway, by the client's host that it is on.
    Gateway(u8),
    /// A cache, by its id.
    Cache(u8),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BridgeDatabase => f.write_str("bridge-database"),
            Self::Bridge => f.write_str("bridge"),
            Self::Switch(index) => write!(f, "switch-{index}"),
            Self::Etcd(index) => write!(f, "etcd-{index}"),
            Self::Controller(index) => write!(f, "controller-{index}"),
            Self::Node(id) => write!(f, "node-{id}"),
            Self::Gateway(index) => write!(f, "gateway-{index}"),
            Self::Cache(id) => write!(f, "cache-{id}"),
        }
    }
}
