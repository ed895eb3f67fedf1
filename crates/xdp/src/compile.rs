//! The tables of the switch as the values of the kernel's maps.

use crate::layout::{Bucket, Node, Row, Sender, Source, Space};
use cluster::{
    CacheId, CacheSpec, InstallError, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId,
    SwitchTables,
};
use std::collections::BTreeMap;
use wire::Endpoint;

/// One element of a keyspace's table: a [`Space`], sixteen [`Bucket`]s or a [`Row`].
pub(crate) type Element = [u8; Row::LEN];

/// What all maps have to hold.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) spaces: BTreeMap<KeyspaceId, Vec<Element>>,
    /// By node id, those that packets may be sent to; the ways are still to be found.
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// By cache id, in the same way.
    pub(crate) caches: BTreeMap<CacheId, Node>,
    /// Node ids in the order of the node table.
    pub(crate) order: Vec<NodeId>,
    /// Every port of every node and cache.
    pub(crate) senders: BTreeMap<[u8; Source::LEN], Sender>,
}

impl Compiled {
    /// Compiles sound tables: [`switch::Tables::compile`] has looked at them. `counter` says where
    /// the counts of a partition are.
    pub(crate) fn new(
        from: &SwitchTables,
        counter: impl Fn(PartitionId) -> u16,
    ) -> Result<Self, InstallError> {
        let specs: BTreeMap<NodeId, &NodeSpec> = from.reachable().map(|n| (n.id, n)).collect();
        let mut rows: BTreeMap<KeyspaceId, Vec<Row>> = BTreeMap::new();
        for partition in &from.partitions {
            let row = row(partition, &specs, counter(partition.id));
            rows.entry(partition.keyspace).or_default().push(row);
        }
        let spaces = rows.into_iter().map(|(id, rows)| (id, space(rows))).collect();
        let order = from.reachable().map(|node| node.id).collect();
        let unresolved_node = |node: &NodeSpec| unresolved(node.endpoint, node.shards);
        let nodes = from.reachable().map(|node| (node.id, unresolved_node(node))).collect();
        // Of others no rule is followed, as in user space.
        let caches = from.caches.iter().filter(|it| usize::from(it.id.0) < wire::CACHES_MAX);
        let caches = caches.map(|it| (it.id, unresolved(it.endpoint, it.shards))).collect();
        let senders = senders(&from.nodes, &from.caches)?;
        Ok(Self { spaces, nodes, caches, order, senders })
    }

    /// Takes over the ways that are known to nodes and caches that are where they were.
    pub(crate) fn keep_ways(&mut self, before: &Self) {
        keep_ways(&mut self.nodes, &before.nodes);
        keep_ways(&mut self.caches, &before.caches);
    }

    /// The bits of the ports from which nodes and caches send: word and bits.
    pub(crate) fn sender_ports(&self) -> [u64; PORT_WORDS] {
        port_bits(self.senders.keys())
    }
}

/// A bit for each port that one of these has: word and bits.
pub(crate) fn port_bits<'a>(
    sources: impl Iterator<Item = &'a [u8; Source::LEN]>,
) -> [u64; PORT_WORDS] {
    let mut words = [0; PORT_WORDS];
    for source in sources {
        let port = Source::from_bytes(source).map_or(0, |source| source.port);
        if let Some(word) = words.get_mut(usize::from(port >> 6)) {
            *word |= 1 << (port & 63);
        }
    }
    words
}

/// Words of 64 ports.
const PORT_WORDS: usize = 1024;
/// What the kernel's map of senders has room for.
const SENDERS_MAX: usize = 65_536;
/// [`Bucket`]s in an element.
const BUCKETS_PER_ELEMENT: usize = Row::LEN / Bucket::LEN;

fn row(partition: &Partition, specs: &BTreeMap<NodeId, &NodeSpec>, counter: u16) -> Row {
    let (chain, chain_len) = wire::chain_bytes(partition.chain.iter().map(|id| id.0));
    let port = |node: Option<NodeId>| {
        let spec = node.and_then(|id| specs.get(&id));
        spec.map_or(0, |spec| spec.endpoint_of(partition.id).port)
    };
    let (first, last) = (halves(partition.first), halves(partition.last));
    Row {
        first_hi: first.0,
        first_lo: first.1,
        last_hi: last.0,
        last_lo: last.1,
        chain,
        partition: partition.id.0,
        epoch: partition.epoch.0,
        head_port: port(partition.head()),
        tail_port: port(partition.tail()),
        counter,
        chain_len,
        tail: u8::try_from(partition.members().len().saturating_sub(1)).expect("chains are short"),
    }
}

