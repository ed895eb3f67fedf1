//! The cluster map and its invariants.

use crate::cache::check_caches;
use crate::{
    Assignment, CacheId, CacheSpec, CacheTables, ClusterId, Epoch, Fence, Keyspace, KeyspaceId,
    KeyspaceKind, Match, NodeId, PartitionId, StoreId, SwitchTables, cache_of, text,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wire::{Endpoint, Revision, Version};

/// Everything the controller decides, as of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// Grows with every change; members acknowledge it.
    pub revision: Revision,
    /// Whose map this is.
    pub cluster: ClusterId,
    /// Which switch forwards, by its position in the configuration; the others stand by.
    pub active_switch: u16,
    /// It does not forward yet, though nodes take requests from it alone: the one before it may
    /// still reach some of them.
    #[serde(default)]
    pub handing_over: bool,
    /// Nodes that no switch sends anything to, by id.
    #[serde(default)]
    pub fences: Vec<Fence>,
    /// Bytes that each shard may send to learners in a second; 0: copying is paused.
    pub copy_bytes_per_s: u64,
    /// Storage nodes, by id.
    pub nodes: Vec<NodeSpec>,
    /// Caches, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheSpec>,
    /// Keyspaces, by id.
    pub keyspaces: Vec<Keyspace>,
    /// Partitions, by keyspace and first match value.
    pub partitions: Vec<Partition>,
}

/// A storage node and where to reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Its id.
    pub id: NodeId,
    /// Address of its first shard.
    #[serde(with = "text::endpoint")]
    pub endpoint: Endpoint,
    /// How many shards (one core each) it has, on consecutive ports; at least 1.
    pub shards: u16,
}

impl NodeSpec {
    /// Where packets of this partition go: shard `partition mod shards` serves it alone.
    ///
    /// # Panics
    ///
    /// If the node has no shards or leaves the port range, which [`Map::check`] excludes.
    #[must_use]
    pub fn endpoint_of(&self, partition: PartitionId) -> Endpoint {
        let shard = partition.0 % u32::from(self.shards);
        let shard = u16::try_from(shard).expect("below a 16-bit divisor");
        self.endpoint.with_port_offset(shard).expect("checked with the map")
    }

    /// Whether datagrams from `source` come from this node.
    #[must_use]
    pub fn owns(&self, source: Endpoint) -> bool {
        owns(self.endpoint, self.shards, source)
    }
}

/// Whether `source` is one of so many consecutive ports from `first` on.
pub(crate) fn owns(first: Endpoint, shards: u16, source: Endpoint) -> bool {
    let port = source.port.checked_sub(first.port);
    source.addr == first.addr && port.is_some_and(|offset| offset < shards)
}

/// A sub-range of a keyspace's match values: the unit of ownership and of chains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Its id, which survives every change of chain.
    pub id: PartitionId,
    /// Whose match values.
    pub keyspace: KeyspaceId,
    /// First match value.
    pub first: Match,
    /// Last match value, inclusive.
    pub last: Match,
    /// Grows with every change of chain, bounds or openness.
    pub epoch: Epoch,
    /// The nodes that a write passes: head first, then the others down to the tail, and behind it
    /// the learner, if there is one.
    pub chain: Vec<NodeId>,
    /// For each node of the chain, the revision of the map that took it in. A node that holds data
    /// of the partition from an earlier generation must forget it. Of no use to a switch.
    #[serde(default)]
    pub since: Vec<Revision>,
    /// Whether the last of the chain is a learner: it records and commits every write, but does not
    /// hold yet what was written before it came. The tail, before it, copies that to it.
    #[serde(default)]
    pub has_learner: bool,
    /// Whether clients are served. While it is closed, the chain only commits what is pending.
    #[serde(default)]
    pub open: bool,
    /// The last epoch in which it was open. Of no use to a switch, like all that follows.
    #[serde(default)]
    pub opened: Epoch,
    /// Nodes of the chain that have begun another incarnation since then. What they hold is
    /// compared with what the others hold before it opens again.
    #[serde(default)]
    pub returned: Vec<Returned>,
    /// Whether members send writes on before they are on their disks while it is open, and unite
    /// what is pending while it is closed: all of them can.
    #[serde(default)]
    pub sends_early: bool,
    /// The learner was a member, and holds every version up to this one: it is copied the rest.
    #[serde(default)]
    pub resumes: Option<Version>,
    /// Nodes that have left the chain for a while, and keep what they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<Away>,
    /// What it was made of, until all of its nodes certainly hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Making>,
    /// Whether it begins where load or size had its predecessor cut. Where a keyspace was cut when
    /// it was created, or by an operator, nothing is merged by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grown: bool,
}

