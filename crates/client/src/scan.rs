//! Scans: an interval put together from pieces that come in any order, more than once, or not.
//!
//! At every moment the interval asked for is the disjoint union of three: what has been
//! *covered* by replies that were taken, what is *open* in the asks that wait for an answer, and
//! what is *wanted* and not asked for yet. A reply moves something from open to covered, or back to
//! wanted; what it says about anything that is not open in its ask has been said before and is left
//! out. So no entry is lost or doubled, and the scan is complete when nothing is open or wanted.

mod drive;
mod terms;

pub(crate) use terms::{Shows, Terms};

use crate::interval::Interval;
use crate::{KeyCount, Refusal, Reply, Value};
use cluster::{Keyspace, Match};
use machine::Instant;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use wire::{
    DropReason, Fields as _, HEADER_LEN, RangeCountBody, RangeEntries, RangeInterval, flag,
    hop_flag,
};

/// One scan.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) reverse: bool,
    pub(crate) shows: Shows,
    /// Most entries wanted. A scan with a limit goes partition by partition, one ask at a time.
    limit: Option<usize>,
    /// Not asked for yet, from first to last key.
    wanted: VecDeque<Want>,
    /// Sequence numbers that wait for an answer.
    pub(crate) in_flight: BTreeSet<u64>,
    /// Entries of one covered interval each, in the order of the scan.
    chunks: Vec<Vec<(Vec<u8>, Value)>>,
    entries: usize,
    /// Keys that were counted and not listed.
    counted: KeyCount,
    bytes: usize,
    bytes_max: usize,
    /// Given up at this time unless there is progress.
    pub(crate) deadline: Instant,
}

/// A part of the interval that is to be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) interval: Interval,
    /// Not sooner than this.
    pub(crate) not_before: Instant,
    /// Ask-again answers in a row.
    pub(crate) agains: u32,
}

/// A part of the interval that has been asked for under one sequence number.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) interval: Interval,
    /// What of it has not been answered, by match value, in order.
    open: Vec<(Match, Match)>,
}

/// What the header of a reply says about the piece that it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    first: Match,
    last: Match,
    /// The reply covers only as far as its last key.
    partial: bool,
    /// The switch went no further than this piece.
    cut: bool,
}

impl Piece {
    /// Reads the header of a RANGE reply; `None` if its interval is none.
    pub(crate) fn of(header: &[u8; HEADER_LEN]) -> Option<Self> {
        let RangeInterval { first, last } = RangeInterval::read(header);
        let (first, last) = (Match(first), Match(last));
        let partial = header.flags() & flag::PARTIAL != 0;
        let cut = header.hop_flags() & hop_flag::CUT != 0;
        (first <= last).then_some(Self { first, last, partial, cut })
    }
}

/// Bookkeeping of one entry, counted with its bytes.
const ENTRY_OVERHEAD: usize = size_of::<(Vec<u8>, Value)>();

/// Open parts of one ask, and wanted parts of one scan: far over what switches that keep to the
/// protocol can cause. A reply that would bring more is dropped, and its piece asked for again.
const PARTS_MAX: usize = 4096;

impl Scan {
    pub(crate) fn new(
        keyspace: Arc<Keyspace>,
        interval: Interval,
        Terms { reverse, limit, shows }: Terms,
        bytes_max: usize,
        deadline: Instant,
    ) -> Self {
        let want = Want { interval, not_before: Instant::default(), agains: 0 };
        Self {
            keyspace,
            reverse,
            shows,
            limit,
            wanted: VecDeque::from([want]),
            in_flight: BTreeSet::new(),
            chunks: Vec::new(),
            entries: 0,
            counted: KeyCount::default(),
            bytes: 0,
            bytes_max,
            deadline,
        }
    }

    /// Entries still wanted, if that is bounded.
    pub(crate) fn remaining(&self) -> Option<usize> {
        self.limit.map(|limit| limit.saturating_sub(self.entries))
    }

    /// The part to ask for next, nearest to the scan's beginning first, so that few are left open
    /// behind it.
    pub(crate) fn next_want(&mut self, in_flight_max: usize) -> Option<Want> {
        let in_flight_max = if self.limit.is_some() { 1 } else { in_flight_max };
        if self.in_flight.len() >= in_flight_max {
            return None;
        }
        if self.reverse { self.wanted.pop_back() } else { self.wanted.pop_front() }
    }

    pub(crate) fn want(&mut self, want: Want) {
        let at = self.wanted.partition_point(|it| it.interval.order() < want.interval.order());
        self.wanted.insert(at, want);
    }

