//! The tail: answers reads from the committed state.

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::copies::read_copy_of_mget;
use crate::hot::deferred::Unpublished;
use crate::hot::delegation::reads::see_missed_read;
use crate::hot::publish::tell_missed;
use crate::replica::judge::{entry, is_over, judge};
use crate::replica::lookup::Lookup;
use crate::replica::serve::matches_key;
use crate::replica::{Cost, Replica};
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_endpoint, reply_header, reply_source, send, send_when};
use crate::shard::waits::Waits;
use cluster::{Keyspace, KeyspaceId, Match, Mutant};
use wire::{
    ChainExpire, Code, DropReason, Effect, Entry, FILL_MAX, GetReplyBody, HEADER_LEN, Header,
    HotGet, HotMget, KeyReply, MgetEntryBody, MgetKey, MgetKeys, Op, Version, flag, hop_flag,
};

impl Replica {
    /// Answers a GET at the tail.
    pub(crate) fn handle_get<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) {
        if ctx.mutant.is(Mutant::ReadPending) && self.answer_pending(ctx, request, key) {
            return;
        }
        if self.delegations.present(key).is_some() && self.answer_delegated(ctx, request, key) {
            return;
        }
        let mut header = reply_header(ctx, request, Op::Get, Code::Ok);
        let (hot, direct) = (hop_flag::HOT, hop_flag::DIRECT);
        // Of most requests the registration makes no difference.
        if request.hop_flags & (hot | direct) != 0 {
            let registration = self.registrations.get(key);
            if registration.is_some() && request.hop_flags & direct != 0 {
                refuse(ctx, request, Op::Get, Code::NotHere);
                return;
            }
            let delegated =
                self.delegations.present(key).is_some() && !ctx.mutant.is(Mutant::ProveDelegated);
            let vouches = registration.is_some_and(|registration| {
                registration.generation == HotGet::of(request).generation
                    && !delegated
                    && !ctx.agreed_at_risk.is_so()
            }) || ctx.mutant.is(Mutant::ProveUnregistered);
            if request.hop_flags & hot != 0 {
                header.hop_flags |= if vouches { hop_flag::NEWEST } else { 0 };
                self.propagations.remind(ctx, self.member.id(), key);
            }
        }
        let to = reply_endpoint(&header, ctx.directory);
        let from = reply_source(&header, ctx.directory);
        if !to.is_set() {
            ctx.counters.count_drop(DropReason::BadReplyAddress);
            return;
        }
        let place = self.member.key_ref(request, key);
        let plain = self.delegations.present(key).is_none();
        let waits = Waits::unless(plain && ctx.engine.is_durable(&place));
        let now = ctx.time;
        let (out, engine) = ctx.outbox_and_engine(waits);
        let (code, version) = engine.read(&place, |record| {
            let code = judge(key, record.as_ref(), now);
            let version = record.map_or_else(|| self.version_of_none(key), |r| r.version);
            let found = record.filter(|_| code == Code::Ok);
            let entry = found.as_ref().map(entry).unwrap_or_default();
            let mut header = Header { code: code as u8, ..header };
            KeyReply { version }.put(&mut header);
            if code.is_decided() {
                let fixed = GetReplyBody { expiry_ms: entry.expiry_ms, now_ms: now.0 }.to_bytes();
                out.push_from(from, to, |out| {
                    wire::emit(out, &header, &[&fixed, entry.value]);
                });
            }
            (code, version)
        });
        if code.is_decided() {
            ctx.counters.count_reply(code);
        } else {
            if code == Code::Expiring {
                self.ask_to_expire(ctx, request, key, version);
            }
            refuse(ctx, request, Op::Get, code);
        }
    }

    /// What is said to be the version of a key that has no record.
    fn version_of_none(&self, key: &[u8]) -> Version {
        let delegated = self.delegations.present(key).is_some();
        let newest =
            if delegated { Some(self.absent_version(key)) } else { self.propagations.newest(key) };
        newest.unwrap_or(Version::NONE)
    }

    /// The mutant: a value that could still vanish is shown.
    fn answer_pending<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) -> bool {
        let Some(write) = self.pending.newest(key) else { return false };
        if write.effect() != Some(Effect::Put) {
            return false;
        }
        let mut header = reply_header(ctx, request, Op::Get, Code::Ok);
        KeyReply { version: write.version() }.put(&mut header);
        let fixed = GetReplyBody { expiry_ms: write.fixed.expiry_ms, now_ms: ctx.time.0 };
        let fixed = fixed.to_bytes();
        send(ctx, &header, &[&fixed, write.value]);
        true
    }

    /// Whether a key has a value whose time has come; if so, tells the head.
    pub(crate) fn ask_if_over<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> bool {
        let now = ctx.time;
        let over = ctx.engine.read(&self.member.key_ref(at, key), |record| {
            record.filter(|r| !r.tombstone && is_over(r, now)).map(|r| r.version)
        });
        if let Some(version) = over {
            self.ask_to_expire(ctx, at, key, version);
        }
        over.is_some()
    }

    /// Tells the head of a part that belongs to nothing.
    pub(crate) fn tell_stray<E: Engine>(&self, ctx: &mut Context<'_, E>, at: &Header, key: &[u8]) {
        self.ask_to_expire(ctx, at, key, Version::NONE);
    }

    /// Tells the head that somebody asked for a value whose time has come.
    fn ask_to_expire<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        version: Version,
    ) {
        let Some(to) = self
            .member
            .partition
            .head()
            .and_then(|id| ctx.directory.endpoint(id, self.member.id()))
        else {
            return;
        };
        let mut header = Header {
            key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
            match_value: at.match_value,
            keyhash: at.keyhash,
            ..self.member.message_header(ctx, 0, Op::ChainExpire)
        };
        ChainExpire { version }.put(&mut header);
        ctx.out.push(to, |out| {
            wire::emit(out, &header, &[key]);
        });
    }
}

