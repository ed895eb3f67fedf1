//! Which keys are worth copies, and how many; and which are worth trips.

use cluster::HotKey;

/// Copying the hottest `HOT_PER_NODE * n * log2(n)` keys is enough to even out the load of `n`
/// nodes whatever the rest of the keys is asked for (Pegasus section 3.1; Fan et al., SoCC 2011).
pub(crate) const HOT_PER_NODE: u64 = 8;

/// A key of so many reads per second is worth copies however many others there are, if it is not a
/// small part of what a node does ([`SMALL_PART`]).
pub(crate) const RATE_MIN: u64 = 50;

/// A key is a small part of what a node does if its reads are less than the mean of a node, over
/// this. A node of half the mean speed that is the home of a few keys of that size is full before
/// the others are, and keys that stay at home cannot be moved away from it.
const SMALL_PART: u64 = 24;

/// No key below so many reads per second is worth anything, however little the nodes do; of nodes
/// that say what they can serve, below that over [`IDLE_PART`].
const READS_MIN: u64 = 25;

/// And none below so many, however slow the nodes are: fewer requests in the segments of a second
/// that nodes count in say nothing of a rate.
const READS_KNOWN_MIN: u64 = 10;

/// A key is worth as many readers as it is read per write, over this: beta of Pegasus section 3.3,
/// as its inverse. With each write a copy costs its reader as much as a request, so all copies
/// together cost a fifth of what the key is read. At 95 % reads (19 for each write) each version is
/// on three nodes then, or four, which keeps the tail of the reads short.
pub(crate) const READS_PER_COPY: u64 = 5;

/// The same where fewer readers would have too much to do for the key alone ([`READER_SHARE`]):
/// then copies may cost up to a third of what it is read.
const READS_PER_COPY_NEEDED: u64 = 3;

/// A reader has too much to do for one key if its part of the reads is more than what a node does
/// on the mean, over this.
const READER_SHARE: u64 = 2;

/// Copies of a key are on no more nodes than a window has, unless each of those had more to do for
/// it than what a node does on the mean, over this. So a node that is to hold copies of several
/// such keys is not full before the others are, and there are at most half as many keys as nodes
/// that all nodes are to hold.
const WIDE_SHARE: u64 = 32;

/// See [`wire::HOT_WINDOW_MAX`].
const WINDOW: u64 = wire::HOT_WINDOW_MAX as u64;

/// A key goes on a trip when its home would have more to do for it than the mean of a node, over
/// this. At half of the mean a home that has two keys of nearly that has too much to do: without
/// reads at Zipf 0.9, 32 nodes served 0.78 of what they can, and from a quarter on 0.93. With
/// chains of three each node is in those of three times as many keys: real ones served 0.73 at Zipf
/// 0.99 from a quarter on, and 0.83 from an eighth on.
const TRIP_SHARE: u64 = 8;

/// No work below so much per second is worth a trip, however little the nodes do: nodes say nothing
/// sooner of what is asked less often.
const TRIP_WORK_MIN: u64 = 25;

/// One goes, too, when at home each of its readers would have more to do for it than the mean of a
/// node, over this: those are always the same, while on a trip each write chooses others. It is
/// the keys that stay, a few at the same home, that make a node fuller than the rest: at 95 % reads
/// and Zipf 0.9 the busiest of 32 slow nodes had 1.15 times the mean to do from a sixteenth on.
const TRIP_READER_SHARE: u64 = 48;

/// No reader has much to do for a key below so many reads per second, however idle the nodes are;
/// of nodes that say what they can serve, below that over [`IDLE_PART`].
const READER_RATE_MIN: u64 = 400;

/// What a node could do without noticing is its capacity over this.
const IDLE_PART: u64 = 48;

/// No key that is written less often per second goes on a trip: its writes are few enough to stay
/// at home, and to have every node hold a copy.
const TRIP_WRITES_MIN: u64 = 2;

/// The same for a key of which no switch has counted the writes, but nodes, in segments of a tenth
/// of a second: a single write in one is five or ten per second.
const TRIP_WRITES_TOLD_MIN: u64 = 25;

/// How much is asked of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    /// Reads per second.
    pub(crate) reads: u64,
    /// Writes per second.
    pub(crate) writes: u64,
}

