//! One datagram through pipeline and model, which must agree in everything.

use super::counts::Counts;
use super::invariants;
use super::model::{Model, Sent};
use cluster::{Capabilities, HotOrder, Incarnation, Lease, SwitchControl as _, SwitchTables};
use machine::{Instant, Outbox};
use std::rc::Rc;
use switch::Pipeline;
use wire::{Endpoint, Revision};

/// A pipeline and the model of it, always with the same tables.
pub struct Both {
    pipeline: Pipeline,
    /// Another one, which splits multigets by hints where there are any: whatever these are, what
    /// holds of all that a switch sends holds of what it sends.
    hinted: Pipeline,
    model: Model,
    none: SwitchTables,
}

/// Which incarnation of a switch this is.
pub const INCARNATION: Incarnation = Incarnation(1);

const NOW: Instant = Instant::from_unix_ms(1_000);

/// The lease of a switch that has just begun: with it and tables the switch forwards.
#[must_use]
pub fn before_tables(incarnation: Incarnation, now: Instant) -> Lease {
    Lease {
        cluster: cluster::ClusterId(0),
        incarnation,
        revision: Revision::NONE,
        from: now,
        duration_ms: 1,
    }
}

impl Both {
    /// Both without tables, with a lease or without.
    pub fn new(leased: bool) -> Self {
        let mut pipeline = Pipeline::new(INCARNATION);
        let mut hinted = Pipeline::new(INCARNATION);
        hinted.split_by_hints();
        if leased {
            let lease = before_tables(INCARNATION, NOW);
            pipeline.renew(NOW, &lease);
            hinted.renew(NOW, &lease);
        }
        let model = Model { leased, ..Model::default() };
        Self { pipeline, hinted, model, none: SwitchTables::default() }
    }

    /// Installs tables; they must be sound.
    pub fn install(&mut self, tables: &SwitchTables) {
        for pipeline in [&mut self.pipeline, &mut self.hinted] {
            pipeline.install(tables).expect("sound tables");
        }
        if self.model.tables.as_ref().is_none_or(|old| old.revision <= tables.revision) {
            self.model.tables = Some(Rc::new(tables.clone()));
            if !tables.active {
                self.model.hot.forget(&mut self.model.counts);
            }
        }
    }

    /// Installs an order of hot keys; it must be sound.
    pub fn install_hot(&mut self, order: &HotOrder) {
        for pipeline in [&mut self.pipeline, &mut self.hinted] {
            pipeline.install_hot(order).expect("a sound order");
        }
        if self.model.tables.as_ref().is_some_and(|tables| tables.active) {
            let Model { hot, delegate, counts, .. } = &mut self.model;
            hot.install(order, INCARNATION, delegate, counts);
        }
    }

    /// Takes a datagram, compares what both send and gives it.
    pub fn process(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let (sent, drops) = pass(&mut self.pipeline, from, datagram);
        let (hinted, hinted_drops) = pass(&mut self.hinted, from, datagram);
        self.model.did.clone_from(&sent);
        assert_eq!(sent, self.model.process(from, datagram), "pipeline and model");
        let tables = self.model.tables.as_deref().unwrap_or(&self.none);
        invariants::check(tables, from, datagram, &sent, drops);
        invariants::check(tables, from, datagram, &hinted, hinted_drops);
        sent
    }

    /// The same for a datagram of no plan. If it tells of nodes that have not shown, what shows
    /// them comes first; it is left out if that does not.
    pub fn process_any(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        if let Some((client, request)) = self.model.unclear(datagram) {
            self.process(client, &request);
            if self.model.unclear(datagram).is_some() {
                return Vec::new();
            }
        }
        self.process(from, datagram)
    }

    /// What the pipeline says that it can do.
    pub fn capabilities(&self) -> Capabilities {
        self.pipeline.counters().capabilities
    }

    /// What both have counted, which must be the same.
    pub fn counts(&self) -> Counts {
        let counts = Counts::of(self.pipeline.counters_ref(), self.pipeline.loads());
        assert_eq!(counts, self.model.counts, "pipeline and model");
        counts
    }
}

/// What a pipeline sends for a datagram, and how many drops it counts.
fn pass(pipeline: &mut Pipeline, from: Endpoint, datagram: &[u8]) -> (Vec<Sent>, u64) {
    let mut out = Outbox::default();
    let before = pipeline.counters().dropped;
    let outcome = pipeline.process(NOW, from, &mut datagram.to_vec(), &mut out);
    let drops = pipeline.counters().dropped - before;
    assert!(outcome.is_ok() || (out.is_empty() && drops == 1), "an error is one drop");
    (std::iter::from_fn(|| out.pop().map(|d| (d.to, d.payload.to_vec()))).collect(), drops)
}
