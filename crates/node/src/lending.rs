//! Lending to caches: a tail lends keys of its partition, and commits a write of what is lent only
//! when the cache holds it too, or can answer no more (SwitchKV section 3.4; leases: Gray and
//! Cheriton).
//!
//! What is lent and to whom is one partition's ([`loans`]). A write waits for the cache as it waits
//! for the disks of other members: it stays pending until its loan lets it go ([`gate`]). What
//! would show its key meanwhile ([`look`]) is [`parked`], for the cache may show the new value
//! already. Before a partition changes its epoch all of its loans are over ([`handover`]), so that
//! no other member needs to know of them. Which keys a cache may want the [`tracker`] finds, and
//! [`reports`] tell it.

pub(crate) mod gate;
pub(crate) mod handover;
pub(crate) mod loans;
pub(crate) mod look;
pub(crate) mod parked;
pub(crate) mod reports;
pub(crate) mod serve;
pub(crate) mod tracker;

use crate::lending::parked::Parked;
use crate::lending::tracker::{Tracker, TrackerConfig};
use cluster::{Assignment, Incarnation, PartitionId};
use machine::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// What the replicas of a shard have in common as lenders.
#[derive(Debug)]
pub(crate) struct Lending {
    /// The node's incarnation, which its loans name.
    pub(crate) lender: u64,
    /// Until when the node may lend, by its own clock: its direct lease.
    pub(crate) right_until: Instant,
    /// Partitions in which something is held back, or some loan is to end.
    pub(crate) busy: BTreeSet<PartitionId>,
    /// Those of them in which a cache has answered, so that what was parked is to be looked at.
    pub(crate) released: BTreeSet<PartitionId>,
    pub(crate) parked: Parked,
    /// An assignment that waits until loans are over.
    pub(crate) waiting: Option<Box<Assignment>>,
    /// When loans are looked after next.
    pub(crate) next_look: Instant,
    /// Which keys the cache is told of.
    pub(crate) tracker: Tracker,
}

impl Lending {
    /// That of a node in this incarnation.
    pub(crate) fn new(now: Instant, incarnation: Incarnation, tracker: &TrackerConfig) -> Self {
        Self {
            lender: incarnation.0,
            right_until: Instant::default(),
            busy: BTreeSet::new(),
            released: BTreeSet::new(),
            parked: Parked::default(),
            waiting: None,
            next_look: Instant::default(),
            tracker: Tracker::new(now, tracker),
        }
    }

    /// Something of a partition is held back, or to end.
    pub(crate) fn see_busy(&mut self, now: Instant, partition: PartitionId) {
        if self.busy.is_empty() {
            self.next_look = now + TELL_EVERY;
        }
        self.busy.insert(partition);
    }

    /// When there is something to do, if there is.
    pub(crate) fn due(&self) -> Option<Instant> {
        let looks = !self.busy.is_empty() || self.waiting.is_some();
        looks.then_some(self.next_look)
    }
}

/// How long a loan lasts at most if it is not renewed. Writes of what a dead cache holds wait so
/// long, and after it misses for as long as it takes to borrow again.
pub(crate) const LENT_FOR: Duration = Duration::from_millis(300);

/// How soon a cache that has not answered is told again.
pub(crate) const TELL_EVERY: Duration = Duration::from_millis(5);
