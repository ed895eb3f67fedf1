//! The orders that the switch in the kernel takes.

use super::Plane;
use crate::compile::Compiled;
use crate::program::Error;
use cluster::{HotOrder, InstallError, Lease, SwitchControl, SwitchCounters, SwitchTables};
use machine::Instant;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

impl<C: FnMut() -> Instant> Plane<C> {
    /// Lets go what is not needed any more of delegated writes. To be called every second or so.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told; what is left is done by a later call.
    pub fn sweep(&mut self, now: Instant) -> Result<(), Error> {
        if self.grants.begins_pass(now)? {
            self.govern()?;
            self.grants.sweep(&self.program)?;
        }
        // Nobody gives a grant while no key is delegated.
        if !self.hot.delegates() && self.grants.is_empty()? {
            self.delegates.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Puts an order into the maps. The programs know by the rule that rows and delegations are
    /// changing.
    fn settle(&mut self, order: &HotOrder) -> Result<(), Error> {
        if order.keys.iter().any(|key| key.delegation.is_some()) {
            self.delegates.store(true, Ordering::SeqCst);
        }
        self.hot.clear_for(order)?;
        self.govern()?;
        self.hot.settle(&self.program, order)
    }
}

impl<C: FnMut() -> Instant> SwitchControl for Plane<C> {
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError> {
        let ours = self.hot.gate.claim(tables.cluster);
        if !ours || tables.revision < self.installed.revision {
            return Ok(());
        }
        switch::Tables::compile(tables)?;
        let ids = || tables.partitions.iter().map(|it| (it.id, it.keyspace));
        self.counted.take(ids());
        let mut next = Compiled::new(tables, |partition| self.counted.places.of(partition))?;
        next.keep_ways(&self.installed.compiled);
        self.install_compiled(next, tables).map_err(unsound)?;
        let stays: BTreeSet<_> = ids().map(|(id, _)| id).collect();
        self.counted.retain(|partition| stays.contains(&partition)).map_err(unsound)?;
        if self.hot.gate.follow(tables.revision, tables.active) || self.hot.is_half_forgotten() {
            self.hot.forget().map_err(unsound)?;
            self.govern().map_err(unsound)?;
        }
        self.find_ways().map_err(unsound)
    }

    fn install_hot(&mut self, order: &HotOrder) -> Result<(), InstallError> {
        let generation_of = |keyspace, keyhash| self.hot.generation_of(keyspace, keyhash);
        if !self.hot.gate.takes(order, generation_of) || self.hot.revives_a_delegation(order) {
            return Ok(());
        }
        order.check()?;
        if let Err(why) = self.settle(order) {
            self.hot.forget().map_err(unsound)?;
            return Err(unsound(why));
        }
        self.govern().map_err(unsound)
    }

    fn renew(&mut self, now: Instant, lease: &Lease) {
        // By whichever clock is ahead, for it costs little to forget, and before the lease counts,
        // so that no packet is dealt with by what it should not know.
        let now = now.max((self.clock)());
        if (self.hot.gate.lapsed(now) || self.hot.is_half_forgotten())
            && let Err(why) = self.hot.forget()
        {
            tracing::error!(%why, "the in-kernel switch did not forget its hot keys: no lease");
            return;
        }
        self.hot.gate.renew(self.installed.revision, lease);
        if let Err(why) = self.govern() {
            tracing::error!(%why, "the in-kernel switch was not told of its lease");
        }
    }

    fn counters(&self) -> SwitchCounters {
        let counters = self.read_counters().unwrap_or_default();
        let cluster = self.hot.gate.cluster();
        counters.report(cluster, self.installed.revision, self.hot_revision())
    }
}

fn unsound(why: Error) -> InstallError {
    InstallError::Unsound(why.to_string())
}
