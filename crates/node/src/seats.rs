//! The node's own record of which partitions it holds data of, and since when.
//!
//! An assignment says since which revision of the map the node has been in each chain. What lies in
//! the engine from an earlier stay may lack deletes that have been collected since, so it must be
//! forgotten before the node joins again; this record tells the two apart, also after a restart.

use crate::engine::{Area, Engine};
use cluster::{ClusterId, KeyspaceId, Match, PartitionId};
use std::collections::BTreeMap;

/// What the engine holds of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) area: Area,
    /// The revision of the map that took this node into the chain.
    pub(crate) since: u64,
    /// Whether everything has been copied here that was written before.
    pub(crate) whole: bool,
}

/// All seats of a shard, and whose data it is.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    pub(crate) cluster: Option<ClusterId>,
    /// Revision of the newest assignment that was installed here, in any life. An older one that
    /// arrives after a restart must not be followed: what it says was changed since.
    pub(crate) revision: u64,
    seats: BTreeMap<PartitionId, Seat>,
}

/// Notes of the shard itself: no partition has this id.
const SHARD: PartitionId = PartitionId(0);
const CLUSTER: &[u8] = b"cluster";
const REVISION: &[u8] = b"revision";

impl Seats {
    /// Those that the engine has on record.
    pub(crate) fn recall<E: Engine>(engine: &E) -> Self {
        let mut found = Self::default();
        engine.notes(SHARD, |name, note| match name.split_first_chunk::<4>() {
            _ if name == CLUSTER => {
                found.cluster = note.try_into().ok().map(|id| ClusterId(u64::from_be_bytes(id)));
            }
            _ if name == REVISION => {
                found.revision = note.try_into().map_or(0, u64::from_be_bytes);
            }
            Some((id, [])) => {
                let id = PartitionId(u32::from_be_bytes(*id));
                if let Some(seat) = Seat::from_note(id, note) {
                    found.seats.insert(id, seat);
                }
            }
            _ => {}
        });
        found
    }

    pub(crate) fn belong_to<E: Engine>(&mut self, engine: &mut E, cluster: ClusterId) {
        if self.cluster != Some(cluster) {
            self.cluster = Some(cluster);
            engine.note(SHARD, CLUSTER, Some(&cluster.0.to_be_bytes()));
        }
    }

    pub(crate) fn follow<E: Engine>(&mut self, engine: &mut E, revision: u64) {
        self.revision = revision;
        engine.note(SHARD, REVISION, Some(&revision.to_be_bytes()));
    }

    pub(crate) fn get(&self, partition: PartitionId) -> Option<&Seat> {
        self.seats.get(&partition)
    }

    pub(crate) fn take<E: Engine>(&mut self, engine: &mut E, seat: Seat) {
        let id = seat.area.partition;
        if self.seats.insert(id, seat) != Some(seat) {
            engine.note(SHARD, &id.0.to_be_bytes(), Some(&seat.to_note()));
        }
    }

    /// Keeps on record whether everything has been copied here.
    pub(crate) fn note_whole<E: Engine>(
        &mut self,
        engine: &mut E,
        partition: PartitionId,
        whole: bool,
    ) {
        if let Some(seat) = self.seats.get(&partition).copied() {
            self.take(engine, Seat { whole, ..seat });
        }
    }

    /// Forgets the data of every partition that is not to be kept, and then the record of it: if
    /// the node stops in between, it forgets again.
    pub(crate) fn vacate<E: Engine>(&mut self, engine: &mut E, keep: impl Fn(&Seat) -> bool) {
        self.seats.retain(|id, seat| {
            let kept = keep(seat);
            if !kept {
                engine.clear(&seat.area);
                engine.note(SHARD, &id.0.to_be_bytes(), None);
            }
            kept
        });
    }
}

impl Seat {
    fn to_note(self) -> [u8; NOTE_LEN] {
        let Area { keyspace, ordered, first, last, .. } = self.area;
        let mut note = [0; NOTE_LEN];
        let (flags, rest) = note.split_at_mut(4);
        let [high, low] = keyspace.0.to_be_bytes();
        flags.copy_from_slice(&[high, low, u8::from(ordered), u8::from(self.whole)]);
        let (bounds, since) = rest.split_at_mut(32);
        let (low, high) = bounds.split_at_mut(16);
        low.copy_from_slice(&first.0.to_be_bytes());
        high.copy_from_slice(&last.0.to_be_bytes());
        since.copy_from_slice(&self.since.to_be_bytes());
        note
    }

    fn from_note(partition: PartitionId, note: &[u8]) -> Option<Self> {
        let note: &[u8; NOTE_LEN] = note.try_into().ok()?;
        let ([high, low, ordered, whole], rest) = note.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<16>()?;
        let (last, rest) = rest.split_first_chunk::<16>()?;
        let area = Area {
            keyspace: KeyspaceId(u16::from_be_bytes([*high, *low])),
            partition,
            ordered: *ordered != 0,
            first: Match(u128::from_be_bytes(*first)),
            last: Match(u128::from_be_bytes(*last)),
        };
        let since = u64::from_be_bytes(rest.try_into().ok()?);
        Some(Self { area, since, whole: *whole != 0 })
    }
}

const NOTE_LEN: usize = 4 + 2 * 16 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_survives_its_note() {
        let area = Area {
            keyspace: KeyspaceId(0x102),
            partition: PartitionId(9),
            ordered: true,
            first: Match(1 << 100),
            last: Match(u128::MAX),
        };
        for whole in [false, true] {
            let seat = Seat { area, since: 77, whole };
            assert_eq!(Seat::from_note(PartitionId(9), &seat.to_note()), Some(seat));
        }
        assert_eq!(Seat::from_note(PartitionId(9), b"short"), None);
    }
}