/// A match value as two words.
#[expect(clippy::cast_possible_truncation, reason = "the two halves of the value")]
fn halves(at: Match) -> (u64, u64) {
    ((at.0 >> 64) as u64, at.0 as u64)
}

/// The table of one keyspace: how to search, then buckets, then rows.
fn space(mut rows: Vec<Row>) -> Vec<Element> {
    rows.sort_by_key(|row| (row.first_hi, row.first_lo));
    let first_hi = rows.first().map_or(0, |row| row.first_hi);
    let width = rows.last().map_or(0, |row| row.first_hi) - first_hi;
    // About one bucket to a row; the last one also stands for all that lies behind.
    let wanted = rows.len().next_power_of_two();
    let bits = u64::BITS - width.leading_zeros();
    let shift = bits.saturating_sub(wanted.trailing_zeros());
    let buckets = usize::try_from(width >> shift).expect("at most as many") + 1;
    let rows_at = 1 + buckets.div_ceil(BUCKETS_PER_ELEMENT);
    let half = |number: usize| u16::try_from(number).expect("PARTITIONS_MAX rows at most");
    let word = |number: usize| u32::try_from(number).expect("PARTITIONS_MAX rows at most");

    let mut elements = vec![[0; Row::LEN]; rows_at];
    let head = Space { first_hi, shift, buckets: word(buckets), rows_at: word(rows_at) };
    elements.splice(..1, [head.to_bytes()]);
    for index in 0..buckets {
        let start = first_hi + ((index as u64) << shift);
        let end = start.saturating_add((1_u64 << shift) - 1);
        let last = index + 1 == buckets;
        let row = rows.partition_point(|row| (row.first_hi, row.first_lo) <= (start, 0));
        let row = row.saturating_sub(1);
        let after = rows.partition_point(|row| last || row.first_hi <= end);
        let bucket = Bucket { row: half(row), more: half(after - row - 1) };
        let (element, place) = (index / BUCKETS_PER_ELEMENT, index % BUCKETS_PER_ELEMENT);
        let element = elements.get_mut(1 + element).expect("room was made for the buckets");
        crate::bytes::put(element, place * Bucket::LEN, &bucket.to_bytes());
    }
    elements.extend(rows.iter().map(Row::to_bytes));
    elements
}

fn keep_ways<N: Ord>(nodes: &mut BTreeMap<N, Node>, before: &BTreeMap<N, Node>) {
    for (id, node) in nodes {
        if let Some(known) = before.get(id).filter(|known| known.addr == node.addr) {
            *node = Node { port: node.port, shards: node.shards, ..*known };
        }
    }
}

/// A node or cache to which no way is known yet.
fn unresolved(endpoint: Endpoint, shards: u16) -> Node {
    let (addr, port) = (endpoint.addr, endpoint.port);
    Node { addr, ifindex: 0, dmac: [0; 6], smac: [0; 6], port, shards }
}

fn senders(
    nodes: &[NodeSpec],
    caches: &[CacheSpec],
) -> Result<BTreeMap<[u8; Source::LEN], Sender>, InstallError> {
    let nodes = nodes.iter().map(|it| (it.endpoint, it.shards, it.id.0, 0));
    let caches = caches.iter().map(|it| (it.endpoint, it.shards, it.id.0, 1));
    let mut senders = BTreeMap::new();
    for (endpoint, shards, id, is_cache) in nodes.chain(caches) {
        for shard in 0..shards {
            let port = endpoint.with_port_offset(shard).expect("the tables are sound").port;
            let source = Source { addr: endpoint.addr, port };
            senders.insert(source.to_bytes(), Sender { id, is_cache });
            if senders.len() > SENDERS_MAX {
                return Err(InstallError::TableFull("sender"));
            }
        }
    }
    Ok(senders)
}
