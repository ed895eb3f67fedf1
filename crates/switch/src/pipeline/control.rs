//! What the controller orders of a pipeline.

use super::Pipeline;
use crate::Tables;
use cluster::{HotOrder, InstallError, Lease, Mutant, SwitchControl, SwitchCounters, SwitchTables};
use machine::Instant;
use std::sync::Arc;

impl SwitchControl for Pipeline {
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError> {
        self.install_compiled(Arc::new(Tables::compile(tables)?));
        Ok(())
    }

    fn install_hot(&mut self, order: &HotOrder) -> Result<(), InstallError> {
        if self.behind.is_some() {
            return Ok(());
        }
        let outcome = self.hot.directory().take(order, self.mutant);
        self.follow_directory();
        outcome
    }

    fn renew(&mut self, now: Instant, lease: &Lease) {
        let keeps = self.mutant.is(Mutant::KeepDirectory);
        let revision = self.revision();
        self.hot.directory().renew(now, revision, lease, keeps);
        self.follow_directory();
        self.tenure.renew(self.hot.directory().cluster(), revision, lease);
    }

    fn counters(&self) -> SwitchCounters {
        let cluster = self.hot.directory().cluster();
        self.counters.report(cluster, self.revision(), self.hot_revision())
    }
}