impl From<&HotKey> for Rates {
    fn from(told: &HotKey) -> Self {
        Self { reads: told.reads, writes: told.writes }
    }
}

/// What copies of a key are made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Reads per second.
    pub(crate) reads: u64,
    /// Reads for each write.
    pub(crate) per_write: u64,
}

impl From<Rates> for Asked {
    fn from(Rates { reads, writes }: Rates) -> Self {
        Self { reads, per_write: reads.checked_div(writes).unwrap_or(u64::MAX) }
    }
}

/// What else is known of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// An operator wants it to be hot.
    pub(crate) pinned: bool,
    /// Its writes have been counted long enough by a switch.
    pub(crate) counted: bool,
}

/// What choosing goes by at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Nodes that may hold copies.
    nodes: u64,
    /// Requests per second that a node takes.
    mean: u64,
    /// From how many reads per second on a key is hot.
    threshold: u64,
    /// From how much work on a key is worth a trip.
    trip_from: u64,
    /// Below so many reads per second no reader has much to do for a key.
    reader_idle: u64,
}

impl Policy {
    /// For so many nodes that take `mean` requests per second each, of the `capacity` that they say
    /// they have.
    ///
    /// A key is hot from the rate on at which there can be no more hot keys than are needed. Where
    /// nodes do so little that this is next to nothing, it also has to be worth the trouble: by
    /// itself, from [`RATE_MIN`] on, or as a part of what a node does.
    pub(crate) fn new(nodes: usize, mean: u64, capacity: Option<u64>) -> Self {
        let nodes = u64::try_from(nodes).unwrap_or(u64::MAX);
        let share = mean / (HOT_PER_NODE * log2(nodes).max(1));
        let said = capacity.map_or(u64::MAX, |it| it / IDLE_PART);
        let reads_min = said.clamp(READS_KNOWN_MIN, READS_MIN);
        let least = (mean / SMALL_PART).clamp(reads_min, RATE_MIN);
        let trip_from = (mean / TRIP_SHARE).max(TRIP_WORK_MIN);
        let reader_idle = READER_RATE_MIN.min(said);
        Self { nodes, mean, threshold: share.max(least), trip_from, reader_idle }
    }

    /// How many readers of a key pay.
    fn pays(self, Asked { reads, per_write }: Asked) -> u64 {
        let needed = reads.saturating_mul(READER_SHARE) / self.mean.max(1);
        (per_write / READS_PER_COPY).max((per_write / READS_PER_COPY_NEEDED).min(needed))
    }

    /// What the nodes of a key's home, so many `replicas`, have to do for it together, in requests
    /// per second, if its writes stay there: each write, and the tail of each a copy for every
    /// reader that pays, which costs as much as a request; or the reads, if no copies pay. Never
    /// more than what clients ask of it comes to at its home.
    fn work(self, rates: Rates, replicas: u64) -> u64 {
        let others = match self.pays(rates.into()) {
            0 | 1 => rates.reads,
            pays => rates.writes.saturating_mul(pays.min(self.readers_max(rates.reads, 0))),
        };
        rates.writes.saturating_mul(replicas).saturating_add(others)
    }

    /// Whether a key is worth a trip.
    ///
    /// On one, its home has nothing to do for it. But a key that is only a small part of what a
    /// node does finds room at home as well as anywhere, and a trip is not for nothing: whatever is
    /// not a plain write, or not on a copy, has to wait for its end. So a key goes from an eighth
    /// of the mean load of a node on, by [`Self::work`]: if no copies pay and there is one replica,
    /// that is reads and writes together, with 10 reads per write, which pay two copies, a 24th of
    /// the mean in writes. With three replicas each node has a part in three times as many keys.
    /// There are then at most eight times as many such keys as nodes. So does one that
    /// [crowds](Self::crowds) its readers. One that an operator has pinned goes from [`RATE_MIN`]
    /// on at the latest, however much the nodes have to do: bursts are expected of it.
    pub(crate) fn is_worth_trip(self, rates: Rates, replicas: u8, known: Known) -> bool {
        let Known { pinned, counted } = known;
        let least = if counted { TRIP_WRITES_MIN } else { TRIP_WRITES_TOLD_MIN };
        let much =
            self.work(rates, replicas.into()) >= self.trip_from(pinned) || self.crowds(rates, 1);
        rates.writes >= least && much
    }

