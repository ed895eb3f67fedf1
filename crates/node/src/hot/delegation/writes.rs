//! A node on the way: takes writes of keys that are delegated, whoever is their home, and tells the
//! home of them when the delegation is over (section 9 of `spec/protocol.md`).

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::Hot;
use crate::hot::copies::{push_copies, tell_held};
use crate::replica::serve::matches_key;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header, send};
use arrayvec::ArrayVec;
use cluster::{Delegation, HotOrder, Keyspace, KeyspaceId, Mutant, NodeId, PartitionId};
use cluster::{is_plausible_revision, is_plausible_version};
use machine::{Instant, Outbox};
use std::collections::BTreeMap;
use wire::{
    CHAIN_MAX, Code, DelegationCommitBody, DelegationFetchBody, DelegationFoundBody, DelegationId,
    DropReason, Endpoint, Fields, Found, HEADER_LEN, Header, Op, Packet, Revision, hop_flag,
};

/// What a shard holds of delegated keys, and which delegations it takes writes of.
#[derive(Debug, Default)]
pub(crate) struct DelegatedWrites {
    table: BTreeMap<KeyspaceId, BTreeMap<Box<[u8]>, HeldWrite>>,
    /// Revision of the first order of hot keys that this store was given; 0 for none yet.
    since: Revision,
    /// That of the newest.
    newest: Revision,
    /// The revision of the map in which this store was last seen to be an older copy.
    aged: Revision,
}

/// The newest write of a delegated key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HeldWrite {
    delegation: DelegationId,
    version: u64,
    /// Whether this node committed it as the last of its chain, or has been told.
    committed: bool,
    value: Box<[u8]>,
    /// Older ones of the delegation that may not be committed yet. Not on record.
    overtaken: Overtaken,
}

/// Writes of one key by version, the oldest first: reads use them until the next commit.
type Overtaken = ArrayVec<(u64, Box<[u8]>), OVERTAKEN_MAX>;

/// More than are ever on their way to one node, if nothing is lost.
const OVERTAKEN_MAX: usize = 4;
/// What a write takes beside key and value, about.
const HELD_BYTES: usize = 200;

/// Notes of delegated writes: no partition has this id.
const DELEGATED: PartitionId = PartitionId(u32::MAX);
/// Name of the note of the orders, and first letter of those of keys.
const ORDERS: &[u8] = b"o";
const KEY: u8 = b'k';

impl DelegatedWrites {
    /// What the engine has on record.
    pub(crate) fn restore<E: Engine>(now: Instant, engine: &E) -> Self {
        let mut found = Self::default();
        engine.notes(DELEGATED, |name, note| match name.split_first() {
            _ if name == ORDERS => {
                if let ([since, newest, aged], []) = note.as_chunks::<8>() {
                    let order = |bits: &[u8; 8]| Revision::new(u64::from_be_bytes(*bits));
                    (found.since, found.aged) = (order(since), order(aged));
                    let newest = Some(order(newest)).filter(|it| is_plausible_revision(now, *it));
                    found.newest = newest.unwrap_or_default();
                }
            }
            Some((&KEY, place)) => {
                if let Some((id, key)) = place.split_first_chunk::<2>()
                    && let Some(held) = HeldWrite::from_note(note)
                    && is_plausible_revision(now, held.delegation.order())
                    && is_plausible_version(held.version)
                {
                    let id = KeyspaceId(u16::from_be_bytes(*id));
                    found.table.entry(id).or_default().insert(key.into(), held);
                }
            }
            _ => {}
        });
        found
    }

    /// Whether an order may be installed: not if an earlier incarnation had a newer one.
    pub(crate) fn admits(&self, order: &HotOrder) -> bool {
        order.revision >= self.newest
    }

    /// An order is installed.
    pub(crate) fn follow<E: Engine>(&mut self, engine: &mut E, order: &HotOrder) {
        if self.since.is_none() {
            self.since = order.revision;
        }
        self.newest = self.newest.max(order.revision);
        self.note_orders(engine);
    }

