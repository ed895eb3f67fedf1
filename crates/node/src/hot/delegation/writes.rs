//! A node on the way: takes writes of keys that are delegated, whoever is their home, and tells the
//! home of them when the delegation is over (section 9 of `spec/protocol.md`).

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::copies::tell_held;
use crate::hot::delegation::disks::{DelegatedPlaces, Recorded, Waiting, chain_of};
use crate::hot::push::push_copies;
use crate::replica::serve::matches_key;
use crate::shard::cluster_view::ClusterView;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header, send_when};
use crate::shard::waits::Waits;
use cluster::{KeyspaceId, Mutant, NodeId, PartitionId, is_plausible_revision};
use machine::Outbox;
use wire::{
    CHAIN_MAX, Code, DelegationCommit, DelegationCommitBody, DelegationFetchBody, DelegationFound,
    DelegationFoundBody, DelegationId, DelegationWriteBody, DropReason, Endpoint, Fields, Found,
    GrantedPut, HEADER_LEN, Header, KeyReply, Op, Packet, Version, hop_flag,
};

/// A write on its way down the chain of its grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delegated<'a> {
    pub(crate) header: &'a Header,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Delegated<'a> {
    /// The key with its keyspace.
    fn at(&self) -> (KeyspaceId, &'a [u8]) {
        (KeyspaceId(self.header.keyspace), self.key)
    }
}

/// Whether a request comes from the node before this one in the chain of a delegated write.
pub(crate) fn is_passed_on(packet: &Packet<'_>, header: &Header) -> bool {
    packet.op() == Op::Put && header.hop_flags & hop_flag::GRANTED != 0 && header.chain_pos > 0
}

/// Whether a packet comes from the node before this one in the chain of its grant.
pub(crate) fn is_from_before(directory: &ClusterView, from: Endpoint, header: &Header) -> bool {
    let place = usize::from(header.chain_pos).checked_sub(1);
    let before = place.and_then(|place| chain_of(header).nth(place));
    before.is_some_and(|before| directory.owns(before, from))
}

/// Takes a write of a key that is delegated, from the switch or from the node before this one.
pub(crate) fn handle_delegated<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    packet: &Packet<'_>,
    write: &Delegated<'_>,
    unsynced: DelegatedPlaces,
) -> Result<(), DropReason> {
    let Delegated { header, key, .. } = *write;
    let place = usize::from(header.chain_pos);
    if chain_of(header).nth(place) != Some(ctx.directory.me) {
        return Err(DropReason::BadChain);
    }
    let is_first = place == 0 && packet.op() == Op::Put;
    if !is_first && !is_from_before(ctx.directory, from, header) {
        return Err(DropReason::NotFromMember);
    }
    let granted = GrantedPut::of(header);
    let can_be = is_plausible_revision(ctx.now, granted.delegation.order())
        && granted.version.is_plausible();
    if !can_be {
        return Err(DropReason::Implausible);
    }
    let Some(keyspace) = ctx.directory.keyspace(KeyspaceId(header.keyspace)) else {
        // Not a refusal: the keyspace may be newer than this node's assignment.
        refuse(ctx, header, Op::Put, Code::NotOwner);
        return Ok(());
    };
    if !matches_key(keyspace, header.match_value, header.keyhash, key) {
        refuse(ctx, header, Op::Put, Code::BadMatch);
        return Ok(());
    }
    if packet.op() == Op::Put && !wire::may_be_delegated(packet.header(), packet.payload()) {
        refuse(ctx, header, Op::Put, Code::BadRequest);
        return Ok(());
    }
    if !takes(ctx, write.at(), granted.delegation) {
        refuse(ctx, header, Op::Put, Code::Delegated);
        return Ok(());
    }
    // Nobody knows of the disks of those behind.
    let unsynced = unsynced & ((1 << place) - 1);
    if let Some(next) = chain_of(header).nth(place + 1) {
        let news = take(ctx, write, ctx.mutant.is(Mutant::CopyUncommitted));
        if news && ctx.mutant.is(Mutant::CopyUncommitted) {
            show(ctx, write, Waits::Turn);
        }
        return pass_on(ctx, next, packet, write, unsynced);
    }
    let missing = missing(ctx, write, unsynced);
    if missing == 0 {
        commit(ctx, write, Waits::Turn);
    } else {
        take(ctx, write, false);
        let waiting = Waiting { header: *header, value: write.value.into(), missing };
        ctx.hot.held.disks_to_note(write.at(), granted.delegation).wait(granted.version, waiting);
    }
    Ok(())
}

