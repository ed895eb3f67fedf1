//! How many keys of a partition have a value: kept as they change, so that a count of all of it
//! looks at none.
//!
//! What an earlier life has left in the store is gone through once, a bounded number of records at
//! a time, in the order of a scan. What changes meanwhile behind the place that was come to changes
//! the number; what lies ahead is counted when its turn comes. Until it is through, the number is
//! not known. That way goes past parts of big values, too, of which this member has no list yet.

use crate::engine::{Engine, Interval, KeyRef, Record};
use crate::replica::{Context, Replica};
use cluster::Match;
use std::ops::{Bound, ControlFlow};
use wire::big::time_of;
use wire::{PartKey, RangeCountBody};

/// The keys of a partition that have a value.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    keys: u64,
    expiring: u64,
    /// The place up to which, inclusive, what an earlier life has left is counted; `None`: all is.
    counted_to: Option<(Match, Vec<u8>)>,
}

/// What a record counts as that is a value: whether it goes by itself some day.
pub(crate) fn counts_as(record: Option<&Record<'_>>) -> Option<bool> {
    record.filter(|it| !it.tombstone).map(|it| time_of(it.expiry_ms) != 0)
}

impl Totals {
    /// Begins to count what is there.
    fn begin(&mut self, first: Match) {
        *self = Self { counted_to: Some((first, Vec::new())), ..Self::default() };
    }

    /// How many there are, if all are counted.
    pub(crate) fn known(&self) -> Option<RangeCountBody> {
        let Self { keys, expiring, .. } = *self;
        self.counted_to.is_none().then_some(RangeCountBody { keys, expiring })
    }

    /// A key's record is replaced; it is not one of a part.
    pub(crate) fn replace(&mut self, at: &KeyRef<'_>, before: Option<bool>, after: Option<bool>) {
        let here = (at.match_value, at.key);
        if self.counted_to.as_ref().is_some_and(|(to, key)| here > (*to, key)) {
            return;
        }
        let number = |counts: Option<bool>| u64::from(counts.is_some());
        let expiring = |counts: Option<bool>| u64::from(counts == Some(true));
        self.keys = self.keys + number(after) - number(before);
        self.expiring = self.expiring + expiring(after) - expiring(before);
    }

    fn count(&mut self, counts: Option<bool>) {
        self.keys += u64::from(counts.is_some());
        self.expiring += u64::from(counts == Some(true));
    }
}

impl Replica {
    /// What an earlier life has left here is gone through.
    pub(crate) fn begin_survey(&mut self) {
        self.totals.begin(self.partition.first);
    }

    /// Goes through so many records of an earlier life, if there are any.
    pub(crate) fn survey<E: Engine>(&mut self, ctx: &mut Context<'_, E>, left: &mut usize) {
        let Some(keyspace) = ctx.directory.keyspace(self.partition.keyspace) else { return };
        while *left > 0
            && let Some((first, after)) = self.totals.counted_to.take()
        {
            let start = if after.is_empty() { Bound::Unbounded } else { Bound::Excluded(&*after) };
            let interval = Interval {
                keyspace,
                partition: self.partition.id,
                first,
                last: self.partition.last,
                start,
                end: Bound::Unbounded,
                reverse: false,
            };
            let (mut stopped_at, totals) = (None, &mut self.totals);
            ctx.engine.scan_keys(&interval, |key, record| {
                *left -= 1;
                let is_part = PartKey::parse(key).is_some();
                if !is_part {
                    totals.count(counts_as(Some(&record)));
                }
                let stray = is_part && !record.tombstone;
                if stray || *left == 0 {
                    stopped_at = Some((key.to_vec(), stray));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            let Some((mut key, stray)) = stopped_at else { return };
            let at = keyspace.match_value(&key);
            if let Some(part) = PartKey::parse(&key).filter(|_| stray) {
                self.found_part(ctx, part);
                // To begin anew costs more than to go on.
                *left = left.saturating_sub(SEEK_STEPS);
                key = PartKey { index: u32::MAX, ..part }.to_bytes();
            }
            self.totals.counted_to = Some((at, key));
        }
    }
}

/// What it costs to begin a scan, in records that are gone through.
pub(crate) const SEEK_STEPS: usize = 8;