/// How a partition came about by a split or a merge of others: what its nodes hold of it is what
/// they held of those, as far as it lies in its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Making {
    /// The revision of the map that made it. Who came into the chain later is copied to.
    pub revision: Revision,
    /// What it was made of.
    pub origins: Vec<Origin>,
}

/// A partition that others were made of. It is in the map no more, and its id never comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its id.
    pub partition: PartitionId,
    /// Its members, and for each the revision of the map that had taken it in.
    pub members: Vec<(NodeId, Revision)>,
}

/// A node that has left a chain in order, to be back soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    /// Which.
    pub node: NodeId,
    /// The revision of the map that had taken it in: what it holds is of that.
    pub since: Revision,
    /// The revision of the map that let it go. It is not waited for without end.
    pub left: Revision,
}

/// A node that has begun another incarnation in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Which.
    pub node: NodeId,
    /// Whether its store remembers the incarnation that it was known by. If not, it is an older
    /// copy, and nothing that it holds is believed without another member that holds the same.
    pub remembers: bool,
    /// Whether it had left the chain in order. It then lacks what was written since, and that is
    /// nobody's fault.
    #[serde(default, skip_serializing_if = "is_false")]
    pub left: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Partition {
    /// The node that orders writes.
    #[must_use]
    pub fn head(&self) -> Option<NodeId> {
        self.chain.first().copied()
    }

    /// The node that answers.
    #[must_use]
    pub fn tail(&self) -> Option<NodeId> {
        self.members().last().copied()
    }

    /// The nodes that hold everything: the chain without the learner.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        let count = self.chain.len().saturating_sub(usize::from(self.has_learner));
        self.chain.get(..count).unwrap_or_default()
    }

    /// The node that is being taken in.
    #[must_use]
    pub fn learner(&self) -> Option<NodeId> {
        self.chain.last().copied().filter(|_| self.has_learner)
    }

    /// When this node came to the chain: the revision of the map.
    #[must_use]
    pub fn since(&self, node: NodeId) -> Option<Revision> {
        let replica_records = self.chain.iter().zip(&self.since);
        replica_records.into_iter().find(|(id, _)| **id == node).map(|(_, since)| *since)
    }

    /// What this node, if it was in the chain when the partition was made, held before: which
    /// partitions, and since which revision of the map.
    pub fn origins(&self, node: NodeId) -> impl Iterator<Item = (PartitionId, Revision)> {
        let since = self.since(node);
        let made = self.made.iter().filter(move |it| since == Some(it.revision));
        made.flat_map(|it| &it.origins).filter_map(move |origin| {
            let mut members = origin.members.iter();
            let (_, since) = members.find(|(member, _)| *member == node)?;
            Some((origin.partition, *since))
        })
    }

    /// Whether this node has been the same incarnation since the chain was last compared.
    #[must_use]
    pub fn has_stayed(&self, node: NodeId) -> bool {
        !self.returned.iter().any(|it| it.node == node)
    }

    /// The same for a node that has left the chain for a while.
    #[must_use]
    pub fn kept_since(&self, node: NodeId) -> Option<Revision> {
        self.away.iter().find(|it| it.node == node).map(|it| it.since)
    }

    /// Whether this node holds something of it, or is to.
    #[must_use]
    pub fn concerns(&self, node: NodeId) -> bool {
        self.chain.contains(&node) || self.kept_since(node).is_some()
    }

    /// Whether `at` is one of its match values.
    #[must_use]
    pub fn holds(&self, at: Match) -> bool {
        self.first <= at && at <= self.last
    }
}

/// Why a map must not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapError(String);

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MapError {}

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(MapError(format!($($why)+)));
        }
    };
}

impl Map {
    /// Checks every invariant: ids unique and within limits, each keyspace covered by its
    /// partitions without gap or overlap, each chain of distinct known nodes.
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold, in words.
    pub fn check(&self) -> Result<(), MapError> {
        self.check_nodes()?;
        check_caches(&self.nodes, &self.caches).map_err(MapError)?;
        self.check_fences()?;
        self.check_keyspaces()?;
        self.check_partitions()
    }

