//! How many keys of a partition have a value, and how many bytes they are: kept as they change, so
//! that a count of all of it looks at none. And the digest of them, made anew.
//!
//! What an earlier incarnation has left in the store is gone through once, a bounded number of
//! records at a time, in the order of a scan. What changes meanwhile behind the place that was come
//! to changes the number; what lies ahead is counted when its turn comes. Until it is through, the
//! number is not known. That way goes past parts of big values, too, of which this member has no
//! list yet. When it is through, the digest is that of what was gone through: a store may have
//! changed by itself.

use crate::engine::{Engine, Interval, KeyRef, Record, Written};
use crate::replica::big::parts::manifest_in;
use crate::replica::digest::Digest;
use crate::replica::member::Member;
use crate::replica::stored::StoredSample;
use cluster::{Keyspace, Match, Volume};
use std::ops::{Bound, ControlFlow};
use wire::big::time_of;
use wire::{PartKey, RangeCountBody};

/// The keys of a partition that have a value.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    keys: u64,
    expiring: u64,
    /// Of keys and values.
    bytes: u64,
    sample: StoredSample,
    /// Of what was gone through, until all is.
    digest: Digest,
    /// The place up to which, inclusive, what an earlier incarnation has left is counted; `None`:
    /// all is.
    counted_to: Option<(Match, Vec<u8>)>,
}

/// How far a survey has come.
#[derive(Debug)]
pub(crate) enum Surveyed {
    Paused,
    /// To a part of a big value, of this key; all parts of its upload are passed by.
    Part(Vec<u8>),
    /// Through, with this digest.
    Through(Digest),
}

/// What a key counts as that has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// It goes by itself some day.
    pub(crate) expires: bool,
    /// Of the key and its value; of a big one, of the value that its parts are.
    pub(crate) bytes: u64,
}

/// What a key counts as that has this record.
pub(crate) fn counts_as(key: &[u8], record: Option<&Record<'_>>) -> Option<Counted> {
    let record = record.filter(|it| !it.tombstone)?;
    let len = manifest_in(key, record).map_or(record.value.len() as u64, |it| it.len);
    let bytes = (key.len() as u64).saturating_add(len);
    Some(Counted { expires: time_of(record.expiry_ms) != 0, bytes })
}

impl Totals {
    /// Begins to count what is there.
    pub(crate) fn begin(&mut self, first: Match) {
        *self = Self { counted_to: Some((first, Vec::new())), ..Self::default() };
    }

    /// How many there are, if all are counted.
    pub(crate) fn known(&self) -> Option<RangeCountBody> {
        let Self { keys, expiring, .. } = *self;
        self.counted_to.is_none().then_some(RangeCountBody { keys, expiring })
    }

    /// How much there is, if all is counted.
    pub(crate) fn volume(&self) -> Option<Volume> {
        let Self { keys, bytes, .. } = *self;
        self.counted_to.is_none().then_some(Volume { keys, bytes })
    }

    /// Match values that cut the bytes into equal shares, about.
    pub(crate) fn points(&self) -> Vec<Match> {
        self.sample.points()
    }

    /// A key's record is replaced; it is not one of a part.
    pub(crate) fn replace<E: Engine>(
        &mut self,
        at: &KeyRef<'_>,
        (before, written): (Option<Counted>, Option<Written>),
        record: &Record<'_>,
    ) {
        let here = (at.match_value, at.key);
        if self.counted_to.as_ref().is_some_and(|(to, key)| here > (*to, key)) {
            return;
        }
        self.add(at, counts_as(at.key, Some(record)));
        if self.counted_to.is_some() {
            self.digest.change::<E>(at, written, record);
        }
        let Some(Counted { expires, bytes }) = before else { return };
        // What a store made of itself was not counted.
        self.keys = self.keys.saturating_sub(1);
        self.expiring = self.expiring.saturating_sub(expires.into());
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Goes on through what an earlier incarnation has left, so many records at most; `None` if
    /// there is nothing to go through.
    pub(crate) fn survey<E: Engine>(
        &mut self,
        engine: &E,
        keyspace: &Keyspace,
        member: &Member,
        left: &mut usize,
    ) -> Option<Surveyed> {
        let (first, after) = self.counted_to.take()?;
        let (id, last) = (member.id(), member.partition.last);
        let start = if after.is_empty() { Bound::Unbounded } else { Bound::Excluded(&*after) };
        let end = Bound::Unbounded;
        let interval =
            Interval { keyspace, partition: id, first, last, start, end, reverse: false };
        let mut stopped_at = None;
        engine.scan(&interval, |key, record| {
            *left -= 1;
            let is_part = PartKey::parse(key).is_some();
            if !is_part {
                self.count::<E>(&KeyRef::of(keyspace, id, key), &record);
            }
            let stray = is_part && !record.tombstone;
            if stray || *left == 0 {
                stopped_at = Some((key.to_vec(), stray));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let Some((key, stray)) = stopped_at else { return Some(Surveyed::Through(self.digest)) };
        let at = keyspace.match_value(&key);
        let Some(part) = PartKey::parse(&key).filter(|_| stray) else {
            self.counted_to = Some((at, key));
            return Some(Surveyed::Paused);
        };
        // To begin anew costs more than to go on.
        *left = left.saturating_sub(SEEK_STEPS);
        self.counted_to = Some((at, PartKey { index: u32::MAX, ..part }.to_bytes()));
        Some(Surveyed::Part(key))
    }

    fn count<E: Engine>(&mut self, at: &KeyRef<'_>, record: &Record<'_>) {
        self.add(at, counts_as(at.key, Some(record)));
        self.digest.change::<E>(at, None, record);
    }

    fn add(&mut self, at: &KeyRef<'_>, counts: Option<Counted>) {
        self.sample.note(at.keyhash, at.match_value, counts.map(|it| it.bytes));
        let Some(Counted { expires, bytes }) = counts else { return };
        self.keys += 1;
        self.expiring += u64::from(expires);
        self.bytes += bytes;
    }
}

/// What it costs to begin a scan, in records that are gone through.
pub(crate) const SEEK_STEPS: usize = 8;