/// Whether writes of this delegation of a key are taken.
pub(crate) fn takes<E>(
    ctx: &Context<'_, E>,
    at @ (keyspace, key): (KeyspaceId, &[u8]),
    number: DelegationId,
) -> bool {
    let named = ctx.hot.entry(keyspace, key).and_then(|entry| entry.delegation);
    let takes = ctx.hot.orders.takes(ctx.hot.revision(), number, named)
        || ctx.mutant.is(Mutant::KeepDelegations);
    takes && ctx.hot.held.newest_delegation(at) <= number
}

/// Puts a write on record. Says whether its value is news as a copy, if this node commits it.
fn take<E: Engine>(ctx: &mut Context<'_, E>, write: &Delegated<'_>, commits: bool) -> bool {
    let GrantedPut { version, delegation } = GrantedPut::of(write.header);
    let of = (delegation, version);
    let taken = ctx.hot.held.take_write(ctx.engine, write.at(), of, write.value, commits);
    if taken.recorded
        && let Some(noted) = &mut ctx.noted
    {
        let (keyspace, key) = write.at();
        noted.delegated.push(Recorded { keyspace, key: key.into(), delegation, version });
    }
    taken.news
}

/// Places of the chain that are not known here to have the write on disk. None counts for a write
/// that was committed before.
fn missing<E>(
    ctx: &mut Context<'_, E>,
    write: &Delegated<'_>,
    unsynced: DelegatedPlaces,
) -> DelegatedPlaces {
    let GrantedPut { version, delegation } = GrantedPut::of(write.header);
    let (keyspace, key) = write.at();
    let held = ctx.hot.held.write(keyspace, key);
    let known = held.filter(|it| it.delegation == delegation && it.version == version);
    if known.is_some_and(|it| it.committed) || ctx.mutant.is(Mutant::AnswerUntold) {
        return 0;
    }
    let disks = ctx.hot.held.disks(write.at(), delegation);
    disks.map_or(unsynced, |disks| disks.missing(unsynced, write.header, version))
}

/// Sends a write to the next node of its chain: at once if the engine syncs apart, and then it says
/// who does not have it on disk; else when it is durable.
fn pass_on<E>(
    ctx: &mut Context<'_, E>,
    next: NodeId,
    packet: &Packet<'_>,
    write: &Delegated<'_>,
    unsynced: DelegatedPlaces,
) -> Result<(), DropReason> {
    let Delegated { header, key, value } = *write;
    let partition = PartitionId(header.partition);
    let to = ctx.directory.endpoint(next, partition);
    let to = to.filter(|_| ctx.leased).ok_or(DropReason::NoNode)?;
    let early = ctx.noted.is_some();
    let lacks = early && !is_on_disk(ctx, write) && !ctx.mutant.is(Mutant::HideUnsynced);
    if lacks && let Some(last) = chain_of(header).next_back() {
        let GrantedPut { version, delegation } = GrantedPut::of(header);
        let disks = ctx.hot.held.disks_to_note(write.at(), delegation);
        disks.tell_later(version, last, partition);
    }
    let own = if lacks { 1 << header.chain_pos } else { 0 };
    let chain_pos = header.chain_pos + 1;
    let out = ctx.outbox(if early { Waits::No } else { Waits::Turn });
    match unsynced | own {
        // As it came from the client, but for its place.
        0 if packet.op() == Op::Put => out.push(to, |out| {
            let mut hop: [u8; HEADER_LEN] = *packet.header();
            hop.set_chain_pos(chain_pos);
            out.extend_from_slice(&hop);
            out.extend_from_slice(packet.payload());
        }),
        unsynced => out.push(to, |out| {
            let header = Header { op: Op::DelegationWrite as u8, chain_pos, ..*header };
            wire::emit(out, &header, &[&DelegationWriteBody { unsynced }.to_bytes(), key, value]);
        }),
    }
    Ok(())
}

