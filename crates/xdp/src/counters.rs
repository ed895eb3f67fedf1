//! What the processors have counted, added up.

use crate::layout::{HotLoad, Load, Totals};
use crate::maps;
use crate::program::{Error, Program};
use cluster::{KeyspaceId, PartitionId};
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use switch::{Counters, PartitionLoad};

/// What each processor counts for one of many.
pub(crate) trait Count: Copy + Default {
    /// Bytes in the map.
    const LEN: usize;
    /// How many lie together in one value of the map.
    const PER_PAGE: usize;

    fn read(bytes: &[u8]) -> Option<Self>;
    /// Adds what another processor has counted.
    fn add(&mut self, more: &Self);
    /// What has been counted since.
    fn since(&self, before: &Self) -> Self;
}

impl Count for Load {
    const LEN: usize = Self::LEN;
    const PER_PAGE: usize = wire::LOADS_PER_PAGE;

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes)
    }

    fn add(&mut self, more: &Self) {
        self.reads += more.reads;
        self.writes += more.writes;
    }

    fn since(&self, before: &Self) -> Self {
        Self { reads: self.reads - before.reads, writes: self.writes - before.writes }
    }
}

impl Count for HotLoad {
    const LEN: usize = Self::LEN;
    const PER_PAGE: usize = wire::HOT_LOADS_PER_PAGE;

    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes)
    }

    fn add(&mut self, more: &Self) {
        self.reads += more.reads;
        self.spread += more.spread;
        self.writes += more.writes;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            spread: self.spread - before.spread,
            writes: self.writes - before.writes,
        }
    }
}

/// Where the counts of each name are. A name keeps its place for as long as it stays.
#[derive(Debug)]
pub(crate) struct Places<N, C> {
    map: MapHandle,
    of: BTreeMap<N, Slot<C>>,
    free: Vec<Slot<C>>,
}

/// Where one name's counts are.
#[derive(Clone, Copy, Debug)]
struct Slot<C> {
    index: u16,
    /// What had been counted there already when it became this name's.
    before: C,
}

impl<N: Copy + Ord, C: Count> Places<N, C> {
    /// In this map.
    pub(crate) fn new(map: MapHandle) -> Self {
        // The lowest is taken first.
        let free = (0..=u16::MAX).rev().map(|index| Slot { index, before: C::default() });
        Self { map, of: BTreeMap::new(), free: free.collect() }
    }

    /// Gives every one of these a place, if it has none yet.
    pub(crate) fn take(&mut self, wanted: impl Iterator<Item = N>) {
        for name in wanted {
            if !self.of.contains_key(&name)
                && let Some(place) = self.free.pop()
            {
                self.of.insert(name, place);
            }
        }
    }

    /// Takes the places of all others back. Nobody counts there any more.
    ///
    /// # Errors
    ///
    /// If the kernel does not say what has been counted there.
    pub(crate) fn retain(&mut self, stays: impl Fn(N) -> bool) -> Result<(), Error> {
        if self.of.keys().all(|name| stays(*name)) {
            return Ok(());
        }
        let counted = self.counted()?;
        for (_, place) in self.of.extract_if(.., |name, _| !stays(*name)) {
            self.free.push(Slot { before: at(&counted, place), ..place });
        }
        Ok(())
    }

    /// The index of a name's counts.
    pub(crate) fn of(&self, name: N) -> u16 {
        self.of.get(&name).map_or(0, |place| place.index)
    }

    /// What has been counted for each.
    pub(crate) fn read(&self) -> Result<Vec<(N, C)>, Error> {
        let counted = self.counted()?;
        let since =
            |(name, place): (&N, &Slot<C>)| (*name, at(&counted, *place).since(&place.before));
        Ok(self.of.iter().map(since).collect())
    }

    /// What has ever been counted at each place, up to the last one that is taken.
    fn counted(&self) -> Result<Vec<C>, Error> {
        let taken = self.of.values().map(|place| usize::from(place.index) + 1).max();
        let pages = taken.unwrap_or(0).div_ceil(C::PER_PAGE);
        let mut sums = vec![C::default(); pages * C::PER_PAGE];
        for (number, sums) in (0_u32..).zip(sums.chunks_mut(C::PER_PAGE)) {
            for page in maps::per_processor(&self.map, number)? {
                for (sum, bytes) in sums.iter_mut().zip(page.chunks(C::LEN)) {
                    C::read(bytes).iter().for_each(|count| sum.add(count));
                }
            }
        }
        Ok(sums)
    }
}

fn at<C: Copy>(counted: &[C], place: Slot<C>) -> C {
    *counted.get(usize::from(place.index)).expect("as many were read as are taken")
}

/// What is counted of packets and partitions.
#[derive(Debug)]
pub(crate) struct Counted {
    totals: MapHandle,
    pub(crate) places: Places<PartitionId, Load>,
    keyspaces: BTreeMap<PartitionId, KeyspaceId>,
}

impl Counted {
    pub(crate) fn new(program: &Program) -> Self {
        let places = Places::new(program.map("loads"));
        Self { totals: program.map("own"), places, keyspaces: BTreeMap::new() }
    }

    /// Gives every one of these partitions a place, if it has none yet.
    pub(crate) fn take(&mut self, wanted: impl Iterator<Item = (PartitionId, KeyspaceId)>) {
        self.keyspaces.extend(wanted);
        self.places.take(self.keyspaces.keys().copied());
    }

    /// Takes the places of all others back. Nobody counts there any more.
    ///
    /// # Errors
    ///
    /// If the kernel does not say what has been counted there.
    pub(crate) fn retain(&mut self, stays: impl Fn(PartitionId) -> bool) -> Result<(), Error> {
        self.keyspaces.retain(|partition, _| stays(*partition));
        self.places.retain(stays)
    }

    /// Everything counted so far, with what was counted of hot keys.
    pub(crate) fn read(&self, hot: Vec<switch::HotLoad>) -> Result<Counters, Error> {
        let mut packets = [0; 256];
        let mut dropped = [0; 256];
        let (mut unparsed, mut emitted, mut doubted, mut crowded, mut cached) = (0, 0, 0, 0, 0);
        let (mut delegated, mut hot_keys) = ([0; 2], [0; 2]);
        for value in maps::per_processor(&self.totals, 0)? {
            let Some(totals) = Totals::from_bytes(&value) else { continue };
            add(&mut packets, &totals.forwarded);
            add(&mut packets, &totals.others);
            add(&mut dropped, &totals.dropped);
            unparsed += totals.unparsed;
            doubted += totals.doubted;
            crowded += totals.crowded;
            cached += totals.cached;
            add(&mut delegated, &totals.delegated);
            add(&mut hot_keys, &totals.hot_keys);
            emitted += totals.forwarded.iter().sum::<u64>() + totals.parts;
        }
        let loads = self.places.read()?.into_iter().filter_map(|(partition, load)| {
            let keyspace = *self.keyspaces.get(&partition)?;
            Some(PartitionLoad { keyspace, partition, reads: load.reads, writes: load.writes })
        });
        let counters =
            Counters::from_totals(packets, dropped, unparsed, emitted, loads.collect(), hot);
        let counters = counters.with_delegated(delegated, doubted, crowded);
        Ok(counters.with_hot_keys(hot_keys).with_cached(cached))
    }
}

fn add<const N: usize>(sum: &mut [u64; N], more: &[u64; N]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}
