//! What the pipeline has done so far: the `keyway_switch_*` metrics of the layout.

use crate::Tables;
use crate::hot::HotTable;
use cluster::{
    Capabilities, ClusterId, HotCount, KeyspaceId, PartitionCount, PartitionId, SwitchCounters,
};
use std::cmp::Ordering;
use wire::{DropReason, Generation, Op, Revision};

/// Counters since the pipeline was made. Those of a partition live as long as the partition is in
/// the tables, those of a hot key for a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    packets: ByCode,
    unparsed: u64,
    emitted: u64,
    dropped: ByCode,
    /// By partition id, as in the tables.
    partitions: Vec<PartitionLoad>,
    /// By keyspace and keyhash, as in the directory.
    hot: Vec<HotLoad>,
    /// PUTs sent under delegations with a grant that was new, and with one that was not.
    delegated: [u64; 2],
    /// Keys of MGETs that were hot and went home, and to a copy.
    hot_keys: [u64; 2],
    /// Replies of versions that were never given out.
    doubted: u64,
    crowded: u64,
    /// Reads sent to caches.
    cached: u64,
    /// What the switch can do whose counters they are.
    capabilities: Capabilities,
}

/// Reads and writes of one hot key in its present generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotLoad {
    /// Which generation.
    pub generation: Generation,
    /// Which key, and how often it was asked for.
    pub count: HotCount,
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
            hot: Vec::new(),
            delegated: [0; 2],
            hot_keys: [0; 2],
            doubted: 0,
            crowded: 0,
            cached: 0,
            capabilities: Capabilities::default(),
        }
    }
}

impl Counters {
    /// What another kind of switch has counted: packets by operation, drops by reason, datagrams
    /// that the parser refused, datagrams sent, the load of every partition by partition id, and
    /// that of every hot key by keyspace and keyhash.
    #[must_use]
    pub fn from_totals(
        packets: [u64; 256],
        dropped: [u64; 256],
        unparsed: u64,
        emitted: u64,
        partitions: Vec<PartitionLoad>,
        hot: Vec<HotLoad>,
    ) -> Self {
        Self { packets, unparsed, emitted, dropped, partitions, hot, ..Self::default() }
    }

    /// The same of a switch that can let writes of hot keys go anywhere: PUTs that it has sent
    /// under delegations with a grant that was new, and with one that the request had been given
    /// before, replies of versions that were never given out there, and PUTs that a grant had no
    /// room for.
    #[must_use]
    pub fn with_delegated(self, delegated: [u64; 2], doubted: u64, crowded: u64) -> Self {
        Self { delegated, doubted, crowded, capabilities: Capabilities::PROGRAM, ..self }
    }

    /// The same of a switch that has sent so many hot keys of MGETs home, and to copies.
    #[must_use]
    pub fn with_hot_keys(self, hot_keys: [u64; 2]) -> Self {
        Self { hot_keys, ..self }
    }

    /// The same of a switch that has sent so many reads to caches.
    #[must_use]
    pub fn with_cached(self, cached: u64) -> Self {
        Self { cached, ..self }
    }

    /// These are of a switch that does everything itself.
    pub(crate) fn say_it_can_all(&mut self) {
        self.capabilities = Capabilities::PROGRAM;
    }

    /// PUTs sent under delegations with a grant that was new, and with one that the request had
    /// been given before.
    #[must_use]
    pub fn delegated(&self) -> [u64; 2] {
        self.delegated
    }

    /// Replies about delegated keys of versions that were never given out there.
    #[must_use]
    pub fn doubted(&self) -> u64 {
        self.doubted
    }

    /// PUTs of delegated keys that a grant had no room for.
    #[must_use]
    pub fn crowded(&self) -> u64 {
        self.crowded
    }

    /// Reads sent to caches.
    #[must_use]
    pub fn cached(&self) -> u64 {
        self.cached
    }

    /// Counts a read that is sent to a cache.
    pub(crate) fn count_cached(&mut self) {
        self.cached += 1;
    }

    /// Keys of MGETs that were hot and went home, and to a copy.
    #[must_use]
    pub fn hot_keys(&self) -> [u64; 2] {
        self.hot_keys
    }

    /// Counts a key of an MGET that is hot, and whether it goes to a copy.
    pub(crate) fn count_hot_key(&mut self, spread: bool) {
        let [home, copy] = &mut self.hot_keys;
        *if spread { copy } else { home } += 1;
    }

    /// Counts a PUT that is sent under a delegation, and whether its grant is new.
    pub(crate) fn count_delegated(&mut self, is_new: bool) {
        let [new, again] = &mut self.delegated;
        *if is_new { new } else { again } += 1;
    }

    /// Counts a PUT that there is no room to remember a grant for.
    pub(crate) fn count_crowded(&mut self) {
        self.crowded += 1;
    }