    /// Whether a key that goes on trips may go on doing so: half of what it took to begin.
    pub(crate) fn keeps_trip(self, rates: Rates, replicas: u8, known: Known) -> bool {
        let from = self.trip_from(known.pinned) / 2;
        self.work(rates, replicas.into()) >= from || self.crowds(rates, 2)
    }

    /// Whether each reader of a key has more to do for it than is good for who has only a few that
    /// stay the same, over this.
    fn crowds(self, rates: Rates, over: u64) -> bool {
        let pays = self.pays(rates.into()).max(1);
        let share = (self.mean / TRIP_READER_SHARE).max(self.reader_idle) / over;
        pays < self.window_max() && rates.reads / pays >= share
    }

    /// How many nodes are to hold each version of a key on a trip, of which so many do now (0: none
    /// yet): changed only if it is off by more than one, and by more than a quarter.
    pub(crate) fn holders(self, asked: Asked, now: u64) -> u64 {
        let pays = self.pays(asked).clamp(1, self.window_max().max(1));
        let near = now > 0 && pays.abs_diff(now) <= (now / 4).max(1);
        if near { now } else { pays }
    }

    /// From how many requests per second on, as by [`Self::work`].
    pub(crate) fn trip_from(self, pinned: bool) -> u64 {
        if pinned { self.trip_from.min(RATE_MIN) } else { self.trip_from }
    }

    pub(crate) fn threshold(self) -> u64 {
        self.threshold
    }

    /// How many keys are enough. None for one node, which has nobody to share with.
    pub(crate) fn keys_max(self) -> usize {
        let enough = HOT_PER_NODE.saturating_mul(self.nodes).saturating_mul(log2(self.nodes));
        usize::try_from(enough).unwrap_or(usize::MAX).min(wire::HOT_KEYS_MAX)
    }

    /// How many nodes may hold one version of a key on a trip.
    fn window_max(self) -> u64 {
        self.nodes.min(WINDOW)
    }

    /// How many nodes the copies of a key that has so many readers now may be on: no more than a
    /// window has, or all, if each of those would have too much to do for it; then until that is
    /// half as much.
    fn readers_max(self, reads: u64, now: u64) -> u64 {
        let much = (self.mean / WIDE_SHARE).max(self.reader_idle);
        let over = if now > WINDOW { much / 2 } else { much };
        if reads / WINDOW > over { self.nodes } else { self.window_max() }
    }

    /// Whether a key is to be taken in.
    pub(crate) fn is_hot(self, rates: Rates) -> bool {
        rates.reads >= self.threshold && self.pays(rates.into()) >= 2
    }

    /// Whether a key that is in has become too cold to stay: half of what it took to come in.
    pub(crate) fn is_cold(self, rates: Rates) -> bool {
        rates.reads < self.threshold / 2 || self.pays(rates.into()) < 1
    }

    /// How many nodes are to hold copies of a key that has so many readers now (0: it is new).
    ///
    /// A power of two or all, at least 2; changed only if it is off by much.
    pub(crate) fn readers(self, asked: Asked, now: u64) -> u64 {
        let most = self.readers_max(asked.reads, now);
        let pays = self.pays(asked);
        let fits = (now..now.saturating_mul(2)).contains(&pays) || pays >= now && now == most;
        let barely = pays < now && pays >= now - now / 4;
        if now >= 2 && now <= most && (fits || barely) {
            return now;
        }
        match pays {
            pays if pays >= most => most,
            pays => (1 << pays.max(2).ilog2()).min(most),
        }
    }
}