/// Sends an answer that the switch does not look into, at once if it shows nothing unpublished.
fn send_published<E: Engine>(
    ctx: &mut Context<'_, E>,
    header: &Header,
    parts: &[&[u8]],
    (unpublished, waits): (Vec<Unpublished>, Waits),
) {
    if unpublished.is_empty() {
        send_when(ctx, header, parts, waits);
    } else {
        ctx.hot.deferred.push(ctx.now, header, parts, unpublished);
    }
}

/// Answers those keys of an MGET that its bitmap names, in as many datagrams as it takes.
pub(crate) fn handle_mget<E: Engine>(
    ctx: &mut Context<'_, E>,
    lookup: &mut Lookup<'_>,
    request: &Header,
    keyspace: &Keyspace,
    keys: &MgetKeys<'_>,
) {
    let payload = std::mem::take(ctx.scratch);
    let mut answer = MgetAnswer { payload, bitmap: 0, unpublished: Vec::new(), waits: Waits::No };
    answer.payload.clear();
    // Only the switch says what is new enough.
    let direct = request.hop_flags & hop_flag::DIRECT != 0;
    let hot = if direct { 0 } else { HotMget::of(request).hot };
    for (index, key) in (0u8..).zip(keys.iter()) {
        if request.bitmap & 1 << index == 0 {
            continue;
        }
        if hot & 1 << index != 0 && keyspace.keyhash(key.key) == key.keyhash {
            match lookup.tail_of(keyspace.id, keyspace.match_value(key.key)) {
                Some(home) => home.answer_mget_floor(ctx, request, index, &key, &mut answer),
                None => answer_from_copy(ctx, request, keyspace.id, index, &key, &mut answer),
            }
            continue;
        }
        let at = Header { match_value: key.match_value, keyhash: key.keyhash, ..*request };
        if !matches_key(keyspace, key.match_value, key.keyhash, key.key) {
            answer.push(ctx, request, index, Code::BadMatch, &Entry::default());
            continue;
        }
        let Some(replica) = lookup.tail_of(keyspace.id, Match(key.match_value)) else {
            let grouped = request.flags & flag::GROUPED != 0;
            let trusts = ctx.mutant.is(Mutant::TrustHints) && grouped;
            let code = if trusts { Code::NotFound } else { Code::NotOwner };
            answer.push(ctx, request, index, code, &Entry::default());
            continue;
        };
        ctx.see_use(keyspace, key.keyhash, key.key, Use::Read);
        replica.asked.see(ctx.now, Match(key.match_value));
        let before = answer.payload.len();
        replica.answer_mget_key(ctx, request, index, &at, key.key, &mut answer);
        // What was sent on the way made room.
        let bytes_out = answer.payload.len().saturating_sub(before) as u64;
        let bytes_in = key.key.len() as u64;
        let cost = Cost { bytes_in, bytes_out, scanned: 0 };
        replica.count_cost(ctx.now, Match(key.match_value), cost);
    }
    answer.send(ctx, request);
    *ctx.scratch = answer.payload;
}

