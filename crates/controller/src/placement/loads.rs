//! What partitions are asked for, as the active switch counts it, and nodes where it does not.

use super::node_counts::NodeCounts;
use super::rate::Rate;
use cluster::{
    Epoch, HotOrder, Incarnation, KeyspaceId, Map, NodeCount, NodeId, Partition, PartitionCount,
    PartitionId, SwitchCounters,
};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// A sample is taken over this much time at least.
const PERIOD: Duration = Duration::from_millis(500);

/// The rate of a steady load is the mean of so many samples.
const SAMPLES: usize = 4;

/// That of a load that goes up and down is the mean of so many.
const HISTORY: usize = 16;

/// Requests per second by which samples of a load differ that does not change.
const CHANCE: u64 = 100;

/// Samples that say nothing of a partition after it has changed: it was closed, and what clients
/// sent again comes all at once.
const UNSETTLED: u8 = 2;

/// A switch counts a part within so long, or nobody asks for it.
const EXPECTED_FOR: Duration = Duration::from_secs(10);

/// What was counted, and the rates that follow from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    /// Which switch in which incarnation counts.
    by: Option<(u16, Incarnation)>,
    at: Option<Instant>,
    partitions: BTreeMap<PartitionId, Counted>,
    /// What parts of others are expected to be asked for, and since when, until it is counted.
    expected: BTreeMap<PartitionId, (Instant, Rate)>,
    hot: BTreeMap<(KeyspaceId, u64), Rate>,
    /// What nodes count where no switch does.
    by_nodes: NodeCounts,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    epoch: Epoch,
    counted: Rate,
    /// The last ones, per second; the oldest is overwritten.
    samples: [Rate; HISTORY],
    /// How many there were, and how many of them since it changed.
    taken: usize,
    fresh: usize,
    /// When its load last became another.
    changed: Option<Instant>,
    /// Samples that are still to be left out.
    unsettled: u8,
}

impl Counted {
    fn new(epoch: Epoch, counted: Rate) -> Self {
        let (samples, unsettled) = ([Rate::default(); HISTORY], UNSETTLED);
        Self { epoch, counted, samples, taken: 0, fresh: 0, changed: None, unsettled }
    }

    /// The partition was changed, or somebody else counts. What it was asked for before still says
    /// what it is asked for in the long run.
    fn begin_again(&mut self) {
        (self.fresh, self.unsettled) = (0, UNSETTLED);
    }

    /// Takes a sample of the time since an instant.
    fn take(&mut self, since: Instant, sample: Rate) {
        if self.unsettled > 0 {
            self.unsettled -= 1;
            return;
        }
        if let Some(place) = self.samples.get_mut(self.taken % HISTORY) {
            *place = sample;
        }
        self.taken += 1;
        self.fresh += 1;
        if self.since_it_changed() == Some(1) {
            self.changed = Some(since);
        }
    }

    fn is_settled(&self) -> bool {
        self.fresh >= SAMPLES
    }

    /// The last samples, the newest first.
    fn newest(&self) -> impl Iterator<Item = Rate> + Clone {
        let (before, after) = self.samples.split_at(self.taken % HISTORY);
        let newest = before.iter().rev().chain(after.iter().rev());
        newest.take(self.taken).copied()
    }

    fn rate(&self) -> Option<Rate> {
        if self.taken < SAMPLES {
            return None;
        }
        // A load that has changed once is what it is now. One that goes up and down would look like
        // another with every sample, whatever its period, and is what it is in the long run.
        let steady = self.swings(HISTORY) < 2 && self.swings(SAMPLES) == 0;
        Some(Rate::mean(self.newest().take(if steady { SAMPLES } else { HISTORY })))
    }

    /// Whether it changed so lately that its rate is of the time before as well.
    fn has_just_changed(&self) -> bool {
        self.since_it_changed().is_some() && self.swings(HISTORY) < 2
    }

    /// If the load has changed within the last few samples, how many there were since.
    fn since_it_changed(&self) -> Option<usize> {
        let mut samples = self.newest().map(Rate::all);
        let newest = samples.next()?;
        let count = 1 + samples.take_while(|it| are_alike(newest, *it)).count();
        (count < SAMPLES.min(self.taken)).then_some(count)
    }

    /// How often the load went from well under its mean to well above it, or back, within the last
    /// so many samples.
    fn swings(&self, samples: usize) -> usize {
        let mean = Rate::mean(self.newest()).all();
        let sides = self.newest().take(samples).map(Rate::all).filter_map(|it| {
            let (above, under) = (it > mean + mean / 2, it < mean - mean / 2);
            (above || under).then_some(above)
        });
        sides.clone().zip(sides.skip(1)).filter(|(one, next)| one != next).count()
    }
}

/// Whether two samples differ by no more than chance, or what clients of a full node send again,
/// would have it.
fn are_alike(one: u64, other: u64) -> bool {
    let (less, more) = (one.min(other), one.max(other));
    more - less < CHANCE || more <= less * 2
}

