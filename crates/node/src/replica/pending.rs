//! The writes of a partition that are recorded here and not known to be committed.

use crate::replica::shares::Shares;
use crate::replica::write::{Pending, Write, changes_registration, changes_state};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Effect, Version};

/// Writes that are neither pending nor forgotten, as their notes have them.
pub(crate) type Aside = BTreeMap<Version, Box<[u8]>>;

/// Pending writes by version, and what finds them by anything else.
#[derive(Debug, Default)]
pub(crate) struct PendingWrites {
    by_version: BTreeMap<Version, Pending>,
    /// Versions per key, ascending.
    by_key: BTreeMap<Box<[u8]>, Vec<Version>>,
    /// Version per request id.
    by_request: BTreeMap<(u64, u64), Version>,
    /// Those of batches.
    batches: BTreeSet<Version>,
    /// Those that change what is ordered of a hot key.
    registrations: BTreeSet<Version>,
    /// Those that the head keeps back until the switch knows of what they show.
    kept_back: BTreeSet<Version>,
    /// How many each client has.
    shares: Shares,
    bytes: u64,
}

impl PendingWrites {
    pub(crate) fn insert(&mut self, pending: Pending) {
        let write = pending.write();
        let version = write.version();
        for key in write.keys() {
            let versions = self.by_key.entry(key.into()).or_default();
            let at = versions.partition_point(|v| *v < version);
            versions.insert(at, version);
        }
        if write.is_batch() {
            self.batches.insert(version);
        }
        if write.effect().is_some_and(changes_registration) {
            self.registrations.insert(version);
        }
        if write.header.client != 0 {
            self.by_request.insert((write.header.client, write.header.seq), version);
            self.shares.add(write.header.client, 1);
        }
        self.bytes += pending.bytes();
        let known = self.by_version.insert(version, pending);
        assert!(known.is_none(), "a version is recorded once");
    }

    pub(crate) fn remove(&mut self, version: Version) -> Option<Pending> {
        let pending = self.by_version.remove(&version)?;
        self.bytes -= pending.bytes();
        if pending.header.client != 0 {
            self.by_request.remove(&(pending.header.client, pending.header.seq));
            self.shares.take(pending.header.client, 1);
        }
        self.batches.remove(&version);
        self.registrations.remove(&version);
        self.kept_back.remove(&version);
        for key in pending.write().keys() {
            if let Some(versions) = self.by_key.get_mut(key) {
                versions.retain(|v| *v != version);
                if versions.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(pending)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_version.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_version.is_empty()
    }

    /// Whether there is room for so many more.
    pub(crate) fn has_room_for(&self, count: usize) -> bool {
        self.len() + count <= PENDING_MAX
    }

    /// Whether there is room for so many more at a request of this client, and it may have them.
    pub(crate) fn has_room_for_client(&self, client: u64, count: usize) -> bool {
        let free = PENDING_MAX.saturating_sub(self.len()) as u64;
        self.has_room_for(count) && self.shares.may_grow(client, free)
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn contains(&self, version: Version) -> bool {
        self.by_version.contains_key(&version)
    }

    pub(crate) fn get(&self, version: Version) -> Option<&Pending> {
        self.by_version.get(&version)
    }

    pub(crate) fn get_mut(&mut self, version: Version) -> Option<&mut Pending> {
        self.by_version.get_mut(&version)
    }

    /// All versions, ascending.
    pub(crate) fn versions(&self) -> Vec<Version> {
        self.by_version.keys().copied().collect()
    }

    pub(crate) fn oldest(&self) -> Option<Version> {
        self.by_version.keys().next().copied()
    }

    /// Versions of this key, ascending.
    pub(crate) fn versions_of(&self, key: &[u8]) -> &[Version] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// The writes of this key, the oldest first.
    pub(crate) fn of_key(&self, key: &[u8]) -> impl DoubleEndedIterator<Item = Write<'_>> {
        let versions = self.versions_of(key).iter();
        versions.filter_map(|version| self.by_version.get(version)).map(Pending::write)
    }

    /// What each does with this key, the oldest first; of a batch this key's part.
    pub(crate) fn on_key(&self, key: &[u8]) -> impl DoubleEndedIterator<Item = Write<'_>> {
        self.of_key(key).filter_map(|write| write.on(key))
    }

    /// The newest of this key with an effect on it that `counts`.
    fn newest_with(&self, key: &[u8], counts: impl Fn(Effect) -> bool) -> Option<Write<'_>> {
        self.on_key(key).rev().find(|write| write.effect().is_some_and(&counts))
    }

