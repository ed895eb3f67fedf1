//! The match-action tables, compiled from what the controller sent: validated once, then read by
//! every thread without a lock.

use cluster::{
    CacheShard, CacheSpec, ClusterId, Epoch, InstallError, KeyspaceId, Match, NodeId, NodeSpec,
    Partition, PartitionId, RangeTable, SwitchTables,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Endpoint, Revision};

/// Everything a packet is matched against. Immutable: a new revision is a new value.
#[derive(Clone, Debug)]
pub struct Tables {
    revision: Revision,
    cluster: ClusterId,
    active: bool,
    /// The node table in the controller's order, which DESCRIBE counts through, without the fenced.
    nodes: Vec<NodeSpec>,
    /// Place of each node in that, by node id.
    node_places: Vec<Option<u16>>,
    senders: Senders,
    /// By id.
    caches: Vec<CacheSpec>,
    /// One range table per keyspace, by keyspace id.
    keyspaces: Vec<(KeyspaceId, RangeTable<Action>)>,
    /// Every partition by id: the place in here is the place of its counters.
    partitions: Vec<(PartitionId, KeyspaceId)>,
    /// First match value of each of these.
    firsts: Vec<Match>,
}

/// Action data of one partition: what to stamp and where to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    pub(crate) partition: PartitionId,
    pub(crate) epoch: Epoch,
    /// The chain as the header holds it.
    pub(crate) chain: [u8; 2 * wire::CHAIN_MAX],
    pub(crate) chain_len: u8,
    /// Where writes enter; nowhere if the node table lacks the head, or it is fenced.
    pub(crate) head: Option<Endpoint>,
    /// Where reads go; nowhere if the node table lacks the tail, or it is fenced.
    pub(crate) tail: Option<Exit>,
    /// Place of the partition's counters.
    pub(crate) counter: usize,
}

/// One shard of one node, as the end of a read's way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) node: NodeId,
    pub(crate) to: Endpoint,
    /// Equal for equal endpoints and for no others: node id and shard in one word, so that an
    /// MGET is grouped by comparing words, not addresses.
    pub(crate) key: u32,
}

impl Tables {
    /// Checks and compiles what the controller sent. Gaps in a keyspace and chains that name
    /// unknown nodes are allowed: the packets they would serve are dropped and counted.
    ///
    /// # Errors
    ///
    /// If a table is too large, or ids, endpoints, chains or intervals contradict each other.
    pub fn compile(from: &SwitchTables) -> Result<Self, InstallError> {
        if from.partitions.len() > wire::PARTITIONS_MAX {
            return Err(InstallError::TableFull("partition"));
        }
        let senders = Senders::compile(&from.nodes)?;
        let partitions = check_partitions(&from.partitions)?;
        let nodes: Vec<NodeSpec> = from.reachable().copied().collect();
        let specs: BTreeMap<NodeId, &NodeSpec> = nodes.iter().map(|n| (n.id, n)).collect();
        let mut spaces: BTreeMap<KeyspaceId, Vec<(Match, Match, Action)>> = BTreeMap::new();
        let mut firsts = vec![Match::MIN; partitions.len()];
        for partition in &from.partitions {
            let counter = partitions
                .binary_search_by_key(&partition.id, |(id, _)| *id)
                .expect("the list was made of these partitions");
            let action = Action::compile(partition, &specs, counter);
            let row = (partition.first, partition.last, action);
            *firsts.get_mut(counter).expect("a place in the list") = partition.first;
            spaces.entry(partition.keyspace).or_default().push(row);
        }
        if spaces.len() > wire::KEYSPACES_MAX {
            return Err(InstallError::TableFull("keyspace"));
        }
        let mut keyspaces = Vec::with_capacity(spaces.len());
        for (id, mut rows) in spaces {
            check_intervals(id, &mut rows)?;
            keyspaces.push((id, RangeTable::new(rows)));
        }
        let mut node_places = vec![None; wire::NODES_MAX];
        for (place, node) in (0u16..).zip(&nodes) {
            let own = node_places.get_mut(usize::from(node.id.0));
            *own.expect("ids were checked with the senders") = Some(place);
        }
        let SwitchTables { revision, cluster, active, .. } = *from;
        Ok(Self {
            revision,
            cluster,
            active,
            nodes,
            node_places,
            senders,
            caches: from.caches.clone(),
            keyspaces,
            partitions,
            firsts,
        })
    }

