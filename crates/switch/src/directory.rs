//! The coherence directory of one switch, shared by all its pipelines.
//!
//! A pipeline looks at the number of the present table for every packet, and fetches the table
//! when that has changed. So the lock is taken once for each order and thread, never on the way of
//! a packet.
//!
//! **Why threads may change over one after the other.** A thread that still works by the old table
//! received its packet before the new one was there. If that packet is a reply, its version was
//! committed before the tail can have seen a read stamped with a generation of the new table: the
//! proof of that generation, which answers such a read, says no less, so the new entry needs no
//! word of it. If it is a read, it was asked before anything can have been shown that the old entry
//! did not count. A key that stays keeps its entry, so both raise and read the same floor.
//!
//! That is so for reads and for what replies show. A delegated write is sent only by a thread that,
//! having found or given its grant, sees that its table is still the present one: the number of
//! tables changes before the switch's clock does, so a write that went home under the
//! clock of a later order had no grant to be found then, and will not be sent under a
//! delegation any more.

use crate::clock::{ClockReading, SharedClock};
use crate::gate::OrderGate;
use crate::grants::Grants;
use crate::hot::HotTable;
use crate::reports::Reports;
use crate::{RuleTable, RuleWatch};
use cluster::{
    ClusterId, HotOrder, Incarnation, InstallError, KeyspaceId, Lease, MaybeMutant, Mutant,
};
use machine::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::Revision;

/// The hot keys of a switch, what passed it of them, and what the nodes say of themselves.
#[derive(Debug)]
pub struct Directory {
    /// Changes with the table.
    number: AtomicU64,
    present: Mutex<Present>,
    clock: SharedClock,
    grants: Grants,
    reports: Arc<Reports>,
    cached: RuleTable,
}

#[derive(Debug)]
struct Present {
    table: Arc<HotTable>,
    gate: OrderGate,
}

impl Directory {
    /// Without any key, for a switch in this incarnation.
    #[must_use]
    pub fn new(incarnation: Incarnation) -> Self {
        Self::with(incarnation, Grants::default())
    }

    /// The same that remembers what so many clients were given for their writes of delegated keys.
    #[must_use]
    pub fn remembering(incarnation: Incarnation, clients_max: usize) -> Self {
        Self::with(incarnation, Grants::remembering(clients_max))
    }

    /// The same whose rules of caches somebody keeps elsewhere as well.
    #[must_use]
    pub fn watched_by(incarnation: Incarnation, watch: Box<dyn RuleWatch>) -> Self {
        Self { cached: RuleTable::watched_by(watch), ..Self::new(incarnation) }
    }

    fn with(incarnation: Incarnation, grants: Grants) -> Self {
        let present = Present { table: Arc::default(), gate: OrderGate::new(incarnation) };
        let (clock, reports, cached) = Default::default();
        let (number, present) = (AtomicU64::new(0), Mutex::new(present));
        Self { number, present, clock, grants, reports, cached }
    }

    /// The keys that caches hold.
    #[inline]
    #[must_use]
    pub fn cache_rules(&self) -> &RuleTable {
        &self.cached
    }

    /// Takes an order, if [`OrderGate::takes`] says so.
    ///
    /// # Errors
    ///
    /// If the order is too large or contradicts itself; nothing is changed then.
    pub fn install(&self, order: &HotOrder) -> Result<(), InstallError> {
        self.take(order, MaybeMutant::default())
    }

    /// The same by a switch that may be a mutant.
    pub(crate) fn take(&self, order: &HotOrder, mutant: MaybeMutant) -> Result<(), InstallError> {
        loop {
            let before = {
                let present = self.lock();
                if !present.takes(order, mutant) {
                    return Ok(());
                }
                present.table.clone()
            };
            // That takes its time; nobody waits for the lock meanwhile.
            let table = HotTable::compile(order, &before)?;
            let mut present = self.lock();
            if !present.takes(order, mutant) {
                return Ok(());
            }
            if Arc::ptr_eq(&present.table, &before) {
                present.gate.took(order.revision);
                if before.revision().is_none() {
                    self.clock.begin(order);
                }
                self.publish(&mut present, table);
                self.clock.order(order.revision);
                return Ok(());
            }
        }
    }

    /// Whether the switch may take orders of this cluster, by [`OrderGate::claim`].
    pub fn claim(&self, cluster: ClusterId) -> bool {
        self.lock().gate.claim(cluster)
    }

