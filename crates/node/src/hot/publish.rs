//! Publishing: the switch is told of a version, and lets no reader answer below it.
//!
//! The switch looks into replies about one key. What MGET and RANGE show passes it unseen, and so
//! does that a key has no value when a write is told so with version 0. Such answers wait until
//! HOT_PUBLISH has come back through the switch.
//!
//! It says to the switch what a GET would be told. So a key that is read by multigets alone is
//! proven by it, and a reader that has lost its copy says so.

use crate::engine::Engine;
use crate::hot::deferred::Unpublished;
use crate::hot::publications::DirectoryKey;
use crate::replica::member::Member;
use crate::shard::context::Context;
use crate::shard::reply::send;
use cluster::{KeyspaceId, Mutant};
use wire::{Code, Generation, Header, HotAnswer, MgetKey, NodeReply, Op, Version, hop_flag};

/// Whether this version of a hot key is published. If it is not, HOT_PUBLISH is sent for it, or
/// will be when the one that is under way has come back.
pub(crate) fn publishes<E>(
    ctx: &mut Context<'_, E>,
    member: &Member,
    at: &Header,
    version: Version,
) -> bool {
    let place = DirectoryKey::new(member.id(), at);
    let published = ctx.hot.publications.await_version(place, version);
    if !published {
        ask_to_publish(ctx, member, at);
    }
    published
}

/// The same of a key that this tail vouches for in the generation of its registration: no version
/// that was shown before that began is above this one. That is said as well, once in each
/// generation: the switch sees no answers from which it could learn it where a key is read by
/// multigets alone.
pub(crate) fn vouches<E>(
    ctx: &mut Context<'_, E>,
    member: &Member,
    at: &Header,
    version: Version,
    generation: Generation,
) -> bool {
    let place = DirectoryKey::new(member.id(), at);
    let proves = !ctx.mutant.is(Mutant::PublishUnproven);
    let generation = Some(generation).filter(|_| proves);
    let (published, ask) = ctx.hot.publications.vouch(place, version, generation);
    if ask {
        ask_to_publish(ctx, member, at);
    }
    published
}

/// Sends HOT_PUBLISH for the newest version of a key that somebody waits for.
fn ask_to_publish<E>(ctx: &mut Context<'_, E>, member: &Member, at: &Header) {
    if !ctx.leased {
        return;
    }
    let (place, patience) = (DirectoryKey::new(member.id(), at), ctx.hot.rtt.timeout(0));
    let Some((version, generation)) = ctx.hot.publications.ask(ctx.now, place, patience) else {
        return;
    };
    let mut header = member.hot_header(ctx, at);
    if generation.is_some() {
        header.hop_flags = hop_flag::NEWEST;
    }
    HotAnswer { version, generation: generation.unwrap_or_default() }.put(&mut header);
    tell_switch(ctx, header);
}

/// HOT_PUBLISH has come back through the switch: gives the answers that have waited for it. Says
/// whether any may have.
pub(crate) fn take_published<E: Engine>(
    ctx: &mut Context<'_, E>,
    member: &Member,
    header: &Header,
) -> bool {
    let place = DirectoryKey::new(member.id(), header);
    let Some(published) = ctx.hot.publications.come_back(ctx.now, place, header) else {
        return false;
    };
    if let Some(took) = published.took {
        ctx.hot.rtt.sample(took, 1);
    }
    let shown = Unpublished { place, version: published.version };
    for answer in ctx.hot.deferred.take_ready(shown) {
        send(ctx, &answer.header, &[&answer.payload]);
    }
    if published.more {
        ask_to_publish(ctx, member, header);
    }
    true
}

/// Says to the switch, in the name of this node, what a GET of a key would be told.
fn tell_switch<E>(ctx: &mut Context<'_, E>, header: Header) {
    let here = ctx.directory.here;
    let (op, reply_addr, reply_port) = (Op::HotPublish as u8, here.addr, here.port);
    let mut header = Header { op, reply_addr, reply_port, ..header };
    NodeReply { rate: ctx.rate }.put(&mut header);
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &header, &[]);
    });
}

/// Says to the switch, which does not look into an answer to MGET, that this reader has no copy of
/// a key that is as new as it was asked for, if that is so: others are to be asked.
pub(crate) fn tell_missed<E>(
    ctx: &mut Context<'_, E>,
    keyspace: KeyspaceId,
    slot: &MgetKey<'_>,
    floor: Version,
) {
    let place = (keyspace, slot.key);
    if ctx.hot.held.answer(ctx.time, place, floor..=Version::ABOVE_ALL).is_some() {
        return;
    }
    let Some(entry) = ctx.hot.entry(keyspace, slot.key) else { return };
    let mut header = Header {
        node: ctx.directory.me.0,
        load: ctx.load,
        code: Code::NotHere as u8,
        keyspace: keyspace.0,
        match_value: entry.match_value.0,
        keyhash: slot.keyhash,
        ..Header::default()
    };
    HotAnswer { version: Version::NONE, generation: entry.generation }.put(&mut header);
    tell_switch(ctx, header);
}
