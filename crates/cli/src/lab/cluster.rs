//! The cluster in the rack: its addresses, and its configuration file.

use crate::lab::plane::Plane;
use crate::lab::rack::{Place, Rack};
use runtime::config::EngineKind;
use runtime::store::SyncPolicy;
use runtime::up::{HASH_KEYSPACE, RANGE_KEYSPACE, UpOptions};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;

const SERVICE_PORT: u16 = wire::PORT;
/// Of all admin servers: each has a host of its own.
const ADMIN_PORT: u16 = 7780;
const NODE_PORT: u16 = 7801;

/// What runs in the rack.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) rack: Rack,
    pub(crate) plane: Plane,
    /// Size and engine; its addresses are not used.
    pub(crate) size: UpOptions,
    /// Requests per second that each shard of a node serves at most.
    pub(crate) node_rate: Option<NonZero<u32>>,
}

/// Where clients send everything.
pub(crate) fn service() -> SocketAddr {
    (Place::Switch.address(), SERVICE_PORT).into()
}

/// Where the admin server of a role is.
pub(crate) fn admin(place: Place) -> SocketAddr {
    (place.address(), ADMIN_PORT).into()
}

/// Where the first shard of a node is.
pub(crate) fn listen(node: Place) -> SocketAddr {
    (node.address(), NODE_PORT).into()
}

/// The same for all, so that data is found again by a lab that comes later.
const SEED: u64 = 0x6b65_7977_6179;

/// All roles share the cores of one machine, and wait for each other longer than they would on
/// machines of their own.
const LEASE_MS: u64 = 1_500;

impl Cluster {
    /// The configuration; what has no directory of its own is kept in `state`.
    pub(crate) fn config(&self, state: &Path) -> String {
        let UpOptions { replicas, partitions, switch_threads, data, .. } = &self.size;
        let kept = data.as_deref().unwrap_or(state);
        let (service, switch_admin) = (service(), admin(Place::Switch));
        let (admin, directory) = (admin(Place::Controller), kept.join("controller"));
        let mut text = format!(
            "[cluster]\nseed = {SEED}\n\n\
             [switch]\nservice = \"{service}\"\nadmin = \"{switch_admin}\"\n\
             threads = {switch_threads}\n\n\
             [controller]\nadmin = \"{admin}\"\ndata = {directory:?}\nlease_ms = {LEASE_MS}\n"
        );
        for (id, place) in (1..).zip(self.rack.nodes()) {
            text.push_str(&self.node(id, place));
        }
        for (name, kind) in [(HASH_KEYSPACE, "hash"), (RANGE_KEYSPACE, "range")] {
            write!(
                text,
                "\n[[keyspace]]\nname = \"{name}\"\nkind = \"{kind}\"\n\
                 partitions = {partitions}\nreplicas = {replicas}\n"
            )
            .expect("strings take everything");
        }
        text
    }

    fn node(&self, id: u16, place: Place) -> String {
        let (listen, admin, shards) = (listen(place), admin(place), self.size.shards);
        let mut text = format!(
            "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\
             shards = {shards}\n"
        );
        match self.size.engine {
            EngineKind::Memory => {}
            EngineKind::Fjall => text.push_str("engine = \"fjall\"\n"),
        }
        if let Some(data) = &self.size.data {
            let sync = match self.size.sync {
                SyncPolicy::Always => "always",
                SyncPolicy::Interval => "interval",
                SyncPolicy::Never => "never",
            };
            let directory = data.join(format!("node-{id}"));
            text.push_str(&format!("data = {directory:?}\nsync = \"{sync}\"\n"));
        }
        if let Some(rate) = self.node_rate {
            text.push_str(&format!("max_rate = {rate}\n"));
        }
        text
    }
}
