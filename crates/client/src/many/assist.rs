//! Hints for a switch that cannot loop over keys (NetMC, algorithm 1): keys of one node stand
//! beside each other, and the header says where each node's end and where they go.
//!
//! Only the first copy of a datagram has hints. Whatever is asked again may be so because of them.

use super::Many;
use crate::window::Pending;
use std::ops::Range;
use wire::{Fields as _, GroupedMget, HEADER_LEN, MGET_GROUPS_MAX, flag};

impl Many {
    /// Writes hints into the datagram of these keys, if there are any to give: each key must have a
    /// node, and a partition of each node a number that fits.
    pub(super) fn hint(&self, datagram: &mut [u8], keys: Range<usize>) {
        let Some(hints) = self.hints(keys) else { return };
        let header = datagram.first_chunk_mut::<HEADER_LEN>();
        let header = header.expect("every request was emitted with a header");
        header.set_flags(header.flags() | flag::GROUPED);
        let Hints { ends, partitions } = hints;
        GroupedMget { ends, group: 0, partitions }.write(header);
    }

    fn hints(&self, keys: Range<usize>) -> Option<Hints> {
        let mut hints = Hints::default();
        let mut places = hints.partitions.as_chunks_mut::<2>().0.iter_mut();
        let mut last = None;
        for (index, home) in self.homes.get(keys)?.iter().enumerate() {
            let (tail, partition) = (*home)?;
            if last != Some(tail) {
                last = Some(tail);
                *places.next()? = u16::try_from(partition.0).ok()?.to_be_bytes();
                // The group before it has ended; before the first there is none.
                hints.ends |= (1 << index) >> 1;
            }
        }
        Some(hints)
    }
}

impl Pending {
    /// Takes the hints off its next copies.
    pub(crate) fn ask_without_hints(&mut self) {
        let header = self.datagram.first_chunk_mut::<HEADER_LEN>();
        let header = header.expect("every request was emitted with a header");
        header.set_flags(header.flags() & !flag::GROUPED);
    }
}

/// Which keys of a datagram are of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Hints {
    /// The last key of each group but the last.
    ends: u32,
    /// Of each group, a partition whose tail has its keys.
    partitions: [u8; 2 * MGET_GROUPS_MAX],
}