/// Whether the disk of this node has a write, or a newer one.
fn is_on_disk<E>(ctx: &Context<'_, E>, write: &Delegated<'_>) -> bool {
    let GrantedPut { version, delegation } = GrantedPut::of(write.header);
    let (keyspace, key) = write.at();
    let held = ctx.hot.held.write(keyspace, key);
    held.is_some_and(|it| it.delegation == delegation && it.on_disk >= version)
}

/// Everybody of the chain has a write on disk, if that is so of this node: it is shown and
/// answered, at once or at the end of the turn.
pub(crate) fn commit<E: Engine>(ctx: &mut Context<'_, E>, write: &Delegated<'_>, waits: Waits) {
    let Delegated { header, key, .. } = *write;
    let GrantedPut { version, delegation } = GrantedPut::of(header);
    if let Some(disks) = ctx.hot.held.disks(write.at(), delegation) {
        disks.wait_no_more(version);
    }
    if take(ctx, write, true) {
        show(ctx, write, waits);
    }
    let mut reply = reply_header(ctx, header, Op::Put, Code::Ok);
    KeyReply { version }.put(&mut reply);
    send_when(ctx, &reply, &[], waits);
    ctx.heat.see_hot(KeyspaceId(header.keyspace), header.keyhash, key, Use::Write);
}

/// Makes a committed write readable, here and elsewhere.
fn show<E: Engine>(ctx: &mut Context<'_, E>, write: &Delegated<'_>, waits: Waits) {
    let (keyspace, key) = write.at();
    let GrantedPut { version, .. } = GrantedPut::of(write.header);
    let record = Record { version, expiry_ms: 0, tombstone: false, value: write.value };
    ctx.counters.hot_delegated_writes += 1;
    ctx.hot.held.keep(keyspace, key, &record);
    // Before the answer: when that has passed the switch, reads come for the copies.
    propagate(ctx, write.header, key, &record, waits);
}

/// Makes a committed write readable on as many nodes as its delegation says: tells the others of
/// its chain, who have it, and copies it to the readers that the switch chose and to more nodes of
/// their bank.
fn propagate<E>(
    ctx: &mut Context<'_, E>,
    header: &Header,
    key: &[u8],
    record: &Record<'_>,
    waits: Waits,
) {
    let me = ctx.directory.me;
    let entry = ctx.hot.entry(KeyspaceId(header.keyspace), key);
    let delegation = entry.and_then(|entry| entry.delegation);
    let window: Vec<NodeId> = ctx.hot.mates(KeyspaceId(header.keyspace), key, me).collect();
    let mine = window.iter().position(|node| *node == me).unwrap_or(0);
    // Who is written to anew each time hands its copies to those behind it: so all have their turn.
    let behind = window.iter().copied().cycle().skip(mine + 1).take(window.len().saturating_sub(1));
    let readers: Vec<NodeId> = wire::readers_of(header).map(NodeId).collect();
    let chosen: Vec<NodeId> = chain_of(header).chain(readers.iter().copied()).collect();
    let copies = delegation.map_or(0, |delegation| usize::from(delegation.copies));
    let others = behind.filter(|node| !chosen.contains(node));
    let more = others.take(copies.saturating_sub(chosen.len() - 1));
    // Whoever chose readers takes all of the grant for holders, once the write is answered.
    let known = !readers.is_empty();
    let others = chain_of(header).filter(|node| *node != me);
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
    let readers: Vec<Endpoint> = readers.into_iter().filter_map(endpoint).collect();
    let more: Vec<Endpoint> = more.filter_map(endpoint).collect();
    ctx.counters.hot_copies_sent += (readers.len() + more.len()) as u64;
    let out = ctx.outbox(waits);
    push_commits(out, &told, &of_grant, GrantedPut::of(header), key);
    let state = (key, record.version);
    push_copies(out, &readers, &of_grant, state, Some(record));
    push_copies(out, &more, &copy, state, Some(record));
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
    let anew = ctx.hot.orders.is_anew_for(fixed.delegation).into();
    DelegationFound { version, anew }.put(&mut answer);
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
