//! The coherence directory of one switch, shared by all its pipelines, and the rules by which it
//! is filled and forgotten.
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

use crate::hot::HotTable;
use cluster::{HotEntry, HotOrder, InstallError, Lease, Life, Tenure};
use machine::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hot keys of a switch, and what passed it of them.
#[derive(Debug)]
pub struct Directory {
    life: Life,
    /// Changes with the table.
    number: AtomicU64,
    present: Mutex<Present>,
}

#[derive(Debug)]
struct Present {
    table: Arc<HotTable>,
    /// The lease of the switch as a whole: while one of its threads has it, nobody else forwards.
    tenure: Tenure,
    /// Revision of the newest tables that a pipeline has.
    tables: u64,
    /// Whether the switch forwards by those.
    active: bool,
    /// Revision of the newest order that was forgotten.
    forgotten: u64,
}

impl Directory {
    /// Without any key, for a switch in this life.
    #[must_use]
    pub fn new(life: Life) -> Self {
        let present = Present {
            table: Arc::default(),
            tenure: Tenure::new(life),
            tables: 0,
            active: false,
            forgotten: 0,
        };
        Self { life, number: AtomicU64::new(0), present: Mutex::new(present) }
    }

    /// Takes an order, unless there is a newer one, it was made for another life, or the switch
    /// stands by.
    ///
    /// Nor is it taken if a key comes in with a stay that may have been here before, as after the
    /// directory was forgotten: a late answer to a read of then would prove the entry wrongly. The
    /// revision stays as it is, so that the controller sees that other stays are wanted.
    ///
    /// # Errors
    ///
    /// If the order is too large or contradicts itself; nothing is changed then.
    pub fn install(&self, order: &HotOrder) -> Result<(), InstallError> {
        loop {
            let (before, newest) = {
                let present = self.lock();
                (present.table.clone(), present.newest())
            };
            let was_here_before = |key: &HotEntry| {
                let row = before.find(key.keyspace, key.keyhash);
                row.is_none_or(|row| row.entry.stay() != key.stay) && key.stay <= newest
            };
            let is_for_others = order.switch != self.life || order.revision <= newest;
            if is_for_others || order.keys.iter().any(was_here_before) {
                return Ok(());
            }
            // That takes its time; nobody waits for the lock meanwhile.
            let table = HotTable::compile(order, &before)?;
            let mut present = self.lock();
            if !present.active {
                return Ok(());
            }
            if Arc::ptr_eq(&present.table, &before) {
                self.publish(&mut present, table);
                return Ok(());
            }
        }
    }

    /// Revision of the order that is installed; 0 for none, also after it was forgotten.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.table().revision()
    }

    /// The present table.
    pub(crate) fn table(&self) -> Arc<HotTable> {
        self.lock().table.clone()
    }

    /// A pipeline has tables of this revision now, by which the switch is active or stands by. One
    /// that stands by forgets its directory, unless it `keeps` it against the rules.
    pub(crate) fn follow(&self, revision: u64, active: bool, keeps: bool) {
        let mut present = self.lock();
        // Another thread may be ahead of this one.
        if revision < present.tables {
            return;
        }
        (present.tables, present.active) = (revision, active);
        if !active && !keeps {
            self.forget(&mut present);
        }
    }

    /// A pipeline with tables of revision `installed` is given a lease at `now`. If the switch had
    /// none at that time the directory is forgotten first, unless it `keeps` it against the rules.
    pub(crate) fn renew(&self, now: Instant, installed: u64, lease: &Lease, keeps: bool) {
        let mut present = self.lock();
        if !present.tenure.holds(now) && !keeps {
            self.forget(&mut present);
        }
        present.tenure.renew(installed, lease);
    }

    fn forget(&self, present: &mut Present) {
        present.forgotten = present.newest();
        if present.table.revision() != 0 {
            self.publish(present, HotTable::default());
        }
    }

    fn publish(&self, present: &mut Present, table: HotTable) {
        present.table = Arc::new(table);
        self.number.fetch_add(1, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        // Whoever panicked here left a whole table behind.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Present {
    /// Revision of the newest order that was ever installed.
    fn newest(&self) -> u64 {
        self.table.revision().max(self.forgotten)
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
