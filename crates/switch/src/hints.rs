//! Multigets split as a target does that cannot loop over keys, by the hints of the client that
//! made them (NetMC, algorithm 2): one group for each pass.
//!
//! A pass reads fixed places of the header and nothing of the payload, so that a parser needs no
//! more depth than for any request. It takes the first group off: the keys up to the lowest bit of
//! `group_ends`. They go to the tail of the partition that the group's place in `group_partitions`
//! names, as that is *now*. The rest comes round again (on a switch chip a clone on the
//! recirculation port), and then its next group is the first.
//!
//! Hints are believed here and nowhere else. Keys that are in the wrong group reach a node that
//! does not have them, which says so, and the client asks for them again without hints. Hot keys
//! go home: whoever does not look at each key cannot know them.

use crate::pass::{Pass, split_header, stamp_chain_of_one};
use crate::split::asked_keys;
use crate::tables::Exit;
use cluster::{KeyspaceId, PartitionId};
use wire::{DropReason, Fields, GroupedMget, HEADER_LEN};

/// What a pass finds in the header of a multiget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hints {
    /// Keys that are left.
    asked: u32,
    /// The last key of each group that is left.
    ends: u32,
    /// Number of the first of those.
    group: u8,
}

/// What a pass takes off: the keys of one group that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    keys: u32,
    /// Its place in the header.
    number: u8,
}

impl Hints {
    fn read(header: &[u8; HEADER_LEN]) -> Self {
        let GroupedMget { ends, group, .. } = GroupedMget::read(header);
        Self { asked: header.bitmap(), ends, group }
    }

    fn write(self, header: &mut [u8; HEADER_LEN]) {
        header.set_bitmap(self.asked);
        let Self { ends, group, .. } = self;
        GroupedMget { ends, group, ..GroupedMget::read(header) }.write(header);
    }

    /// The first group, and what is left after it. A chip without this arithmetic compares
    /// `ends` with a constant for each length that a group can have.
    fn pass(self) -> (Group, Option<Self>) {
        let Self { asked, ends, group } = self;
        // All bits up to the lowest one that is set, or all bits.
        let up_to_end = ends ^ ends.wrapping_sub(1);
        let left = Self {
            asked: asked & !up_to_end,
            ends: ends & !up_to_end,
            group: group.wrapping_add(1),
        };
        let taken = Group { keys: asked & up_to_end, number: group };
        (taken, (left.asked != 0).then_some(left))
    }
}

impl Group {
    /// The partition that the hints name for it.
    fn partition(self, header: &[u8; HEADER_LEN]) -> Option<PartitionId> {
        let GroupedMget { partitions, .. } = GroupedMget::read(header);
        let id = partitions.as_chunks::<2>().0.get(usize::from(self.number))?;
        Some(PartitionId(u16::from_be_bytes(*id).into()))
    }
}

impl Pass<'_> {
    /// Sends each group of keys where its hint says.
    pub(crate) fn mget_by_hints(mut self, datagram: &mut [u8]) -> Result<(), DropReason> {
        let (header, payload) = split_header(datagram);
        let asked = asked_keys(header, payload).ok_or(DropReason::BadBody)?;
        let keyspace = KeyspaceId(header.keyspace());
        self.tables.keyspace(keyspace).ok_or(DropReason::NoKeyspace)?;
        header.set_bitmap(asked);
        header.set_chain_pos(0);
        while self.pass_round(datagram, keyspace) {}
        Ok(())
    }

    /// One pass; says whether the datagram is to come round again. Each takes a bit off `ends`, or
    /// all that is left, so there are few.
    fn pass_round(&mut self, datagram: &mut [u8], keyspace: KeyspaceId) -> bool {
        let (header, _) = split_header(datagram);
        let (group, left) = Hints::read(header).pass();
        if group.keys != 0 {
            let partition = group.partition(header);
            match self.group_exit(keyspace, partition, group.keys.count_ones()) {
                Ok(exit) => {
                    header.set_partition(0);
                    header.set_epoch(0);
                    header.set_bitmap(group.keys);
                    stamp_chain_of_one(header, exit);
                    self.send_to(exit.node);
                    self.emit(exit.to, datagram);
                }
                Err(reason) => self.counters.count_drops(reason, group.keys.count_ones()),
            }
        }
        let (header, _) = split_header(datagram);
        left.inspect(|left| left.write(header)).is_some()
    }

    /// Where a group of so many keys goes.
    fn group_exit(
        &mut self,
        keyspace: KeyspaceId,
        partition: Option<PartitionId>,
        keys: u32,
    ) -> Result<Exit, DropReason> {
        let action = partition.and_then(|id| self.tables.partition(keyspace, id));
        let action = action.ok_or(DropReason::NoPartition)?;
        self.counters.count_reads(action.counter, keys);
        action.tail.ok_or(DropReason::NoNode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All passes of a multiget.
    fn passes(asked: u32, ends: u32) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut next = Some(Hints { asked, ends, group: 0 });
        while let Some(hints) = next {
            let (group, left) = hints.pass();
            groups.push(group);
            next = left;
        }
        groups
    }

    #[test]
    fn the_papers_example_takes_three_passes() {
        // Keys A and D of one server, then B, then C.
        let groups = passes(0b1111, 0b1110);
        let bits: Vec<(u8, u32)> = groups.iter().map(|it| (it.number, it.keys)).collect();
        assert_eq!(bits, [(0, 0b0011), (1, 0b0100), (2, 0b1000)]);
    }

    proptest! {
        #[test]
        fn whatever_the_hints_each_key_is_in_one_group_and_groups_are_in_order(
            asked in 1u32.., ends in any::<u32>(),
        ) {
            let groups = passes(asked, ends);
            prop_assert!(groups.len() <= 33);
            let mut seen = 0u32;
            for group in &groups {
                prop_assert_eq!(seen & group.keys, 0);
                let after = seen.checked_ilog2().map_or(0, |last| last + 1);
                prop_assert!(group.keys == 0 || group.keys.trailing_zeros() >= after);
                seen |= group.keys;
            }
            prop_assert_eq!(seen, asked);
        }

        #[test]
        fn a_group_has_the_number_of_its_end(asked in 1u32.., ends in any::<u32>()) {
            for group in passes(asked, ends) {
                // The ends before a group's keys are those of the groups before it.
                let first = group.keys.trailing_zeros().min(31);
                let before = (ends & ((1 << first) - 1)).count_ones();
                prop_assert!(group.keys == 0 || u32::from(group.number) == before);
            }
        }
    }
}
