//! What the processors have counted, added up.

use crate::layout::{Load, Totals};
use crate::maps;
use crate::program::{Error, Program};
use cluster::{KeyspaceId, PartitionId};
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use switch::{Counters, PartitionLoad};
use wire::LOADS_PER_PAGE;

/// Where the counts of each partition are. A partition keeps its place for as long as it is in the
/// tables.
#[derive(Debug)]
pub(crate) struct Places {
    totals: MapHandle,
    loads: MapHandle,
    of: BTreeMap<PartitionId, (KeyspaceId, Place)>,
    free: Vec<Place>,
}

/// The place of one partition's counts.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: u16,
    /// What had been counted there already when it became this partition's.
    before: Load,
}

impl Places {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            totals: program.map("own"),
            loads: program.map("loads"),
            of: BTreeMap::new(),
            // The lowest is taken first.
            free: (0..=u16::MAX)
                .rev()
                .map(|index| Place { index, before: Load::default() })
                .collect(),
        }
    }

    /// Gives every one of these partitions a place, if it has none yet.
    pub(crate) fn take(&mut self, wanted: impl Iterator<Item = (PartitionId, KeyspaceId)>) {
        for (partition, keyspace) in wanted {
            if let Some((of, _)) = self.of.get_mut(&partition) {
                *of = keyspace;
                continue;
            }
            let Some(place) = self.free.pop() else { continue };
            self.of.insert(partition, (keyspace, place));
        }
    }

    /// Takes the places of all others back. Nobody counts there any more.
    ///
    /// # Errors
    ///
    /// If the kernel does not say what has been counted there.
    pub(crate) fn retain(&mut self, stays: impl Fn(PartitionId) -> bool) -> Result<(), Error> {
        if self.of.keys().all(|partition| stays(*partition)) {
            return Ok(());
        }
        let counted = self.counted()?;
        for (_, (_, place)) in self.of.extract_if(.., |partition, _| !stays(*partition)) {
            self.free.push(Place { before: at(&counted, place), ..place });
        }
        Ok(())
    }

    /// The index of a partition's counts.
    pub(crate) fn of(&self, partition: PartitionId) -> u16 {
        self.of.get(&partition).map_or(0, |(_, place)| place.index)
    }

    /// Everything counted so far.
    pub(crate) fn read(&self) -> Result<Counters, Error> {
        let mut packets = [0; 256];
        let mut dropped = [0; 256];
        let (mut unparsed, mut emitted) = (0, 0);
        for value in maps::per_processor(&self.totals, 0)? {
            let Some(totals) = Totals::from_bytes(&value) else { continue };
            add(&mut packets, &totals.forwarded);
            add(&mut packets, &totals.others);
            add(&mut dropped, &totals.dropped);
            unparsed += totals.unparsed;
            emitted += totals.forwarded.iter().sum::<u64>() + totals.parts;
        }
        let counted = self.counted()?;
        let partitions = self.of.iter().map(|(partition, (keyspace, place))| PartitionLoad {
            keyspace: *keyspace,
            partition: *partition,
            reads: at(&counted, *place).reads - place.before.reads,
            writes: at(&counted, *place).writes - place.before.writes,
        });
        Ok(Counters::from_totals(packets, dropped, unparsed, emitted, partitions.collect()))
    }

    /// What has ever been counted at each place, up to the last one that is taken.
    fn counted(&self) -> Result<Vec<Load>, Error> {
        let taken = self.of.values().map(|(_, place)| usize::from(place.index) + 1).max();
        let pages = taken.unwrap_or(0).div_ceil(LOADS_PER_PAGE);
        let mut sums = vec![Load::default(); pages * LOADS_PER_PAGE];
        for (number, sums) in (0_u32..).zip(sums.chunks_mut(LOADS_PER_PAGE)) {
            for page in maps::per_processor(&self.loads, number)? {
                for (sum, bytes) in sums.iter_mut().zip(page.chunks(Load::LEN)) {
                    let Some(load) = Load::from_bytes(bytes) else { continue };
                    sum.reads += load.reads;
                    sum.writes += load.writes;
                }
            }
        }
        Ok(sums)
    }
}

fn at(counted: &[Load], place: Place) -> Load {
    *counted.get(usize::from(place.index)).expect("as many were read as are taken")
}

fn add(sum: &mut [u64; 256], more: &[u64; 256]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
