//! A number that says what a partition holds, kept up with every change of it.
//!
//! Members of a chain that have settled hold the same, whatever order it came in. So each keeps the
//! sum, over all values that it holds, of a number made of the key's hash and the version; a sum is
//! the same in every order, and a change costs one addition and one subtraction. Members whose sums
//! differ do not hold the same: one of them came back with less than it had acknowledged.
//!
//! Left out is what members forget each in its own time: tombstones, and parts of big values. So is
//! what was in a store before any node wrote there.

use crate::engine::{Engine, KeyRef, Record, Written};
use machine::mix;
use wire::{PartKey, Version};

/// The sum. Two different contents have the same one by chance once in 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) u64);

impl Digest {
    /// The state of a key has changed from `before` to `after`.
    pub(crate) fn change<E: Engine>(
        &mut self,
        at: &KeyRef<'_>,
        before: Option<Written>,
        after: &Record<'_>,
    ) {
        let term = |written: Option<Written>| match written {
            Some(it) if !it.tombstone && it.version > E::FOUND => term(at.keyhash, it.version),
            Some(_) | None => 0,
        };
        if PartKey::parse(at.key).is_none() {
            let change = term(Some((*after).into())).wrapping_sub(term(before));
            self.0 = self.0.wrapping_add(change);
        }
    }
}

fn term(keyhash: u64, version: Version) -> u64 {
    mix(keyhash ^ mix(version.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::memory::MemoryEngine;
    use cluster::{KeyspaceId, Match, PartitionId};

    fn at(keyhash: u64) -> KeyRef<'static> {
        KeyRef {
            keyspace: KeyspaceId(1),
            partition: PartitionId(1),
            ordered: false,
            match_value: Match(0),
            keyhash,
            key: b"key",
        }
    }

    fn record(version: u64, tombstone: bool) -> Record<'static> {
        Record { version: Version::new(version), expiry_ms: 0, tombstone, value: b"" }
    }

    fn of(changes: &[(u64, Option<u64>, u64, bool)]) -> Digest {
        let mut digest = Digest::default();
        for (keyhash, before, version, tombstone) in changes {
            let before =
                before.map(|version| Written { version: Version::new(version), tombstone: false });
            digest.change::<MemoryEngine>(&at(*keyhash), before, &record(*version, *tombstone));
        }
        digest
    }

    #[test]
    fn it_depends_on_what_is_held_and_not_on_how_that_came() {
        let straight = of(&[(1, None, 3, false), (2, None, 2, false)]);
        let around = of(&[(2, None, 2, false), (1, None, 1, false), (1, Some(1), 3, false)]);
        assert_eq!(straight, around);
        assert_ne!(straight, of(&[(1, None, 2, false), (2, None, 3, false)]));
        assert_ne!(straight, of(&[(1, None, 3, false)]));
    }

    #[test]
    fn a_key_that_is_deleted_leaves_nothing() {
        assert_eq!(of(&[(1, None, 3, false), (1, Some(3), 4, true)]), Digest::default());
    }
}
