//! The tables of the switch as the values of the kernel's maps.

use crate::layout::{Bucket, Node, Row, Source, Space};
use cluster::{
    InstallError, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables,
};
use std::collections::BTreeMap;

/// One element of a keyspace's table: a [`Space`], sixteen [`Bucket`]s or a [`Row`].
pub(crate) type Element = [u8; Row::LEN];

/// What all maps have to hold.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) spaces: BTreeMap<KeyspaceId, Vec<Element>>,
    /// By node id, those that packets may be sent to; the ways are still to be found.
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// Node ids in the order of the node table.
    pub(crate) order: Vec<NodeId>,
    /// Every port of every node.
    pub(crate) senders: BTreeMap<[u8; Source::LEN], NodeId>,
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
        let nodes = from.reachable().map(|node| (node.id, unresolved(node))).collect();
        Ok(Self { spaces, nodes, order, senders: senders(&from.nodes)? })
    }

    /// Takes over the ways that are known to nodes that are where they were.
    pub(crate) fn keep_ways(&mut self, before: &Self) {
        for (id, node) in &mut self.nodes {
            if let Some(known) = before.nodes.get(id).filter(|known| known.addr == node.addr) {
                *node = Node { port: node.port, shards: node.shards, ..*known };
            }
        }
    }

    /// The bits of the ports from which nodes send: word and bits.
    pub(crate) fn sender_ports(&self) -> [u64; PORT_WORDS] {
        let mut words = [0; PORT_WORDS];
        for source in self.senders.keys() {
            let port = Source::from_bytes(source).map_or(0, |source| source.port);
            if let Some(word) = words.get_mut(usize::from(port >> 6)) {
                *word |= 1 << (port & 63);
            }
        }
        words
    }
}

/// Words of 64 ports.
pub(crate) const PORT_WORDS: usize = 1024;
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

/// A node to which no way is known yet.
fn unresolved(node: &NodeSpec) -> Node {
    let NodeSpec { endpoint, shards, .. } = *node;
    let (addr, port) = (endpoint.addr, endpoint.port);
    Node { addr, ifindex: 0, dmac: [0; 6], smac: [0; 6], port, shards }
}

fn senders(nodes: &[NodeSpec]) -> Result<BTreeMap<[u8; Source::LEN], NodeId>, InstallError> {
    let mut senders = BTreeMap::new();
    for node in nodes {
        for shard in 0..node.shards {
            let port = node.endpoint.with_port_offset(shard).expect("the tables are sound").port;
            senders.insert(Source { addr: node.endpoint.addr, port }.to_bytes(), node.id);
            if senders.len() > SENDERS_MAX {
                return Err(InstallError::TableFull("sender"));
            }
        }
    }
    Ok(senders)
}