    fn check_nodes(&self) -> Result<(), MapError> {
        let mut seen = BTreeSet::new();
        for node in &self.nodes {
            let NodeSpec { id, endpoint, shards } = *node;
            ensure!(
                usize::from(id.0) < wire::NODES_MAX,
                "node {id}: ids end below {}",
                wire::NODES_MAX
            );
            ensure!(seen.insert(id), "node {id} is there twice");
            ensure!(endpoint.is_set(), "node {id} has no port");
            let last = shards.checked_sub(1).and_then(|n| endpoint.with_port_offset(n));
            ensure!(
                last.is_some(),
                "node {id}: {shards} shards from {endpoint} do not fit the ports"
            );
        }
        Ok(())
    }

    fn check_fences(&self) -> Result<(), MapError> {
        let nodes: BTreeSet<NodeId> = self.nodes.iter().map(|n| n.id).collect();
        let mut seen = BTreeSet::new();
        for Fence { node, since, left, .. } in &self.fences {
            ensure!(seen.insert(node), "node {node} is fenced twice");
            ensure!(nodes.contains(node), "node {node} is fenced, and unknown");
            ensure!(
                since <= left && *left <= self.revision,
                "node {node} is fenced in a revision that is still to come"
            );
        }
        Ok(())
    }

    fn check_keyspaces(&self) -> Result<(), MapError> {
        ensure!(
            self.keyspaces.len() <= wire::KEYSPACES_MAX,
            "over {} keyspaces",
            wire::KEYSPACES_MAX
        );
        let mut ids = BTreeSet::new();
        let mut names = BTreeSet::new();
        for keyspace in &self.keyspaces {
            let Keyspace { id, name, kind, .. } = keyspace;
            ensure!(ids.insert(id), "keyspace id {id} is there twice");
            ensure!(names.insert(name), "keyspace {name:?} is there twice");
            let named = (1..=wire::NAME_MAX).contains(&name.len());
            ensure!(named, "keyspace name {name:?} is not 1 to {} bytes long", wire::NAME_MAX);
            if let KeyspaceKind::Range { prefix } = kind {
                ensure!(prefix.len() <= wire::PREFIX_MAX, "prefix over {} bytes", wire::PREFIX_MAX);
            }
            if let Some(content) = &keyspace.content {
                content.check_keyspace(keyspace).map_err(MapError)?;
            }
        }
        Ok(())
    }

    fn check_partitions(&self) -> Result<(), MapError> {
        let most = wire::PARTITIONS_MAX;
        ensure!(self.partitions.len() <= most, "over {most} partitions");
        let nodes: BTreeSet<NodeId> = self.nodes.iter().map(|n| n.id).collect();
        let mut ids = BTreeSet::new();
        let mut spaces: BTreeMap<KeyspaceId, Vec<&Partition>> = BTreeMap::new();
        for partition in &self.partitions {
            let Partition { id, chain, since, .. } = partition;
            ensure!(id.0 != 0 && ids.insert(*id), "partition id {id} is 0 or there twice");
            let length = (1..=wire::CHAIN_MAX).contains(&chain.len());
            ensure!(length, "partition {id} has a chain of {}", chain.len());
            ensure!(
                since.len() == chain.len() && !partition.members().is_empty(),
                "partition {id} has a chain of learners, or replica records that do not match it"
            );
            let returned = &partition.returned;
            ensure!(
                returned.iter().all(|it| chain.contains(&it.node))
                    && partition.opened <= partition.epoch,
                "partition {id} tells of nodes that are not in its chain, or of epochs to come"
            );
            let away = partition.away.iter().map(|it| &it.node);
            let distinct: BTreeSet<&NodeId> = chain.iter().chain(away.clone()).collect();
            ensure!(
                distinct.len() == chain.len() + partition.away.len(),
                "partition {id} has a node twice in its chain, or both there and away"
            );
            ensure!(
                chain.iter().chain(away).all(|n| nodes.contains(n)),
                "partition {id} names an unknown node"
            );
            spaces.entry(partition.keyspace).or_default().push(partition);
        }
        let origins = self.partitions.iter().filter_map(|it| it.made.as_ref());
        for origin in origins.flat_map(|it| &it.origins) {
            let id = origin.partition;
            ensure!(!ids.contains(&id), "partition {id} was made into others, and is still there");
        }
        for keyspace in &self.keyspaces {
            let mut parts = spaces.remove(&keyspace.id).unwrap_or_default();
            parts.sort_by_key(|p| p.first);
            check_cover(&keyspace.name, &parts)?;
            if let Some(content) = &keyspace.content {
                parts.iter().try_for_each(|it| content.check_partition(it)).map_err(MapError)?;
            }
        }
        ensure!(spaces.is_empty(), "a partition names an unknown keyspace");
        Ok(())
    }

