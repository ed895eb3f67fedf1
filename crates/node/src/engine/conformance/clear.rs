//! Whether a partition is cleared piece by piece, and nothing else is.

use super::model::Model;
use super::step::{self, Change, Step};
use crate::engine::{Area, Engine};
use cluster::{KeyspaceId, PartitionId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wire::Version;

/// Version by keyspace and key: enough to tell records apart.
type Seen = BTreeMap<(KeyspaceId, Vec<u8>), Version>;

impl Model {
    /// Clears one partition after another, so much at a time, and does meanwhile what of these
    /// steps concerns others.
    ///
    /// # Panics
    ///
    /// If the engine does not do what it should.
    pub fn clear_in_pieces(&mut self, engine: &mut impl Engine, at_most: usize, steps: &[Step]) {
        let changes = steps.iter().flat_map(Step::changes);
        let changes = changes.filter(|change| !matches!(change, Change::Clear(_)));
        let changes: Vec<&Change> = changes.collect();
        let mut changes = changes.into_iter().cycle();
        for area in step::areas() {
            let before = self.seen(|partition| partition == area.partition);
            let mut pieces_left = before.len() + self.notes_of(area.partition).len() + 1;
            self.apply_change(&Change::Clear(area));
            while engine.clear_on(&area, at_most).is_break() {
                pieces_left -= 1;
                assert!(pieces_left > 0, "each piece of {area:?} takes something");
                self.check_others(engine, &area, &before);
                let elsewhere = |change: &&Change| change.partition() != area.partition;
                if let Some(change) = changes.next().filter(elsewhere) {
                    self.change(engine, change);
                }
            }
            self.check(engine, steps);
        }
    }

    /// The records of some partitions.
    fn seen(&self, of: impl Fn(PartitionId) -> bool) -> Seen {
        let areas = step::areas().filter(|area| of(area.partition));
        let records = areas.flat_map(|area| {
            let records = self.records_of(area.partition);
            records.map(move |(key, record)| ((area.keyspace, key.to_vec()), record.version))
        });
        records.collect()
    }

    /// Checks that others are as they should be, and that what shows of the partition that is being
    /// cleared was there before.
    fn check_others(&self, engine: &impl Engine, cleared: &Area, before: &Seen) {
        for area in step::areas().filter(|area| area.partition != cleared.partition) {
            self.check_area(engine, &area);
        }
        let flow = engine.walk_on(cleared, &mut engine.walk(cleared), |key, record| {
            let was = before.get(&(cleared.keyspace, key.to_vec()));
            assert_eq!(was, Some(&record.version), "a record that was there");
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        let mut due = Seen::new();
        engine.due(u64::MAX, |keyspace, key, record| {
            due.insert((keyspace, key.to_vec()), record.version);
            ControlFlow::Continue(())
        });
        for (at, version) in self.due() {
            assert_eq!(due.remove(&at), Some(version), "{at:?} is due");
        }
        let left = due.iter().all(|(at, version)| before.get(at) == Some(version));
        assert!(left, "{due:?} are due");
    }
}

impl Change {
    fn partition(&self) -> PartitionId {
        match self {
            Self::Write { key, .. } | Self::Remove(key) => key.partition,
            Self::Note { partition, .. } => *partition,
            Self::Clear(area) => area.partition,
        }
    }
}
