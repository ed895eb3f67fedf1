//! Which keys are worth copies, and how many; and which are worth delegations.

use cluster::{HotKey, KeyName};
use std::time::Duration;

/// For how long a key must have been cold to go.
pub(crate) const COLD_AFTER: Duration = Duration::from_secs(2);

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

/// A key may be written so often per second, twice in a segment of its home, and not seem to be at
/// first: it is not given copies on all nodes before that is known, unless fewer readers would have
/// too much to do.
const WRITES_UNSEEN: u64 = 20;

/// At first each reader of a key is to have no more to do for it than what a node does on the mean,
/// over this. More copies than would pay cost a second of their writes; with fewer, the home of a
/// burst and the few readers that help it are full, and it takes as many steps as there are
/// doublings until they are not.
const FIRST_SHARE: u64 = 8;

/// Copies of a key are on no more nodes than a bank has, unless each of those had more to do for
/// it than what a node does on the mean, over this. So a node that is to hold copies of several
/// such keys is not full before the others are, and there are at most half as many keys as nodes
/// that all nodes are to hold.
const WIDE_SHARE: u64 = 32;

/// See [`wire::HOT_BANK_MAX`].
const WINDOW: u64 = wire::HOT_BANK_MAX as u64;

/// A key is delegated when its home would have more to do for it than the mean of a node, over
/// this. At half of the mean a home that has two keys of nearly that has too much to do: without
/// reads at Zipf 0.9, 32 nodes served 0.78 of what they can, and from a quarter on 0.93. With
/// chains of three each node is in those of three times as many keys: real ones served 0.73 at Zipf
/// 0.99 from a quarter on, and 0.83 from an eighth on.
const DELEGATION_SHARE: u64 = 8;

/// No work below so much per second is worth a delegation, however little the nodes do: nodes say
/// nothing sooner of what is asked less often.
const DELEGATION_WORK_MIN: u64 = 25;

/// One goes, too, when at home each of its readers would have more to do for it than the mean of a
/// node, over this: those are always the same, while under a delegation each write chooses others.
/// It is the keys that stay, a few at the same home, that make a node fuller than the rest:
/// at 95 % reads and Zipf 0.9 the busiest of 32 slow nodes had 1.15 times the mean to do from a
/// sixteenth on.
const DELEGATION_READER_SHARE: u64 = 48;

/// No reader has much to do for a key below so many reads per second, however idle the nodes are;
/// of nodes that say what they can serve, below that over [`IDLE_PART`].
const READER_RATE_MIN: u64 = 400;

/// What a node could do without noticing is its capacity over this.
const IDLE_PART: u64 = 48;

/// No key that is written less often per second is delegated: its writes are few enough to stay
/// at home, and to have every node hold a copy.
const DELEGATION_WRITES_MIN: u64 = 2;

/// The same for a key of which no switch has counted the writes, but nodes, in segments of a tenth
/// of a second: a single write in one is five or ten per second.
const DELEGATION_WRITES_TOLD_MIN: u64 = 25;

/// How much is asked of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    /// Reads per second.
    pub(crate) reads: u64,
    /// Writes per second.
    pub(crate) writes: u64,
}

impl Rates {
    /// Requests per second.
    pub(crate) fn all(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }
}

impl From<&HotKey> for Rates {
    fn from(told: &HotKey) -> Self {
        Self { reads: told.reads, writes: told.writes }
    }
}

