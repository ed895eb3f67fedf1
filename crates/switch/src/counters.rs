//! What the pipeline has done so far: the `keyway_switch_*` metrics of the layout, and the loads
//! that nodes report in their replies.

use crate::Tables;
use cluster::{KeyspaceId, NodeId, PartitionCount, PartitionId, SwitchCounters};
use wire::{DropReason, Op};

/// Counters since the pipeline was made. Those of a partition live as long as the partition is in
/// the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    packets: ByCode,
    unparsed: u64,
    emitted: u64,
    dropped: ByCode,
    /// By partition id, as in the tables.
    partitions: Vec<PartitionLoad>,
}

/// Reads and writes of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionLoad {
    /// Whose partition.
    pub keyspace: KeyspaceId,
    /// Which.
    pub partition: PartitionId,
    /// GETs, MGET keys and RANGE pieces that matched it.
    pub reads: u64,
    /// PUT, DEL, CAS and INCR packets that matched it.
    pub writes: u64,
}

/// One counter for each value that a code on the wire can have.
type ByCode = [u64; 256];

impl Default for Counters {
    fn default() -> Self {
        Self {
            packets: [0; 256],
            unparsed: 0,
            emitted: 0,
            dropped: [0; 256],
            partitions: Vec::new(),
        }
    }
}

impl Counters {
    /// What another kind of switch has counted: packets by operation, drops by reason, datagrams
    /// that the parser refused, datagrams sent, and the load of every partition by partition id.
    #[must_use]
    pub fn from_totals(
        packets: [u64; 256],
        dropped: [u64; 256],
        unparsed: u64,
        emitted: u64,
        partitions: Vec<PartitionLoad>,
    ) -> Self {
        Self { packets, unparsed, emitted, dropped, partitions }
    }

    /// Datagrams that passed the parser, by operation.
    pub fn packets(&self) -> impl Iterator<Item = (Op, u64)> {
        Op::ALL.into_iter().map(|op| (op, count(&self.packets, op as u8)))
    }

    /// All datagrams that came in, also those that the parser refused.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        self.packets.iter().sum::<u64>() + self.unparsed
    }

    /// Datagrams sent: one per request or reply, one per piece of a split.
    #[must_use]
    pub fn emitted(&self) -> u64 {
        self.emitted
    }

    /// Drops, by reason: whole datagrams, keys of an MGET, pieces of a RANGE.
    pub fn dropped(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.into_iter().map(|reason| (reason, count(&self.dropped, reason as u8)))
    }

    /// Load of every partition in the tables, by partition id.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionLoad] {
        &self.partitions
    }

    /// Adds what another pipeline of the same switch counted. A partition that only one of them
    /// has in its tables is kept.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.packets, &other.packets), (&mut self.dropped, &other.dropped)]
        {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.unparsed += other.unparsed;
        self.emitted += other.emitted;
        for load in &other.partitions {
            match self.partitions.binary_search_by_key(&load.partition, |l| l.partition) {
                Ok(place) => {
                    let mine = self.partitions.get_mut(place).expect("just found");
                    mine.reads += load.reads;
                    mine.writes += load.writes;
                }
                Err(place) => self.partitions.insert(place, *load),
            }
        }
    }

    /// The counters as the controller reads them.
    #[must_use]
    pub fn report(&self, revision: u64) -> SwitchCounters {
        let partitions = self.partitions.iter().map(|load| PartitionCount {
            partition: load.partition,
            reads: load.reads,
            writes: load.writes,
        });
        SwitchCounters {
            revision,
            packets: self.datagrams(),
            emitted: self.emitted,
            dropped: self.dropped.iter().sum(),
            partitions: partitions.collect(),
        }
    }

    pub(crate) fn count_packet(&mut self, op: Op) {
        bump(&mut self.packets, op as u8);
    }

    pub(crate) fn count_unparsed(&mut self) {
        self.unparsed += 1;
    }

    pub(crate) fn count_emitted(&mut self) {
        self.emitted += 1;
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        bump(&mut self.dropped, reason as u8);
    }

    pub(crate) fn count_read(&mut self, place: usize) {
        self.partition_mut(place).reads += 1;
    }

    pub(crate) fn count_write(&mut self, place: usize) {
        self.partition_mut(place).writes += 1;
    }

    fn partition_mut(&mut self, place: usize) -> &mut PartitionLoad {
        self.partitions.get_mut(place).expect("one row for each partition of the tables")
    }

    /// Makes room for the partitions of new tables, keeping the counts of those that stay.
    pub(crate) fn follow(&mut self, tables: &Tables) {
        let before = std::mem::take(&mut self.partitions);
        let kept = |partition| {
            let place = before.binary_search_by_key(&partition, |load| load.partition).ok()?;
            before.get(place)
        };
        let rows = tables.partitions().iter().map(|&(partition, keyspace)| PartitionLoad {
            keyspace,
            partition,
            reads: kept(partition).map_or(0, |load| load.reads),
            writes: kept(partition).map_or(0, |load| load.writes),
        });
        self.partitions = rows.collect();
    }
}

fn count(counters: &ByCode, code: u8) -> u64 {
    counters.get(usize::from(code)).copied().expect("256 counters")
}

fn bump(counters: &mut ByCode, code: u8) {
    *counters.get_mut(usize::from(code)).expect("256 counters") += 1;
}

/// The last load report of each node.
#[derive(Clone, Debug)]
pub struct Loads(Vec<Option<u16>>);

impl Default for Loads {
    fn default() -> Self {
        Self(vec![None; wire::NODES_MAX])
    }
}

impl Loads {
    /// Datagrams that this node found waiting when it made the last of its replies to pass here;
    /// `None` if none has passed.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Option<u16> {
        self.0.get(usize::from(node.0)).copied().flatten()
    }

    /// Every node that has reported, by id, with its last report.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, u16)> {
        let ids = (0u16..).map(NodeId);
        ids.zip(&self.0).filter_map(|(node, load)| Some((node, (*load)?)))
    }

    /// Takes a node's report.
    ///
    /// # Panics
    ///
    /// If the node's id is not below `NODES_MAX`, as those of compiled tables are.
    pub fn note(&mut self, node: NodeId, load: u16) {
        let place = self.0.get_mut(usize::from(node.0));
        *place.expect("node ids are below NODES_MAX, as compiled") = Some(load);
    }
}
