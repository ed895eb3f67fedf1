//! What the operator says about the cluster, and how that meets what was saved.

use crate::saved::{FORMAT, Saved};
use cluster::{
    CacheSpec, ClusterId, ContentRouting, KeyName, Map, MapError, NodeId, NodeSpec, Selection,
    Standby, Term,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use wire::Endpoint;

/// Most switches: a service address is served by one rack's, so one or two, and a dozen when
/// several user-space switches share it; 64 leaves room and keeps a round of orders short.
pub const SWITCHES_MAX: usize = 64;

/// How long a lease lasts, unless configured otherwise. The longer, the longer members serve
/// without a controller, and the longer what no fence can sever is waited for: a node and the
/// active switch that are lost at once.
pub const LEASE: Duration = Duration::from_secs(10);

/// How often each member is asked how it is, unless configured otherwise.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes that each shard may send to learners in a second, unless configured otherwise: about half
/// of what a gigabit link carries, so that clients keep the other half.
pub const COPY_BYTES_PER_S: u64 = 64 << 20;

/// Requests per second under which a node is never too busy, so that nothing moves because of it: a
/// hundredth of what a core serves.
pub const LOAD_FLOOR: u64 = 1_000;

/// Bytes of keys and values from which on a partition is split, unless configured otherwise: a copy
/// of it takes two seconds.
pub const SPLIT_BYTES: u64 = 128 << 20;

/// A lease lasts at least that many poll intervals, so that a lost answer does not end it.
const LEASE_POLLS_MIN: u32 = 2;

/// The cluster as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerConfig {
    /// Seed of all hashes over keys. Must stay the same as long as the cluster lives.
    pub seed: u64,
    /// Identity of a cluster that has no saved state yet, drawn at random; else it is not used.
    pub cluster: ClusterId,
    /// Service endpoint of each switch; at least one. One of them is active, the others stand by.
    pub switches: Vec<Endpoint>,
    /// Storage nodes, in any order. Those that are known but not named here stay: they may
    /// have been added by command, and only a command takes them out.
    pub nodes: Vec<NodeSpec>,
    /// Caches, in any order: these and no others.
    pub caches: Vec<CacheSpec>,
    /// Where orders reach nodes. Only kept, for a driver that comes back and has to reach a node
    /// that its configuration does not name.
    pub controls: BTreeMap<NodeId, SocketAddr>,
    /// How often each member is asked how it is; more than zero.
    pub poll_interval: Duration,
    /// How long a member may serve after a report without hearing from the controller again; at
    /// least two poll intervals.
    pub lease: Duration,
    /// How long a controller before this one may go on giving leases after this one has begun; zero
    /// if its store is certainly nobody else's by then.
    pub overlap: Duration,
    /// Bytes that each shard may send to learners in a second; more than zero.
    pub copy_bytes_per_s: u64,
    /// How switches choose among the nodes that hold copies of a hot key.
    pub hot_selection: Selection,
    /// Where the content addresses of keys are, if they have any.
    pub content: Option<ContentRouting>,
    /// Requests per second under which a node is never too busy.
    pub load_floor: u64,
    /// From so many bytes of keys and values on a partition is split.
    pub split_bytes: u64,
}

/// Why a controller does not start. Each says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No switch, or more than [`SWITCHES_MAX`].
    Switches(usize),
    /// The poll interval is zero.
    PollInterval,
    /// The lease is shorter than two poll intervals.
    Lease,
    /// The rate of copying is zero.
    CopyRate,
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
            Self::PollInterval => f.write_str("the poll interval is zero: 100 ms is usual"),
            Self::Lease => write!(
                f,
                "the lease is shorter than {LEASE_POLLS_MIN} poll intervals, so that one lost \
                 answer would end it: five times as long is usual"
            ),
            Self::CopyRate => f.write_str(
                "the rate of copying is zero, so that no copy would end: give one, and pause \
                 copies by command",
            ),
            Self::SharedEndpoint(at) => write!(
                f,
                "two members share {at}: a node or a cache needs one port per shard, none of them \
                 another's, nor those of a node that was configured once and has not been removed \
                 by command"
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
        // Twice the same id would otherwise count as one that is changed.
        let (nodes, caches) = (self.nodes.clone(), self.caches.clone());
        let named = Map { nodes, caches, ..Map::default() };
        named.check().map_err(ConfigError::Unsound)?;
        let changed = self.apply(&mut state, now)?;
        if changed || fresh {
            state.advance(now);
        }
        state.term = state.term.next(now.unix_ms());
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
        if self.lease < self.poll_interval.saturating_mul(LEASE_POLLS_MIN) {
            return Err(ConfigError::Lease);
        }
        if self.copy_bytes_per_s == 0 {
            return Err(ConfigError::CopyRate);
        }
        Ok(())
    }

    fn blank(&self) -> Saved {
        Saved {
            format: FORMAT,
            term: Term::default(),
            seed: self.seed,
            switches: Vec::new(),
            controls: BTreeMap::new(),
            map: Map { cluster: self.cluster, ..Map::default() },
            stores: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            switch_incarnations: BTreeMap::new(),
            aged: BTreeMap::new(),
            issued: VecDeque::new(),
            standbys: BTreeMap::new(),
            direct: Some(BTreeSet::new()),
            departing: BTreeSet::new(),
            paused: false,
            placement_paused: false,
            pins: BTreeSet::new(),
            lease_ms: 0,
            next_keyspace: 1,
            passes: 0,
            classes: BTreeMap::new(),
            next_partition: 1,
        }
    }

    /// The lease in the unit that members are told.
    pub(crate) fn lease_ms(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX)
    }

    /// Brings the state in line with the configuration; says whether that changed anything.
    fn apply(&self, state: &mut Saved, now: Instant) -> Result<bool, ConfigError> {
        if state.seed != self.seed {
            return Err(ConfigError::Seed { configured: self.seed, saved: state.seed });
        }
        let before = state.clone();
        for node in &self.nodes {
            let partitions = state.partitions_of(node.id);
            match state.map.nodes.iter_mut().find(|known| known.id == node.id) {
                Some(known) if partitions > 0 && known.shards != node.shards => {
                    return Err(ConfigError::Shards { node: node.id, saved: known.shards });
                }
                Some(known) => *known = *node,
                None => state.map.nodes.push(*node),
            }
        }
        state.map.nodes.sort_by_key(|n| n.id);
        state.map.caches.clone_from(&self.caches);
        state.map.caches.sort_by_key(|it| it.id);
        let keyspaces = state.map.keyspaces.iter_mut().filter(|it| !it.is_ordered());
        keyspaces.for_each(|it| it.content = self.content);
        let known = |id: &NodeId| state.map.nodes.iter().any(|n| n.id == *id);
        let controls = self.controls.iter().filter(|(id, _)| known(id));
        state.controls.extend(controls.map(|(id, at)| (*id, *at)));
        let configured = self.switches.iter().map(|at| (*at).into()).collect();
        take_switches(state, configured, now);
        state.map.copy_bytes_per_s = if state.paused { 0 } else { self.copy_bytes_per_s };
        // A shorter one takes effect on the record once the longer ones are over.
        state.lease_ms = state.lease_ms.max(self.lease_ms());
        check_endpoints(&state.map, &self.switches).map_err(ConfigError::SharedEndpoint)?;
        Ok(*state != before)
    }
}