/// Rounded up.
fn log2(n: u64) -> u64 {
    u64::from(u64::BITS - n.saturating_sub(1).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COUNTED: Known = Known { pinned: false, counted: true };
    const PINNED: Known = Known { pinned: true, counted: true };

    fn rates(reads: u64, writes: u64) -> Rates {
        Rates { reads, writes }
    }

    fn asked(reads: u64, writes: u64) -> Asked {
        rates(reads, writes).into()
    }

    #[test]
    fn as_many_keys_as_are_needed_and_no_more() {
        let keys = [0, 1, 2, 3, 4, 16, 1_024].map(|nodes| Policy::new(nodes, 0, None).keys_max());
        assert_eq!(keys, [0, 0, 16, 48, 64, 512, 65_536]);
    }

    #[test]
    fn a_key_comes_in_by_its_share_of_a_nodes_load_and_stays_by_half_of_it() {
        let policy = Policy::new(4, 16_000, None);
        assert_eq!(policy.threshold(), 1_000);
        assert!(policy.is_hot(rates(1_000, 0)) && !policy.is_hot(rates(999, 0)));
        assert!(policy.is_cold(rates(499, 0)) && !policy.is_cold(rates(500, 0)));
        assert!(policy.is_hot(rates(4_000, 400)) && !policy.is_hot(rates(4_000, 401)));
        assert!(policy.is_cold(rates(4_000, 801)) && !policy.is_cold(rates(4_000, 800)));
    }

    #[test]
    fn where_nodes_do_little_a_key_comes_in_by_its_part_of_that() {
        for (mean, capacity, threshold) in [
            (0, None, 25),
            (0, Some(10_000), 25),
            (0, Some(1_199), 24),
            (0, Some(300), 10),
            (263, Some(300), 10),
            (264, Some(300), 11),
            (480, Some(600), 20),
            (648, None, 27),
            (1_200, None, 50),
            (2_000, Some(2_000), 50),
            (2_040, None, 51),
            (8_000, Some(10_000), 200),
        ] {
            let policy = Policy::new(32, mean, capacity);
            assert_eq!(policy.threshold(), threshold, "{mean} of {capacity:?}");
        }
        let slow = Policy::new(32, 214, Some(300));
        assert!(slow.is_hot(rates(10, 0)) && !slow.is_hot(rates(9, 0)));
        assert!(slow.is_cold(rates(4, 0)) && !slow.is_cold(rates(5, 0)));
    }

    #[test]
    fn a_copy_may_cost_more_where_one_node_could_not_do_the_reads() {
        let policy = Policy::new(32, 16_000, None);
        for (reads, writes, pays) in [
            (16_000, 1_000, 3),
            (16_000, 2_000, 2),
            (15_999, 2_000, 1),
            (32_000, 2_000, 4),
            (32_000, 5_333, 2),
            (32_000, 5_334, 1),
            (160_000, 8_000, 6),
            (160_000, 16_000, 3),
            (160_000, 1_000, 32),
        ] {
            assert_eq!(policy.pays(asked(reads, writes)), pays, "{reads} / {writes}");
        }
    }

    #[test]
    fn a_key_is_worth_a_trip_by_what_its_home_would_have_to_do_for_it() {
        for (reads, writes, work) in [
            (0, 0, 0),
            (9_000, 0, 0),
            (0, 100, 100),
            (100, 100, 200),
            (599, 100, 699),
            (600, 100, 300),
            (1_000, 100, 400),
            (9_000, 1_000, 4_000),
            (1_000_000, 1, 5),
        ] {
            assert_eq!(
                Policy::new(4, 0, None).work(rates(reads, writes), 1),
                work,
                "{reads} / {writes}"
            );
        }
        let policy = Policy::new(4, 2_000, None);
        assert!(policy.is_worth_trip(rates(0, 250), 1, COUNTED));
        assert!(!policy.is_worth_trip(rates(0, 249), 1, COUNTED));
        assert!(policy.is_worth_trip(rates(125, 125), 1, COUNTED));
        assert!(policy.is_worth_trip(rates(0, RATE_MIN), 1, PINNED));
        assert!(!policy.is_worth_trip(rates(0, RATE_MIN - 1), 1, PINNED));
        assert!(policy.keeps_trip(rates(0, 125), 1, COUNTED));
        assert!(!policy.keeps_trip(rates(0, 124), 1, COUNTED));
        assert!(policy.is_worth_trip(rates(0, 84), 3, COUNTED), "each write is three visits");
        assert!(!policy.is_worth_trip(rates(0, 83), 3, COUNTED));
        let many = Policy::new(64, 0, None);
        assert!(many.is_worth_trip(rates(9_999, TRIP_WRITES_MIN), 1, COUNTED));
        assert!(!many.is_worth_trip(rates(9_999, TRIP_WRITES_MIN - 1), 1, COUNTED));
        let told = |writes| many.is_worth_trip(rates(9_999, writes), 1, Known::default());
        assert!(told(TRIP_WRITES_TOLD_MIN) && !told(TRIP_WRITES_TOLD_MIN - 1));
        let idle = Policy::new(4, 0, None);
        for known in [COUNTED, PINNED] {
            assert!(idle.is_worth_trip(rates(0, TRIP_WORK_MIN), 1, known));
            assert!(!idle.is_worth_trip(rates(0, TRIP_WORK_MIN - 1), 1, known));
        }
    }

    #[test]
    fn a_few_readers_may_have_much_to_do_where_nodes_are_slow() {
        let worth = |capacity, [reads, writes]: [u64; 2]| {
            Policy::new(32, 200, capacity).is_worth_trip(rates(reads, writes), 1, COUNTED)
        };
        // Four readers, with 24 reads per second each.
        let key = [96, 4];
        assert!(worth(Some(400), key) && worth(Some(1_199), key));
        assert!(!worth(Some(1_200), key), "they do 25 without noticing");
        assert!(!worth(None, key));
    }

    #[test]
    fn readers_go_by_reads_per_write() {
        let policy = Policy::new(6, 0, None);
        for (reads, writes, readers) in [
            (100, 0, 6),
            (100, 100, 2),
            (1_200, 100, 4),
            (1_700, 100, 4),
            (1_800, 100, 6),
            (0, 0, 6),
        ] {
            assert_eq!(policy.readers(asked(reads, writes), 0), readers, "{reads} / {writes}");
        }
        for (reads, now, readers) in [
            (2_100, 4, 4),
            (2_400, 4, 6),
            (900, 4, 4),
            (899, 4, 2),
            (1_500, 6, 6),
            (1_499, 6, 4),
            (599, 2, 2),
            (1_199, 2, 2),
            (1_200, 2, 4),
        ] {
            assert_eq!(policy.readers(asked(reads, 100), now), readers, "{reads} with {now}");
        }
        assert_eq!(policy.readers(asked(100, 0), 4), 6, "there are more nodes now");
        assert_eq!(policy.readers(asked(100, 0), 8), 6, "there are fewer");
        assert_eq!(Policy::new(1_000, 0, None).readers(asked(100, 0), 0), 64);
    }

    #[test]
    fn all_nodes_are_readers_of_what_is_too_much_for_a_window() {
        let policy = Policy::new(512, 8_000, Some(10_000));
        for (reads, writes, now, readers) in [
            (16_063, 0, 0, 64),
            (16_064, 0, 0, 512),
            (16_063, 0, 512, 512),
            (8_064, 0, 512, 512),
            (8_063, 0, 512, 64),
            (160_000, 400, 0, 64),
            (160_000, 100, 0, 256),
        ] {
            let asked = asked(reads, writes);
            assert_eq!(policy.readers(asked, now), readers, "{reads} / {writes} with {now}");
        }
        assert_eq!(policy.holders(asked(160_000, 100), 0), 64, "of one version of a trip");
    }

    proptest! {
        /// More keys than there is room for cannot all be over the threshold.
        #[test]
        fn the_room_is_enough_for_all_that_are_hot(
            nodes in 2usize..200, mean in 10_000u64..9_999_999,
        ) {
            let policy = Policy::new(nodes, mean, None);
            let all = mean * nodes as u64;
            // Rounding lets the threshold fall by less than one.
            prop_assert!(all / (policy.threshold() + 1) <= policy.keys_max() as u64);
        }

        /// So keys on trips need no room of their own.
        #[test]
        fn no_key_is_more_work_than_is_asked_of_it(
            nodes: u16, reads: u32, writes: u32, replicas in 1u8..=8,
        ) {
            let rates = rates(reads.into(), writes.into());
            let work = Policy::new(nodes.into(), 0, None).work(rates, replicas.into());
            prop_assert!(work <= rates.reads + rates.writes * u64::from(replicas));
        }

        #[test]
        fn what_was_chosen_stays_chosen(
            nodes in 2usize..200, reads in 0u64..9_999, writes in 0u64..999, now in 0u64..200,
        ) {
            let policy = Policy::new(nodes, 0, None);
            let chosen = policy.readers(asked(reads, writes), now);
            prop_assert!((2..=nodes as u64).contains(&chosen));
            prop_assert_eq!(policy.readers(asked(reads, writes), chosen), chosen);
        }
    }
}