impl Loads {
    /// Takes what a switch has counted; says whether that made a sample.
    pub(super) fn note(
        &mut self,
        now: Instant,
        by: (u16, Incarnation),
        counters: &SwitchCounters,
        (map, hot): (&Map, &HotOrder),
    ) -> bool {
        if self.by != Some(by) {
            // Another one counts from where nobody knows.
            *self = Self {
                by: Some(by),
                partitions: std::mem::take(&mut self.partitions),
                expected: std::mem::take(&mut self.expected),
                by_nodes: std::mem::take(&mut self.by_nodes),
                ..Self::default()
            };
            self.begin(now, counters, map);
            return false;
        }
        let time = self.at.map_or(PERIOD, |at| now.since(at));
        if time < PERIOD {
            return false;
        }
        let from = self.at.replace(now).unwrap_or(now);
        let away = self.away(counters, (map, hot));
        let places: BTreeMap<PartitionId, &Partition> =
            map.partitions.iter().map(|it| (it.id, it)).collect();
        self.partitions.retain(|id, _| places.contains_key(id));
        self.by_nodes.keep(|id| places.contains_key(&id));
        let counted = &self.partitions;
        let is_counted = |id: &PartitionId| counted.get(id).is_some_and(|it| it.rate().is_some());
        self.expected.retain(|id, (at, _)| !is_counted(id) && now < *at + EXPECTED_FOR);
        for count in &counters.partitions {
            let Some(partition) = places.get(&count.partition) else { continue };
            let counted = self.counted(counters, count);
            let Some(known) = self.partitions.get_mut(&count.partition) else {
                let fresh = Counted::new(partition.epoch, counted);
                self.partitions.insert(count.partition, fresh);
                continue;
            };
            let seen = counted.since(known.counted);
            known.counted = counted;
            if known.epoch != partition.epoch {
                known.epoch = partition.epoch;
                known.begin_again();
            } else {
                let away = away.get(&count.partition).copied().unwrap_or_default();
                known.take(from, seen.since(away).per_second(time));
            }
        }
        true
    }

    fn begin(&mut self, now: Instant, counters: &SwitchCounters, map: &Map) {
        self.at = Some(now);
        for count in &counters.partitions {
            let Some(partition) = map.partitions.iter().find(|it| it.id == count.partition) else {
                continue;
            };
            let counted = self.counted(counters, count);
            let fresh = Counted::new(partition.epoch, counted);
            let known = self.partitions.entry(count.partition).or_insert(fresh);
            (known.epoch, known.counted) = (partition.epoch, counted);
            known.begin_again();
        }
    }

    /// A node has counted this.
    pub(super) fn hear_node(&mut self, node: NodeId, counts: &[NodeCount]) {
        self.by_nodes.hear(node, counts);
    }

    /// What a switch and nodes together have counted.
    fn counted(&self, switch: &SwitchCounters, by_switch: &PartitionCount) -> Rate {
        let PartitionCount { partition, reads, writes } = *by_switch;
        let by_switch = Rate { reads, writes, ..Rate::default() };
        let by_nodes = self.by_nodes.of(partition);
        by_switch.plus(if switch.counts_by_address() {
            by_nodes.uncounted_by_switches()
        } else {
            by_nodes
        })
    }

    /// Of each partition what has gone elsewhere since the last sample.
    fn away(
        &mut self,
        counters: &SwitchCounters,
        (map, hot): (&Map, &HotOrder),
    ) -> BTreeMap<PartitionId, Rate> {
        let before = std::mem::take(&mut self.hot);
        let mut away: BTreeMap<PartitionId, Rate> = BTreeMap::new();
        for count in &counters.hot {
            let name = (count.keyspace, count.keyhash);
            let Some(entry) = hot.keys.iter().find(|it| (it.keyspace, it.keyhash) == name) else {
                continue;
            };
            let writes = if entry.delegation.is_some() { count.writes } else { 0 };
            let now = Rate { reads: count.spread, writes, ..Rate::default() };
            self.hot.insert(name, now);
            // A key that has just come in was counted from nothing.
            let known = before.get(&name).copied().unwrap_or_default();
            let holds =
                |it: &&Partition| it.keyspace == entry.keyspace && it.holds(entry.match_value);
            let Some(partition) = map.partitions.iter().find(holds) else { continue };
            let sum = away.entry(partition.id).or_default();
            *sum = sum.plus(now.since(known));
        }
        away
    }

    /// The rate of a partition, from before it changed if it just has; of one that was made of
    /// others what is expected.
    pub(super) fn of(&self, partition: PartitionId) -> Rate {
        let counted = self.partitions.get(&partition).and_then(Counted::rate);
        counted.or_else(|| self.expected.get(&partition).map(|it| it.1)).unwrap_or_default()
    }

    /// A partition was made of others, and is expected to be asked for this. That tells what its
    /// nodes have to do; of the partition itself only what is counted says anything.
    pub(super) fn expect(&mut self, now: Instant, partition: PartitionId, rate: Rate) {
        self.expected.insert(partition, (now, rate));
    }

    /// Whether there are parts of which it is yet to be counted what they are asked for.
    pub(super) fn awaits_parts(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Whether all partitions were counted since they changed.
    pub(super) fn all_settled(&self, map: &Map) -> bool {
        map.partitions.iter().all(|it| self.is_settled(it.id))
    }

    /// When the load of a partition last became another, as far as that is remembered.
    pub(super) fn changed(&self, partition: PartitionId) -> Option<Instant> {
        self.partitions.get(&partition)?.changed
    }

    /// Whether it is known what a partition is asked for now: of a load that has just become
    /// another it is not.
    pub(super) fn is_known(&self, partition: PartitionId) -> bool {
        let counted = self.partitions.get(&partition);
        counted.is_some_and(|it| !it.has_just_changed())
    }

    /// Whether that was counted since it changed.
    pub(super) fn is_settled(&self, partition: PartitionId) -> bool {
        self.partitions.get(&partition).is_some_and(Counted::is_settled)
    }

    pub(super) fn rates(&self) -> impl Iterator<Item = (PartitionId, Rate)> {
        self.partitions.iter().filter_map(|(id, it)| Some((*id, it.rate()?)))
    }
}
