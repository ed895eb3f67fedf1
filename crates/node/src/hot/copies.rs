//! A reader: holds copies of hot keys of other nodes, and answers reads from them as far as the
//! switch says that they are new enough.

use crate::engine::{Engine, Record};
use crate::heat::Use;
use crate::hot::Hot;
use crate::hot::publish::tell_missed;
use crate::replica::Replica;
use crate::replica::read::{entry, is_too_large, judge};
use crate::replica::serve::matches_key;
use crate::shard::context::Context;
use crate::shard::reply::{refuse, reply_header};
use cluster::{Keyspace, KeyspaceId, Mutant, NodeId, is_plausible_version};
use machine::{Outbox, UnixMs};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};
use wire::{
    Code, DropReason, Endpoint, Entry, GetReplyBody, Header, HotCopyBody, MgetKey, Op, hop_flag,
};

/// Keyspace and keyhash.
type CopyKey = (KeyspaceId, u64);

/// What a shard holds of other nodes' keys. It is not kept on record.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Of two keys with the same place the last that came.
    table: BTreeMap<CopyKey, HeldCopy>,
    bytes: usize,
    /// Whether there is little room, so that few are held.
    few: bool,
    /// Where the search for one that nobody reads goes on.
    hand: Option<CopyKey>,
}

/// A copy.
#[derive(Debug)]
struct HeldCopy {
    key: Box<[u8]>,
    version: u64,
    expiry_ms: u64,
    /// `None`: the key has no value.
    value: Option<Box<[u8]>>,
    /// Whether it was read since the hand last came by.
    read: bool,
}

impl HeldCopy {
    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.key.len() + self.value.as_ref().map_or(0, |value| value.len())
    }

    fn record(&self) -> Record<'_> {
        Record {
            version: self.version,
            expiry_ms: self.expiry_ms,
            tombstone: self.value.is_none(),
            value: self.value.as_deref().unwrap_or_default(),
        }
    }
}

impl Copies {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// What a copy of this very key answers a read that may be told these versions. One whose time
    /// has come answers nothing: the tail has to see to it.
    fn answer(
        &mut self,
        now: UnixMs,
        place: CopyKey,
        key: &[u8],
        versions: RangeInclusive<u64>,
    ) -> Option<(Code, Entry<'_>)> {
        let held = self.table.get_mut(&place).filter(|held| *held.key == *key)?;
        held.read = true;
        let record = held.record();
        let code = judge(key, Some(&record), now);
        let fits = code.is_decided() && versions.contains(&held.version);
        fits.then(|| (code, entry(&record)))
    }

