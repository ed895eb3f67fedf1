//! Whether a walk keeps its promise while the partition changes.

use super::model::Model;
use super::step::{Change, Walk};
use crate::engine::{Area, Engine};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// What a walk owes.
struct Debt {
    /// Keys that were there from the beginning of the walk until now, and were not taken.
    untaken: BTreeSet<Vec<u8>>,
    /// The key at which the last piece broke off, if it is still there.
    first: Option<Vec<u8>>,
}

impl Debt {
    fn new(model: &Model, area: &Area) -> Self {
        let untaken = model.records_of(area.partition).map(|(key, _)| key.to_vec()).collect();
        Self { untaken, first: None }
    }

    fn forgive(&mut self, area: &Area, change: &Change) {
        match change {
            Change::Remove(key) if key.partition == area.partition => {
                self.untaken.remove(&key.bytes);
                self.first.take_if(|first| *first == key.bytes);
            }
            Change::Clear(cleared) if cleared.partition == area.partition => {
                self.untaken.clear();
                self.first = None;
            }
            Change::Write { .. } | Change::Remove(_) | Change::Note { .. } | Change::Clear(_) => {}
        }
    }
}

impl Model {
    /// Walks through a partition that changes meanwhile.
    pub(super) fn walk(&mut self, engine: &mut impl Engine, walk: &Walk) {
        let Walk { area, pieces } = walk;
        let mut debt = Debt::new(self, area);
        let mut cursor = engine.walk(area);
        let mut is_over = false;
        for piece in pieces {
            if !is_over {
                is_over = self.walk_on(engine, area, &mut cursor, &mut debt, piece.takes);
            }
            for change in &piece.then {
                self.change(engine, change);
                debt.forgive(area, change);
            }
        }
        if !is_over {
            self.walk_on(engine, area, &mut cursor, &mut debt, usize::MAX);
        }
    }

    /// Walks through a partition at one go.
    pub(super) fn check_whole_walk(&self, engine: &impl Engine, area: &Area) {
        let mut cursor = engine.walk(area);
        self.walk_on(engine, area, &mut cursor, &mut Debt::new(self, area), usize::MAX);
    }

    /// Takes so many records and breaks off at the next; returns whether the walk is over.
    fn walk_on<E: Engine>(
        &self,
        engine: &E,
        area: &Area,
        cursor: &mut E::Cursor,
        debt: &mut Debt,
        takes: usize,
    ) -> bool {
        let walked_before = engine.walked(area, cursor);
        let (mut taken, mut broke_at) = (0, None);
        let flow = engine.walk_on(area, cursor, |key, record| {
            assert_eq!(broke_at, None, "nothing is visited after a break");
            if let Some(first) = debt.first.take() {
                assert_eq!(key, first, "what was not taken is visited first");
            }
            let held = self.records_of(area.partition).find(|(held, _)| *held == key);
            assert_eq!(Some((key, record)), held, "a record is visited as it is");
            if taken == takes {
                broke_at = Some(key.to_vec());
                return ControlFlow::Break(());
            }
            taken += 1;
            debt.untaken.remove(key);
            ControlFlow::Continue(())
        });
        assert_eq!(debt.first, None, "what was not taken is visited again");
        assert_eq!(flow.is_break(), broke_at.is_some(), "it breaks where the visitor does");
        let walked = engine.walked(area, cursor);
        assert!((walked_before..=1_000).contains(&walked), "{walked_before}, then {walked}");
        debt.first = broke_at;
        let is_over = flow.is_continue();
        if is_over {
            assert_eq!(debt.untaken, BTreeSet::new(), "whatever stays is taken");
            assert_eq!(walked, 1_000, "it is over");
        }
        is_over
    }
}
