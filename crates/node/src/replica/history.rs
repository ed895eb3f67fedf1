//! Which writes are committed here: all up to one version, and some above it.
//!
//! Members of a chain that have settled have committed the same writes. So each keeps the sum of a
//! number made of each version up to `stable`; versions come in any order, and a sum is the same in
//! every order. Members whose sums differ have not committed the same: one came back with less than
//! it had acknowledged. What is committed above `stable` is on record, so that a member that starts
//! anew goes on with the same sum. Which of two is the one with less, the number of their writes
//! tells.

use crate::engine::Engine;
use crate::replica::notes::committed_name;
use cluster::PartitionId;
use machine::mix;
use std::collections::BTreeMap;
use wire::Version;

/// The committed writes of a partition.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Every version up to this one is committed on every member.
    stable: Version,
    /// Versions above that are committed here, and whether they are on record.
    above: BTreeMap<Version, bool>,
    /// The sum over those up to `stable`.
    sum: u64,
    /// Versions on record that the sum has now: they go when that is on record.
    summed: Vec<Version>,
    /// How many those up to `stable` are, if that is known.
    writes: Option<u64>,
}

impl History {
    /// One of which all is known up to this version.
    pub(crate) fn up_to(stable: Version, sum: u64) -> Self {
        Self { stable, sum, ..Self::default() }
    }

    pub(crate) fn stable(&self) -> Version {
        self.stable
    }

    /// The sum over the versions up to `stable`: two histories have the same one by chance once in
    /// 2^64.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// How many writes the sum is made of, if that is known.
    pub(crate) fn summed_writes(&self) -> Option<u64> {
        self.writes
    }

    /// How many writes are committed, with those above `stable`, if that is known.
    pub(crate) fn writes(&self) -> Option<u64> {
        self.writes.map(|writes| writes + self.above.len() as u64)
    }

    /// Takes the number that was on record beside the sum.
    pub(crate) fn restore_writes(&mut self, writes: u64) {
        self.writes = Some(writes);
    }

    /// The chain opens, and its members hold the same. Where the number is not known it begins with
    /// what the head says; whoever has the same sum will take that over. Nobody has to be told of
    /// nothing.
    pub(crate) fn begin_count(&mut self, is_head: bool) {
        let is_empty = self.sum == 0 && self.above.is_empty();
        if self.writes.is_none() && (is_head || is_empty) {
            self.writes = Some(0);
        }
    }

    /// The head says how many writes its sum is made of. Who has the same sum has the same writes.
    pub(crate) fn hear_count(&mut self, stable: Version, sum: u64, writes: u64) {
        let says = writes > 0 || sum == 0;
        if says && (self.stable, self.sum) == (stable, sum) {
            self.writes = Some(writes);
        }
    }

    pub(crate) fn holds(&self, version: Version) -> bool {
        version <= self.stable || self.above.contains_key(&version)
    }

    /// A version that was on record as committed.
    pub(crate) fn restore(&mut self, version: Version) {
        if version > self.stable {
            self.above.insert(version, true);
        }
    }

    /// A version is committed here.
    pub(crate) fn commit(&mut self, version: Version) {
        if version > self.stable {
            self.above.entry(version).or_insert(false);
        }
    }

    /// Keeps a committed version on record for as long as it is above `stable`.
    pub(crate) fn keep<E: Engine>(
        &mut self,
        engine: &mut E,
        partition: PartitionId,
        version: Version,
    ) {
        if let Some(recorded @ false) = self.above.get_mut(&version) {
            *recorded = true;
            engine.note(partition, &committed_name(version), Some(&[]));
        }
    }

    /// Takes in what is committed of a partition that this one is made of. Members that held the
    /// same of all of them have the same sum then, and others have not.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.stable = self.stable.max(other.stable);
        self.sum = self.sum.wrapping_add(other.sum);
        self.writes = self.writes.zip(other.writes).map(|(one, other)| one + other);
        self.above.extend(other.above.keys().map(|version| (*version, false)));
        let stable = self.stable;
        self.above.retain(|version, _| *version > stable);
    }

    /// Keeps all on record that is committed above `stable`.
    pub(crate) fn keep_all<E: Engine>(&mut self, engine: &mut E, partition: PartitionId) {
        for (version, recorded) in &mut self.above {
            *recorded = true;
            engine.note(partition, &committed_name(*version), Some(&[]));
        }
    }

    /// Every version up to this one is committed on every member. Says whether that is news.
    pub(crate) fn raise(&mut self, stable: Version) -> bool {
        if stable <= self.stable {
            return false;
        }
        self.stable = stable;
        for (version, recorded) in self.above.extract_if(..=stable, |_, _| true) {
            self.sum = self.sum.wrapping_add(mix(version.get()));
            self.writes = self.writes.map(|writes| writes + 1);
            if recorded {
                self.summed.push(version);
            }
        }
        true
    }

    /// The sum is being put on record: what it was made of need not be any more.
    pub(crate) fn drop_summed<E: Engine>(&mut self, engine: &mut E, partition: PartitionId) {
        for version in self.summed.drain(..) {
            engine.note(partition, &committed_name(version), None);
        }
    }

    /// Takes over the sum over the versions up to `stable` from one who knows all of them.
    /// [`hear_count`](Self::hear_count) follows.
    pub(crate) fn adopt(&mut self, stable: Version, sum: u64) {
        if self.stable == stable {
            (self.sum, self.writes) = (sum, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::memory::MemoryEngine;
    use cluster::StoreId;

    const HERE: PartitionId = PartitionId(1);

    fn after(versions: &[u64], stable: &[u64]) -> History {
        let mut engine = MemoryEngine::new(StoreId(1));
        let mut history = History::default();
        for version in versions {
            history.commit(Version::new(*version));
            history.keep(&mut engine, HERE, Version::new(*version));
        }
        for stable in stable {
            history.raise(Version::new(*stable));
        }
        history
    }

    #[test]
    fn the_same_writes_give_the_same_sum_in_whatever_order() {
        let history = after(&[1, 2, 3, 7], &[7]);
        assert_eq!(history.sum(), after(&[7, 2, 1, 3], &[2, 7]).sum());
        assert_ne!(history.sum(), after(&[1, 2, 7], &[7]).sum(), "a hole shows");
        assert_ne!(history.sum(), after(&[1, 2, 3], &[7]).sum(), "and so does a missing end");
    }

    #[test]
    fn a_version_counts_once_however_often_it_is_said_to_be_committed() {
        assert_eq!(after(&[1, 2, 2, 1], &[2]).sum(), after(&[1, 2], &[2]).sum());
        let mut history = after(&[1, 2], &[2]);
        history.commit(Version::new(1));
        history.restore(Version::new(2));
        assert_eq!(history.sum(), after(&[1, 2], &[2]).sum());
        assert!(history.above.is_empty());
    }
}
