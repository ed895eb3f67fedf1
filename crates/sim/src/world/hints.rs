//! Hints of multigets: maps that clients come to know late or never, and what happens to hints on
//! the way, where no tag publishes them.

use super::World;
use cluster::Map;
use wire::{Fields as _, GroupedMget, HEADER_LEN, MGET_GROUPS_MAX, Op, flag};

impl World {
    /// The map has changed. Half of the clients that have one do not hear of it.
    pub(super) fn tell_clients(&mut self, map: &Map) {
        if !self.options.load.assisted {
            return;
        }
        for actor in &mut self.actors {
            if !actor.assists() || self.rng.chance(1, 2) {
                actor.assist_by(map);
            }
        }
    }

    /// Of multigets with hints, some are given others.
    pub(super) fn damage_hints(&mut self, datagram: &mut [u8]) {
        let Some(header) = datagram.first_chunk_mut::<HEADER_LEN>() else { return };
        let hinted = header.op() == Op::Mget as u8 && header.flags() & flag::GROUPED != 0;
        if !hinted || !self.rng.chance(1, 4) {
            return;
        }
        let Ok(ends) = u32::try_from(self.rng.next_u64() >> 32) else { return };
        let mut partitions = [0; 2 * MGET_GROUPS_MAX];
        for place in partitions.as_chunks_mut::<2>().0 {
            // Some that there are, and some that there are not.
            let id = self.rng.below(20);
            *place = u16::try_from(id).expect("it is small").to_be_bytes();
        }
        GroupedMget { ends, partitions, ..GroupedMget::read(header) }.write(header);
    }
}