    /// Keeps a copy, unless a newer one of the key is held. Gives the version held then. One of the
    /// same version takes the place of the other: it may be what has been made right since.
    pub(crate) fn keep(&mut self, place: CopyKey, key: &[u8], record: &Record<'_>) -> u64 {
        let version = record.version;
        let known = self.table.get(&place).filter(|held| *held.key == *key);
        if let Some(known) = known.filter(|known| known.version > version) {
            return known.version;
        }
        let copy = HeldCopy {
            key: key.into(),
            version,
            expiry_ms: record.expiry_ms,
            value: (!record.tombstone).then(|| record.value.into()),
            read: false,
        };
        self.bytes += copy.bytes();
        if let Some(old) = self.table.insert(place, copy) {
            self.bytes -= old.bytes();
        }
        while self.table.len() > COPIES_MAX || self.bytes > self.bytes_max() {
            self.drop_one(Some(place));
        }
        version
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Says whether there is room for many.
    pub(crate) fn limit(&mut self, many: bool) {
        self.few = !many;
        while self.bytes > self.bytes_max() {
            self.drop_one(None);
        }
    }

    fn bytes_max(&self) -> usize {
        if self.few { FEW_BYTES_MAX } else { BYTES_MAX }
    }

    /// Drops a copy that was not read since the hand last came by; not the newcomer.
    fn drop_one(&mut self, newcomer: Option<CopyKey>) {
        loop {
            let after = self.hand.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.table.range_mut((after, Bound::Unbounded)).next();
            self.hand = next.as_ref().map(|(place, _)| **place);
            let Some((place, held)) = next else { continue };
            if Some(*place) != newcomer && !std::mem::take(&mut held.read) {
                break;
            }
        }
        if let Some(old) = self.hand.and_then(|place| self.table.remove(&place)) {
            self.bytes -= old.bytes();
        }
    }
}

impl Hot {
    /// What this node answers a read that may be told these versions, from a copy or from what it
    /// has itself committed of a key that is delegated.
    pub(crate) fn answer(
        &mut self,
        now: UnixMs,
        place: CopyKey,
        key: &[u8],
        versions: RangeInclusive<u64>,
    ) -> Option<(Code, Entry<'_>)> {
        let Self { copies, delegated, .. } = self;
        let delegated = || {
            let record = delegated.committed(place.0, key, *versions.start())?;
            versions.contains(&record.version).then(|| (Code::Ok, entry(&record)))
        };
        copies.answer(now, place, key, versions.clone()).or_else(delegated)
    }
}

/// Sends copies of a key's committed state, of the version in the header; `None` if it has none.
pub(crate) fn push_copies(
    out: &mut Outbox,
    to: &[Endpoint],
    header: &Header,
    key: &[u8],
    record: Option<&Record<'_>>,
) {
    // What fits no datagram the tail refuses by itself.
    if record.is_some_and(|record| is_too_large(key, record)) {
        return;
    }
    let value = record.filter(|record| !record.tombstone);
    let fixed = HotCopyBody {
        kind: u8::from(value.is_none()),
        expiry_ms: value.map_or(0, |record| record.expiry_ms),
    };
    let header = Header {
        op: Op::HotCopy as u8,
        key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
        ..*header
    };
    let value = value.map_or(&[][..], |record| record.value);
    for to in to {
        out.push(*to, |out| {
            wire::emit(out, &header, &[&fixed.to_bytes(), key, value]);
        });
    }
}

/// Takes a copy from a tail, and tells it through the switch what is held now; or from a
/// delegation, where the switch may know by itself.
pub(crate) fn handle_hot_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    key: &[u8],
    record: &Record<'_>,
) -> Result<(), DropReason> {
    if !ctx.directory.owns(NodeId(header.node), from) {
        return Err(DropReason::NotFromMember);
    }
    if !is_plausible_version(record.version) {
        return Err(DropReason::Implausible);
    }
    let id = KeyspaceId(header.keyspace);
    let keyspace = ctx.directory.keyspace(id).ok_or(DropReason::NoKeyspace)?;
    if !matches_key(keyspace, header.match_value, header.keyhash, key) {
        return Err(DropReason::BadBody);
    }
    let held = ctx.hot.copies.keep((id, header.keyhash), key, record);
    tell_held(ctx, from, header, held);
    Ok(())
}

/// Says through the switch to whoever has sent a copy which version is held now, unless the switch
/// knows by itself.
pub(crate) fn tell_held<E>(ctx: &mut Context<'_, E>, from: Endpoint, header: &Header, held: u64) {
    if header.hop_flags & hop_flag::GRANTED != 0 {
        return;
    }
    let mut answer = Header {
        node: ctx.directory.me.0,
        load: ctx.load,
        op: Op::HotCopied as u8,
        reply_addr: from.addr,
        reply_port: from.port,
        object_version: held,
        partition: header.partition,
        epoch: header.epoch,
        keyspace: header.keyspace,
        match_value: header.match_value,
        keyhash: header.keyhash,
        ..Header::default()
    };
    answer.set_rate(ctx.rate);
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &answer, &[]);
    });
}

/// Whether a GET is to be answered from a copy: the switch has stamped it so, and this is not the
/// tail.
pub(crate) fn is_for_reader(request: &Header, replica: Option<&Replica>) -> bool {
    let flags = request.hop_flags & (hop_flag::HOT | hop_flag::DIRECT);
    flags == hop_flag::HOT && replica.is_none_or(|replica| !replica.is_tail())
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
    let floor = if ignores { 0 } else { request.object_version };
    if !answer_copy(ctx, request, (keyspace.id, request.keyhash), key, floor) {
        refuse(ctx, request, Op::Get, Code::NotHere);
    }
}

