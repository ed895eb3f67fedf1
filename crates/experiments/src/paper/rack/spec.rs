//! What a rack is like.

use super::finding::Finding;
use super::pace::Pace;
use super::store::Store;
use crate::paper::Arm;
use cluster::Selection;
use std::time::Duration;

/// What a rack is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RackSpec {
    /// Storage nodes, each with one shard; at most [`wire::NODES_MAX`].
    pub nodes: u16,
    /// How fast it is.
    pub pace: Pace,
    /// Whether every other node serves at half of that.
    pub half_slow: bool,
    /// Keys that clients ask for.
    pub keys: u64,
    /// The most popular ones that are written before the first trial, all of them as a rule. Others
    /// cost their nodes as much, but are not found: a rack has room for millions of keys, and some
    /// experiments are about billions. What a shift makes popular is written before it does.
    pub stored: u64,
    /// What they are like, and how they lie there.
    pub store: Store,
    /// Nodes of each chain.
    pub replicas: u8,
    /// Who finds the nodes that requests are for.
    pub finding: Finding,
    /// How load is spread.
    pub arm: Arm,
    /// The cache nodes, of an arm that has some.
    pub caches: Caches,
    /// Whether clients ask once only: what is lost is lost, as in SwitchKV's evaluation. Else they
    /// ask again until [`Pace::deadline`].
    pub once: bool,
    /// Which of its copies answers a read of a hot key.
    pub selection: Selection,
    /// If so, the controller hears of this many of the most popular keys only, as popularity is at
    /// its beginning; no other key gets copies.
    pub hot_keys_max: Option<u64>,
    /// Seed of everything drawn, and of the hash that places keys.
    pub seed: u64,
}

/// Nodes for each client: one asks for at most 400,000 requests a second of a real rack, so that
/// its window of sequence numbers has room for all that wait.
const NODES_PER_CLIENT: u16 = 4;

impl RackSpec {
    /// Nodes of one speed that hold each key once, where its hash says, and spread no load.
    #[must_use]
    pub fn new(nodes: u16, keys: u64, seed: u64) -> Self {
        Self {
            nodes,
            pace: Pace::USUAL,
            half_slow: false,
            keys,
            stored: keys,
            store: Store::PEGASUS,
            replicas: 1,
            finding: Finding::PEGASUS,
            arm: Arm::Hashing,
            selection: Selection::default(),
            hot_keys_max: None,
            caches: Caches::SWITCHKV,
            once: false,
            seed,
        }
    }

    /// Requests per second that this node serves.
    pub(crate) fn rate_of(&self, node: u16) -> u32 {
        let rate = self.pace.node_rate();
        if self.half_slow && node % 2 == 1 { rate / 2 } else { rate }
    }

    /// How long an answer is waited for. Clients that ask once wait until others would ask again.
    pub(crate) fn deadline(&self) -> Duration {
        if self.once { self.pace.retry_min() } else { self.pace.deadline() }
    }

    pub(super) fn clients(&self) -> u16 {
        self.nodes.div_ceil(NODES_PER_CLIENT)
    }
}

/// The cache nodes of a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// How many there are; at most [`wire::CACHES_MAX`].
    pub count: u16,
    /// What each serves, in requests of a node.
    pub rate_times: u32,
    /// Keys that each holds at most.
    pub items: u32,
    /// Rules of the switch that each may change in a second.
    pub rules_per_s: u32,
    /// How long a rule that is of no use may stay.
    pub remove_within: Duration,
    /// Whether it is told of the most popular keys before anybody asks for any.
    pub filled: bool,
    /// Which reads they are asked for.
    pub lookup: Lookup,
    /// How they learn of keys.
    pub learning: Learning,
}

/// Which reads a cache is asked for (SwitchKV section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Those that a rule of the switch leads to it, as in SwitchKV: mostly hits.
    ByRule,
    /// All. What it does not hold it sends on to the node.
    Through,
    /// All. What it does not hold the client then asks the node for: so much longer what the cache
    /// sends on is on its way here.
    Aside,
}

/// How a cache learns of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// Nodes report what they are asked for most, regularly and at once.
    Reports,
    /// The former alone.
    Periodic,
    /// The latter alone.
    Instant,
    /// Nodes report whatever they are asked for and the cache takes all of it, as caches do
    /// traditionally (SwitchKV section 4.4).
    EveryRead,
}

impl Caches {
    /// That of SwitchKV's evaluation: one, as fast as a hundred nodes, in which the 10,000 most
    /// popular keys are from the beginning, and a switch that takes 12,000 changes a second.
    pub const SWITCHKV: Self = Self {
        count: 1,
        rate_times: 100,
        items: 10_000,
        rules_per_s: 12_000,
        remove_within: Duration::from_secs(2),
        filled: true,
        lookup: Lookup::ByRule,
        learning: Learning::Reports,
    };
}
