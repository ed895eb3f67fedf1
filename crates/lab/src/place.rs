//! What stands on the hosts of a cluster whose links fail one by one.

use std::fmt;

/// A host, by what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A switch, by its position in the configuration.
    Switch(u8),
    /// Both controllers: they share a directory.
    Controllers,
    /// One of several controllers, and a member of the etcd that they share.
    Site(u8),
    /// A storage node, by its id.
    Node(u8),
    /// A client.
    Client(u8),
    /// A cache, by its id.
    Cache(u8),
}

impl Place {
    /// Its number in addresses and names of interfaces.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Switch(index) => 10 + index,
            Self::Controllers => 20,
            Self::Site(index) => 21 + index,
            Self::Node(id) => 30 + id,
            Self::Client(index) => 60 + index,
            Self::Cache(id) => 90 + id,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(index) => write!(f, "switch-{index}"),
            Self::Controllers => f.write_str("controllers"),
            Self::Site(index) => write!(f, "site-{index}"),
            Self::Node(id) => write!(f, "node-{id}"),
            Self::Client(index) => write!(f, "client-{index}"),
            Self::Cache(id) => write!(f, "cache-{id}"),
        }
    }
}