    /// Whose map these were made from.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// Revision of the map that these were made from.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether the switch that has these is to forward requests; otherwise it stands by.
    #[must_use]
    pub fn active(&self) -> bool {
        self.active
    }

    /// The nodes that packets may be sent to.
    #[must_use]
    pub fn nodes(&self) -> &[NodeSpec] {
        &self.nodes
    }

    /// The node of this id, if packets may be sent to it.
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> Option<&NodeSpec> {
        let place = self.node_places.get(usize::from(id.0)).copied().flatten()?;
        self.nodes.get(usize::from(place))
    }

    /// Every partition with its keyspace, by partition id.
    #[must_use]
    pub fn partitions(&self) -> &[(PartitionId, KeyspaceId)] {
        &self.partitions
    }

    /// The node that sends from this endpoint. O(log n) in nodes, whatever shards they have.
    #[inline]
    #[must_use]
    pub fn sender(&self, from: Endpoint) -> Option<NodeId> {
        self.senders.find(from)
    }

    /// The cache that sends from this endpoint.
    #[inline]
    pub(crate) fn cache_at(&self, from: Endpoint) -> Option<&CacheSpec> {
        self.caches.iter().find(|cache| cache.owns(from))
    }

    /// Where a shard of a cache takes reads.
    #[inline]
    pub(crate) fn cache(&self, of: CacheShard) -> Option<Endpoint> {
        self.caches.iter().find(|cache| cache.id == of.cache)?.endpoint_of(of.shard)
    }

    /// The partition table of one keyspace.
    #[inline]
    pub(crate) fn keyspace(&self, id: KeyspaceId) -> Option<&RangeTable<Action>> {
        let place = self.keyspaces.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.keyspaces.get(place).map(|(_, table)| table)
    }

    /// The partition of this id, if the keyspace has it.
    pub(crate) fn partition(&self, keyspace: KeyspaceId, id: PartitionId) -> Option<&Action> {
        let place = self.partitions.binary_search(&(id, keyspace)).ok()?;
        self.keyspace(keyspace)?.find(*self.firsts.get(place)?)
    }
}

impl Action {
    fn compile(partition: &Partition, nodes: &BTreeMap<NodeId, &NodeSpec>, counter: usize) -> Self {
        let id = partition.id;
        let (chain, chain_len) = wire::chain_bytes(partition.chain.iter().map(|node| node.0));
        let spec = |node: NodeId| nodes.get(&node).copied();
        Self {
            partition: id,
            epoch: partition.epoch,
            chain,
            chain_len,
            head: partition.head().and_then(spec).map(|node| node.endpoint_of(id)),
            tail: partition.tail().and_then(spec).map(|node| Exit::compile(node, id)),
            counter,
        }
    }
}

impl Action {
    /// The nodes of the chain, head first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        chain_nodes(self.chain, self.chain_len)
    }
}

/// The nodes of a chain as the header holds it.
pub(crate) fn chain_nodes(
    chain: [u8; 2 * wire::CHAIN_MAX],
    len: u8,
) -> impl Iterator<Item = NodeId> + Clone {
    let ids = (0..len.into()).filter_map(move |place| chain.as_chunks::<2>().0.get(place).copied());
    ids.map(|id| NodeId(u16::from_be_bytes(id)))
}

