//! Registrations: which keys of a partition are hot, as its members have agreed in the order of its
//! writes.
//!
//! A registration is changed by chain writes of the head, kept on record by every member and copied
//! to a learner. What it is good for is the tail's business (`propagation`, `publish`); when it is
//! to be changed, the head's (`reconcile`).

use crate::engine::Engine;
use crate::hot::publications::DirectoryKey;
use crate::replica::notes::registration_name;
use crate::replica::write::Write;
use crate::shard::context::Context;
use cluster::{Match, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wire::{Effect, Generation, Header, Version};

/// The last change of a key's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    /// Number of its generation in the coherence directory; 0 if the key is not registered any
    /// more.
    pub(crate) generation: Generation,
    /// Version of the write that changed it; 0 if it came with the copy of the partition, which
    /// every live change is newer than.
    pub(crate) version: Version,
    pub(crate) keyhash: u64,
    pub(crate) match_value: Match,
}

/// The table of registrations of a partition.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// By key. An unregistered key stays for as long as an older change of its registration,
    /// doubled by the network, could be taken for news.
    table: BTreeMap<Box<[u8]>, Registration>,
    by_hash: BTreeSet<(u64, Box<[u8]>)>,
    /// How many of the table are not hot any more.
    unregistered: usize,
}

impl Registrations {
    /// The registration of a key, if it is hot.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Registration> {
        // Most partitions have none at all.
        if self.table.is_empty() {
            return None;
        }
        self.table.get(key).filter(|registration| !registration.generation.is_none())
    }

    /// How many keys are hot.
    pub(crate) fn count(&self) -> usize {
        self.table.len() - self.unregistered
    }

    /// The last change of each key's registration, by key.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&[u8], &Registration)> {
        self.table.iter().map(|(key, registration)| (&**key, registration))
    }

    /// All that are hot, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Registration)> {
        self.between(Bound::Unbounded, Bound::Unbounded)
    }

    /// Those of them within bounds that do not cross.
    pub(crate) fn between<'a>(
        &'a self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&'a [u8], &'a Registration)> {
        let range = self.table.range::<[u8], _>((start, end));
        range
            .map(|(key, registration)| (&**key, registration))
            .filter(|(_, registration)| !registration.generation.is_none())
    }

    /// Those after a key, or all.
    pub(crate) fn after(&self, key: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Registration)> {
        self.between(key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
    }

    /// Keys with this hash that are hot, or were lately: mostly one.
    pub(crate) fn with_hash(&self, keyhash: u64) -> Vec<Box<[u8]>> {
        let from = (keyhash, Box::default());
        let same = self.by_hash.range(from..).take_while(|(hash, _)| *hash == keyhash);
        same.map(|(_, key)| key.clone()).collect()
    }

    /// Commits a change of a key's registration; says whether it is news. The head orders the next
    /// one of a key only when the last one is committed everywhere; but a member that has restarted
    /// may be sent an old one again.
    pub(crate) fn commit<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        write: &Write<'_>,
    ) -> bool {
        let hot = write.effect() == Some(Effect::Register);
        let registration = Registration {
            generation: if hot { write.fixed.result.generation() } else { Generation::NONE },
            version: write.version(),
            keyhash: write.header.keyhash,
            match_value: Match(write.header.match_value),
        };
        self.take(ctx, id, write.key, registration)
    }

    /// Takes a registration that was copied from the tail; says whether it is news. The tail
    /// commits after the learner: whatever the learner knows of the key is as new.
    pub(crate) fn take_copied<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        (at, key): (&Header, &[u8]),
        generation: Generation,
    ) -> bool {
        let (keyhash, match_value) = (at.keyhash, Match(at.match_value));
        let registration =
            Registration { generation, version: Version::NONE, keyhash, match_value };
        !self.knows(key) && self.take(ctx, id, key, registration)
    }

    fn take<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        key: &[u8],
        registration: Registration,
    ) -> bool {
        let news = self.change(key, registration);
        if news {
            ctx.engine.note(id, &registration_name(key), Some(&registration.to_note()));
            if registration.generation.is_none() {
                ctx.hot.publications.forget(DirectoryKey::new(id, &registration.header()));
            }
        }
        news
    }

    /// Takes a change, unless a newer one is known; says whether it did.
    pub(crate) fn change(&mut self, key: &[u8], registration: Registration) -> bool {
        let known = self.table.get(key);
        let news = known.is_none_or(|known| known.version < registration.version);
        if news {
            self.unregistered -= usize::from(known.is_some_and(|known| known.generation.is_none()));
            self.unregistered += usize::from(registration.generation.is_none());
            self.by_hash.insert((registration.keyhash, key.into()));
            self.table.insert(key.into(), registration);
        }
        news
    }

    /// Whether any change of this key's registration is known.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.table.contains_key(key)
    }

    /// Forgets what was unregistered, once no older change can be taken for news: all up to
    /// `stable` are known to be committed.
    pub(crate) fn end_unregistered<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        id: PartitionId,
        stable: Version,
    ) {
        for key in self.forget_unregistered(stable) {
            ctx.engine.note(id, &registration_name(&key), None);
        }
    }

    /// Forgets the keys that were unregistered by a version up to this one.
    fn forget_unregistered(&mut self, up_to: Version) -> Vec<Box<[u8]>> {
        if self.unregistered == 0 {
            return Vec::new();
        }
        let over = |registration: &Registration| {
            registration.generation.is_none() && registration.version <= up_to
        };
        let gone = self.table.extract_if(.., |_, registration| over(registration));
        let gone: Vec<_> = gone.map(|(key, registration)| (registration.keyhash, key)).collect();
        self.unregistered -= gone.len();
        for name in &gone {
            self.by_hash.remove(name);
        }
        gone.into_iter().map(|(_, key)| key).collect()
    }
}

