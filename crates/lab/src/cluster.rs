//! The cluster in the rack: its addresses, and its configuration file.

use crate::certs;
use crate::openvswitch;
use crate::plane::Plane;
use crate::rack::{CONTENT, LabHost, Rack};
use runtime::store::SyncPolicy;
use runtime::up::{HASH_KEYSPACE, RANGE_KEYSPACE, UpOptions};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use wire::{ContentClass, ServicePrefix};

const SERVICE_PORT: u16 = wire::PORT;
/// Of all admin servers: each has a host of its own.
const ADMIN_PORT: u16 = 7780;
const NODE_PORT: u16 = 7801;

/// What runs in the rack.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub rack: Rack,
    pub plane: Plane,
    /// Size and engine; its addresses are not used.
    pub size: UpOptions,
    /// Requests per second that each shard of a node serves at most.
    pub node_rate: Option<NonZero<u32>>,
    /// The last nodes, so many of them, serve half as many.
    pub slow_nodes: u16,
    /// Whether everybody has a certificate, and packets are in envelopes.
    pub secured: bool,
}

/// Where clients send everything, unless a key has an address.
pub fn service(plane: Plane) -> SocketAddr {
    (plane.address_of(LabHost::Switch), SERVICE_PORT).into()
}

/// What the addresses of keys begin with.
pub fn content() -> ServicePrefix {
    ServicePrefix::new(CONTENT).expect("it is one")
}

/// For `ip -batch`, where keys have addresses: a node takes all of them as its own.
pub(crate) fn addresses_of_a_node() -> String {
    format!("route add local {} dev lo\n", content().addresses())
}

/// The same of a cache: those by which keys are read, so that it can send on what it does not hold.
pub(crate) fn addresses_of_a_cache() -> String {
    format!("route add local {} dev lo\n", content().class(ContentClass::Read))
}

/// Where the admin server of a role is.
pub fn admin(place: LabHost) -> SocketAddr {
    (place.address(), ADMIN_PORT).into()
}

/// Where a cache, or the first shard of a node, is.
pub fn listen(place: LabHost, plane: Plane) -> SocketAddr {
    (plane.address_of(place), NODE_PORT).into()
}

/// The same for all, so that data is found again by a lab that comes later.
const SEED: u64 = 0x6b65_7977_6179;

impl Cluster {
    /// A cluster that keeps all it has in memory, of nodes with one shard each.
    pub fn in_memory(rack: Rack, plane: Plane) -> Self {
        let size = UpOptions {
            sync: SyncPolicy::Never,
            ..UpOptions::in_memory(rack.nodes, 1, rack.nodes.into())
        };
        Self { rack, plane, size, node_rate: None, slow_nodes: 0, secured: false }
    }

    /// The configuration; what has no directory of its own is kept in `state`.
    pub fn config(&self, state: &Path) -> String {
        let UpOptions { replicas, partitions, switch_threads, data, .. } = &self.size;
        let kept = data.as_deref().unwrap_or(state);
        let (service, switch_admin) = (service(self.plane), admin(LabHost::Switch));
        let (admin, directory) = (admin(LabHost::Controller), kept.join("controller"));
        let addresses = format!("[content]\nprefix = \"{}\"\nport = {NODE_PORT}\n\n", content());
        let has_content = self.plane.has_content();
        let content = if has_content { &addresses } else { "" };
        let openflow = if self.plane.has_bridge() { openflow(&self.rack) } else { String::new() };
        let security = security(self.secured.then(|| certs::directory_in(state)).as_deref());
        let mut text = format!(
            "[cluster]\nseed = {SEED}\n\n{content}\
             [switch]\nservice = \"{service}\"\nadmin = \"{switch_admin}\"\n\
             threads = {switch_threads}\n\n{openflow}\
             [security]\n{security}\n\n\
             [controller]\nadmin = \"{admin}\"\ndata = {directory:?}\n"
        );
        for (id, place) in (1..).zip(self.rack.nodes()) {
            text.push_str(&self.node(id, place));
        }
        for (id, place) in (1..=self.rack.caches).zip(self.rack.caches()) {
            text.push_str(&cache(id, place, self.plane));
        }
        // Without caches they have what keyspaces have that nobody says anything of.
        let hot = if self.rack.caches > 0 { "hot = \"cache\"\n" } else { "" };
        // Keys that are kept in order have no addresses.
        let ordered = (!has_content).then_some((RANGE_KEYSPACE, "range"));
        for (name, kind) in [(HASH_KEYSPACE, "hash")].into_iter().chain(ordered) {
            write!(
                text,
                "\n[[keyspace]]\nname = \"{name}\"\nkind = \"{kind}\"\n\
                 partitions = {partitions}\nreplicas = {replicas}\n{hot}"
            )
            .expect("strings take everything");
        }
        text
    }