    /// Whether the result is all there.
    pub(crate) fn is_complete(&self) -> bool {
        self.remaining() == Some(0) || (self.wanted.is_empty() && self.in_flight.is_empty())
    }

    /// Whether the client may hold what it has got.
    pub(crate) fn overflow(&self) -> Option<Refusal> {
        let bytes_max = self.bytes_max;
        (self.bytes > bytes_max).then_some(Refusal::ResultTooLarge { bytes_max })
    }

    /// Takes a reply; whether it covered anything new.
    pub(crate) fn take(
        &mut self,
        ask: &mut Ask,
        piece: Piece,
        entries: &RangeEntries<'_>,
    ) -> Result<bool, DropReason> {
        let counted = self.check_count(ask, piece, entries)?;
        let farthest = self.check_order(piece, entries)?;
        let stop = match (piece.partial, farthest) {
            (false, _) => None,
            // It stopped before it began: nothing to go on from.
            (true, None) => return Err(DropReason::BadBody),
            (true, Some((key, at))) if ask.is_ahead(key, at, self.reverse) => Some((key, at)),
            (true, Some(_)) => return Err(DropReason::BadBody),
        };
        let parts = self.open_parts(ask, piece)?;
        let mut covered = Vec::new();
        for part in parts {
            let (done, rest) = match stop {
                None => (Some(part), None),
                Some((key, at)) => part.split(key, at, self.reverse),
            };
            covered.extend(done);
            if let Some(interval) = rest {
                self.want(Want { interval, not_before: Instant::default(), agains: 0 });
            }
        }
        if piece.cut {
            self.want_beyond(ask, piece);
        }
        self.counted = self.counted.plus(counted);
        self.keep(&covered, entries);
        Ok(!covered.is_empty())
    }

    /// What a count adds. Of a number no part can be left out: all that it is about must be open.
    fn check_count(
        &self,
        ask: &Ask,
        piece: Piece,
        entries: &RangeEntries<'_>,
    ) -> Result<KeyCount, DropReason> {
        match (self.shows, entries.counted()) {
            (Shows::Entries | Shows::Keys, None) => Ok(KeyCount::default()),
            (Shows::Entries | Shows::Keys, Some(_)) | (Shows::Count, None) => {
                Err(DropReason::BadBody)
            }
            (Shows::Count, Some(counted)) if ask.is_open(piece) => {
                let RangeCountBody { keys, expiring } = counted;
                Ok(KeyCount { keys, expiring })
            }
            (Shows::Count, Some(_)) => Err(DropReason::UnknownRequest),
        }
    }