impl Replica {
    fn answer_mget_key<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        index: u8,
        at: &Header,
        key: &[u8],
        answer: &mut MgetAnswer,
    ) {
        let delegated = self.delegations.present(key).is_some();
        if delegated {
            see_missed_read(ctx, request, self.member.partition.keyspace, key);
            let version = self.left_behind(ctx, at, key);
            self.vouches(ctx, at, key, version);
        }
        // Of a key that is asked for directly, or by hints, the switch was not asked.
        if request.hop_flags & hop_flag::DIRECT == 0 && request.flags & flag::GROUPED == 0 {
            self.propagations.remind(ctx, self.member.id(), key);
        }
        let unpublished = if delegated { None } else { self.unpublished(ctx, at, key) };
        if delegated || unpublished.is_some() && !ctx.hot.deferred.has_room(ctx.now) {
            answer.push(ctx, request, index, Code::NotHere, &Entry::default());
            return;
        }
        self.answer_from_record(ctx, request, index, at, key, answer);
        answer.unpublished.extend(unpublished);
    }

    /// A key that is to be delegated, and that is sent home for want of a copy: the slot carries
    /// the floor, and that very version may be shown; while the key is delegated, no other.
    fn answer_mget_floor<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        index: u8,
        slot: &MgetKey<'_>,
        answer: &mut MgetAnswer,
    ) {
        let keyspace = self.member.partition.keyspace;
        let floor = slot.floor();
        let Some(at) = self.member.place_of(ctx, slot.key) else { return };
        if self.delegations.present(slot.key).is_none() {
            // It has not left yet, or may not for now: perhaps only this tail has what is newest.
            ctx.heat.see(keyspace, slot.keyhash, slot.key, Use::Read);
            if self.propagations.newest(slot.key) == Some(floor) {
                self.answer_from_record(ctx, request, index, &at, slot.key, answer);
            } else {
                self.answer_mget_key(ctx, request, index, &at, slot.key, answer);
            }
            return;
        }
        let place = (keyspace, slot.key);
        let held = ctx.hot.held.answer(ctx.time, place, floor..=floor).is_some();
        if held {
            answer_from_copy(ctx, request, keyspace, index, slot, answer);
        } else if self.left_behind(ctx, &at, slot.key) == floor {
            self.answer_from_record(ctx, request, index, &at, slot.key, answer);
        } else {
            see_missed_read(ctx, request, keyspace, slot.key);
            tell_missed(ctx, keyspace, slot, floor);
            answer.push(ctx, request, index, Code::NotHere, &Entry::default());
        }
    }

    fn answer_from_record<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        index: u8,
        at: &Header,
        key: &[u8],
        answer: &mut MgetAnswer,
    ) {
        let (now, place) = (ctx.time, self.member.key_ref(at, key));
        let read = |record: Option<Record<'_>>, answer: &mut MgetAnswer| {
            let code = judge(key, record.as_ref(), now);
            let version = record.map_or(Version::NONE, |r| r.version);
            let found = record.filter(|_| code == Code::Ok);
            let entry = found.as_ref().map_or(Entry { version, ..Entry::default() }, entry);
            let added = answer.try_push(index, code, &entry);
            (added, code, version)
        };
        let (added, code, version) = ctx.engine.read(&place, |record| read(record, answer));
        if !added {
            answer.send(ctx, request);
            let (added, ..) = ctx.engine.read(&place, |record| read(record, answer));
            assert!(added, "any entry fits an empty answer");
        }
        if self.delegations.present(key).is_some() || !ctx.engine.is_durable(&place) {
            answer.waits = Waits::Turn;
        }
        if code == Code::Expiring {
            self.ask_to_expire(ctx, at, key, version);
        }
    }
}

fn answer_from_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    keyspace: KeyspaceId,
    index: u8,
    key: &MgetKey<'_>,
    answer: &mut MgetAnswer,
) {
    let read = |ctx: &mut Context<'_, E>, answer: &mut MgetAnswer| {
        read_copy_of_mget(ctx, keyspace, key, |code, entry| answer.try_push(index, code, entry))
    };
    if !read(ctx, answer) {
        answer.send(ctx, request);
        assert!(read(ctx, answer), "any entry fits an empty answer");
    }
    answer.waits = Waits::Turn;
}

/// An MGET reply while it is being filled.
struct MgetAnswer {
    payload: Vec<u8>,
    bitmap: u32,
    /// What it shows, and must not until that is published.
    unpublished: Vec<Unpublished>,
    /// Whether it shows anything that may not be durable.
    waits: Waits,
}

impl MgetAnswer {
    /// Adds an answered key, unless the datagram is too full for it.
    fn try_push(&mut self, index: u8, code: Code, entry: &Entry<'_>) -> bool {
        let fits = self.payload.len() + MgetEntryBody::LEN + entry.value.len() <= PAYLOAD_MAX;
        if fits {
            wire::push_mget_entry(&mut self.payload, index, code as u8, entry);
            self.bitmap |= 1 << index;
        }
        fits
    }

    fn push<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        index: u8,
        code: Code,
        entry: &Entry<'_>,
    ) {
        if !self.try_push(index, code, entry) {
            self.send(ctx, request);
            assert!(self.try_push(index, code, entry), "any entry fits an empty answer");
        }
    }

    /// Sends what there is, and begins anew.
    fn send<E: Engine>(&mut self, ctx: &mut Context<'_, E>, request: &Header) {
        if self.bitmap != 0 {
            let bitmap = std::mem::take(&mut self.bitmap);
            let header = Header { bitmap, ..reply_header(ctx, request, Op::Mget, Code::Ok) };
            let waits = std::mem::replace(&mut self.waits, Waits::No);
            let shows = (std::mem::take(&mut self.unpublished), waits);
            send_published(ctx, &header, &[&self.payload], shows);
            self.payload.clear();
        }
    }
}

/// Bytes of payload: what a datagram has room for after the header.
pub(crate) const PAYLOAD_MAX: usize = FILL_MAX - HEADER_LEN;