    fn note_orders<E: Engine>(&self, engine: &mut E) {
        let note =
            [self.since, self.newest, self.aged].map(|order| order.get().to_be_bytes()).concat();
        engine.note(DELEGATED, ORDERS, Some(&note));
    }

    /// The store is an older copy: it may have taken writes since that are not here. So it counts
    /// as one whose first order is the installed one, or, if none is, the next. This is so once for
    /// each time that it is seen.
    pub(crate) fn age<E: Engine>(&mut self, engine: &mut E, seen: Revision, installed: Revision) {
        if seen > self.aged {
            (self.since, self.aged) = (installed, seen);
            self.note_orders(engine);
        }
    }

    /// Revision of the newest order of hot keys that this store was given; 0 for none.
    pub(crate) fn newest(&self) -> Revision {
        self.newest
    }

    /// How many keys it holds writes of.
    pub(crate) fn len(&self) -> usize {
        self.table.values().map(BTreeMap::len).sum()
    }

    /// Bytes that they take, about. A controller delegates few keys.
    pub(crate) fn bytes(&self) -> u64 {
        let held = self.table.values().flatten();
        held.map(|(key, held)| (key.len() + held.bytes()) as u64).sum()
    }

    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HeldWrite> {
        self.table.get(&keyspace)?.get(key)
    }

    fn keep<E: Engine>(&mut self, engine: &mut E, at: (KeyspaceId, &[u8]), it: HeldWrite) {
        let (keyspace, key) = at;
        engine.note(DELEGATED, &name(keyspace, key), Some(&it.to_note()));
        let keys = self.table.entry(keyspace).or_default();
        if let Some(held) = keys.get_mut(key) {
            let old = std::mem::replace(held, it);
            if old.delegation == held.delegation {
                held.overtaken = old.overtaken;
                if !old.committed {
                    held.overtake(old.version, old.value);
                }
            }
        } else {
            keys.insert(key.into(), it);
        }
    }

    fn forget<E: Engine>(&mut self, engine: &mut E, keyspace: KeyspaceId, key: &[u8]) {
        engine.note(DELEGATED, &name(keyspace, key), None);
        if let Some(keys) = self.table.get_mut(&keyspace) {
            keys.remove(key);
        }
    }

    /// A write came after a newer one of its delegation, and is not known to be committed.
    fn overtake(&mut self, (keyspace, key): (KeyspaceId, &[u8]), version: u64, value: &[u8]) {
        if let Some(held) = self.table.get_mut(&keyspace).and_then(|keys| keys.get_mut(key)) {
            held.overtake(version, value.into());
        }
    }

    /// A write that came through here is committed: gives its value, if it is still held.
    fn commit(
        &mut self,
        (keyspace, key): (KeyspaceId, &[u8]),
        delegation: DelegationId,
        version: u64,
    ) -> Option<Box<[u8]>> {
        let keys = self.table.get_mut(&keyspace)?;
        let held = keys.get_mut(key).filter(|held| held.delegation == delegation)?;
        held.committed |= held.version == version;
        let overtaken = held.overtaken.iter().find(|(it, _)| *it == version);
        let newest = (held.version == version).then_some(&held.value);
        let value = overtaken.map(|(_, value)| value).or(newest).cloned();
        held.overtaken.retain(|(it, _)| *it > version);
        value
    }

    /// The newest write of a key, if it is known to be committed and not below this version.
    pub(crate) fn committed(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        floor: u64,
    ) -> Option<Record<'_>> {
        let held = self.get(keyspace, key)?;
        (held.committed && held.version >= floor).then(|| held.record())
    }
}

