//! The answer to a piece of a RANGE, at the tail.

use crate::engine::{Engine, Interval, Record};
use crate::replica::Replica;
use crate::replica::big::uploads::{first_of_key, last_of_key};
use crate::replica::judge::{entry, is_over};
use crate::replica::read::PAYLOAD_MAX;
use crate::replica::totals::SEEK_STEPS;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header, send_when};
use crate::shard::turn::{Question, ScanAnswer};
use crate::shard::waits::Waits;
use cluster::{Keyspace, Match, Mutant};
use machine::UnixMs;
use std::ops::{Bound, ControlFlow};
use wire::big::time_of;
use wire::{Code, Entry, Header, Op, PartKey, RangeCountBody, RangeEntryBody, RangeInterval, flag};

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
pub(crate) struct RangePiece {
    pub(crate) payload: Vec<u8>,
    pub(crate) count: u8,
    limit: u32,
    shows: Shows,
    /// Keys with a value that were counted and not listed.
    pub(crate) counted: RangeCountBody,
    /// Records examined, and most of them.
    pub(crate) examined: usize,
    steps_max: usize,
    /// The mutant: keys behind parts are passed by.
    skips: bool,
    /// Where the last entry begins.
    last_at: usize,
    /// The scan stopped before the end of its interval.
    pub(crate) partial: bool,
}

impl RangePiece {
    /// At most so many records are examined.
    pub(crate) fn new(mut payload: Vec<u8>, limit: u32, shows: Shows, steps_max: usize) -> Self {
        payload.clear();
        let (count, examined, last_at, partial) = (0, 0, 0, false);
        let counted = RangeCountBody::default();
        let skips = false;
        Self { payload, count, limit, shows, counted, examined, steps_max, skips, last_at, partial }
    }

