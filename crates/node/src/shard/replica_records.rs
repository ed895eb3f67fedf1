//! The node's own record of which partitions it holds data of, and since when.
//!
//! An assignment says since which revision of the map the node has been in each chain. What lies in
//! the engine from an earlier generation may lack deletes that have been collected since, so it
//! must be forgotten before the node joins again; this record tells the two apart, also after a
//! restart. Forgetting a large partition takes seconds, and a node that did nothing else meanwhile
//! would lose its lease for all of them: so it is done piece by piece.

use crate::engine::{Area, Engine};
use cluster::{
    Assignment, ClusterId, Epoch, Incarnation, KeyspaceId, Match, NodeId, Partition, PartitionId,
    ShardRecord,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{Revision, Version};

/// What the engine holds of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaRecord {
    pub(crate) area: Area,
    /// The revision of the map that took this node into the chain.
    pub(crate) since: Revision,
    /// Whether everything has been copied here that was written before.
    pub(crate) caught_up: bool,
    /// The newest epoch of the partition that was installed here.
    pub(crate) epoch: Epoch,
    /// Of a replica record that was taken in an earlier incarnation and has not been compared with
    /// the others since: every version up to this one is certainly here.
    pub(crate) base: Option<Version>,
}

/// All replica records of a shard, and whose data it is.
#[derive(Debug, Default)]
pub(crate) struct ReplicaRecords {
    pub(crate) cluster: Option<ClusterId>,
    /// Revision of the newest assignment that was installed here, in any incarnation. An older one
    /// that arrives after a restart must not be followed: what it says was changed since.
    pub(crate) revision: Revision,
    /// The incarnations of the node since the last one that the controller has certainly heard of,
    /// the present one not among them. A copy that was taken of the store before lacks the later
    /// ones.
    past: Vec<Incarnation>,
    /// The assignment of that revision, with the partitions of this shard: what the map can be made
    /// anew from.
    assignment: Option<Arc<Assignment>>,
    replica_records: BTreeMap<PartitionId, ReplicaRecord>,
    /// ReplicaRecords that were given up, and of which something may be left in the engine.
    vacating: BTreeMap<PartitionId, Area>,
    /// Those of which nothing is left since the last sync began.
    forgotten: Vec<PartitionId>,
}

/// Notes of the shard itself: no partition has this id.
const SHARD: PartitionId = PartitionId(0);
const CLUSTER: &[u8] = b"cluster";
const REVISION: &[u8] = b"revision";
const LIVES: &[u8] = b"incarnations";
const ASSIGNMENT: &[u8] = b"assignment";

/// Incarnations kept on record. The oldest always stays, for the controller knows that one;
/// of those that follow it knows the latest that got as far as a report, so that a node may start
/// this often in vain.
const LIVES_MAX: usize = 64;

impl ReplicaRecords {
    /// Those that the engine has on record; an incarnation begins with them.
    pub(crate) fn begin<E: Engine>(engine: &mut E, incarnation: Incarnation) -> Self {
        let mut found = Self::restore(engine);
        found.begin_incarnation(engine, incarnation);
        found
    }

    fn restore<E: Engine>(engine: &E) -> Self {
        let mut found = Self::default();
        engine.notes(SHARD, |name, note| match name.split_first_chunk::<4>() {
            _ if name == CLUSTER => {
                found.cluster = note.try_into().ok().map(|id| ClusterId(u64::from_be_bytes(id)));
            }
            _ if name == REVISION => {
                let bits = note.try_into().map_or(0, u64::from_be_bytes);
                found.revision = Revision::new(bits);
            }
            _ if name == LIVES => {
                let (incarnations, _) = note.as_chunks::<8>();
                found.past =
                    incarnations.iter().map(|id| Incarnation(u64::from_be_bytes(*id))).collect();
            }
            _ if name == ASSIGNMENT => {
                found.assignment = Assignment::from_record(note).map(Arc::new);
            }
            Some((id, [])) => {
                let id = PartitionId(u32::from_be_bytes(*id));
                if let Some(replica_record) = ReplicaRecord::from_note(id, note) {
                    found.replica_records.insert(id, replica_record);
                }
            }
            _ => {}
        });
        found
    }

    /// An incarnation begins: it is on record before anything is said in it.
    fn begin_incarnation<E: Engine>(&mut self, engine: &mut E, incarnation: Incarnation) {
        self.past.retain(|known| *known != incarnation);
        if self.past.len() >= LIVES_MAX {
            self.past.remove(1);
        }
        note_lives(engine, self.past.iter().copied().chain([incarnation]));
    }