impl HeldWrite {
    fn record(&self) -> Record<'_> {
        Record { version: self.version, expiry_ms: 0, tombstone: false, value: &self.value }
    }

    fn bytes(&self) -> usize {
        let overtaken: usize = self.overtaken.iter().map(|(_, value)| value.len()).sum();
        HELD_BYTES + self.value.len() + overtaken
    }

    /// Holds an older write until it is known to be committed; of too many the newest.
    fn overtake(&mut self, version: u64, value: Box<[u8]>) {
        let Err(place) = self.overtaken.binary_search_by_key(&version, |(it, _)| *it) else {
            return;
        };
        match (self.overtaken.is_full(), place) {
            (true, 0) => {}
            (true, place) => {
                self.overtaken.remove(0);
                self.overtaken.insert(place - 1, (version, value));
            }
            (false, place) => self.overtaken.insert(place, (version, value)),
        }
    }

    fn to_note(&self) -> Vec<u8> {
        let words = [self.delegation.get().to_be_bytes(), self.version.to_be_bytes()].concat();
        [&words[..], &[u8::from(self.committed)], &self.value].concat()
    }

    fn from_note(note: &[u8]) -> Option<Self> {
        let (delegation, rest) = note.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (committed, value) = rest.split_first()?;
        Some(Self {
            delegation: DelegationId::new(u64::from_be_bytes(*delegation)),
            version: u64::from_be_bytes(*version),
            committed: *committed != 0,
            value: value.into(),
            overtaken: Overtaken::default(),
        })
    }
}

fn name(keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
    [&[KEY][..], &keyspace.0.to_be_bytes(), key].concat()
}

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
    let can_be = is_plausible_revision(ctx.now, header.delegation().order())
        && is_plausible_version(header.object_version);
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
    let held = ctx.hot.delegated.get(keyspace.id, key);
    let overtaken = held.is_some_and(|it| it.delegation > header.delegation());
    if overtaken || !takes(ctx, header.delegation(), delegation) {
        refuse(ctx, header, Op::Put, Code::Delegated);
        return Ok(());
    }
    let next = member(place + 1);
    let commits = next.is_none() || ctx.mutant.is(Mutant::CopyUncommitted);
    let news = keep(ctx, keyspace.id, header, (key, value), commits);
    let version = header.object_version;
    if news && commits {
        ctx.counters.hot_delegated_writes += 1;
        let record = Record { version, expiry_ms: 0, tombstone: false, value };
        ctx.hot.copies.keep((keyspace.id, header.keyhash), key, &record);
        // Before the answer: when that has passed the switch, reads come for the copies.
        propagate(ctx, packet, header, delegation, key, &record);
    }
    if let Some(next) = next {
        return pass_on(ctx, next, packet, header);
    }
    let reply = Header { object_version: version, ..reply_header(ctx, header, Op::Put, Code::Ok) };
    send(ctx, &reply, &[]);
    ctx.heat.see_hot(keyspace.id, header.keyhash, key, Use::Write);
    Ok(())
}

/// Whether writes of this delegation are taken; `named` is what the installed order has.
fn takes<E>(ctx: &Context<'_, E>, number: DelegationId, named: Option<Delegation>) -> bool {
    let (installed, since) = (ctx.hot.revision(), ctx.hot.delegated.since);
    // A younger store cannot know what was closed before; without an order nothing is known at all.
    let old_enough = !installed.is_none() && since < number.order();
    let open =
        installed < number.order() || named.is_some_and(|delegation| delegation.number == number);
    old_enough && open || ctx.mutant.is(Mutant::KeepDelegations)
}

/// Keeps a write unless a newer one of the key is held. Says whether its value is news as a copy.
fn keep<E: Engine>(
    ctx: &mut Context<'_, E>,
    keyspace: KeyspaceId,
    header: &Header,
    (key, value): (&[u8], &[u8]),
    last: bool,
) -> bool {
    let (delegation, version) = (header.delegation(), header.object_version);
    let held = ctx.hot.delegated.get(keyspace, key);
    let known = held.filter(|held| held.delegation == delegation);
    if known.is_none_or(|held| held.version < version) {
        let overtaken = Overtaken::default();
        let value = value.into();
        let held = HeldWrite { delegation, version, committed: last, value, overtaken };
        ctx.hot.delegated.keep(ctx.engine, (keyspace, key), held);
        return true;
    }
    // A doubled packet brings nothing; one that was overtaken may be the newest committed.
    let overtaken = known.is_some_and(|held| held.version != version);
    if overtaken && !last {
        ctx.hot.delegated.overtake((keyspace, key), version, value);
    }
    overtaken && last
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
        object_version: record.version,
        ..Header::default()
    };
    let of_grant = Header { hop_flags: if known { hop_flag::GRANTED } else { 0 }, ..copy };
    let endpoint = |node| ctx.directory.endpoint(node, id).filter(|_| ctx.leased);
    let told: Vec<Endpoint> = told.filter_map(endpoint).collect();
    let readers: Vec<Endpoint> = packet.readers().map(NodeId).filter_map(endpoint).collect();
    let more: Vec<Endpoint> = more.filter_map(endpoint).collect();
    ctx.counters.hot_copies_sent += (readers.len() + more.len()) as u64;
    push_commits(ctx.out, &told, &of_grant, (header.delegation(), key));
    push_copies(ctx.out, &readers, &of_grant, key, Some(record));
    push_copies(ctx.out, &more, &copy, key, Some(record));
}

