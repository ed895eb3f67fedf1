//! On whose disks the writes of a delegated key are: the last of a chain commits what all have
//! there.
//!
//! While its engine syncs apart, a node sends a write on before its own disk has it, and says so in
//! the write. When the disk has it, the node tells the last of the chain by DELEGATION_DURABLE,
//! which thereby waits for one sync, and not for one after the other (section 9 of
//! `spec/protocol.md`). A node keeps of each key the newest write alone, so that a version that a
//! disk has stands for all older ones of its delegation.

use cluster::{KeyspaceId, NodeId, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use wire::{CHAIN_MAX, DelegationId, Header, Version};

/// Places of a chain, a bit for each.
pub(crate) type DelegatedPlaces = u8;

const _: () = assert!(CHAIN_MAX <= DelegatedPlaces::BITS as usize, "each place has a bit");

/// A write of a delegation that a node has recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Recorded {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) key: Box<[u8]>,
    pub(crate) delegation: DelegationId,
    pub(crate) version: Version,
}

/// Of one key, what is not known yet to be on the disks of all.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    pub(crate) delegation: DelegationId,
    /// Writes that went on before they were on this disk: who is last in their chains, and where.
    to_tell: BTreeSet<(Version, NodeId, PartitionId)>,
    /// Up to which version the disks of others have it.
    told: BTreeMap<NodeId, Version>,
    /// Writes that this node is the last of the chain of.
    waiting: BTreeMap<Version, Waiting>,
}

/// A write that is not known to be on the disks of all of its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// As it came.
    pub(crate) header: Header,
    pub(crate) value: Box<[u8]>,
    /// Who has not told.
    pub(crate) missing: DelegatedPlaces,
}

/// Writes of one key that may wait at a time: 100,000 a second, while a disk takes 10 ms for a
/// sync. Clients send those that do not find room once more.
const WAITING_MAX: usize = 1_024;

impl Disks {
    pub(crate) fn new(delegation: DelegationId) -> Self {
        Self { delegation, ..Self::default() }
    }

    /// The last of a chain is to be told when this disk has a write.
    pub(crate) fn tell_later(&mut self, version: Version, last: NodeId, partition: PartitionId) {
        self.to_tell.insert((version, last, partition));
    }

    /// Takes out who is to be told that this disk has all up to a version.
    pub(crate) fn take_to_tell(&mut self, on_disk: Version) -> BTreeSet<(NodeId, PartitionId)> {
        let of_later = (on_disk.saturating_add(1), NodeId(0), PartitionId(0));
        let later = self.to_tell.split_off(&of_later);
        let now = std::mem::replace(&mut self.to_tell, later);
        now.into_iter().map(|(_, last, partition)| (last, partition)).collect()
    }

    /// Which of these places of a chain are not known to have a version on disk: nobody there has
    /// told, and no copy that came before was without them.
    pub(crate) fn missing(
        &self,
        places: DelegatedPlaces,
        header: &Header,
        version: Version,
    ) -> DelegatedPlaces {
        let has = |node: &NodeId| self.told.get(node).is_some_and(|told| *told >= version);
        let waits_for = self.waiting.get(&version).map_or(places, |it| it.missing);
        places & waits_for & !places_where(header, has)
    }

    /// A write waits here for what others are to tell.
    pub(crate) fn wait(&mut self, version: Version, waiting: Waiting) {
        self.waiting.insert(version, waiting);
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_first();
        }
    }

    /// It waits no more.
    pub(crate) fn wait_no_more(&mut self, version: Version) {
        self.waiting.remove(&version);
    }

    /// A node has told up to which version its disk has it.
    pub(crate) fn hear(&mut self, node: NodeId, version: Version) {
        let told = self.told.entry(node).or_default();
        *told = version.max(*told);
        for (_, waiting) in self.waiting.range_mut(..=version) {
            waiting.missing &= !places_where(&waiting.header, |it| *it == node);
        }
    }

    /// Takes out the oldest write up to a version that everybody else has on disk.
    pub(crate) fn take_ready(&mut self, on_disk: Version) -> Option<Waiting> {
        let mut waiting = self.waiting.range(..=on_disk);
        let version = *waiting.find(|(_, it)| it.missing == 0)?.0;
        self.waiting.remove(&version)
    }

    /// Bytes that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let waiting = self.waiting.values().map(|it| size_of::<Waiting>() + it.value.len());
        waiting.sum::<usize>() + (self.to_tell.len() + self.told.len()) * TOLD_BYTES
    }
}

/// The chain of a grant, as it is in the header of its write.
pub(crate) fn chain_of(header: &Header) -> impl DoubleEndedIterator<Item = NodeId> {
    let (ids, _) = header.chain.as_chunks::<2>();
    ids.iter().take(header.chain_len.into()).map(|id| NodeId(u16::from_be_bytes(*id)))
}

/// The places of it with such nodes.
fn places_where(header: &Header, is_it: impl Fn(&NodeId) -> bool) -> DelegatedPlaces {
    let found = (0..).zip(chain_of(header)).filter(|(_, node)| is_it(node));
    found.fold(0, |found, (place, _)| found | 1 << place)
}

/// What it takes to remember what somebody was told or has told, about.
const TOLD_BYTES: usize = 32;