    pub(crate) fn belong_to<E: Engine>(&mut self, engine: &mut E, cluster: ClusterId) {
        if self.cluster != Some(cluster) {
            self.cluster = Some(cluster);
            engine.note(SHARD, CLUSTER, Some(&cluster.0.to_be_bytes()));
        }
    }

    /// Follows an assignment, which the controller makes for an incarnation that it has on record.
    pub(crate) fn follow<E: Engine>(
        &mut self,
        engine: &mut E,
        (assignment, mine): (&Assignment, &[&Partition]),
        incarnation: Incarnation,
    ) {
        let revision = assignment.revision;
        self.revision = revision;
        engine.note(SHARD, REVISION, Some(&revision.get().to_be_bytes()));
        note_lives(engine, [incarnation].into_iter());
        let Assignment { nodes, caches, keyspaces, .. } = assignment;
        let on_record = Assignment {
            nodes: nodes.clone(),
            caches: caches.clone(),
            keyspaces: keyspaces.clone(),
            partitions: mine.iter().map(|partition| (*partition).clone()).collect(),
            ..*assignment
        };
        engine.note(SHARD, ASSIGNMENT, Some(&on_record.to_record()));
        self.assignment = Some(Arc::new(on_record));
    }

    /// What a map can be made anew from.
    pub(crate) fn on_record(&self) -> ShardRecord {
        let Self { cluster, revision, .. } = *self;
        let (past, assignment) = (self.past.clone(), self.assignment.clone());
        ShardRecord { cluster, past, revision, assignment }
    }

    pub(crate) fn get(&self, partition: PartitionId) -> Option<&ReplicaRecord> {
        self.replica_records.get(&partition)
    }

    pub(crate) fn take<E: Engine>(&mut self, engine: &mut E, replica_record: ReplicaRecord) {
        let id = replica_record.area.partition;
        if self.replica_records.insert(id, replica_record) != Some(replica_record) {
            engine.note(SHARD, &id.0.to_be_bytes(), Some(&replica_record.to_note()));
        }
    }

    /// Keeps on record whether everything has been copied here, and up to where it certainly is.
    pub(crate) fn note_caught_up<E: Engine>(
        &mut self,
        engine: &mut E,
        id: PartitionId,
        caught_up: bool,
        base: Option<Version>,
    ) {
        if let Some(replica_record) = self.replica_records.get(&id).copied() {
            self.take(engine, ReplicaRecord { caught_up, base, ..replica_record });
        }
    }

    /// Gives up every replica record that is not to be kept. What is held of it is forgotten by
    /// [`forget_piece`](Self::forget_piece); until then the replica record stays on record, so that
    /// a node that stops in between gives it up again.
    pub(crate) fn vacate(&mut self, keep: impl Fn(&ReplicaRecord) -> bool) {
        for (id, replica_record) in
            self.replica_records.extract_if(.., |_, replica_record| !keep(replica_record))
        {
            self.vacating.insert(id, replica_record.area);
        }
    }