    /// Takes what fits of an interval. Parts of one key are passed by in one step, whatever values
    /// of it they are of.
    pub(crate) fn fill<E: Engine>(&mut self, engine: &E, now: UnixMs, interval: Interval<'_>) {
        let mut edge: Option<Vec<u8>> = None;
        loop {
            let mut rest = interval;
            if let Some(edge) = edge.as_deref() {
                let at = interval.keyspace.match_value(edge);
                if self.skips && at == interval.last {
                    return;
                }
                if interval.reverse {
                    (rest.last, rest.end) = (at, Bound::Excluded(edge));
                } else {
                    (rest.first, rest.start) = (at, Bound::Excluded(edge));
                }
            }
            let (mut passed, keys_only) = (None, self.shows != Shows::Entries);
            let visit = |key: &[u8], record: Record<'_>| {
                let Some(part) = PartKey::parse(key) else { return self.take(now, key, &record) };
                let edge = if interval.reverse { first_of_key(part) } else { last_of_key(part) };
                self.examined += SEEK_STEPS;
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

    fn take(&mut self, now: UnixMs, key: &[u8], record: &Record<'_>) -> ControlFlow<()> {
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
        let out_of_steps = self.examined >= self.steps_max;
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
    pub(crate) fn published<'a>(&'a self, interval: Interval<'a>) -> Interval<'a> {
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

impl Replica {
    /// Answers a piece of a RANGE at the tail: as many entries as fit a datagram.
    pub(crate) fn handle_range<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        keyspace: &Keyspace,
        limit: u32,
        (start, end): (&[u8], &[u8]),
    ) {
        if !ctx.engine.is_listed(self.member.id()) {
            return refuse(ctx, request, Op::Range, Code::Settling);
        }
        let question = Question::new(request, limit, (start, end));
        if let Some(answer) = ctx.turn.answer_to(&question).cloned() {
            ctx.counters.duplicates += 1;
            send_piece(ctx, request, &answer);
            return;
        }
        let flags = request.flags;
        let interval = self.interval_of(request, keyspace, (start, end));
        let (steps, shows) = (ctx.turn.most_for(SCAN_STEPS_MAX), Shows::of(flags));
        let most = limit.min(u32::from(u8::MAX));
        let mut piece = RangePiece::new(std::mem::take(ctx.scratch), most, shows, steps);
        let now = ctx.now;
        if let Some(totals) = self.totals_of::<E>(&interval).filter(|_| shows == Shows::Count) {
            piece.counted = totals;
        } else if interval.first <= interval.last {
            piece.skips = ctx.mutant.is(Mutant::SkipBehindParts);
            piece.fill(&*ctx.engine, ctx.time, interval);
        }
        ctx.turn.spend(piece.examined);
        ctx.counters.scanned += piece.examined as u64;
        let published = piece.published(interval);
        let unpublished = if shows != Shows::Count {
            self.unpublished_in(ctx, &published)
        } else {
            self.may_count_all(ctx, &published).then(Vec::new)
        };
        let waits = |it: &Vec<_>| it.is_empty() || ctx.hot.deferred.has_room(now);
        let Some(unpublished) = unpublished.filter(waits) else {
            refuse(ctx, request, Op::Range, Code::NotHere);
            *ctx.scratch = piece.payload;
            return;
        };
        let partial = if piece.partial { flag::PARTIAL } else { 0 };
        let flags = flags & (flag::REVERSE | flag::COUNT_ONLY) | partial;
        let counted = piece.counted.to_bytes();
        let counted: &[u8] = if shows == Shows::Count { &counted } else { &[] };
        let (count, payload) = (piece.count, [counted, &piece.payload].concat());
        let answer = ScanAnswer { flags, count, payload };
        if unpublished.is_empty() {
            send_piece(ctx, request, &answer);
            ctx.turn.keep(question, answer);
        } else {
            let header = piece_header(ctx, request, &answer);
            ctx.hot.deferred.push(now, &header, &[&answer.payload], unpublished);
        }
        *ctx.scratch = piece.payload;
    }

    /// What a piece is about.
    fn interval_of<'a>(
        &self,
        request: &Header,
        keyspace: &'a Keyspace,
        (start, end): (&'a [u8], &'a [u8]),
    ) -> Interval<'a> {
        let flags = request.flags;
        let start = bound(start, flags, flag::START_OPEN, flag::START_EXCLUSIVE);
        let end = bound(end, flags, flag::END_OPEN, flag::END_EXCLUSIVE);
        // The engine begins at a match value: it must not walk there from one far off. A bound on
        // keys cuts off some of the match value of its key, and of others all or nothing.
        let RangeInterval { first, last } = RangeInterval::of(request);
        let (first, last) = (Match(first), Match(last));
        let match_of = |bound| key_of(bound).map(|key| keyspace.match_value(key));
        let (from, to) = (match_of(start), match_of(end));
        Interval {
            keyspace,
            partition: self.member.id(),
            first: from.map_or(first, |at| first.max(at)),
            last: to.map_or(last, |at| last.min(at)),
            start: if from.is_some_and(|at| at < first) { Bound::Unbounded } else { start },
            end: if to.is_some_and(|at| at > last) { Bound::Unbounded } else { end },
            reverse: flags & flag::REVERSE != 0,
        }
    }

    /// How many keys of the interval have a value, if it is all of the partition and they are
    /// counted.
    fn totals_of<E: Engine>(&self, interval: &Interval<'_>) -> Option<RangeCountBody> {
        let open = (Bound::Unbounded, Bound::Unbounded);
        let all = (interval.first, interval.last)
            == (self.member.partition.first, self.member.partition.last)
            && (interval.start, interval.end) == open;
        self.totals.known().filter(|_| all && E::OWNS)
    }
}

fn piece_header<E>(ctx: &Context<'_, E>, request: &Header, answer: &ScanAnswer) -> Header {
    let mut header = Header {
        flags: answer.flags,
        count: answer.count,
        ..reply_header(ctx, request, Op::Range, Code::Ok)
    };
    RangeInterval::of(request).put(&mut header);
    header
}

fn send_piece<E: Engine>(ctx: &mut Context<'_, E>, request: &Header, answer: &ScanAnswer) {
    let header = piece_header(ctx, request, answer);
    let waits = Waits::unless(ctx.engine.is_all_durable());
    send_when(ctx, &header, &[&answer.payload], waits);
}

fn bound(key: &[u8], flags: u8, open: u8, exclusive: u8) -> Bound<&[u8]> {
    if flags & open != 0 {
        Bound::Unbounded
    } else if flags & exclusive != 0 {
        Bound::Excluded(key)
    } else {
        Bound::Included(key)
    }
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Records that one piece examines at most, visible or not: about 100 µs of work, so that a scan
/// over many deleted keys does not hold up the requests behind it. Towards the end of a turn it is
/// fewer.
const SCAN_STEPS_MAX: usize = 512;
