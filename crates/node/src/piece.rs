//! The answer to a piece of a RANGE.

use crate::engine::{Engine, Interval, Record};
use crate::read::{PAYLOAD_MAX, entry, is_over};
use machine::Instant;
use std::ops::{Bound, ControlFlow};
use wire::big::time_of;
use wire::{Entry, PartKey, RangeCountBody, RangeEntryBody, flag};

/// What a RANGE is to be told of the keys that have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Entries,
    Keys,
    /// Only how many they are.
    Count,
}

impl Shows {
    pub(crate) fn of(flags: u8) -> Self {
        if flags & flag::COUNT_ONLY != 0 {
            Self::Count
        } else if flags & flag::KEYS_ONLY != 0 {
            Self::Keys
        } else {
            Self::Entries
        }
    }
}

/// The answer to a piece of a RANGE while it is being filled.
pub(crate) struct Piece {
    pub(crate) payload: Vec<u8>,
    pub(crate) count: u8,
    limit: u32,
    shows: Shows,
    /// Keys with a value that were counted and not listed.
    pub(crate) counted: RangeCountBody,
    examined: usize,
    /// Where the last entry begins.
    last_at: usize,
    /// The scan stopped before the end of its interval.
    pub(crate) partial: bool,
}

impl Piece {
    pub(crate) fn new(mut payload: Vec<u8>, limit: u32, shows: Shows) -> Self {
        payload.clear();
        let (count, examined, last_at, partial) = (0, 0, 0, false);
        let counted = RangeCountBody::default();
        Self { payload, count, limit, shows, counted, examined, last_at, partial }
    }

    /// Takes what fits of an interval. Parts of a big value are passed by in one step.
    pub(crate) fn fill<E: Engine>(&mut self, engine: &E, now: Instant, interval: Interval<'_>) {
        let mut edge: Option<Vec<u8>> = None;
        loop {
            let mut rest = interval;
            if let Some(edge) = edge.as_deref() {
                let at = interval.keyspace.match_value(edge);
                if interval.reverse {
                    (rest.last, rest.end) = (at, Bound::Excluded(edge));
                } else {
                    (rest.first, rest.start) = (at, Bound::Excluded(edge));
                }
            }
            let (mut passed, keys_only) = (None, self.shows != Shows::Entries);
            let visit = |key: &[u8], record: Record<'_>| {
                let Some(part) = PartKey::parse(key) else { return self.take(now, key, &record) };
                let index = if interval.reverse { 0 } else { u32::MAX };
                let edge = PartKey { index, ..part }.to_bytes();
                let goes_on = self.take_as(&edge, &record, false);
                passed = goes_on.is_continue().then_some(edge);
                ControlFlow::Break(())
            };
            if keys_only {
                engine.scan_keys(&rest, visit);
            } else {
                engine.scan(&rest, visit);
            }
            if passed.is_none() {
                return;
            }
            edge = passed;
        }
    }

    fn take(&mut self, now: Instant, key: &[u8], record: &Record<'_>) -> ControlFlow<()> {
        let visible = !record.tombstone && !is_over(record, now);
        self.take_as(key, record, visible)
    }

    fn take_as(&mut self, key: &[u8], record: &Record<'_>, visible: bool) -> ControlFlow<()> {
        self.examined += 1;
        let listed = visible && self.shows != Shows::Count;
        let value = if visible && self.shows == Shows::Entries { record.value } else { &[] };
        let fits =
            self.payload.len() + RangeEntryBody::LEN + key.len() + value.len() <= PAYLOAD_MAX;
        // An empty piece has room for any entry, so a partial one always has a key to go on from.
        if !fits || u32::from(self.count) == self.limit {
            self.partial = true;
            return ControlFlow::Break(());
        }
        let out_of_steps = self.examined >= SCAN_STEPS_MAX;
        if visible && !listed {
            self.counted.keys += 1;
            self.counted.expiring += u64::from(time_of(record.expiry_ms) != 0);
        }
        if listed || out_of_steps {
            self.last_at = self.payload.len();
        }
        if listed {
            let entry = Entry { value, ..entry(record) };
            wire::push_range_entry(&mut self.payload, key, Some(&entry));
            self.count += 1;
        } else if out_of_steps {
            wire::push_range_entry(&mut self.payload, key, None);
            self.count += 1;
        }
        if out_of_steps {
            self.partial = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The part of the interval of which this is all that there is.
    pub(crate) fn covered<'a>(&'a self, interval: Interval<'a>) -> Interval<'a> {
        if !self.partial {
            return interval;
        }
        let last = self.payload.get(self.last_at..).and_then(RangeEntryBody::split);
        let key = last.and_then(|(fixed, rest)| rest.get(..usize::from(fixed.key_len)));
        let key = key.expect("a partial piece has an entry");
        let (at, here) = (interval.keyspace.match_value(key), Bound::Included(key));
        if interval.reverse {
            Interval { first: at, start: here, ..interval }
        } else {
            Interval { last: at, end: here, ..interval }
        }
    }
}

/// Records that one piece examines at most, visible or not: about 100 µs of work, so that a scan
/// over many deleted keys does not hold up the requests behind it.
const SCAN_STEPS_MAX: usize = 512;