    /// Checks that keys ascend (or descend) within the piece; gives the last one.
    fn check_order<'a>(
        &self,
        piece: Piece,
        entries: &RangeEntries<'a>,
    ) -> Result<Option<(&'a [u8], Match)>, DropReason> {
        let mut farthest: Option<(&[u8], Match)> = None;
        for (key, _) in entries.iter() {
            let at = self.keyspace.match_value(key);
            let inside = piece.first <= at && at <= piece.last && key.len() <= wire::KEY_MAX;
            let ordered = farthest.is_none_or(|(before, was_at)| {
                if self.reverse {
                    (at, key) < (was_at, before)
                } else {
                    (at, key) > (was_at, before)
                }
            });
            if !inside || !ordered {
                return Err(DropReason::BadBody);
            }
            farthest = Some((key, at));
        }
        Ok(farthest)
    }

    /// Takes what is open of a piece out of the ask.
    fn open_parts(&self, ask: &mut Ask, piece: Piece) -> Result<Vec<Interval>, DropReason> {
        if ask.open.len() >= PARTS_MAX || self.wanted.len() >= PARTS_MAX {
            return Err(DropReason::QueueFull);
        }
        // With a limit, what is covered must be whole from the scan's beginning on.
        if self.limit.is_some() && !ask.begins_in(piece, self.reverse) {
            return Err(DropReason::UnknownRequest);
        }
        let parts = ask.take_open(piece.first, piece.last);
        if parts.is_empty() { Err(DropReason::UnknownRequest) } else { Ok(parts) }
    }

    /// The switch went no further: what is open beyond the piece has not been asked of anybody.
    fn want_beyond(&mut self, ask: &mut Ask, piece: Piece) {
        let (first, last) = if self.reverse {
            (Some(Match::MIN), piece.first.0.checked_sub(1).map(Match))
        } else {
            (piece.last.0.checked_add(1).map(Match), Some(Match::MAX))
        };
        let (Some(first), Some(last)) = (first, last) else { return };
        for interval in ask.take_open(first, last) {
            self.want(Want { interval, not_before: Instant::default(), agains: 0 });
        }
    }

    fn keep(&mut self, covered: &[Interval], entries: &RangeEntries<'_>) {
        let room = self.remaining().unwrap_or(usize::MAX);
        let end = self.entries.saturating_add(room);
        // What lies between two of the covered intervals came, or comes, with another reply.
        let mut last = None;
        for (key, entry) in entries.iter() {
            let at = self.keyspace.match_value(key);
            let interval = covered.iter().position(|it| it.holds(key, at));
            let (Some(_), Some(entry)) = (interval, entry) else { continue };
            if self.entries == end {
                break;
            }
            if interval != last {
                self.chunks.push(Vec::new());
                last = interval;
            }
            self.bytes += key.len() + entry.value.len() + ENTRY_OVERHEAD;
            self.entries += 1;
            if let Some(chunk) = self.chunks.last_mut() {
                chunk.push((key.to_vec(), Value::from(entry)));
            }
        }
    }

    /// A piece was answered with ask again: it goes back to what is wanted. Whether any of it was
    /// still open.
    pub(crate) fn again(&mut self, ask: &mut Ask, piece: Piece, at: Instant, agains: u32) -> bool {
        if self.wanted.len() >= PARTS_MAX || ask.open.len() >= PARTS_MAX {
            return false;
        }
        let parts = ask.take_open(piece.first, piece.last);
        let any = !parts.is_empty();
        for interval in parts {
            self.want(Want { interval, not_before: at, agains });
        }
        if piece.cut {
            self.want_beyond(ask, piece);
        }
        any
    }

    /// An ask was answered in part and no more: the rest goes back to what is wanted.
    pub(crate) fn give_back(&mut self, mut ask: Ask) {
        for interval in ask.take_open(Match::MIN, Match::MAX) {
            self.want(Want { interval, not_before: Instant::default(), agains: 0 });
        }
    }

    /// The result: the entries in the order of the scan. Chunks come from disjoint intervals, so
    /// that their order is that of any of their keys.
    pub(crate) fn finish(mut self) -> Reply {
        if self.shows == Shows::Count {
            return Reply::Count(self.counted);
        }
        let place = |(key, _): &(Vec<u8>, Value)| (self.keyspace.match_value(key), key.clone());
        self.chunks.sort_by_cached_key(|chunk| chunk.first().map(place));
        if self.reverse {
            self.chunks.reverse();
        }
        Reply::Range(self.chunks.into_iter().flatten().collect())
    }
}

impl Ask {
    pub(crate) fn new(interval: Interval) -> Self {
        let open = vec![(interval.first, interval.last)];
        Self { interval, open }
    }

    /// Whether every part has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether no part has been answered.
    pub(crate) fn is_untouched(&self) -> bool {
        self.open == [(self.interval.first, self.interval.last)]
    }

    /// Whether all that has not been answered lies in the piece.
    pub(crate) fn lies_in(&self, piece: Piece) -> bool {
        self.open.iter().all(|(first, last)| piece.first <= *first && *last <= piece.last)
    }

    /// Whether a scan that has come to `key` has come any way into this.
    fn is_ahead(&self, key: &[u8], at: Match, reverse: bool) -> bool {
        self.interval.split(key, at, reverse).0.is_some()
    }

    /// Whether the piece lies in what has not been answered.
    fn is_open(&self, piece: Piece) -> bool {
        self.open.iter().any(|(first, last)| *first <= piece.first && piece.last <= *last)
    }

    /// Whether the piece holds the open end that a scan begins with.
    fn begins_in(&self, piece: Piece, reverse: bool) -> bool {
        let edge = if reverse {
            self.open.last().map(|(_, last)| *last)
        } else {
            self.open.first().map(|(first, _)| *first)
        };
        edge.is_some_and(|edge| piece.first <= edge && edge <= piece.last)
    }

    /// Takes out what is open in `first..=last`.
    fn take_open(&mut self, first: Match, last: Match) -> Vec<Interval> {
        let mut taken = Vec::new();
        let mut left = Vec::new();
        for (from, to) in std::mem::take(&mut self.open) {
            if to < first || last < from {
                left.push((from, to));
                continue;
            }
            taken.extend(self.interval.clip(first.max(from), last.min(to)));
            if from < first {
                left.push((from, Match(first.0 - 1)));
            }
            if last < to {
                left.push((Match(last.0 + 1), to));
            }
        }
        self.open = left;
        taken
    }
}
