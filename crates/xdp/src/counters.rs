//! What the processors have counted, added up.

use crate::layout::{Load, Totals};
use crate::maps;
use crate::program::{Error, Program};
use cluster::{KeyspaceId, PartitionId};
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use switch::{Counters, PartitionLoad};

/// Where the counts of each partition are. A partition keeps its place for as long as it is in the
/// tables.
#[derive(Debug)]
pub(crate) struct Places {
    totals: MapHandle,
    loads: MapHandle,
    /// Keyspace and index in the map of loads.
    of: BTreeMap<PartitionId, (KeyspaceId, u16)>,
    free: Vec<u16>,
}

impl Places {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            totals: program.map("own"),
            loads: program.map("loads"),
            of: BTreeMap::new(),
            // The lowest is taken first.
            free: (0..=u16::MAX).rev().collect(),
        }
    }

    /// Gives every one of these partitions a place with nothing counted, if it has none yet.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub(crate) fn take(
        &mut self,
        wanted: impl Iterator<Item = (PartitionId, KeyspaceId)>,
    ) -> Result<(), Error> {
        for (partition, keyspace) in wanted {
            if let Some((of, _)) = self.of.get_mut(&partition) {
                *of = keyspace;
                continue;
            }
            let Some(place) = self.free.pop() else { continue };
            maps::zero(&self.loads, place.into())?;
            self.of.insert(partition, (keyspace, place));
        }
        Ok(())
    }

    /// Takes the places of all others back.
    pub(crate) fn retain(&mut self, stays: impl Fn(PartitionId) -> bool) {
        let free = &mut self.free;
        self.of.retain(|partition, (_, place)| {
            let stay = stays(*partition);
            if !stay {
                free.push(*place);
            }
            stay
        });
    }

    /// The index of a partition's counts.
    pub(crate) fn of(&self, partition: PartitionId) -> u16 {
        self.of.get(&partition).map_or(0, |(_, place)| *place)
    }

    /// Everything counted so far.
    pub(crate) fn read(&self) -> Result<Counters, Error> {
        let mut packets = [0; 256];
        let mut dropped = [0; 256];
        let (mut unparsed, mut emitted) = (0, 0);
        for value in maps::per_processor(&self.totals, 0)? {
            let Some(totals) = Totals::from_bytes(&value) else { continue };
            add(&mut packets, &totals.packets);
            add(&mut dropped, &totals.dropped);
            unparsed += totals.unparsed;
            emitted += totals.emitted;
        }
        let mut partitions = Vec::with_capacity(self.of.len());
        for (partition, (keyspace, place)) in &self.of {
            let mut load =
                PartitionLoad { keyspace: *keyspace, partition: *partition, reads: 0, writes: 0 };
            for value in maps::per_processor(&self.loads, u32::from(*place))? {
                let Some(counted) = Load::from_bytes(&value) else { continue };
                load.reads += counted.reads;
                load.writes += counted.writes;
            }
            partitions.push(load);
        }
        Ok(Counters::from_totals(packets, dropped, unparsed, emitted, partitions))
    }
}

fn add(sum: &mut [u64; 256], more: &[u64; 256]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
