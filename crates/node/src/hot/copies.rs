//! A reader: takes copies of hot keys of other nodes, and answers reads from what it holds as far
//! as the switch says that it is new enough.

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::publish::tell_missed;
use crate::replica::Replica;
use crate::replica::serve::matches_key;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header};
use cluster::{Keyspace, KeyspaceId, Mutant};
use wire::{
    Code, DropReason, Endpoint, Entry, GetReplyBody, Header, HotCopied, HotGet, KeyReply, MgetKey,
    NodeReply, Op, Version, hop_flag,
};

/// Takes a copy from a tail, and tells it through the switch what is held now; or from a
/// delegation, where the switch may know by itself.
pub(crate) fn handle_hot_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    key: &[u8],
    record: &Record<'_>,
) -> Result<(), DropReason> {
    if !record.version.is_plausible() {
        return Err(DropReason::Implausible);
    }
    let id = KeyspaceId(header.keyspace);
    let keyspace = ctx.directory.keyspace(id).ok_or(DropReason::NoKeyspace)?;
    if !matches_key(keyspace, header.match_value, header.keyhash, key) {
        return Err(DropReason::BadBody);
    }
    let held = ctx.hot.held.keep(id, key, record);
    tell_held(ctx, from, header, held);
    Ok(())
}

/// Says through the switch to whoever has sent a copy which version is held now, unless the switch
/// knows by itself.
pub(crate) fn tell_held<E>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    held: Version,
) {
    if header.hop_flags & hop_flag::GRANTED != 0 {
        return;
    }
    let mut answer = Header {
        node: ctx.directory.me.0,
        load: ctx.load,
        op: Op::HotCopied as u8,
        reply_addr: from.addr,
        reply_port: from.port,
        partition: header.partition,
        epoch: header.epoch,
        keyspace: header.keyspace,
        match_value: header.match_value,
        keyhash: header.keyhash,
        ..Header::default()
    };
    HotCopied { held }.put(&mut answer);
    NodeReply { rate: ctx.rate }.put(&mut answer);
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &answer, &[]);
    });
}

/// Whether a GET is to be answered from a copy: the switch has stamped it so, and this is not the
/// tail.
pub(crate) fn is_for_reader(request: &Header, replica: Option<&Replica>) -> bool {
    let flags = request.hop_flags & (hop_flag::HOT | hop_flag::DIRECT);
    flags == hop_flag::HOT && replica.is_none_or(|replica| !replica.member.is_tail())
}

/// Answers a GET that was stamped for a reader.
pub(crate) fn read_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    keyspace: &Keyspace,
    request: &Header,
    key: &[u8],
) {
    if !matches_key(keyspace, request.match_value, request.keyhash, key) {
        refuse(ctx, request, Op::Get, Code::BadMatch);
        return;
    }
    let ignores = ctx.mutant.is(Mutant::AnswerBelowFloor);
    let floor = if ignores { Version::NONE } else { HotGet::of(request).floor };
    if !answer_copy(ctx, request, keyspace.id, key, floor) {
        refuse(ctx, request, Op::Get, Code::NotHere);
    }
}

/// Answers a GET with what this node holds of a hot key, if that is new enough; says whether it
/// did.
pub(crate) fn answer_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    keyspace: KeyspaceId,
    key: &[u8],
    floor: Version,
) -> bool {
    let header = reply_header(ctx, request, Op::Get, Code::Ok);
    let now_ms = ctx.time;
    let Some((code, entry)) =
        ctx.hot.held.answer(ctx.time, (keyspace, key), floor..=Version::ABOVE_ALL)
    else {
        return false;
    };
    let mut header = Header { code: code as u8, ..header };
    KeyReply { version: entry.version }.put(&mut header);
    let fixed = GetReplyBody { expiry_ms: entry.expiry_ms, now_ms: now_ms.0 }.to_bytes();
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &header, &[&fixed, entry.value]);
    });
    ctx.heat.see_hot(keyspace, request.keyhash, key, Use::Read);
    ctx.counters.hot_reads += 1;
    ctx.counters.count_reply(code);
    true
}

/// Answers a key of an MGET whose slot carries a floor, unless the datagram is too full for it;
/// says whether it did. The switch does not look into the answer: it must not show more than the
/// switch knows of.
pub(crate) fn read_copy_of_mget<E: Engine>(
    ctx: &mut Context<'_, E>,
    keyspace: KeyspaceId,
    slot: &MgetKey<'_>,
    push: impl FnOnce(Code, &Entry<'_>) -> bool,
) -> bool {
    let floor = slot.floor();
    let lowest = if ctx.mutant.is(Mutant::AnswerBelowFloor) { Version::NONE } else { floor };
    let highest = if ctx.mutant.is(Mutant::ShowUnpublished) { Version::ABOVE_ALL } else { floor };
    let found = ctx.hot.held.answer(ctx.time, (keyspace, slot.key), lowest..=highest);
    let (code, entry) = found.unwrap_or((Code::NotHere, Entry::default()));
    if !push(code, &entry) {
        return false;
    }
    if code.is_decided() {
        ctx.heat.see_hot(keyspace, slot.keyhash, slot.key, Use::Read);
        ctx.counters.hot_reads += 1;
    } else {
        tell_missed(ctx, keyspace, slot, floor);
    }
    true
}