impl Registration {
    /// A header that says what the switch knows the key by.
    pub(crate) fn header(&self) -> Header {
        Header { match_value: self.match_value.0, keyhash: self.keyhash, ..Header::default() }
    }

    pub(crate) fn to_note(self) -> [u8; NOTE_LEN] {
        let mut note = [0; NOTE_LEN];
        let (words, at) = note.split_at_mut(24);
        let numbers = [self.generation.get(), self.version.get(), self.keyhash];
        for (to, number) in words.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        at.copy_from_slice(&self.match_value.0.to_be_bytes());
        note
    }

    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let (words, at) = note.split_first_chunk::<24>()?;
        let [generation, version, keyhash] = words.as_chunks::<8>().0 else { return None };
        Some(Self {
            generation: Generation::new(u64::from_be_bytes(*generation)),
            version: Version::new(u64::from_be_bytes(*version)),
            keyhash: u64::from_be_bytes(*keyhash),
            match_value: Match(u128::from_be_bytes(at.try_into().ok()?)),
        })
    }
}

const NOTE_LEN: usize = 3 * 8 + 16;

#[cfg(test)]
mod tests {
    use super::*;

    const fn registration(generation: u64, version: u64) -> Registration {
        Registration {
            generation: Generation::new(generation),
            version: Version::new(version),
            keyhash: 5,
            match_value: Match(6),
        }
    }

    #[test]
    fn a_registration_survives_its_note() {
        assert_eq!(
            Registration::from_note(&registration(3, 4).to_note()),
            Some(registration(3, 4))
        );
        assert_eq!(Registration::from_note(&[0; NOTE_LEN - 1]), None);
        assert_eq!(Registration::from_note(&[0; NOTE_LEN + 1]), None);
    }

    #[test]
    fn an_older_change_is_no_news_even_after_the_key_was_unmarked() {
        let mut registrations = Registrations::default();
        assert!(registrations.change(b"k", registration(3, 7)));
        assert!(registrations.change(b"k", registration(0, 9)));
        assert!(!registrations.change(b"k", registration(3, 7)), "doubled by the network");
        assert_eq!(registrations.get(b"k"), None);
        assert!(registrations.forget_unregistered(Version::new(8)).is_empty());
        assert_eq!(registrations.forget_unregistered(Version::new(9)), [Box::from(*b"k")]);
        assert!(registrations.with_hash(5).is_empty() && !registrations.knows(b"k"));
    }
}
