//! What the operator says about the cluster, and how that meets what was saved.

use crate::saved::{FORMAT, Saved};
use cluster::{Map, MapError, NodeId, NodeSpec};
use machine::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use wire::Endpoint;

/// Most switches: a service address is served by one rack's, so one or two, and a dozen when
/// several user-space switches share it; 64 leaves room and keeps a round of orders short.
pub const SWITCHES_MAX: usize = 64;

/// The cluster as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Seed of all hashes over keys. Must stay the same for the life of the cluster.
    pub seed: u64,
    /// Service endpoint of each switch; at least one. Nodes send their replies to the first.
    pub switches: Vec<Endpoint>,
    /// The storage nodes, in any order.
    pub nodes: Vec<NodeSpec>,
    /// How often each member is asked how it is; more than zero.
    pub poll_interval: Duration,
}

/// Why a controller does not start. Each says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No switch, or more than [`SWITCHES_MAX`].
    Switches(usize),
    /// The poll interval is zero.
    PollInterval,
    /// Two members would receive each other's packets at this endpoint.
    SharedEndpoint(Endpoint),
    /// The saved state was written in a form that this version does not read.
    Format(u32),
    /// The seed differs from the saved one.
    Seed {
        /// As configured.
        configured: u64,
        /// As saved.
        saved: u64,
    },
    /// A node that holds partitions is missing from the configuration.
    NodeInUse {
        /// Which.
        node: NodeId,
        /// How many partitions it holds.
        partitions: usize,
    },
    /// A node that holds partitions has another number of shards.
    Shards {
        /// Which.
        node: NodeId,
        /// As saved; each partition's data lies in one of them.
        saved: u16,
    },
    /// The nodes, or the saved map, break an invariant of every map.
    Unsound(MapError),
    /// The saved state names a node, id or number that its own map excludes.
    Damaged(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switches(n) => {
                write!(f, "{n} switches are configured: name 1 to {SWITCHES_MAX}")
            }
            Self::PollInterval => f.write_str("the poll interval is zero: 200 ms is usual"),
            Self::SharedEndpoint(at) => write!(
                f,
                "two members share {at}: a node needs one port per shard, none of them another's"
            ),
            Self::Format(found) => write!(
                f,
                "the saved map has format {found}, this version reads {FORMAT}: start the version \
                 that wrote it"
            ),
            Self::Seed { configured, saved } => write!(
                f,
                "the cluster was created with seed {saved}, not {configured}: configure {saved} \
                 again, because every key lies where the seed put it"
            ),
            Self::NodeInUse { node, partitions } => write!(
                f,
                "node {node} holds {partitions} partitions but is not configured: configure it \
                 again; a node can be taken out once it holds none"
            ),
            Self::Shards { node, saved } => write!(
                f,
                "node {node} holds partitions spread over {saved} shards: configure {saved} again"
            ),
            Self::Unsound(why) => write!(f, "the cluster is not sound: {why}"),
            Self::Damaged(what) => write!(f, "the saved state is damaged: {what}"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ControllerConfig {
    /// The state to begin with, and whether it differs from what the store holds.
    pub(crate) fn begin(
        &self,
        saved: Option<Saved>,
        now: Instant,
    ) -> Result<(Saved, bool), ConfigError> {
        self.check()?;
        let (mut state, fresh) = match saved {
            Some(saved) => (saved, false),
            None => (self.blank(), true),
        };
        check_saved(&state)?;
        let changed = self.apply(&mut state)?;
        if changed || fresh {
            state.advance(now);
        }
        state.map.check().map_err(ConfigError::Unsound)?;
        Ok((state, changed || fresh))
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=SWITCHES_MAX).contains(&self.switches.len()) {
            return Err(ConfigError::Switches(self.switches.len()));
        }
        if self.poll_interval.is_zero() {
            return Err(ConfigError::PollInterval);
        }
        let nodes = Map { nodes: self.nodes.clone(), ..Map::default() };
        nodes.check().map_err(ConfigError::Unsound)?;
        for (index, node) in self.nodes.iter().enumerate() {
            // Two intervals of ports overlap if and only if one holds the other's first.
            let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != index);
            let firsts = others.map(|(_, other)| other.endpoint);
            let mut foreign = firsts.chain(self.switches.iter().copied());
            if let Some(shared) = foreign.find(|at| node.owns(*at)) {
                return Err(ConfigError::SharedEndpoint(shared));
            }
        }
        Ok(())
    }

    fn blank(&self) -> Saved {
        Saved {
            format: FORMAT,
            seed: self.seed,
            switches: Vec::new(),
            map: Map::default(),
            stores: BTreeMap::new(),
            next_keyspace: 1,
            next_partition: 1,
        }
    }

    /// Brings the state in line with the configuration; says whether that changed anything.
    fn apply(&self, state: &mut Saved) -> Result<bool, ConfigError> {
        if state.seed != self.seed {
            return Err(ConfigError::Seed { configured: self.seed, saved: state.seed });
        }
        for node in &state.map.nodes {
            let partitions = state.partitions_of(node.id);
            let configured = self.nodes.iter().find(|n| n.id == node.id);
            match configured {
                _ if partitions == 0 => {}
                None => return Err(ConfigError::NodeInUse { node: node.id, partitions }),
                Some(now) if now.shards != node.shards => {
                    return Err(ConfigError::Shards { node: node.id, saved: node.shards });
                }
                Some(_) => {}
            }
        }
        let mut nodes = self.nodes.clone();
        nodes.sort_by_key(|n| n.id);
        let switches: Vec<SocketAddr> = self.switches.iter().map(|at| (*at).into()).collect();
        let same = state.map.nodes == nodes && state.switches == switches;
        state.stores.retain(|id, _| nodes.iter().any(|n| n.id == *id));
        state.map.nodes = nodes;
        state.switches = switches;
        Ok(!same)
    }
}

/// A store may hand back anything; a map that contradicts itself must not reach a switch.
fn check_saved(saved: &Saved) -> Result<(), ConfigError> {
    if saved.format != FORMAT {
        return Err(ConfigError::Format(saved.format));
    }
    saved.map.check().map_err(ConfigError::Unsound)?;
    if saved.next_partition == 0 || saved.next_keyspace == 0 {
        return Err(ConfigError::Damaged("ids are given out from 1"));
    }
    if saved.map.partitions.iter().any(|p| p.id.0 >= saved.next_partition) {
        return Err(ConfigError::Damaged("a partition has an id that was not given out"));
    }
    if saved.map.keyspaces.iter().any(|k| k.id.0 >= saved.next_keyspace) {
        return Err(ConfigError::Damaged("a keyspace has an id that was not given out"));
    }
    let known = |id: &NodeId| saved.map.nodes.iter().any(|n| n.id == *id);
    if !saved.stores.keys().all(known) {
        return Err(ConfigError::Damaged("it knows the memory of a node that does not exist"));
    }
    let mut chained = saved.map.partitions.iter().flat_map(|p| &p.chain);
    if !chained.all(|id| saved.stores.contains_key(id)) {
        return Err(ConfigError::Damaged("it does not know the memory of a node with partitions"));
    }
    Ok(())
}
