//! Who is in the world, and where.

use cluster::{CacheId, CacheSpec, Member, NodeId, NodeSpec};
use std::fmt;
use wire::Endpoint;

/// A process on a machine of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Client(u16),
    Switch(u16),
    /// All shards of a node.
    Node(u16),
    Controller(u16),
    Cache(u16),
    /// The store that several controllers share.
    Store,
}

/// How many there are of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cast {
    pub(crate) clients: u16,
    pub(crate) switches: u16,
    pub(crate) nodes: u16,
    pub(crate) controllers: u16,
    pub(crate) caches: u16,
    /// Whether these share a store.
    pub(crate) has_store: bool,
}

impl Cast {
    pub(crate) fn roles(self) -> impl Iterator<Item = Role> + Clone {
        let clients = (0..self.clients).map(Role::Client);
        let switches = (0..self.switches).map(Role::Switch);
        let nodes = (0..self.nodes).map(Role::Node);
        let controllers = (0..self.controllers).map(Role::Controller);
        let caches = (0..self.caches).map(Role::Cache);
        let store = self.has_store.then_some(Role::Store);
        clients.chain(switches).chain(nodes).chain(controllers).chain(caches).chain(store)
    }

    pub(crate) fn len(self) -> usize {
        let store = u16::from(self.has_store);
        let members = self.switches + self.nodes + self.caches;
        usize::from(self.clients + members + self.controllers + store)
    }

    /// Whether this role is one of them.
    pub(crate) fn has(self, role: Role) -> bool {
        match role {
            Role::Client(index) => index < self.clients,
            Role::Switch(index) => index < self.switches,
            Role::Node(index) => index < self.nodes,
            Role::Controller(index) => index < self.controllers,
            Role::Cache(index) => index < self.caches,
            Role::Store => self.has_store,
        }
    }

    /// The place of a role among [`Self::roles`].
    pub(crate) fn index(self, role: Role) -> usize {
        let before_nodes = self.clients + self.switches;
        usize::from(match role {
            Role::Client(index) => index,
            Role::Switch(index) => self.clients + index,
            Role::Node(index) => before_nodes + index,
            Role::Controller(index) => before_nodes + self.nodes + index,
            Role::Cache(index) => before_nodes + self.nodes + self.controllers + index,
            Role::Store => before_nodes + self.nodes + self.controllers + self.caches,
        })
    }
}

impl From<Member> for Role {
    fn from(member: Member) -> Self {
        match member {
            Member::Switch(index) => Self::Switch(index),
            Member::Node(NodeId(index)) => Self::Node(index),
            Member::Cache(CacheId(index)) => Self::Cache(index),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(index) => write!(f, "client {index}"),
            Self::Switch(index) => write!(f, "switch {index}"),
            Self::Node(index) => write!(f, "node {index}"),
            Self::Controller(index) => write!(f, "controller {index}"),
            Self::Cache(index) => write!(f, "cache {index}"),
            Self::Store => f.write_str("the store"),
        }
    }
}

/// The service address of a switch.
pub(crate) fn service(switch: u16) -> Endpoint {
    endpoint(SWITCHES + switch)
}

/// Where a client takes its answers.
pub(crate) fn client_endpoint(client: u16) -> Endpoint {
    endpoint(CLIENTS + client)
}

/// The node of this index.
pub(crate) fn node_spec(node: u16, shards: u16) -> NodeSpec {
    NodeSpec { id: NodeId(node), endpoint: endpoint(NODES + node * PORTS_PER_NODE), shards }
}

/// The cache of this index.
pub(crate) fn cache_spec(cache: u16) -> CacheSpec {
    let first = endpoint(CACHES + cache * CACHE_SHARDS);
    CacheSpec { id: CacheId(cache), endpoint: first, shards: CACHE_SHARDS }
}

/// Where a shard of a cache takes packets; counted over all caches.
pub(crate) fn cache_endpoint(shard: u16) -> Endpoint {
    endpoint(CACHES + shard)
}

/// Whose endpoint this is; a node's or a cache's comes with the shard.
pub(crate) fn role_of(endpoint: Endpoint) -> (Role, u16) {
    match endpoint.port {
        CLIENTS.. => (Role::Client(endpoint.port - CLIENTS), 0),
        NODES.. => {
            let offset = endpoint.port - NODES;
            (Role::Node(offset / PORTS_PER_NODE), offset % PORTS_PER_NODE)
        }
        CACHES.. => {
            let offset = endpoint.port - CACHES;
            (Role::Cache(offset / CACHE_SHARDS), offset % CACHE_SHARDS)
        }
        port => (Role::Switch(port.saturating_sub(SWITCHES)), 0),
    }
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint { addr: [10; 16], port }
}

/// Shards of each cache.
pub(crate) const CACHE_SHARDS: u16 = 2;

const SWITCHES: u16 = 1_000;
const CACHES: u16 = 1_500;
const NODES: u16 = 2_000;
const CLIENTS: u16 = 3_000;
/// More than a node has shards.
const PORTS_PER_NODE: u16 = 8;
