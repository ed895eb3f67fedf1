//! The coherence directory of one switch, shared by all its pipelines.
//!
//! A pipeline looks at the number of the present table for every packet, and fetches the table
//! when that has changed. So the lock is taken once for each order and thread, never on the way of
//! a packet.
//!
//! **Why threads may change over one after the other.** A thread that still works by the old table
//! received its packet before the new one was there. If that packet is a reply, its version was
//! committed before the tail can have seen a read stamped with a stay of the new table: the proof
//! of that stay, which answers such a read, says no less, so the new entry needs no word of it. If
//! it is a read, it was asked before anything can have been shown that the old entry did not count.
//! A key that stays keeps its entry, so both raise and read the same floor.
//!
//! That is so for reads and for what replies show. A write on a trip is sent only by a thread that,
//! having found or given its stamp, sees that its table is still the present one: the number of
//! tables changes before the switch's moment does, so a write that went home under the moment of a
//! later order had no stamp to be found then, and will not be sent on a trip any more.

use crate::hot::HotTable;
use crate::judge::Judge;
use crate::moments::{Moment, Moments};
use crate::reports::Reports;
use crate::stamps::Stamps;
use cluster::{ClusterId, HotOrder, InstallError, KeyspaceId, Lease, Life, Plant};
use machine::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hot keys of a switch, what passed it of them, and what the nodes say of themselves.
#[derive(Debug)]
pub struct Directory {
    /// Changes with the table.
    number: AtomicU64,
    present: Mutex<Present>,
    moments: Moments,
    stamps: Stamps,
    reports: Arc<Reports>,
}

#[derive(Debug)]
struct Present {
    table: Arc<HotTable>,
    judge: Judge,
}

impl Directory {
    /// Without any key, for a switch in this life.
    #[must_use]
    pub fn new(life: Life) -> Self {
        Self::with(life, Stamps::default())
    }

    /// The same that remembers what so many clients were given for their writes of keys on trips.
    #[must_use]
    pub fn remembering(life: Life, clients_max: usize) -> Self {
        Self::with(life, Stamps::remembering(clients_max))
    }

    fn with(life: Life, stamps: Stamps) -> Self {
        let present = Present { table: Arc::default(), judge: Judge::new(life) };
        let (moments, reports) = Default::default();
        Self { number: AtomicU64::new(0), present: Mutex::new(present), moments, stamps, reports }
    }

    /// Takes an order, if [`Judge::takes`] says so.
    ///
    /// # Errors
    ///
    /// If the order is too large or contradicts itself; nothing is changed then.
    pub fn install(&self, order: &HotOrder) -> Result<(), InstallError> {
        self.take(order, None)
    }

    /// The same by a switch in which a bug may be planted.
    pub(crate) fn take(&self, order: &HotOrder, plant: Option<Plant>) -> Result<(), InstallError> {
        loop {
            let before = {
                let present = self.lock();
                if !present.takes(order, plant) {
                    return Ok(());
                }
                present.table.clone()
            };
            // That takes its time; nobody waits for the lock meanwhile.
            let table = HotTable::compile(order, &before)?;
            let mut present = self.lock();
            if !present.takes(order, plant) {
                return Ok(());
            }
            if Arc::ptr_eq(&present.table, &before) {
                present.judge.took(order.revision);
                if before.revision() == 0 {
                    self.moments.begin(order.revision);
                }
                self.publish(&mut present, table);
                self.moments.order(order.revision);
                return Ok(());
            }
        }
    }

    /// Whether the switch may take orders of this cluster, by [`Judge::claim`].
    pub fn claim(&self, cluster: ClusterId) -> bool {
        self.lock().judge.claim(cluster)
    }

    /// The cluster that the switch follows, if it was given tables.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterId> {
        self.lock().judge.cluster()
    }

    /// Revision of the order that is installed; 0 for none, also after it was forgotten.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.lock().judge.installed()
    }

    /// The switch's moment.
    #[inline]
    pub(crate) fn moment(&self) -> Moment {
        self.moments.now()
    }

    /// What trips raise when they begin.
    pub(crate) fn moments(&self) -> &Moments {
        &self.moments
    }

    /// What requests were given on trips.
    #[inline]
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
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
    pub(crate) fn follow(&self, revision: u64, active: bool, keeps: bool) {
        let mut present = self.lock();
        if present.judge.follow(revision, active) && !keeps {
            self.forget(&mut present);
        }
    }

    /// A pipeline with tables of revision `installed` is given a lease at `now`. If the switch had
    /// none at that time the directory is forgotten first, unless it `keeps` it against the rules.
    pub(crate) fn renew(&self, now: Instant, installed: u64, lease: &Lease, keeps: bool) {
        let mut present = self.lock();
        if present.judge.lapsed(now) && !keeps {
            self.forget(&mut present);
        }
        present.judge.renew(installed, lease);
        drop(present);
        self.stamps.sweep(now);
    }

    fn forget(&self, present: &mut Present) {
        present.judge.forgot();
        if present.table.revision() != 0 {
            self.publish(present, HotTable::default());
        }
    }

    fn publish(&self, present: &mut Present, table: HotTable) {
        present.table = Arc::new(table);
        // Before the moment of the order, in the one order that all threads see.
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        // Whoever panicked here left a whole table behind.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    fn takes(&self, order: &HotOrder, plant: Option<Plant>) -> bool {
        let named = |place| order.keys.iter().find(|it| (it.keyspace, it.keyhash) == place);
        let stay_of = |keyspace: KeyspaceId, keyhash| match plant {
            Some(Plant::RepeatStays) => named((keyspace, keyhash)).map(|it| it.stay),
            _ => self.table.find(keyspace, keyhash).map(|row| row.entry.stay()),
        };
        self.judge.takes(order, stay_of) && !self.revives_a_trip(order)
    }

    /// Whether a key is to go on a trip that may have been here before: its versions would be given
    /// once more.
    fn revives_a_trip(&self, order: &HotOrder) -> bool {
        let newest = self.judge.newest();
        order.keys.iter().any(|key| {
            let number = key.trip.map_or(u64::MAX, |trip| trip.number);
            let row = || self.table.find(key.keyspace, key.keyhash);
            number <= newest && row().is_none_or(|row| row.trip(number).is_none())
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
    /// stamp was found or given, and before the packet is sent with it.
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