impl Exit {
    /// The way to this node's shard for a partition.
    pub(crate) fn compile(node: &NodeSpec, partition: PartitionId) -> Self {
        let to = node.endpoint_of(partition);
        let shard = to.port - node.endpoint.port;
        Self { node: node.id, to, key: u32::from(node.id.0) << 16 | u32::from(shard) }
    }
}

/// Who may send replies: the ports of each node as one interval, in order.
#[derive(Clone, Debug)]
struct Senders(Vec<Sender>);

#[derive(Clone, Copy, Debug)]
struct Sender {
    addr: u128,
    port_first: u16,
    port_last: u16,
    node: NodeId,
}

impl Senders {
    fn compile(nodes: &[NodeSpec]) -> Result<Self, InstallError> {
        if nodes.len() > wire::NODES_MAX {
            return Err(InstallError::TableFull("node"));
        }
        let mut seen = BTreeSet::new();
        let mut senders = Vec::with_capacity(nodes.len());
        for NodeSpec { id, endpoint, shards } in nodes {
            ensure(usize::from(id.0) < wire::NODES_MAX, || format!("node id {id} is too large"))?;
            ensure(seen.insert(*id), || format!("node {id} is there twice"))?;
            let last = shards.checked_sub(1).and_then(|more| endpoint.with_port_offset(more));
            let Some(last) = last.filter(|_| endpoint.is_set()) else {
                return Err(InstallError::Unsound(format!(
                    "node {id}: {shards} shards from {endpoint} do not fit the ports"
                )));
            };
            senders.push(Sender {
                addr: u128::from_be_bytes(endpoint.addr),
                port_first: endpoint.port,
                port_last: last.port,
                node: *id,
            });
        }
        senders.sort_by_key(|s| (s.addr, s.port_first));
        for pair in senders.windows(2) {
            let [a, b] = pair else { continue };
            let apart = a.addr != b.addr || a.port_last < b.port_first;
            ensure(apart, || format!("nodes {} and {} share an endpoint", a.node, b.node))?;
        }
        Ok(Self(senders))
    }

    #[inline]
    fn find(&self, from: Endpoint) -> Option<NodeId> {
        let addr = u128::from_be_bytes(from.addr);
        let after = self.0.partition_point(|s| (s.addr, s.port_first) <= (addr, from.port));
        let sender = self.0.get(after.checked_sub(1)?)?;
        (sender.addr == addr && from.port <= sender.port_last).then_some(sender.node)
    }
}

/// The list of partitions by id, once ids and chains are sound.
fn check_partitions(
    partitions: &[Partition],
) -> Result<Vec<(PartitionId, KeyspaceId)>, InstallError> {
    let mut list = Vec::with_capacity(partitions.len());
    for Partition { id, keyspace, chain, .. } in partitions {
        ensure(id.0 != 0, || "partition id 0 is reserved".to_owned())?;
        let length = (1..=wire::CHAIN_MAX).contains(&chain.len());
        ensure(length, || format!("partition {id} has a chain of {}", chain.len()))?;
        list.push((*id, *keyspace));
    }
    list.sort_unstable();
    for pair in list.windows(2) {
        let [(a, _), (b, _)] = pair else { continue };
        ensure(a != b, || format!("partition {a} is there twice"))?;
    }
    Ok(list)
}

/// Sorts the rows of one keyspace and makes sure that no match value is in two of them.
fn check_intervals(
    keyspace: KeyspaceId,
    rows: &mut [(Match, Match, Action)],
) -> Result<(), InstallError> {
    rows.sort_by_key(|(first, ..)| *first);
    for (first, last, action) in rows.iter() {
        ensure(first <= last, || format!("partition {} is empty", action.partition))?;
    }
    for pair in rows.windows(2) {
        let [(_, last, a), (first, _, b)] = pair else { continue };
        ensure(last < first, || {
            format!("keyspace {keyspace}: partitions {} and {} overlap", a.partition, b.partition)
        })?;
    }
    Ok(())
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), InstallError> {
    if holds { Ok(()) } else { Err(InstallError::Unsound(why())) }
}