    /// Counts what the directory does not believe of a reply.
    pub(crate) fn count_doubted(&mut self, count: u64) {
        self.doubted += count;
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

    /// Load of every hot key, by keyspace and keyhash.
    #[must_use]
    pub fn hot(&self) -> &[HotLoad] {
        &self.hot
    }

    /// Adds what another pipeline of the same switch counted. A partition that only one of them
    /// has in its tables is kept; so is a hot key, in the newest generation that one of them knows.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.packets, &other.packets), (&mut self.dropped, &other.dropped)]
        {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.unparsed += other.unparsed;
        self.emitted += other.emitted;
        self.doubted += other.doubted;
        self.crowded += other.crowded;
        self.cached += other.cached;
        self.capabilities = self.capabilities.or(other.capabilities);
        for (mine, theirs) in
            [(&mut self.delegated, other.delegated), (&mut self.hot_keys, other.hot_keys)]
        {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
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
        for load in &other.hot {
            match self.hot.binary_search_by_key(&load.name(), HotLoad::name) {
                Ok(place) => self.hot.get_mut(place).expect("just found").merge(load),
                Err(place) => self.hot.insert(place, *load),
            }
        }
    }

    /// Adds what a device that forwards beside the switch has counted of partitions; of those that
    /// are not in the tables nobody asks.
    pub fn add_beside(&mut self, counts: &[PartitionCount]) {
        for count in counts {
            let place = self.partitions.binary_search_by_key(&count.partition, |l| l.partition);
            if let Some(mine) = place.ok().and_then(|place| self.partitions.get_mut(place)) {
                mine.reads += count.reads;
                mine.writes += count.writes;
            }
        }
    }

    /// The counters as the controller reads them, with the cluster that the switch follows and the
    /// revisions of the tables and of the order of hot keys that are installed.
    #[must_use]
    pub fn report(
        &self,
        cluster: Option<ClusterId>,
        revision: Revision,
        hot_revision: Revision,
    ) -> SwitchCounters {
        let partitions = self.partitions.iter().map(|load| PartitionCount {
            partition: load.partition,
            reads: load.reads,
            writes: load.writes,
        });
        SwitchCounters {
            revision,
            cluster,
            packets: self.datagrams(),
            emitted: self.emitted,
            dropped: self.dropped.iter().sum(),
            partitions: partitions.collect(),
            hot_revision,
            hot: self.hot.iter().map(|load| load.count).collect(),
            capabilities: self.capabilities,
            // Whoever runs the switch says so.
            content: None,
            leaving: false,
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

    /// Counts so many keys of an MGET that are dropped.
    pub(crate) fn count_drops(&mut self, reason: DropReason, keys: u32) {
        (0..keys).for_each(|_| self.count_drop(reason));
    }

    pub(crate) fn count_read(&mut self, place: usize) {
        self.count_reads(place, 1);
    }

    pub(crate) fn count_reads(&mut self, place: usize, keys: u32) {
        self.partition_mut(place).reads += u64::from(keys);
    }

    pub(crate) fn count_write(&mut self, place: usize) {
        self.partition_mut(place).writes += 1;
    }

    fn partition_mut(&mut self, place: usize) -> &mut PartitionLoad {
        self.partitions.get_mut(place).expect("one row for each partition of the tables")
    }

    /// Counts a read of a hot key, and whether it goes to a copy.
    pub(crate) fn count_hot_read(&mut self, place: u32, spread: bool) {
        let count = self.hot_mut(place);
        count.reads += 1;
        count.spread += u64::from(spread);
    }

    pub(crate) fn count_hot_write(&mut self, place: u32) {
        self.hot_mut(place).writes += 1;
    }

    fn hot_mut(&mut self, place: u32) -> &mut HotCount {
        let load = usize::try_from(place).ok().and_then(|place| self.hot.get_mut(place));
        &mut load.expect("one row for each key of the directory").count
    }

    /// Makes room for the keys of a new order, keeping the counts of those that stay.
    pub(crate) fn follow_hot(&mut self, table: &HotTable) {
        let before = std::mem::take(&mut self.hot);
        let kept = |keyspace, keyhash, generation| {
            let place = before.binary_search_by_key(&(keyspace, keyhash), HotLoad::name).ok()?;
            before.get(place).filter(|load| load.generation == generation).copied()
        };
        let row = |(keyspace, keyhash, generation): (KeyspaceId, u64, Generation)| {
            let count = HotCount { keyspace, keyhash, reads: 0, spread: 0, writes: 0 };
            kept(keyspace, keyhash, generation).unwrap_or(HotLoad { generation, count })
        };
        self.hot = table.names().map(row).collect();
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

impl HotLoad {
    fn name(&self) -> (KeyspaceId, u64) {
        (self.count.keyspace, self.count.keyhash)
    }

    /// Adds what another pipeline counted of the same key.
    fn merge(&mut self, other: &Self) {
        match self.generation.cmp(&other.generation) {
            Ordering::Less => *self = *other,
            Ordering::Equal => {
                self.count.reads += other.count.reads;
                self.count.spread += other.count.spread;
                self.count.writes += other.count.writes;
            }
            Ordering::Greater => {}
        }
    }
}

fn count(counters: &ByCode, code: u8) -> u64 {
    counters.get(usize::from(code)).copied().expect("256 counters")
}

fn bump(counters: &mut ByCode, code: u8) {
    *counters.get_mut(usize::from(code)).expect("256 counters") += 1;
}