    /// Requests per second that each shard of this node serves at most.
    pub fn rate_of(&self, id: u16) -> Option<NonZero<u32>> {
        let slow = id > self.rack.nodes.saturating_sub(self.slow_nodes);
        let half = |rate: NonZero<u32>| NonZero::new(rate.get() / 2).unwrap_or(rate);
        self.node_rate.map(|rate| if slow { half(rate) } else { rate })
    }

    fn node(&self, id: u16, place: LabHost) -> String {
        let (listen, shards) = (listen(place, self.plane), self.size.shards);
        let admin = admin(place);
        let mut text = format!(
            "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\
             shards = {shards}\n"
        );
        writeln!(text, "engine = {:?}", self.size.engine.name()).expect("strings take everything");
        let backend = usize::from(id).checked_sub(1).and_then(|at| self.size.backends.get(at));
        if let Some(backend) = backend {
            // It goes when the lab goes, so there is nothing to be kept.
            let url = backend.secret();
            text.push_str(&format!("backend = {url:?}\nsync = \"never\"\n"));
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
        text
    }
}

/// What `[security]` has: where certificates are, if there are some.
pub(crate) fn security(certs: Option<&Path>) -> String {
    certs.map_or_else(|| "open = true".to_owned(), |at| format!("directory = {at:?}"))
}

/// Where the bridge finds its controller, and members behind which of its ports.
fn openflow(rack: &Rack) -> String {
    let exit = |place: LabHost| {
        let port = openvswitch::port_of(rack, place).expect("it is in the rack");
        (place.address6().into(), place.host_mac().to_string(), port)
    };
    openvswitch::section(rack.nodes().chain(rack.caches()).map(exit)) + "\n"
}

fn cache(id: u16, place: LabHost, plane: Plane) -> String {
    let (listen, admin) = (listen(place, plane), admin(place));
    format!("\n[[cache]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::{CLIENTS_MAX, NODES_MAX};
    use cluster::{HotPolicy, NodeId};
    use runtime::config::{Config, EngineKind};
    use runtime::disk::MinFreeDisk;
    use runtime::identity::Security;
    use runtime::memory::MaxMemory;
    use std::net::Ipv6Addr;

    fn cluster(engine: EngineKind, data: Option<&str>, rate: u32) -> Cluster {
        let url = |node| format!("redis+unix:///tmp/{node}").parse().unwrap();
        let of_each = (1..=NODES_MAX).map(url);
        let backends = if engine.has_backend() { of_each.collect() } else { Vec::new() };
        let size = UpOptions {
            nodes: NODES_MAX,
            caches: 0,
            replicas: 3,
            partitions: 128,
            shards: 2,
            switch_threads: 1,
            engine,
            data: data.map(Into::into),
            backends,
            sync: SyncPolicy::Interval,
            max_memory: MaxMemory::default(),
            min_free_disk: MinFreeDisk::default(),
            service: service(Plane::User),
            admin: admin(LabHost::Controller),
            security: Security::Open,
            secrets: None,
        };
        let caches = 2;
        let rack = Rack { lab: "lab".into(), nodes: NODES_MAX, caches, clients: CLIENTS_MAX };
        let node_rate = NonZero::new(rate);
        Cluster { rack, plane: Plane::User, size, node_rate, slow_nodes: 2, secured: false }
    }

    /// What roles would make of it.
    fn load(engine: EngineKind, data: Option<&str>) -> Config {
        let cluster = cluster(engine, data, 0);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.toml");
        std::fs::write(&path, cluster.config(directory.path())).unwrap();
        Config::load(&path).unwrap()
    }

    #[test]
    fn a_lab_without_a_directory_keeps_everything_in_its_own() {
        let config = load(EngineKind::Memory, None);
        assert_eq!(config.nodes.len(), usize::from(NODES_MAX));
        assert!(config.controller.data.is_absolute());
        assert!(config.nodes.iter().all(|node| node.data.is_none()));
        assert_eq!(config.switches[0].service.to_string(), "10.77.255.1:7700");
        assert_eq!(config.node(NodeId(32)).unwrap().listen.to_string(), "10.77.1.32:7801");
        assert_eq!(config.caches[1].listen.to_string(), "10.77.3.2:7801");
        assert!(config.keyspaces.iter().all(|keyspace| keyspace.hot == HotPolicy::Cache));
    }

    #[test]
    fn where_keys_have_addresses_members_have_ipv6() {
        let cluster = cluster(EngineKind::Memory, None, 0);
        let size = UpOptions { shards: 1, ..cluster.size.clone() };
        let with = |plane| {
            let cluster = Cluster { plane, size: size.clone(), ..cluster.clone() };
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("cluster.toml");
            std::fs::write(&path, cluster.config(directory.path())).unwrap();
            Config::load(&path).unwrap()
        };
        let config = with(Plane::Routes);
        assert_eq!(config.content.unwrap().prefix.to_string(), "fd77:1::/48");
        assert_eq!(config.switches[0].service.to_string(), "[fd77::ff:1]:7700");
        assert_eq!(config.node(NodeId(32)).unwrap().listen.to_string(), "[fd77::1:20]:7801");
        assert_eq!(config.caches[1].listen.to_string(), "[fd77::3:2]:7801");
        assert_eq!(config.controller.admin.to_string(), "10.77.254.1:7780");
        assert_eq!(config.switches[0].openflow, None);
        let bridged = with(Plane::OpenFlow);
        let exits = &bridged.switches[0].openflow.as_ref().unwrap().exits;
        assert_eq!(exits.len(), usize::from(NODES_MAX) + 2);
        let last = exits[&"fd77::3:2".parse::<Ipv6Addr>().unwrap()];
        assert_eq!(last.mac.to_string(), "02:4b:57:00:03:02");
        let sides = u32::from(CLIENTS_MAX + NODES_MAX) + 2;
        assert_eq!(last.port.map(NonZero::get), Some(1 + sides), "the switch has the first");
    }

    #[test]
    fn a_lab_with_backends_has_one_for_each_node() {
        let config = load(EngineKind::Redis, None);
        let urls = config.nodes.iter().map(|node| node.backend.as_ref().unwrap().secret());
        assert!(urls.eq((1..=NODES_MAX).map(|node| format!("redis+unix:///tmp/{node}"))));
    }

    #[test]
    fn a_lab_with_a_directory_keeps_all_data_there() {
        let config = load(EngineKind::Fjall, Some("/data"));
        assert_eq!(config.controller.data, Path::new("/data/controller"));
        let node = config.node(NodeId(7)).unwrap();
        assert_eq!(node.data.as_deref(), Some(Path::new("/data/node-7")));
        assert_eq!((node.sync, node.shards), (SyncPolicy::Interval, 2));
    }

    #[test]
    fn the_last_nodes_are_the_slow_ones() {
        let cluster = cluster(EngineKind::Memory, None, 20_000);
        let rates = (cluster.rate_of(30), cluster.rate_of(31));
        assert_eq!(rates, (NonZero::new(20_000), NonZero::new(10_000)));
    }
}
