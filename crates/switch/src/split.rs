//! One request for many nodes: MGET by endpoint, RANGE by partition.

use crate::pipeline::{emit, split_header, stamp_chain_of_one, stamp_read};
use crate::tables::{Action, Exit};
use crate::{Counters, Tables};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, Match, RangeTable};
use machine::Outbox;
use wire::{
    DropReason, Fields, HEADER_LEN, MGET_KEYS_MAX, MgetSlotBody, RANGE_PIECES_MAX, flag, hop_flag,
};

/// The keys of one MGET that the same shard answers.
struct Group {
    exit: Exit,
    bitmap: u32,
}

/// Sends each endpoint one copy with the bitmap of the keys that it is to answer.
pub(crate) fn mget(
    tables: &Tables,
    counters: &mut Counters,
    datagram: &mut [u8],
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, payload) = split_header(datagram);
    let slots = requested_slots(header, payload).ok_or(DropReason::BadBody)?;
    let keyspace = KeyspaceId(header.keyspace());
    let table = tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
    let groups = group(table, counters, slots);
    header.set_partition(0);
    header.set_epoch(0);
    header.set_chain_pos(0);
    for Group { exit, bitmap } in groups {
        let (header, _) = split_header(datagram);
        header.set_bitmap(bitmap);
        stamp_chain_of_one(header, exit);
        emit(counters, exit.to, datagram, out);
    }
    Ok(())
}

/// Bit and match value of each key that the bitmap asks for; `None` if there is none, or if the
/// slots are not all inside the payload.
fn requested_slots<'a>(
    header: &[u8; HEADER_LEN],
    payload: &'a [u8],
) -> Option<impl Iterator<Item = (u32, Match)> + use<'a>> {
    let count = usize::from(header.count());
    if !(1..=MGET_KEYS_MAX).contains(&count) {
        return None;
    }
    let slots = payload.get(..count * MgetSlotBody::LEN)?;
    let (slots, _) = slots.as_chunks::<{ MgetSlotBody::LEN }>();
    let asked = header.bitmap() & (u32::MAX >> (MGET_KEYS_MAX - count));
    let bits = (0..u32::BITS).map(|i| 1 << i);
    (asked != 0).then(|| {
        bits.zip(slots).filter(move |(bit, _)| asked & bit != 0).filter_map(|(bit, slot)| {
            let (slot, _) = MgetSlotBody::split(slot)?;
            Some((bit, Match(slot.match_value)))
        })
    })
}

/// Groups keys by where their tails are, in the order of each group's first key. A key without
/// partition or node is counted and left out.
fn group(
    table: &RangeTable<Action>,
    counters: &mut Counters,
    slots: impl Iterator<Item = (u32, Match)>,
) -> ArrayVec<Group, MGET_KEYS_MAX> {
    let mut groups = ArrayVec::<Group, MGET_KEYS_MAX>::new();
    for (bit, at) in slots {
        let Some(action) = table.find(at) else {
            counters.count_drop(DropReason::NoPartition);
            continue;
        };
        counters.count_read(action.counter);
        let Some(exit) = action.tail else {
            counters.count_drop(DropReason::NoNode);
            continue;
        };
        match groups.iter_mut().find(|group| group.exit.key == exit.key) {
            Some(group) => group.bitmap |= bit,
            None => groups.push(Group { exit, bitmap: bit }),
        }
    }
    groups
}

/// What is left of an interval of match values, both ends inclusive.
#[derive(Clone, Copy)]
struct Interval {
    first: Match,
    last: Match,
}

/// Algorithm 1 of TurboKV, from either end: cuts the interval at the bounds of partitions and
/// sends each piece to the tail of its partition.
pub(crate) fn range(
    tables: &Tables,
    counters: &mut Counters,
    datagram: &mut [u8],
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let (header, _) = split_header(datagram);
    let whole = Interval { first: Match(header.match_value()), last: Match(header.match_end()) };
    let pieces_max = usize::from(header.count()).min(RANGE_PIECES_MAX);
    if whole.first > whole.last || pieces_max == 0 {
        return Err(DropReason::BadBody);
    }
    let reverse = header.flags() & flag::REVERSE != 0;
    let keyspace = KeyspaceId(header.keyspace());
    let table = tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
    let mut left = Some(whole);
    for number in 1..=pieces_max {
        let Some(interval) = left else { break };
        let Some((piece, rest, action)) = cut(table, interval, reverse) else {
            counters.count_drop(DropReason::NoPartition);
            break;
        };
        left = rest;
        counters.count_read(action.counter);
        let (header, _) = split_header(datagram);
        header.set_match_value(piece.first.0);
        header.set_match_end(piece.last.0);
        if number == pieces_max && left.is_some() {
            header.set_hop_flags(hop_flag::CUT);
        }
        match stamp_read(header, action) {
            Some(exit) => emit(counters, exit.to, datagram, out),
            None => counters.count_drop(DropReason::NoNode),
        }
    }
    Ok(())
}

/// The part of the interval inside the partition that holds its first match value (`reverse`: its
/// last), and the rest. `None` if no partition holds that.
fn cut(
    table: &RangeTable<Action>,
    Interval { first, last }: Interval,
    reverse: bool,
) -> Option<(Interval, Option<Interval>, &Action)> {
    let at = if reverse { last } else { first };
    let (partition_first, partition_last, action) = table.get(table.position(at)?)?;
    if at > partition_last {
        return None;
    }
    let piece = Interval { first: first.max(partition_first), last: last.min(partition_last) };
    // At the ends of the space the rest, which would begin outside it, is empty.
    let rest = if reverse {
        piece.first.0.checked_sub(1).map(|last| Interval { first, last: Match(last) })
    } else {
        piece.last.0.checked_add(1).map(|first| Interval { first: Match(first), last })
    };
    Some((piece, rest.filter(|rest| rest.first <= rest.last), action))
}