    /// The keyspace of this name.
    #[must_use]
    pub fn keyspace(&self, name: &str) -> Option<&Keyspace> {
        self.keyspaces.iter().find(|k| k.name == name)
    }

    /// The fence of a node, if it has one.
    #[must_use]
    pub fn fence(&self, node: NodeId) -> Option<&Fence> {
        self.fences.iter().find(|fence| fence.node == node)
    }

    /// Fences a node from this revision on, unless it has a fence already; gives that.
    ///
    /// # Panics
    ///
    /// Never: what it gives was put there before.
    pub fn fence_off(&mut self, node: NodeId, since: Revision) -> &mut Fence {
        let place = self.fences.partition_point(|fence| fence.node < node);
        if self.fences.get(place).is_none_or(|fence| fence.node != node) {
            self.fences.insert(place, Fence::new(node, since));
        }
        self.fences.get_mut(place).expect("it was put there")
    }

    /// The partition that holds `at`.
    #[must_use]
    pub fn partition_of(&self, keyspace: KeyspaceId, at: Match) -> Option<&Partition> {
        self.partitions.iter().find(|p| p.keyspace == keyspace && p.holds(at))
    }

    /// What the switch at this position of the configuration needs to know.
    #[must_use]
    pub fn switch_tables(&self, switch: u16) -> SwitchTables {
        SwitchTables {
            revision: self.revision,
            cluster: self.cluster,
            active: switch == self.active_switch && !self.handing_over,
            nodes: self.nodes.clone(),
            caches: self.caches.clone(),
            fenced: self.fences.iter().map(|fence| fence.node).collect(),
            partitions: self.partitions.clone(),
        }
    }

    /// What one node needs to know, if it still has this memory; `switch` is the active one.
    #[must_use]
    pub fn assignment(&self, node: NodeId, store: StoreId, switch: Endpoint) -> Assignment {
        let mine = self.partitions.iter().filter(|p| p.concerns(node));
        Assignment {
            revision: self.revision,
            cluster: self.cluster,
            node,
            store,
            incarnation: None,
            aged: Revision::NONE,
            switch,
            copy_bytes_per_s: self.copy_bytes_per_s,
            nodes: self.nodes.clone(),
            caches: self.caches.clone(),
            keyspaces: self.keyspaces.clone(),
            partitions: mine.cloned().collect(),
        }
    }

    /// What one cache needs to know, where these are all switches by their positions.
    ///
    /// # Panics
    ///
    /// If the active one is not among them.
    #[must_use]
    pub fn cache_tables(&self, cache: CacheId, switches: &[Endpoint]) -> CacheTables {
        let active = usize::from(self.active_switch);
        let others = switches.iter().enumerate().filter(|(index, _)| *index != active);
        CacheTables {
            revision: self.revision,
            cluster: self.cluster,
            cache,
            switch: *switches.get(active).expect("the active switch is one of them"),
            standbys: others.map(|(_, it)| *it).collect(),
            nodes: self.nodes.clone(),
            keyspaces: self.keyspaces.clone(),
        }
    }

    /// The cache that a node tells of its hottest keys.
    #[must_use]
    pub fn cache_of(&self, node: NodeId) -> Option<&CacheSpec> {
        cache_of(&self.caches, node)
    }
}

fn check_cover(name: &str, parts: &[&Partition]) -> Result<(), MapError> {
    let mut next = Some(Match::MIN);
    for part in parts {
        ensure!(next == Some(part.first), "keyspace {name:?}: gap or overlap at {}", part.first);
        ensure!(part.first <= part.last, "keyspace {name:?}: partition {} is empty", part.id);
        next = part.last.0.checked_add(1).map(Match);
    }
    ensure!(next.is_none() && !parts.is_empty(), "keyspace {name:?} is not covered to its end");
    Ok(())
}