/// Answers a GET with what this node holds of a hot key, if that is new enough; says whether it
/// did.
pub(crate) fn answer_copy<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    place: CopyKey,
    key: &[u8],
    floor: u64,
) -> bool {
    let header = reply_header(ctx, request, Op::Get, Code::Ok);
    let now_ms = ctx.time;
    let Some((code, entry)) = ctx.hot.answer(ctx.time, place, key, floor..=u64::MAX) else {
        return false;
    };
    let header = Header { code: code as u8, object_version: entry.version, ..header };
    let fixed = GetReplyBody { expiry_ms: entry.expiry_ms, now_ms: now_ms.0 }.to_bytes();
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &header, &[&fixed, entry.value]);
    });
    ctx.heat.see_hot(place.0, place.1, key, Use::Read);
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
    let floor = u64::try_from(slot.match_value).unwrap_or(u64::MAX);
    let lowest = if ctx.mutant.is(Mutant::AnswerBelowFloor) { 0 } else { floor };
    let highest = if ctx.mutant.is(Mutant::ShowUnpublished) { u64::MAX } else { floor };
    let place = (keyspace, slot.keyhash);
    let found = ctx.hot.answer(ctx.time, place, slot.key, lowest..=highest);
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

/// Copies per shard. Keys are hot because few get most of the requests: a controller orders no more
/// of them than pay.
const COPIES_MAX: usize = 4_096;
/// Bytes that they take at most: as many with values of 2 KB, so that the count is what bounds.
const BYTES_MAX: usize = 8 << 20;
/// The same when there is little room: a few of the largest.
const FEW_BYTES_MAX: usize = 64 << 10;
/// What a copy takes beside key and value, about.
const ENTRY_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: KeyspaceId = KeyspaceId(1);

    fn keep(copies: &mut Copies, number: u64, key: &[u8], version: u64, len: usize) -> u64 {
        let value = &vec![0; len];
        let record = Record { version, expiry_ms: 0, tombstone: false, value };
        copies.keep((SPACE, number), key, &record)
    }

    #[test]
    fn an_older_copy_is_not_kept_and_another_key_with_the_same_hash_takes_the_place() {
        let mut copies = Copies::default();
        assert_eq!(keep(&mut copies, 7, b"a", 5, 10), 5);
        assert_eq!(keep(&mut copies, 7, b"a", 4, 1), 5);
        let now = UnixMs(1);
        let seen = |copies: &mut Copies, key: &[u8], versions| {
            copies.answer(now, (SPACE, 7), key, versions).map(|(_, entry)| entry.version)
        };
        assert_eq!(seen(&mut copies, b"a", 0..=9), Some(5));
        assert_eq!(seen(&mut copies, b"a", 6..=9), None);
        assert_eq!(seen(&mut copies, b"b", 0..=9), None, "the hash is the same, the key is not");
        assert_eq!(keep(&mut copies, 7, b"b", 2, 1), 2);
        assert_eq!(seen(&mut copies, b"a", 0..=9), None);
        assert_eq!((copies.len(), copies.bytes), (1, ENTRY_BYTES + 2));
    }

    #[test]
    fn what_nobody_reads_goes_first() {
        let mut copies = Copies::default();
        let (most, now) = (COPIES_MAX as u64, UnixMs(1));
        let one = |copies: &mut Copies, number: u64| {
            assert_eq!(keep(copies, number, &number.to_be_bytes(), 1, 100), 1);
        };
        for number in 0..most {
            one(&mut copies, number);
        }
        let read = |copies: &mut Copies, number: u64| {
            copies.answer(now, (SPACE, number), &number.to_be_bytes(), 0..=9).is_some()
        };
        assert!(read(&mut copies, 0) && read(&mut copies, 2));
        one(&mut copies, most);
        one(&mut copies, most + 1);
        assert_eq!(copies.len(), COPIES_MAX);
        let kept: Vec<bool> = (0..5).map(|number| read(&mut copies, number)).collect();
        assert_eq!(kept, [true, false, true, false, true]);
    }

    #[test]
    fn large_copies_are_held_in_fewer() {
        let mut copies = Copies::default();
        for number in 0..100 {
            keep(&mut copies, number, &number.to_be_bytes(), 1, BYTES_MAX / 10);
            assert!(copies.bytes <= BYTES_MAX);
        }
        assert_eq!(copies.len(), 9);
    }
}