    /// The cluster that the switch follows, if it was given tables.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.lock().gate.cluster()
    }

    /// Revision of the order that is installed; 0 for none, also after it was forgotten.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.lock().gate.installed()
    }

    /// The switch's clock.
    #[inline]
    pub(crate) fn clock(&self) -> ClockReading {
        self.clock.now()
    }

    /// What delegations raise when they begin.
    pub(crate) fn shared_clock(&self) -> &SharedClock {
        &self.clock
    }

    /// What requests were given under delegations.
    #[inline]
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// What the nodes say of themselves.
    pub(crate) fn reports(&self) -> Arc<Reports> {
        self.reports.clone()
    }

    /// The present table.
    pub(crate) fn table(&self) -> Arc<HotTable> {
        self.lock().table.clone()
    }

    /// A pipeline has tables of this revision now, by which the switch is active or stands by. One
    /// that stands by forgets its directory, unless it `keeps` it against the rules.
    pub(crate) fn follow(&self, revision: Revision, active: bool, keeps: bool) {
        let mut present = self.lock();
        if present.gate.follow(revision, active) && !keeps {
            self.forget(&mut present);
        }
    }

    /// A pipeline with tables of revision `installed` is given a lease at `now`. If the switch had
    /// none at that time the directory is forgotten first, unless it `keeps` it against the rules.
    pub(crate) fn renew(&self, now: Instant, installed: Revision, lease: &Lease, keeps: bool) {
        let mut present = self.lock();
        if present.gate.lapsed(now) && !keeps {
            self.forget(&mut present);
        }
        present.gate.renew(installed, lease);
        drop(present);
        self.grants.sweep(now);
    }

    fn forget(&self, present: &mut Present) {
        present.gate.forgot();
        if !present.table.revision().is_none() {
            self.publish(present, HotTable::default());
        }
    }

    fn publish(&self, present: &mut Present, table: HotTable) {
        present.table = Arc::new(table);
        // Before the clock of the order, in the one order that all threads see.
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        // Whoever panicked here left a whole table behind.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    fn takes(&self, order: &HotOrder, mutant: MaybeMutant) -> bool {
        let named = |place| order.keys.iter().find(|it| (it.keyspace, it.keyhash) == place);
        let generation_of = |keyspace: KeyspaceId, keyhash| {
            if mutant.is(Mutant::RepeatGenerations) {
                return named((keyspace, keyhash)).map(|it| it.generation);
            }
            self.table.find(keyspace, keyhash).map(|row| row.entry.generation())
        };
        self.gate.takes(order, generation_of) && !self.revives_a_delegation(order)
    }

    /// Whether a key is to be delegated that may have been here before: its versions would be given
    /// once more.
    fn revives_a_delegation(&self, order: &HotOrder) -> bool {
        let newest = self.gate.newest();
        order.keys.iter().any(|key| {
            let Some(number) = key.delegation.map(|delegation| delegation.number) else {
                return false;
            };
            let row = || self.table.find(key.keyspace, key.keyhash);
            number.order() <= newest && row().is_none_or(|row| row.delegation(number).is_none())
        })
    }
}

/// The directory as one pipeline sees it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    directory: Arc<Directory>,
    table: Arc<HotTable>,
    number: u64,
}

impl View {
    /// Of this directory.
    pub(crate) fn new(directory: Arc<Directory>) -> Self {
        let mut view = Self { directory, table: Arc::default(), number: 0 };
        view.refresh();
        view
    }

    /// Takes over the present table if it is another one than before, and says whether it is. To
    /// be called after a packet was received and before it is looked at.
    #[inline]
    pub(crate) fn follow(&mut self) -> bool {
        let changed = self.directory.number.load(Ordering::Acquire) != self.number;
        if changed {
            self.refresh();
        }
        changed
    }

    /// Whether the table that was taken over last is still the present one. To be asked after a
    /// grant was found or given, and before the packet is sent with it.
    pub(crate) fn is_present(&self) -> bool {
        self.directory.number.load(Ordering::SeqCst) == self.number
    }

    #[cold]
    fn refresh(&mut self) {
        let present = self.directory.lock();
        // It changes under the lock alone.
        self.number = self.directory.number.load(Ordering::Acquire);
        self.table = present.table.clone();
    }

    /// The table that was taken over last.
    #[inline]
    pub(crate) fn table(&self) -> &HotTable {
        &self.table
    }

    /// What it is a view of.
    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }
}

#[cfg(test)]
mod tests;
