//! One request for many nodes: MGET by endpoint, RANGE by partition.

use crate::CoherenceDirectory;
use crate::pass::{Pass, split_header, stamp_chain_of_one, stamp_read};
use crate::tables::{Action, Exit};
use arrayvec::ArrayVec;
use cluster::{KeyspaceId, Match, RangeTable, Span};
use wire::{
    DropReason, Fields, HEADER_LEN, HotMget, MGET_KEYS_MAX, MgetSlotBody, RANGE_PIECES_MAX,
    RangeInterval, Version, flag, hop_flag,
};

/// The keys of one MGET that the same shard answers.
struct Group {
    exit: Exit,
    bitmap: u32,
    /// Those of them that it answers from copies.
    hot_bitmap: u32,
}

/// What one MGET becomes.
#[derive(Default)]
struct Split {
    groups: ArrayVec<Group, MGET_KEYS_MAX>,
    /// Slots whose keys go to copies, with their floors.
    floors: ArrayVec<(usize, Version), MGET_KEYS_MAX>,
}

impl Pass<'_> {
    /// Sends each endpoint one copy with the bitmap of the keys that it is to answer. A switch that
    /// can look at every key needs no hints: it would have to, hints or not, for those that are hot
    /// and to count what each partition is asked for, and then it knows their groups.
    pub(crate) fn mget(
        mut self,
        directory: impl CoherenceDirectory,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let (header, payload) = split_header(datagram);
        if self.by_hints && header.flags() & flag::GROUPED != 0 {
            return self.mget_by_hints(datagram);
        }
        let asked = asked_keys(header, payload).ok_or(DropReason::BadBody)?;
        let slots = slots(asked, payload);
        let keyspace = KeyspaceId(header.keyspace());
        let table = self.tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
        let at_home = header.flags() & flag::AT_HOME != 0;
        let Split { groups, floors } = self.group(&directory, table, (keyspace, at_home), slots);
        header.set_partition(0);
        header.set_epoch(0);
        header.set_chain_pos(0);
        write_floors(payload, &floors);
        for Group { exit, bitmap, hot_bitmap } in groups {
            let (header, _) = split_header(datagram);
            header.set_bitmap(bitmap);
            stamp_chain_of_one(header, exit);
            HotMget { hot: hot_bitmap }.write(header);
            self.send_to(exit.node);
            self.emit(exit.to, datagram);
        }
        Ok(())
    }

    /// Groups keys by where they are answered, in the order of each group's first key. A key
    /// without partition or node is counted and left out.
    fn group(
        &mut self,
        directory: &impl CoherenceDirectory,
        table: &RangeTable<Action>,
        (keyspace, at_home): (KeyspaceId, bool),
        slots: impl Iterator<Item = Slot>,
    ) -> Split {
        let mut split = Split::default();
        for Slot { number, at, keyhash } in slots {
            let Some(action) = table.find(at) else {
                self.counters.count_drop(DropReason::NoPartition);
                continue;
            };
            self.counters.count_read(action.counter);
            let read = directory.select_replica(self, (keyspace, keyhash), at, at_home);
            let to_copy = read.and_then(|read| self.copy_of(&read, action.partition));
            if read.is_some() {
                self.counters.count_hot_key(to_copy.is_some());
            }
            let floor = read.and_then(|read| read.floor);
            let bit = 1 << number;
            let hot_bit = if floor.is_some() { bit } else { 0 };
            split.floors.extend(floor.map(|floor| (number, floor)));
            let Some(exit) = to_copy.or(action.tail) else {
                self.counters.count_drop(DropReason::NoNode);
                continue;
            };
            match split.groups.iter_mut().find(|group| group.exit.key == exit.key) {
                Some(group) => {
                    group.bitmap |= bit;
                    group.hot_bitmap |= hot_bit;
                }
                None => split.groups.push(Group { exit, bitmap: bit, hot_bitmap: hot_bit }),
            }
        }
        split
    }
}

/// Puts floors in the place of match values. The slots are the same in all copies, but each key is
/// in the bitmap of one of them alone, and nobody else looks at its slot.
fn write_floors(payload: &mut [u8], floors: &[(usize, Version)]) {
    let (slots, _) = payload.as_chunks_mut::<{ MgetSlotBody::LEN }>();
    for (number, floor) in floors {
        let slot = slots.get_mut(*number).and_then(|slot| slot.first_chunk_mut());
        *slot.expect("it was read") = u128::from(floor.get()).to_be_bytes();
    }
}

/// What an MGET says of one key to the switch.
struct Slot {
    number: usize,
    at: Match,
    keyhash: u64,
}

/// The keys that the bitmap asks for; `None` if there are none, or if the slots are not all inside
/// the payload.
pub(crate) fn asked_keys(header: &[u8; HEADER_LEN], payload: &[u8]) -> Option<u32> {
    let count = usize::from(header.count());
    if !(1..=MGET_KEYS_MAX).contains(&count) || payload.len() < count * MgetSlotBody::LEN {
        return None;
    }
    let asked = header.bitmap() & (u32::MAX >> (MGET_KEYS_MAX - count));
    (asked != 0).then_some(asked)
}

/// The slots of these keys.
fn slots(asked: u32, payload: &[u8]) -> impl Iterator<Item = Slot> {
    let (slots, _) = payload.as_chunks::<{ MgetSlotBody::LEN }>();
    let slots = slots.iter().take(MGET_KEYS_MAX).enumerate();
    slots.filter(move |(number, _)| asked >> number & 1 != 0).filter_map(|(number, slot)| {
        let (slot, _) = MgetSlotBody::split(slot)?;
        Some(Slot { number, at: Match(slot.match_value), keyhash: slot.keyhash })
    })
}

impl Pass<'_> {
    /// Algorithm 1 of TurboKV, from either end: cuts the interval at the bounds of partitions and
    /// sends each piece to the tail of its partition.
    pub(crate) fn range(mut self, datagram: &mut [u8]) -> Result<(), DropReason> {
        let (header, _) = split_header(datagram);
        let RangeInterval { first, last } = RangeInterval::read(header);
        let whole = Span { first: Match(first), last: Match(last) };
        let pieces_max = usize::from(header.count()).min(RANGE_PIECES_MAX);
        if whole.first > whole.last || pieces_max == 0 {
            return Err(DropReason::BadBody);
        }
        let reverse = header.flags() & flag::REVERSE != 0;
        let keyspace = KeyspaceId(header.keyspace());
        let table = self.tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
        let mut left = Some(whole);
        for number in 1..=pieces_max {
            let Some(span) = left else { break };
            let Some((piece, rest, action)) = table.cut(span, reverse) else {
                self.counters.count_drop(DropReason::NoPartition);
                break;
            };
            left = rest;
            self.counters.count_read(action.counter);
            let (header, _) = split_header(datagram);
            RangeInterval { first: piece.first.0, last: piece.last.0 }.write(header);
            if number == pieces_max && left.is_some() {
                header.set_hop_flags(hop_flag::CUT);
            }
            match stamp_read(header, action) {
                Some(exit) => {
                    self.send_to(exit.node);
                    self.emit(exit.to, datagram);
                }
                None => self.counters.count_drop(DropReason::NoNode),
            }
        }
        Ok(())
    }
}
