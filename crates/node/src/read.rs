//! The tail: answers reads from the committed state.

use crate::engine::{Engine, Interval, Record};
use crate::node::Lookup;
use crate::replica::{Context, Replica};
use crate::reply::{reply_header, send};
use cluster::{Keyspace, Match};
use machine::Instant;
use std::ops::{Bound, ControlFlow};
use wire::{
    Code, DATAGRAM_MAX, DropReason, Entry, GetReplyBody, HEADER_LEN, Header, MgetEntryBody,
    MgetKeys, Op, RangeEntryBody, flag,
};

/// Whether a read may see this record: a value whose time has not come.
fn is_visible(record: &Record<'_>, now: Instant) -> bool {
    let expired = record.expiry_ms != 0 && record.expiry_ms <= now.unix_ms();
    !record.tombstone && !expired
}

fn entry<'a>(record: &Record<'a>) -> Entry<'a> {
    Entry { version: record.version, expiry_ms: record.expiry_ms, value: record.value }
}

impl Replica {
    /// Answers a GET at the tail.
    pub(crate) fn handle_get<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) {
        let found = reply_header(ctx, request, Op::Get, Code::Ok);
        let missing = Header { code: Code::NotFound as u8, ..found };
        let to = Self::reply_endpoint(&found, ctx.directory);
        if !to.is_set() {
            ctx.counters.count_drop(DropReason::BadReplyAddress);
            return;
        }
        let (now, out, engine) = (ctx.now, &mut *ctx.out, &*ctx.engine);
        let code = engine.read(&self.key_ref(request, key), |record| {
            let visible = record.filter(|r| is_visible(r, now));
            let version = record.map_or(0, |r| r.version);
            let header = if visible.is_some() { found } else { missing };
            let header = Header { object_version: version, ..header };
            let entry = visible.as_ref().map(entry).unwrap_or_default();
            let fixed = GetReplyBody { expiry_ms: entry.expiry_ms }.to_bytes();
            out.push(to, |out| {
                wire::emit(out, &header, &[&fixed, entry.value]);
            });
            if visible.is_some() { Code::Ok } else { Code::NotFound }
        });
        ctx.counters.count_reply(code);
    }

    /// Answers a piece of a RANGE at the tail: as many entries as fit a datagram.
    pub(crate) fn handle_range<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        limit: u32,
        start: &[u8],
        end: &[u8],
    ) {
        let flags = request.flags;
        let interval = Interval {
            keyspace: self.partition.keyspace,
            partition: self.id(),
            first: Match(request.match_value),
            last: Match(request.match_end()),
            start: bound(start, flags, flag::START_OPEN, flag::START_EXCLUSIVE),
            end: bound(end, flags, flag::END_OPEN, flag::END_EXCLUSIVE),
            reverse: flags & flag::REVERSE != 0,
        };
        let mut piece = Piece::new(limit.min(u32::from(u8::MAX)));
        let now = ctx.now;
        ctx.engine.scan(&interval, |key, record| piece.take(now, key, &record));
        let partial = if piece.partial { flag::PARTIAL } else { 0 };
        let header = Header {
            flags: flags & flag::REVERSE | partial,
            object_version: request.object_version,
            count: piece.count,
            ..reply_header(ctx, request, Op::Range, Code::Ok)
        };
        send(ctx, &header, &[&piece.payload]);
    }
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

/// The answer to a piece of a RANGE while it is being filled.
struct Piece {
    payload: Vec<u8>,
    count: u8,
    limit: u32,
    examined: usize,
    /// The scan stopped before the end of its interval.
    partial: bool,
}

impl Piece {
    fn new(limit: u32) -> Self {
        let payload = Vec::with_capacity(PAYLOAD_MAX);
        Self { payload, count: 0, limit, examined: 0, partial: false }
    }

    fn take(&mut self, now: Instant, key: &[u8], record: &Record<'_>) -> ControlFlow<()> {
        let visible = is_visible(record, now);
        self.examined += 1;
        let value = if visible { record.value } else { &[] };
        let fits =
            self.payload.len() + RangeEntryBody::LEN + key.len() + value.len() <= PAYLOAD_MAX;
        // An empty piece has room for any entry, so a partial one always has a key to go on from.
        if !fits || u32::from(self.count) == self.limit {
            self.partial = true;
            return ControlFlow::Break(());
        }
        let out_of_steps = self.examined >= SCAN_STEPS_MAX;
        if visible {
            wire::push_range_entry(&mut self.payload, key, Some(&entry(record)));
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
}

/// Answers those keys of an MGET that its bitmap names, in as many datagrams as it takes.
pub(crate) fn handle_mget<E: Engine>(
    ctx: &mut Context<'_, E>,
    lookup: &Lookup<'_>,
    request: &Header,
    keyspace: &Keyspace,
    keys: &MgetKeys<'_>,
) {
    let mut payload = Vec::with_capacity(PAYLOAD_MAX);
    let mut bitmap = 0;
    let wanted = |index: &u8| request.bitmap & 1 << index != 0;
    for (index, key) in (0u8..).zip(keys.iter()).filter(|(index, _)| wanted(index)) {
        let right = keyspace.match_value(key.key).0 == key.match_value
            && keyspace.keyhash(key.key) == key.keyhash;
        let tail = lookup.tail_of(keyspace.id, Match(key.match_value));
        let code = match tail {
            _ if !right => Some(Code::BadMatch),
            None => Some(Code::NotOwner),
            Some(_) => None,
        };
        let at = Header { match_value: key.match_value, keyhash: key.keyhash, ..*request };
        let now = ctx.now;
        let mut push = |record: Option<Record<'_>>| {
            let visible = record.filter(|r| is_visible(r, now));
            let version = record.map_or(0, |r| r.version);
            let found = visible.as_ref().map(entry);
            let entry = found.unwrap_or(Entry { version, ..Entry::default() });
            let outcome = if found.is_some() { Code::Ok } else { Code::NotFound };
            let full = payload.len() + MgetEntryBody::LEN + entry.value.len() > PAYLOAD_MAX;
            let filled = full.then(|| (std::mem::take(&mut payload), std::mem::take(&mut bitmap)));
            let code = code.unwrap_or(outcome) as u8;
            wire::push_mget_entry(&mut payload, index, code, &entry);
            bitmap |= 1 << index;
            filled
        };
        let filled = match tail {
            Some(replica) if code.is_none() => {
                ctx.engine.read(&replica.key_ref(&at, key.key), push)
            }
            _ => push(None),
        };
        if let Some((payload, bitmap)) = filled {
            send_mget(ctx, request, bitmap, &payload);
        }
    }
    if bitmap != 0 {
        send_mget(ctx, request, bitmap, &payload);
    }
}

fn send_mget<E: Engine>(ctx: &mut Context<'_, E>, request: &Header, bitmap: u32, payload: &[u8]) {
    let header = Header { bitmap, ..reply_header(ctx, request, Op::Mget, Code::Ok) };
    send(ctx, &header, &[payload]);
}

/// Bytes of payload: what a datagram has room for after the header.
const PAYLOAD_MAX: usize = DATAGRAM_MAX - HEADER_LEN;

/// Records that one piece examines at most, visible or not: about 100 µs of work, so that a scan
/// over many deleted keys does not hold up the requests behind it.
const SCAN_STEPS_MAX: usize = 512;