/// Tells nodes that a write that they have passed on, of the version in the header, is committed.
fn push_commits(out: &mut Outbox, to: &[Endpoint], header: &Header, of: (DelegationId, &[u8])) {
    let (delegation, key) = of;
    let key_len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
    let header = Header { op: Op::DelegationCommit as u8, key_len, ..*header };
    let body = DelegationCommitBody { delegation }.to_bytes();
    for to in to {
        out.push(*to, |out| {
            wire::emit(out, &header, &[&body, key]);
        });
    }
}

/// The last of a chain says that a write is committed that has come through here.
pub(crate) fn handle_commit<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    (delegation, key): (DelegationId, &[u8]),
) -> Result<(), DropReason> {
    if !ctx.directory.owns(NodeId(header.node), from) {
        return Err(DropReason::NotFromMember);
    }
    let (keyspace, version) = (KeyspaceId(header.keyspace), header.object_version);
    let Hot { delegated, copies, .. } = &mut *ctx.hot;
    if let Some(value) = delegated.commit((keyspace, key), delegation, version) {
        let record = Record { version, expiry_ms: 0, tombstone: false, value: &value };
        let held = copies.keep((keyspace, header.keyhash), key, &record);
        tell_held(ctx, from, header, held);
    }
    Ok(())
}

/// The home of a key asks what is held of it from a delegation that an order has ended.
pub(crate) fn handle_fetch<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    fixed: DelegationFetchBody,
    key: &[u8],
) -> Result<(), DropReason> {
    if !ctx.directory.owns(NodeId(header.node), from) {
        return Err(DropReason::NotFromMember);
    }
    if ctx.hot.revision() < fixed.ended {
        return Ok(()); // It will ask again; until then writes of the delegation may be taken here.
    }
    let held = ctx.hot.delegated.get(KeyspaceId(header.keyspace), key);
    let held = held.filter(|held| held.delegation == fixed.delegation);
    let held = held.filter(|it| it.committed || !ctx.mutant.is(Mutant::FetchCommittedOnly));
    let (version, found) = match held {
        Some(held) => (held.version, Found::Value(&held.value)),
        None if ctx.hot.delegated.since >= fixed.delegation.order() => (0, Found::Young),
        None => (0, Found::Nothing),
    };
    let (kind, value) = found.parts();
    let answer = Header {
        op: Op::DelegationFound as u8,
        node: ctx.directory.me.0,
        load: ctx.load,
        object_version: version,
        ..*header
    };
    let body = DelegationFoundBody { delegation: fixed.delegation, kind }.to_bytes();
    if ctx.leased {
        ctx.out.push(from, |out| {
            wire::emit(out, &answer, &[&body, key, value]);
        });
    }
    Ok(())
}

/// A delegation was recalled: what is held of it from there is of no use any more.
pub(crate) fn handle_end<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    (delegation, key): (DelegationId, &[u8]),
) -> Result<(), DropReason> {
    if !ctx.directory.owns(NodeId(header.node), from) {
        return Err(DropReason::NotFromMember);
    }
    if !is_plausible_revision(ctx.now, delegation.order()) {
        return Err(DropReason::Implausible);
    }
    let keyspace = KeyspaceId(header.keyspace);
    if ctx.hot.delegated.get(keyspace, key).is_some_and(|held| held.delegation <= delegation) {
        ctx.hot.delegated.forget(ctx.engine, keyspace, key);
    }
    Ok(())
}