/// The name of a key that is told of.
pub(crate) fn named(told: &HotKey) -> KeyName {
    KeyName { keyspace: told.keyspace, key: told.key.clone() }
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
    /// From how much work on a key is worth a delegation.
    delegation_from: u64,
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
        let delegation_from = (mean / DELEGATION_SHARE).max(DELEGATION_WORK_MIN);
        let reader_idle = READER_RATE_MIN.min(said);
        Self { nodes, mean, threshold: share.max(least), delegation_from, reader_idle }
    }

    /// How many readers of a key pay.
    pub(crate) fn pays(self, Asked { reads, per_write }: Asked) -> u64 {
        let needed = reads.saturating_mul(READER_SHARE) / self.mean.max(1);
        (per_write / READS_PER_COPY).max((per_write / READS_PER_COPY_NEEDED).min(needed))
    }

    /// What copies of a key are made by of which no switch has counted the writes yet.
    pub(crate) fn asked_at_first(self, rates: Rates) -> Asked {
        let Rates { reads, writes } = rates;
        let bearable = (self.mean / FIRST_SHARE).max(self.reader_idle).max(1);
        let needed = (reads / bearable).saturating_mul(READS_PER_COPY);
        let per_write = needed.min(Asked::from(rates).per_write);
        Asked { reads, per_write: per_write.max(reads / writes.max(WRITES_UNSEEN)) }
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

    /// Whether a key is worth a delegation.
    ///
    /// On one, its home has nothing to do for it. But a key that is only a small part of what a
    /// node does finds room at home as well as anywhere, and a delegation is not for nothing:
    /// whatever is not a plain write, or not on a copy, has to wait for its end. So a key goes from
    /// an eighth of the mean load of a node on, by [`Self::work`]: if no copies pay and there is
    /// one replica, that is reads and writes together, with 10 reads per write, which pay two
    /// copies, a 24th of the mean in writes. With three replicas each node has a part in three
    /// times as many keys. There are then at most eight times as many such keys as nodes. So does
    /// one that [crowds](Self::crowds) its readers. One that an operator has pinned goes from
    /// [`RATE_MIN`] on at the latest, however much the nodes have to do: bursts are expected of it.
    pub(crate) fn is_worth_delegation(self, rates: Rates, replicas: u8, known: Known) -> bool {
        let Known { pinned, counted } = known;
        let least = if counted { DELEGATION_WRITES_MIN } else { DELEGATION_WRITES_TOLD_MIN };
        let much = self.work(rates, replicas.into()) >= self.delegation_from(pinned)
            || self.crowds(rates, 1);
        rates.writes >= least && much
    }

    /// Whether a key that is delegated may go on doing so: half of what it took to begin.
    pub(crate) fn keeps_delegation(self, rates: Rates, replicas: u8, known: Known) -> bool {
        let from = self.delegation_from(known.pinned) / 2;
        self.work(rates, replicas.into()) >= from || self.crowds(rates, 2)
    }

    /// Whether each reader of a key has more to do for it than is good for who has only a few that
    /// stay the same, over this.
    fn crowds(self, rates: Rates, over: u64) -> bool {
        let pays = self.pays(rates.into()).max(1);
        let share = (self.mean / DELEGATION_READER_SHARE).max(self.reader_idle) / over;
        pays < self.window_max() && rates.reads / pays >= share
    }

    /// How many nodes are to hold each version of a delegated key, of which so many do now (0: none
    /// yet): changed only if it is off by more than one, and by more than a quarter.
    pub(crate) fn holders(self, asked: Asked, now: u64) -> u64 {
        let pays = self.pays(asked).clamp(1, self.window_max().max(1));
        let near = now > 0 && pays.abs_diff(now) <= (now / 4).max(1);
        if near { now } else { pays }
    }

    /// From how many requests per second on, as by [`Self::work`].
    pub(crate) fn delegation_from(self, pinned: bool) -> u64 {
        if pinned { self.delegation_from.min(RATE_MIN) } else { self.delegation_from }
    }

    pub(crate) fn threshold(self) -> u64 {
        self.threshold
    }

    /// How many keys are enough. None for one node, which has nobody to share with.
    pub(crate) fn keys_max(self) -> usize {
        let enough = HOT_PER_NODE.saturating_mul(self.nodes).saturating_mul(log2(self.nodes));
        usize::try_from(enough).unwrap_or(usize::MAX).min(wire::HOT_KEYS_MAX)
    }

    /// How many nodes may hold one version of a delegated key.
    fn window_max(self) -> u64 {
        self.nodes.min(WINDOW)
    }

    /// How many nodes the copies of a key that has so many readers now may be on: no more than a
    /// bank has, or all, if each of those would have too much to do for it; then until that is
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
mod tests;