    /// Partitions of which something may be held without a replica record, in order: what was
    /// forgotten is among them until that is durable.
    pub(crate) fn vacating(&self) -> Vec<PartitionId> {
        let mut ids: Vec<_> = self.vacating.keys().chain(&self.forgotten).copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Whether there is anything to forget.
    pub(crate) fn is_vacating(&self) -> bool {
        !self.vacating.is_empty()
    }

    /// Forgets a piece of what is held without a replica record. A piece may be gone for good
    /// before the next sync, so that the loss of the replica record must be durable by now: a node
    /// that ended in between would not know of it, and an old assignment still on its way could
    /// give the replica record back.
    pub(crate) fn forget_piece<E: Engine>(&mut self, engine: &mut E) {
        let Some((id, area)) = self.vacating.first_key_value() else { return };
        let id = *id;
        if engine.clear_on(area, FORGOTTEN_AT_ONCE).is_continue() {
            self.forgotten(engine, id);
        }
    }

    /// What was held of a partition in these bounds is another's now.
    pub(crate) fn give_away<E: Engine>(&mut self, engine: &mut E, from: PartitionId, area: &Area) {
        if let Some(record) = self.replica_records.get(&from).copied() {
            self.take(engine, ReplicaRecord { area: record.area.without(area), ..record });
        }
    }

    /// Forgets all that is held without a replica record of a partition that is taken now, by
    /// whatever names it is held, in one go. What was decided before is made durable first, as
    /// [`forget_piece`](Self::forget_piece) wants it.
    pub(crate) fn forget_all<E: Engine>(&mut self, engine: &mut E, taken: &Area) {
        let is_in_the_way = |it: &&Area| it.partition == taken.partition || it.overlaps(taken);
        let found: Vec<Area> = self.vacating.values().filter(is_in_the_way).copied().collect();
        for area in found {
            // A failure is said again by every sync that follows, so it is not lost.
            let _ = engine.sync();
            while engine.clear_on(&area, usize::MAX).is_break() {}
            self.forgotten(engine, area.partition);
        }
    }

    /// Nothing is held of it any more, so nothing need be on record; both go with the next sync.
    fn forgotten<E: Engine>(&mut self, engine: &mut E, partition: PartitionId) {
        self.vacating.remove(&partition);
        self.forgotten.push(partition);
        engine.note(SHARD, &partition.0.to_be_bytes(), None);
    }

    /// All that was done so far is durable, or will be when it is next said what is.
    pub(crate) fn synced(&mut self) {
        self.forgotten.clear();
    }
}

fn note_lives<E: Engine>(engine: &mut E, incarnations: impl Iterator<Item = Incarnation>) {
    let note: Vec<u8> = incarnations.flat_map(|Incarnation(id)| id.to_be_bytes()).collect();
    engine.note(SHARD, LIVES, Some(&note));
}

/// Records and notes forgotten at once: about two milliseconds with the durable engine, in which
/// the node serves nobody.
const FORGOTTEN_AT_ONCE: usize = 256;

impl ReplicaRecord {
    /// Whether what is held here goes with what is to be copied: a learner that was a member is
    /// sent only what is newer than what it is said to hold.
    pub(crate) fn can_resume(&self, partition: &Partition, me: NodeId) -> bool {
        let resumes = partition.resumes.filter(|_| partition.learner() == Some(me));
        resumes.is_none_or(|above| match self.base {
            Some(base) => base >= above,
            None => self.caught_up,
        })
    }

    fn to_note(self) -> [u8; NOTE_LEN] {
        let Area { keyspace, ordered, first, last, .. } = self.area;
        let flags = u8::from(self.caught_up) | u8::from(self.base.is_some()) << 1;
        let [high, low] = keyspace.0.to_be_bytes();
        let mut note = [0; NOTE_LEN];
        let fields: [&[u8]; 6] = [
            &[high, low, u8::from(ordered), flags],
            &first.0.to_be_bytes(),
            &last.0.to_be_bytes(),
            &self.since.get().to_be_bytes(),
            &self.base.unwrap_or(Version::NONE).get().to_be_bytes(),
            &self.epoch.0.to_be_bytes(),
        ];
        for (to, byte) in note.iter_mut().zip(fields.concat()) {
            *to = byte;
        }
        note
    }

    fn from_note(partition: PartitionId, note: &[u8]) -> Option<Self> {
        let note: &[u8; NOTE_LEN] = note.try_into().ok()?;
        let ([high, low, ordered, flags], rest) = note.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<16>()?;
        let (last, rest) = rest.split_first_chunk::<16>()?;
        let (since, rest) = rest.split_first_chunk::<8>()?;
        let (base, epoch) = rest.split_first_chunk::<8>()?;
        let area = Area {
            keyspace: KeyspaceId(u16::from_be_bytes([*high, *low])),
            partition,
            ordered: *ordered != 0,
            first: Match(u128::from_be_bytes(*first)),
            last: Match(u128::from_be_bytes(*last)),
        };
        Some(Self {
            area,
            since: Revision::new(u64::from_be_bytes(*since)),
            caught_up: flags & 1 != 0,
            epoch: Epoch(u32::from_be_bytes(epoch.try_into().ok()?)),
            base: (flags & 2 != 0).then_some(Version::new(u64::from_be_bytes(*base))),
        })
    }
}

/// What an engine has on record of the map, for a node that does not run: its past incarnations are
/// all that are on record, the last one among them.
#[must_use]
pub fn on_record<E: Engine>(engine: &E) -> ShardRecord {
    ReplicaRecords::restore(engine).on_record()
}

const NOTE_LEN: usize = 4 + 2 * 16 + 2 * 8 + 4;

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
        for (caught_up, base) in [(false, None), (true, Some(0)), (true, Some(9)), (false, Some(8))]
        {
            let replica_record = ReplicaRecord {
                area,
                since: Revision::new(77),
                caught_up,
                epoch: Epoch(5),
                base: base.map(Version::new),
            };
            assert_eq!(
                ReplicaRecord::from_note(PartitionId(9), &replica_record.to_note()),
                Some(replica_record)
            );
        }
        assert_eq!(ReplicaRecord::from_note(PartitionId(9), b"short"), None);
    }
}
