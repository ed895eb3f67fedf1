//! A node on the way: takes writes of keys that are delegated, whoever is their home, and tells the
//! home of them when the delegation is over (section 9 of `spec/protocol.md`).

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::copies::tell_held;
use crate::hot::push::push_copies;
use crate::replica::serve::matches_key;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header, send};
use cluster::is_plausible_revision;
use cluster::{Delegation, Keyspace, KeyspaceId, Mutant, NodeId, PartitionId};
use machine::Outbox;
use wire::{
    CHAIN_MAX, Code, DelegationCommit, DelegationCommitBody, DelegationFetchBody, DelegationFound,
    DelegationFoundBody, DelegationId, DropReason, Endpoint, Fields, Found, GrantedPut, HEADER_LEN,
    Header, KeyReply, Op, Packet, Version, hop_flag,
};

/// Whether a request comes from the node before this one in the chain of a delegated write.
pub(crate) fn is_passed_on(packet: &Packet<'_>, header: &Header) -> bool {
    packet.op() == Op::Put && header.hop_flags & hop_flag::GRANTED != 0 && header.chain_pos > 0
}

/// Takes a write of a key that is delegated, from the switch or from the node before this one.
pub(crate) fn handle_delegated<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    keyspace: &Keyspace,
    packet: &Packet<'_>,
    header: &Header,
    (key, value): (&[u8], &[u8]),
) -> Result<(), DropReason> {
    let member = |place: usize| packet.chain().nth(place).map(NodeId);
    let place = usize::from(header.chain_pos);
    if member(place) != Some(ctx.directory.me) {
        return Err(DropReason::BadChain);
    }
    let before = place.checked_sub(1).and_then(member);
    if before.is_some_and(|before| !ctx.directory.owns(before, from)) {
        return Err(DropReason::NotFromMember);
    }
    let granted = GrantedPut::of(header);
    let can_be = is_plausible_revision(ctx.now, granted.delegation.order())
        && granted.version.is_plausible();
    if !can_be {
        return Err(DropReason::Implausible);
    }
    if !matches_key(keyspace, header.match_value, header.keyhash, key) {
        refuse(ctx, header, Op::Put, Code::BadMatch);
        return Ok(());
    }
    if !wire::may_be_delegated(packet.header(), packet.payload()) {
        refuse(ctx, header, Op::Put, Code::BadRequest);
        return Ok(());
    }
    let delegation = ctx.hot.entry(keyspace.id, key).and_then(|entry| entry.delegation);
    let held = ctx.hot.held.write(keyspace.id, key);
    let overtaken = held.is_some_and(|it| it.delegation > granted.delegation);
    if overtaken || !takes(ctx, granted.delegation, delegation) {
        refuse(ctx, header, Op::Put, Code::Delegated);
        return Ok(());
    }
    let next = member(place + 1);
    let commits = next.is_none() || ctx.mutant.is(Mutant::CopyUncommitted);
    let GrantedPut { version, delegation: number } = granted;
    let of = (number, version);
    let news = ctx.hot.held.take_write(ctx.engine, (keyspace.id, key), of, value, commits);
    if news && commits {
        ctx.counters.hot_delegated_writes += 1;
        let record = Record { version, expiry_ms: 0, tombstone: false, value };
        ctx.hot.held.keep(keyspace.id, key, &record);
        // Before the answer: when that has passed the switch, reads come for the copies.
        propagate(ctx, packet, header, delegation, key, &record);
    }
    if let Some(next) = next {
        return pass_on(ctx, next, packet, header);
    }
    let mut reply = reply_header(ctx, header, Op::Put, Code::Ok);
    KeyReply { version }.put(&mut reply);
    send(ctx, &reply, &[]);
    ctx.heat.see_hot(keyspace.id, header.keyhash, key, Use::Write);
    Ok(())
}

/// Whether writes of this delegation are taken; `named` is what the installed order has.
fn takes<E>(ctx: &Context<'_, E>, number: DelegationId, named: Option<Delegation>) -> bool {
    ctx.hot.orders.takes(ctx.hot.revision(), number, named)
        || ctx.mutant.is(Mutant::KeepDelegations)
}

/// Sends a write to the next node of its chain, but for its place as it came.
fn pass_on<E>(
    ctx: &mut Context<'_, E>,
    next: NodeId,
    packet: &Packet<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    let to = ctx.directory.endpoint(next, PartitionId(header.partition));
    let to = to.filter(|_| ctx.leased).ok_or(DropReason::NoNode)?;
    let mut hop: [u8; HEADER_LEN] = *packet.header();
    hop.set_chain_pos(header.chain_pos + 1);
    ctx.out.push(to, |out| {
        out.extend_from_slice(&hop);
        out.extend_from_slice(packet.payload());
    });
    Ok(())
}