    /// The newest of this key that changes its state.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<Write<'_>> {
        self.newest_with(key, changes_state)
    }

    /// Version of the newest of this key, whatever it does.
    pub(crate) fn newest_version(&self, key: &[u8]) -> Option<Version> {
        self.versions_of(key).last().copied()
    }

    /// A change of this key's registration or delegations. The head has at most one of a key.
    pub(crate) fn registration(&self, key: &[u8]) -> Option<Write<'_>> {
        self.newest_with(key, changes_registration)
    }

    /// The keys that have one.
    pub(crate) fn keys_with_registration(&self) -> impl Iterator<Item = &[u8]> {
        let pending = self.registrations.iter().filter_map(|version| self.get(*version));
        pending.map(|pending| pending.key.as_ref())
    }

    /// The version of a request.
    pub(crate) fn of_request(&self, client: u64, seq: u64) -> Option<u64> {
        self.by_request.get(&(client, seq)).copied().map(Version::get)
    }

    /// Whether any is of this client.
    pub(crate) fn is_busy(&self, client: u64) -> bool {
        self.by_request.range((client, 0)..=(client, u64::MAX)).next().is_some()
    }

    /// Whether a write was computed from one of these.
    pub(crate) fn has_base_of(&self, write: &Write<'_>) -> bool {
        write.bases().any(|base| self.contains(base))
    }

    /// Those that were computed from `base`, and of which a copy may have come to the successor
    /// before it: either was sent more than once.
    pub(crate) fn held_up_by(&self, base: Version) -> Vec<Version> {
        let Some(before) = self.get(base) else { return Vec::new() };
        let held_up = |version: &Version| {
            self.get(*version).is_some_and(|p| {
                let depends = p.write().bases().any(|it| it == base);
                depends && !p.acknowledged && before.resends + p.resends > 0
            })
        };
        let mut found = Vec::new();
        for key in before.write().keys() {
            let later = self.versions_of(key).iter().skip_while(|version| **version <= base);
            found.extend(later.copied().filter(held_up));
        }
        // Several keys of one batch may be in another.
        found.sort_unstable();
        found.dedup();
        found
    }

    /// A version and all that it was computed from, and so on.
    pub(crate) fn line_of(&self, version: Version) -> BTreeSet<Version> {
        let (mut line, mut at) = (BTreeSet::from([version]), Some(version));
        while let Some(next) = at {
            let write = self.get(next).map(Pending::write);
            let bases = write.iter().flat_map(Write::bases);
            line.extend(bases.filter(|base| self.contains(*base)));
            // Bases are older than what was computed from them.
            at = line.range(..next).next_back().copied();
        }
        line
    }

    /// Version of the newest of this key that does anything at all.
    pub(crate) fn last_to_depend_on(&self, key: &[u8]) -> Option<Version> {
        let does = |write: &Write<'_>| write.effect().is_some_and(|it| it != Effect::None);
        self.of_key(key).rev().find(does).map(|write| write.version())
    }

    /// Whether a batch of this key is among them.
    pub(crate) fn has_batch_of(&self, key: &[u8]) -> bool {
        let in_batch = |version: &Version| self.batches.contains(version);
        !self.batches.is_empty() && self.versions_of(key).iter().any(in_batch)
    }

    pub(crate) fn keep_back(&mut self, version: Version) {
        self.kept_back.insert(version);
    }

    /// Keeps a write back no more; says whether it was.
    pub(crate) fn let_go(&mut self, version: Version) -> bool {
        self.kept_back.remove(&version)
    }

    pub(crate) fn let_all_go(&mut self) {
        self.kept_back.clear();
    }

    /// Versions that are kept back, ascending.
    pub(crate) fn kept_back(&self) -> Vec<Version> {
        self.kept_back.iter().copied().collect()
    }
}

