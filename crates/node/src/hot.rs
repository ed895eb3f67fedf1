//! Hot keys: the order of the controller as a shard keeps it, and what goes beyond one partition.
//!
//! ```text
//!   order ──▶ head: marks the key (`duty`, `marks`)
//!   write ──▶ tail ── HOT_COPY ──▶ reader ── HOT_COPIED ──▶ switch ──▶ tail      (`spread`)
//!             tail ── HOT_COVER ──▶ switch ──▶ tail: MGET and RANGE may show it  (`cover`)
//!             answers to them wait for it                                        (`withheld`)
//!   MGET  ──▶ tail, or a reader in vain ── HOT_COVER ──▶ switch: learns of it as of a GET's answer
//!   read  ──▶ switch ──▶ reader: answers from its copy                           (`copies`)
//!
//!   order ──▶ head: lets a key go on a trip, and brings it home    (`trips`, `homecoming`)
//!   write ──▶ switch ──▶ any nodes: keep it, answer, copy it to more               (`roam`)
//! ```

use crate::copies::Copies;
use crate::cover::Covers;
use crate::engine::Engine;
use crate::roam::Roaming;
use crate::withheld::Withheld;
use cluster::{HotEntry, HotOrder, KeyspaceId, Life, NodeId, PartitionId};
use machine::{Instant, RttEstimator};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// All that a shard knows of hot keys but their marks.
#[derive(Debug)]
pub(crate) struct Hot {
    order: Arc<HotOrder>,
    /// When to look after which key that is spread from here.
    pub(crate) timers: BTreeSet<(Instant, PartitionId, Box<[u8]>)>,
    /// From a copy or cover sent until the switch has passed the answer on.
    pub(crate) rtt: RttEstimator,
    pub(crate) covers: Covers,
    pub(crate) withheld: Withheld,
    /// What this node holds as a reader.
    pub(crate) copies: Copies,
    /// What it holds of keys that are on trips.
    pub(crate) roaming: Roaming,
    /// Keys of partitions that this node is the head of, whose mark may have to be changed.
    pub(crate) todo: VecDeque<(PartitionId, Box<[u8]>)>,
    /// When to go on with them, if there are any.
    pub(crate) next_duty: Instant,
}

impl Hot {
    pub(crate) fn new(now: Instant, roaming: Roaming) -> Self {
        Self {
            order: Arc::default(),
            timers: BTreeSet::new(),
            rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            covers: Covers::default(),
            withheld: Withheld::default(),
            copies: Copies::default(),
            roaming,
            todo: VecDeque::new(),
            next_duty: now,
        }
    }

    /// Takes an order, unless it is not newer than the present one, or older than one of an earlier
    /// life.
    pub(crate) fn install<E: Engine>(&mut self, engine: &mut E, order: Arc<HotOrder>) -> bool {
        let news = order.revision > self.order.revision && self.roaming.admits(&order);
        if news {
            self.roaming.follow(engine, &order);
            self.order = order;
        }
        news
    }

    /// Revision of the installed order; 0 for none.
    pub(crate) fn revision(&self) -> u64 {
        self.order.revision
    }

    /// The life of the switch that the order was made for.
    pub(crate) fn switch(&self) -> Life {
        self.order.switch
    }

    pub(crate) fn keys(&self) -> &[HotEntry] {
        &self.order.keys
    }

    /// What the order says of a key.
    pub(crate) fn entry(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HotEntry> {
        self.order.find(keyspace, key)
    }

    /// The nodes that are to hold copies of a key, with their lives.
    pub(crate) fn readers(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
    ) -> impl Iterator<Item = (NodeId, Life)> {
        let entry = self.entry(keyspace, key);
        entry.into_iter().flat_map(|entry| self.order.readers(entry))
    }

    /// Those of them in the same window as this node.
    pub(crate) fn mates(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        node: NodeId,
    ) -> impl Iterator<Item = NodeId> {
        let entry = self.entry(keyspace, key);
        entry.into_iter().flat_map(move |entry| self.order.mates(entry, node))
    }

    /// Those that its home is to send copies to: not all that writes of a trip may go to.
    pub(crate) fn holders(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
    ) -> impl Iterator<Item = (NodeId, Life)> {
        let trip = self.entry(keyspace, key).and_then(|entry| entry.trip);
        let most = trip.map_or(usize::MAX, |trip| trip.copies.into());
        self.readers(keyspace, key).take(most)
    }

    /// Forgets what it noted about partitions that this node has no part in any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.timers.retain(|(_, id, _)| keep(*id));
        self.covers.retain(&keep);
        self.withheld.retain(&keep);
        self.todo.retain(|(id, _)| keep(*id));
    }

    /// Takes out the keys that are due by `now`, the earliest first; a bounded number.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<(PartitionId, Box<[u8]>)> {
        let mut due = Vec::new();
        while due.len() < DUE_MAX
            && let Some((at, ..)) = self.timers.first()
            && *at <= now
        {
            due.extend(self.timers.pop_first().map(|(_, id, key)| (id, key)));
        }
        due
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<Instant> {
        let copies = self.timers.first().map(|(at, ..)| *at);
        let duty = (!self.todo.is_empty()).then_some(self.next_duty);
        copies.into_iter().chain(duty).min()
    }
}

/// Keys whose copies are sent in one step, of few of which to more than `HOT_WINDOW_MAX` nodes: a
/// tail that begins with many goes on at once, but lets others in between.
const DUE_MAX: usize = 16;

/// Below that a reader's group commit would be raced.
const RESEND_MIN: Duration = Duration::from_millis(2);
/// Before anything is known of the way.
const RESEND_FIRST: Duration = Duration::from_millis(20);
/// Whoever has not answered by then is down, or the network is full.
const RESEND_MAX: Duration = Duration::from_millis(500);