/// Makes a committed write readable on as many nodes as its delegation says: tells the others of
/// its chain, who have it, and copies it to the readers that the switch chose and to more nodes of
/// their bank.
fn propagate<E>(
    ctx: &mut Context<'_, E>,
    packet: &Packet<'_>,
    header: &Header,
    delegation: Option<Delegation>,
    key: &[u8],
    record: &Record<'_>,
) {
    let me = ctx.directory.me;
    let window: Vec<NodeId> = ctx.hot.mates(KeyspaceId(header.keyspace), key, me).collect();
    let mine = window.iter().position(|node| *node == me).unwrap_or(0);
    // Who is written to anew each time hands its copies to those behind it: so all have their turn.
    let behind = window.iter().copied().cycle().skip(mine + 1).take(window.len().saturating_sub(1));
    let chosen: Vec<NodeId> = packet.chain().chain(packet.readers()).map(NodeId).collect();
    let copies = delegation.map_or(0, |delegation| usize::from(delegation.copies));
    let others = behind.filter(|node| !chosen.contains(node));
    let more = others.take(copies.saturating_sub(chosen.len() - 1));
    // Whoever chose readers takes all of the grant for holders, once the write is answered.
    let known = packet.readers().next().is_some();
    let others = packet.chain().map(NodeId).filter(|node| *node != me);
    let told = others.take(if known { CHAIN_MAX } else { copies });
    let id = PartitionId(header.partition);
    let copy = Header {
        partition: header.partition,
        epoch: header.epoch,
        node: me.0,
        load: ctx.load,
        match_value: header.match_value,
        keyhash: header.keyhash,
        keyspace: header.keyspace,
        ..Header::default()
    };
    let of_grant = Header { hop_flags: if known { hop_flag::GRANTED } else { 0 }, ..copy };
    let endpoint = |node| ctx.directory.endpoint(node, id).filter(|_| ctx.leased);
    let told: Vec<Endpoint> = told.filter_map(endpoint).collect();
    let readers: Vec<Endpoint> = packet.readers().map(NodeId).filter_map(endpoint).collect();
    let more: Vec<Endpoint> = more.filter_map(endpoint).collect();
    ctx.counters.hot_copies_sent += (readers.len() + more.len()) as u64;
    push_commits(ctx.out, &told, &of_grant, GrantedPut::of(header), key);
    let state = (key, record.version);
    push_copies(ctx.out, &readers, &of_grant, state, Some(record));
    push_copies(ctx.out, &more, &copy, state, Some(record));
}

/// Tells nodes that a write that they have passed on is committed.
fn push_commits(
    out: &mut Outbox,
    to: &[Endpoint],
    header: &Header,
    GrantedPut { version, delegation }: GrantedPut,
    key: &[u8],
) {
    let key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
    let mut header = Header { op: Op::DelegationCommit as u8, key_len, ..*header };
    DelegationCommit { version }.put(&mut header);
    let body = DelegationCommitBody { delegation }.to_bytes();
    for to in to {
        out.push(*to, |out| {
            wire::emit(out, &header, &[&body, key]);
        });
    }
}

/// The last of a chain says that a write is committed that has come through here.
pub(crate) fn handle_commit<E>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    (delegation, key): (DelegationId, &[u8]),
) {
    let keyspace = KeyspaceId(header.keyspace);
    let DelegationCommit { version } = DelegationCommit::of(header);
    if let Some(value) = ctx.hot.held.commit((keyspace, key), delegation, version) {
        let record = Record { version, expiry_ms: 0, tombstone: false, value: &value };
        let held = ctx.hot.held.keep(keyspace, key, &record);
        tell_held(ctx, from, header, held);
    }
}

/// The home of a key asks what is held of it from a delegation that an order has ended.
pub(crate) fn handle_fetch<E>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    fixed: DelegationFetchBody,
    key: &[u8],
) {
    if ctx.hot.revision() < fixed.ended {
        return; // It will ask again; until then writes of the delegation may be taken here.
    }
    let held = ctx.hot.held.write(KeyspaceId(header.keyspace), key);
    let held = held.filter(|held| held.delegation == fixed.delegation);
    let held = held.filter(|it| it.committed || !ctx.mutant.is(Mutant::FetchCommittedOnly));
    let (version, found) = match held {
        Some(held) => (held.version, Found::Value(&held.value)),
        None if ctx.hot.orders.is_young_for(fixed.delegation) => (Version::NONE, Found::Young),
        None => (Version::NONE, Found::Nothing),
    };
    let (kind, value) = found.parts();
    let mut answer = Header {
        op: Op::DelegationFound as u8,
        node: ctx.directory.me.0,
        load: ctx.load,
        ..*header
    };
    DelegationFound { version }.put(&mut answer);
    let body = DelegationFoundBody { delegation: fixed.delegation, kind }.to_bytes();
    if ctx.leased {
        ctx.out.push(from, |out| {
            wire::emit(out, &answer, &[&body, key, value]);
        });
    }
}

/// A delegation was recalled: what is held of it from there is of no use any more.
pub(crate) fn handle_end<E: Engine>(
    ctx: &mut Context<'_, E>,
    header: &Header,
    (delegation, key): (DelegationId, &[u8]),
) -> Result<(), DropReason> {
    if !is_plausible_revision(ctx.now, delegation.order()) {
        return Err(DropReason::Implausible);
    }
    ctx.hot.held.end(ctx.engine, (KeyspaceId(header.keyspace), key), delegation);
    Ok(())
}