/// Pending writes per partition. At the largest entry this is 6 MiB of a partition's memory; a
/// chain that far behind is told *overloaded* to its clients rather than let its queue grow.
pub(crate) const PENDING_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Instant;
    use wire::{ChainStep, ChainSteps, ChainWriteBody, Header};

    fn write<'a>(version: u64, base: u64, key: &'a [u8], effect: Effect) -> Write<'a> {
        let mut header = Header { client: 7, seq: version, ..Header::default() };
        wire::ChainWrite { version: Version::new(version), unsynced: 0, based: 0 }.put(&mut header);
        let fixed = ChainWriteBody {
            base: Version::new(base),
            effect: effect as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        Write { header, fixed, key, value: &[] }
    }

    fn batch(of: &[(&[u8], u64)]) -> Vec<u8> {
        let mut value = Vec::new();
        for (key, base) in of {
            let (key, base, effect) = (*key, *base, Effect::Put);
            ChainSteps::push(
                &mut value,
                &ChainStep { key, effect, base: Version::new(base), expiry_ms: 0, value: &[] },
            );
        }
        value
    }

    #[test]
    fn every_way_to_a_write_is_gone_with_it() {
        let mut pending = PendingWrites::default();
        let value = batch(&[(b"a", 1), (b"b", 0)]);
        let put = write(1, 0, b"a", Effect::Put).to_pending(Instant(0));
        let batch = Write { value: &value, ..write(2, 0, b"a", Effect::Batch) };
        pending.insert(batch.to_pending(Instant(0)));
        pending.insert(put);
        let [first, second] = [1, 2].map(Version::new);
        let of = |key: &[u8]| pending.versions_of(key).to_vec();
        assert_eq!((of(b"a"), of(b"b")), (vec![first, second], vec![second]));
        assert_eq!(pending.newest(b"a").map(|it| it.version()), Some(Version::new(2)));
        assert_eq!((pending.of_request(7, 2), pending.is_busy(7)), (Some(second.get()), true));
        assert!(pending.has_batch_of(b"b"));
        pending.keep_back(second);
        assert_eq!(pending.line_of(second), BTreeSet::from([first, second]));
        assert!(pending.remove(second).is_some() && pending.remove(second).is_none());
        assert_eq!((pending.versions_of(b"a"), pending.versions_of(b"b")), (&[first][..], &[][..]));
        assert!(!pending.has_batch_of(b"b") && pending.kept_back().is_empty());
        assert_eq!(pending.of_request(7, 2), None);
        assert!(pending.remove(first).is_some() && !pending.is_busy(7));
        pending.insert(write(3, 0, b"hot", Effect::Register).to_pending(Instant(0)));
        assert!(pending.keys_with_registration().eq([b"hot"]));
        assert!(pending.remove(Version::new(3)).is_some());
        assert_eq!(pending.keys_with_registration().count(), 0);
        assert_eq!((pending.len(), pending.bytes()), (0, 0));
    }

    #[test]
    fn what_was_sent_again_holds_up_what_was_computed_from_it() {
        let mut pending = PendingWrites::default();
        for version in 1..=3 {
            let write = write(version, version - 1, b"a", Effect::Put);
            pending.insert(write.to_pending(Instant(0)));
        }
        assert!(pending.held_up_by(Version::new(1)).is_empty(), "each was sent once");
        pending.get_mut(Version::new(1)).expect("it is pending").resends = 1;
        assert_eq!(pending.held_up_by(Version::new(1)), [Version::new(2)]);
        pending.get_mut(Version::new(2)).expect("it is pending").acknowledged = true;
        assert!(pending.held_up_by(Version::new(1)).is_empty());
    }
}
