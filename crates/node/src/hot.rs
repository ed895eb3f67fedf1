//! Hot keys: the order of the controller as a shard keeps it, and what goes beyond one partition.
//!
//! ```text
//!   order ──▶ head: registers the key (`reconcile`, `registrations`)
//!   write ──▶ tail ── HOT_COPY ──▶ reader ── HOT_COPIED ──▶ switch ──▶ tail      (`propagation`)
//!             tail ── HOT_PUBLISH ──▶ switch ──▶ tail: MGET and RANGE may show it  (`publish`)
//!             answers to them wait for it                               (`shown`, `deferred`)
//!   MGET  ──▶ tail, or a reader in vain ── HOT_PUBLISH ──▶ switch: observes it like an answer
//!   read  ──▶ switch ──▶ reader: answers from what it holds                (`copies`, `held`)
//!
//!   order ──▶ head: lets a key be delegated, and brings it home       (`reconcile`, `recall`)
//!   write ──▶ switch ──▶ any nodes: hold it, answer, copy it to more         (`writes`, `held`)
//! ```

pub(crate) mod agreed;
pub(crate) mod copies;
pub(crate) mod deferred;
pub(crate) mod delegation;
pub(crate) mod held;
pub(crate) mod propagation;
pub(crate) mod publications;
pub(crate) mod publish;
pub(crate) mod push;
pub(crate) mod reconcile;
pub(crate) mod registrations;
pub(crate) mod shown;

use crate::engine::Engine;
use crate::hot::deferred::Deferred;
use crate::hot::delegation::orders::OrdersGiven;
use crate::hot::held::HeldCopies;
use crate::hot::publications::Publications;
use cluster::{HotEntry, HotOrder, Incarnation, KeyspaceId, NodeId, PartitionId};
use machine::{Instant, RttEstimator};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// All that a shard knows of hot keys but their registrations.
#[derive(Debug)]
pub(crate) struct Hot {
    order: Arc<HotOrder>,
    /// When to look after which key that is propagated from here.
    pub(crate) timers: BTreeSet<(Instant, PartitionId, Box<[u8]>)>,
    /// From HOT_COPY or HOT_PUBLISH until the switch has passed the answer on.
    pub(crate) rtt: RttEstimator,
    pub(crate) publications: Publications,
    pub(crate) deferred: Deferred,
    /// What this node holds of other nodes' keys.
    pub(crate) held: HeldCopies,
    /// Which orders its store was given.
    pub(crate) orders: OrdersGiven,
    /// Keys of partitions that this node is the head of, whose registration may have to be changed.
    pub(crate) todo: VecDeque<(PartitionId, Box<[u8]>)>,
    /// When to go on with them, if there are any.
    pub(crate) next_work: Instant,
}

impl Hot {
    /// What an engine has on record of them.
    pub(crate) fn restore<E: Engine>(now: Instant, engine: &E) -> Self {
        Self {
            order: Arc::default(),
            timers: BTreeSet::new(),
            rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            publications: Publications::default(),
            deferred: Deferred::default(),
            held: HeldCopies::restore(now, engine),
            orders: OrdersGiven::restore(now, engine),
            todo: VecDeque::new(),
            next_work: now,
        }
    }

    /// Takes an order, unless it is not newer than the present one, or older than one of an earlier
    /// incarnation.
    pub(crate) fn install<E: Engine>(&mut self, engine: &mut E, order: Arc<HotOrder>) -> bool {
        let news = order.revision > self.order.revision && self.orders.admits(&order);
        if news {
            self.orders.follow(engine, &order);
            self.order = order;
        }
        news
    }

    /// Revision of the installed order; 0 for none.
    pub(crate) fn revision(&self) -> Revision {
        self.order.revision
    }

    /// The incarnation of the switch that the order was made for.
    pub(crate) fn switch(&self) -> Incarnation {
        self.order.switch
    }

    pub(crate) fn keys(&self) -> &[HotEntry] {
        &self.order.keys
    }

    /// What the order says of a key.
    pub(crate) fn entry(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HotEntry> {
        self.order.find(keyspace, key)
    }

    /// The nodes that are to hold copies of a key, with their incarnations.
    pub(crate) fn readers(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
    ) -> impl Iterator<Item = (NodeId, Incarnation)> {
        let entry = self.entry(keyspace, key);
        entry.into_iter().flat_map(|entry| self.order.readers(entry))
    }

    /// Those of them in the same bank as this node.
    pub(crate) fn mates(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        node: NodeId,
    ) -> impl Iterator<Item = NodeId> {
        let entry = self.entry(keyspace, key);
        entry.into_iter().flat_map(move |entry| self.order.mates(entry, node))
    }

    /// Those that its home is to send copies to: not all that writes of a delegation may go to.
    pub(crate) fn holders(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
    ) -> impl Iterator<Item = (NodeId, Incarnation)> {
        let delegation = self.entry(keyspace, key).and_then(|entry| entry.delegation);
        let most = delegation.map_or(usize::MAX, |delegation| delegation.copies.into());
        self.readers(keyspace, key).take(most)
    }

    /// Forgets what it noted about partitions that this node has no part in any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.timers.retain(|(_, id, _)| keep(*id));
        self.publications.retain(&keep);
        self.deferred.retain(&keep);
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
        let reconcile = (!self.todo.is_empty()).then_some(self.next_work);
        copies.into_iter().chain(reconcile).min()
    }
}

/// Keys whose copies are sent in one step, of few of which to more than `HOT_BANK_MAX` nodes: a
/// tail that begins with many goes on at once, but lets others in between.
const DUE_MAX: usize = 16;

/// Below that a reader's group commit would be raced.
const RESEND_MIN: Duration = Duration::from_millis(2);
/// Before anything is known of the way.
const RESEND_FIRST: Duration = Duration::from_millis(20);
/// Whoever has not answered by then is down, or the network is full.
const RESEND_MAX: Duration = Duration::from_millis(500);