/// The switches as they are configured now. The active one stays the one it was; if it is gone, the
/// first takes over from it.
fn take_switches(state: &mut Saved, configured: Vec<SocketAddr>, now: Instant) {
    let revision = state.next_revision(now);
    let before = state.active_endpoint();
    let place = (0..).zip(&configured).find(|(_, at)| Some(**at) == before);
    state.map.active_switch = place.map_or(0, |(index, _)| index);
    state.switches = configured;
    state.switch_incarnations.retain(|at, _| state.switches.contains(at));
    if let Some(gone) = before.filter(|at| state.active_endpoint() != Some(*at)) {
        state.succeed(gone, revision);
    }
    let active = state.active_endpoint();
    for at in state.switches.iter().filter(|at| Some(**at) != active) {
        let unnamed = Standby { since: revision, unnamed: Some(revision) };
        state.standbys.entry(*at).or_insert(unnamed);
    }
}

/// Whether no two members receive each other's packets; the endpoint that they share otherwise.
pub(crate) fn check_endpoints(map: &Map, switches: &[Endpoint]) -> Result<(), Endpoint> {
    let caches = map.caches.iter().map(|it| it.endpoint);
    for (index, node) in map.nodes.iter().enumerate() {
        // Two intervals of ports overlap if and only if one holds the other's first.
        let others = map.nodes.iter().enumerate().filter(|(other, _)| *other != index);
        let firsts = others.map(|(_, other)| other.endpoint);
        let mut foreign = firsts.chain(switches.iter().copied()).chain(caches.clone());
        if let Some(shared) = foreign.find(|at| node.owns(*at)) {
            return Err(shared);
        }
    }
    for cache in &map.caches {
        let nodes = map.nodes.iter().map(|it| it.endpoint);
        let mut foreign = nodes.chain(switches.iter().copied());
        if let Some(shared) = foreign.find(|at| cache.owns(*at)) {
            return Err(shared);
        }
    }
    Ok(())
}

/// A store may hand back anything; a map that contradicts itself must not reach a switch.
fn check_saved(saved: &Saved) -> Result<(), ConfigError> {
    if saved.format != FORMAT {
        return Err(ConfigError::Format(saved.format));
    }
    saved.map.check().map_err(ConfigError::Unsound)?;
    let Saved { map, stores, departing, pins, .. } = saved;
    let known = |id: &NodeId| map.nodes.iter().any(|n| n.id == *id);
    let mut chained = map.partitions.iter().flat_map(|p| &p.chain);
    let active = usize::from(map.active_switch);
    let rules = [
        (saved.next_partition > 0 && saved.next_keyspace > 0, "ids are given out from 1"),
        (
            map.partitions.iter().all(|p| p.id.0 < saved.next_partition),
            "a partition has an id that was not given out",
        ),
        (
            map.keyspaces.iter().all(|k| k.id.0 < saved.next_keyspace),
            "a keyspace has an id that was not given out",
        ),
        (
            map.partitions.iter().flat_map(|p| &p.since).all(|since| *since <= map.revision),
            "a node was taken into a chain in a revision that is still to come",
        ),
        (stores.keys().all(known), "it knows the memory of a node that does not exist"),
        (departing.iter().all(known), "a node is departing that does not exist"),
        (
            chained.all(|id| stores.contains_key(id)),
            "it does not know the memory of a node with partitions",
        ),
        (
            pins.iter()
                .all(|KeyName { keyspace, .. }| map.keyspaces.iter().any(|k| k.id == *keyspace)),
            "a key is pinned in a keyspace that does not exist",
        ),
        (active < saved.switches.len().max(1), "the active switch is none of the switches"),
        (
            saved
                .standbys
                .values()
                .all(|it| it.since.max(it.unnamed.unwrap_or_default()) <= map.revision),
            "a switch was told to stand by in a revision that is still to come",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Err(ConfigError::Damaged(what)),
        None => Ok(()),
    }
}
