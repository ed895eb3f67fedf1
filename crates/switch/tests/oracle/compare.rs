//! One datagram through pipeline and model, which must agree in everything.

use super::counts::Counts;
use super::invariants;
use super::model::{Model, Sent};
use cluster::{HotOrder, Lease, Life, SwitchControl as _, SwitchTables};
use machine::{Instant, Outbox};
use std::rc::Rc;
use switch::Pipeline;
use wire::Endpoint;

/// A pipeline and the model of it, always with the same tables.
pub(crate) struct Both {
    pipeline: Pipeline,
    model: Model,
    none: SwitchTables,
}

/// Which life of a switch this is.
pub(crate) const LIFE: Life = Life(1);

const NOW: Instant = Instant::from_unix_ms(1_000);

impl Both {
    /// Both without tables, with a lease or without.
    pub(crate) fn new(leased: bool) -> Self {
        let mut pipeline = Pipeline::new(LIFE);
        if leased {
            pipeline.renew(NOW, &Lease { life: LIFE, revision: 0, from: NOW, duration_ms: 1 });
        }
        let model = Model { leased, ..Model::default() };
        Self { pipeline, model, none: SwitchTables::default() }
    }

    /// Installs tables; they must be sound.
    pub(crate) fn install(&mut self, tables: &SwitchTables) {
        self.pipeline.install(tables).expect("sound tables");
        if self.model.tables.as_ref().is_none_or(|old| old.revision <= tables.revision) {
            self.model.tables = Some(Rc::new(tables.clone()));
            if !tables.active {
                self.model.hot.forget(&mut self.model.counts);
            }
        }
    }

    /// Installs an order of hot keys; it must be sound.
    pub(crate) fn install_hot(&mut self, order: &HotOrder) {
        self.pipeline.install_hot(order).expect("a sound order");
        if self.model.tables.as_ref().is_some_and(|tables| tables.active) {
            let Model { hot, roam, counts, .. } = &mut self.model;
            hot.install(order, LIFE, roam, counts);
        }
    }

    /// Takes a datagram, compares what both send and gives it.
    pub(crate) fn process(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let mut out = Outbox::default();
        let dropped = |pipeline: &Pipeline| pipeline.counters().dropped;
        let before = dropped(&self.pipeline);
        let outcome = self.pipeline.process(NOW, from, &mut datagram.to_vec(), &mut out);
        let drops = dropped(&self.pipeline) - before;
        assert!(outcome.is_ok() || (out.is_empty() && drops == 1), "an error is one drop");
        let sent: Vec<Sent> =
            std::iter::from_fn(|| out.pop().map(|d| (d.to, d.payload.to_vec()))).collect();
        self.model.did.clone_from(&sent);
        assert_eq!(sent, self.model.process(from, datagram), "pipeline and model");
        let tables = self.model.tables.as_deref().unwrap_or(&self.none);
        invariants::check(tables, from, datagram, &sent, drops);
        sent
    }

    /// What both have counted, which must be the same.
    pub(crate) fn counts(&self) -> Counts {
        let counts = Counts::of(self.pipeline.counters_ref(), self.pipeline.loads());
        assert_eq!(counts, self.model.counts, "pipeline and model");
        counts
    }
}
