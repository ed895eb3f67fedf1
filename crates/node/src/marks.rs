//! Marks: which keys of a partition are hot, as its members have agreed in the order of its writes.
//!
//! A mark is changed by chain writes of the head, kept on record by every member and copied to a
//! joiner. What it is good for is the tail's business (`spread`, `cover`); when it is to be
//! changed, the head's (`duty`).

use crate::cover::Place;
use crate::engine::Engine;
use crate::notes::mark_name;
use crate::replica::{Context, Replica, Write};
use cluster::Match;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use wire::{Effect, Header};

/// The last change of a key's mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of its stay in the coherence directory; 0 if the key is not marked any more.
    pub(crate) stay: u64,
    /// Version of the write that changed it; 0 if it came with the copy of the partition, which
    /// every live change is newer than.
    pub(crate) version: u64,
    pub(crate) keyhash: u64,
    pub(crate) match_value: Match,
}

/// The table of marks of a partition.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// By key. An unmarked key stays for as long as an older change of its mark, doubled by the
    /// network, could be taken for news.
    table: BTreeMap<Box<[u8]>, Mark>,
    by_hash: BTreeSet<(u64, Box<[u8]>)>,
    /// How many of the table are not hot any more.
    unmarked: usize,
}

impl Marks {
    /// The mark of a key, if it is hot.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Mark> {
        // Most partitions have none at all.
        if self.table.is_empty() {
            return None;
        }
        self.table.get(key).filter(|mark| mark.stay != 0)
    }

    /// How many keys are hot.
    pub(crate) fn count(&self) -> usize {
        self.table.len() - self.unmarked
    }

    /// All that are hot, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Mark)> {
        self.between(Bound::Unbounded, Bound::Unbounded)
    }

    /// Those of them within bounds that do not cross.
    pub(crate) fn between<'a>(
        &'a self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&'a [u8], &'a Mark)> {
        let range = self.table.range::<[u8], _>((start, end));
        range.map(|(key, mark)| (&**key, mark)).filter(|(_, mark)| mark.stay != 0)
    }

    /// Those after a key, or all.
    pub(crate) fn after(&self, key: Option<&[u8]>) -> impl Iterator<Item = (&[u8], &Mark)> {
        self.between(key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
    }

    /// Keys with this hash that are hot, or were lately: mostly one.
    pub(crate) fn with_hash(&self, keyhash: u64) -> Vec<Box<[u8]>> {
        let from = (keyhash, Box::default());
        let same = self.by_hash.range(from..).take_while(|(hash, _)| *hash == keyhash);
        same.map(|(_, key)| key.clone()).collect()
    }

    /// Takes a change, unless a newer one is known; says whether it did.
    pub(crate) fn change(&mut self, key: &[u8], mark: Mark) -> bool {
        let known = self.table.get(key);
        let news = known.is_none_or(|known| known.version < mark.version);
        if news {
            self.unmarked -= usize::from(known.is_some_and(|known| known.stay == 0));
            self.unmarked += usize::from(mark.stay == 0);
            self.by_hash.insert((mark.keyhash, key.into()));
            self.table.insert(key.into(), mark);
        }
        news
    }

    /// Whether any change of this key's mark is known.
    pub(crate) fn knows(&self, key: &[u8]) -> bool {
        self.table.contains_key(key)
    }

    /// Forgets the keys that were unmarked by a version up to this one.
    fn forget_unmarked(&mut self, up_to: u64) -> Vec<Box<[u8]>> {
        if self.unmarked == 0 {
            return Vec::new();
        }
        let over = |mark: &Mark| mark.stay == 0 && mark.version <= up_to;
        let gone = self.table.extract_if(.., |_, mark| over(mark));
        let gone: Vec<_> = gone.map(|(key, mark)| (mark.keyhash, key)).collect();
        self.unmarked -= gone.len();
        for name in &gone {
            self.by_hash.remove(name);
        }
        gone.into_iter().map(|(_, key)| key).collect()
    }
}

impl Mark {
    /// A header that says what the switch knows the key by.
    pub(crate) fn header(&self) -> Header {
        Header { match_value: self.match_value.0, keyhash: self.keyhash, ..Header::default() }
    }

    pub(crate) fn to_note(self) -> [u8; NOTE_LEN] {
        let mut note = [0; NOTE_LEN];
        let (words, at) = note.split_at_mut(24);
        let numbers = [self.stay, self.version, self.keyhash];
        for (to, number) in words.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        at.copy_from_slice(&self.match_value.0.to_be_bytes());
        note
    }

    pub(crate) fn from_note(note: &[u8]) -> Option<Self> {
        let (words, at) = note.split_first_chunk::<24>()?;
        let [stay, version, keyhash] = words.as_chunks::<8>().0 else { return None };
        Some(Self {
            stay: u64::from_be_bytes(*stay),
            version: u64::from_be_bytes(*version),
            keyhash: u64::from_be_bytes(*keyhash),
            match_value: Match(u128::from_be_bytes(at.try_into().ok()?)),
        })
    }
}

const NOTE_LEN: usize = 3 * 8 + 16;

impl Replica {
    /// Commits a change of a key's mark. The head orders the next one of a key only when the last
    /// one is committed everywhere; but a member that has restarted may be sent an old one again.
    pub(crate) fn commit_mark<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let hot = write.effect() == Some(Effect::Mark);
        let mark = Mark {
            stay: if hot { write.fixed.result } else { 0 },
            version: write.version(),
            keyhash: write.header.keyhash,
            match_value: Match(write.header.match_value),
        };
        self.change_mark(ctx, write.key, mark);
    }

    /// Takes a mark that was copied from the tail. The tail commits after the joiner: whatever the
    /// joiner knows of the key is as new.
    pub(crate) fn take_mark<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        stay: u64,
    ) {
        if !self.marks.knows(key) {
            let (keyhash, match_value) = (at.keyhash, Match(at.match_value));
            self.change_mark(ctx, key, Mark { stay, version: 0, keyhash, match_value });
        }
    }

    fn change_mark<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8], mark: Mark) {
        if self.marks.change(key, mark) {
            ctx.engine.note(self.id(), &mark_name(key), Some(&mark.to_note()));
            if mark.stay == 0 {
                ctx.hot.covers.forget(Place::new(self.id(), &mark.header()));
            }
            self.spread_or_stop(ctx, key);
        }
    }

    /// Forgets what was unmarked, once no older change can be taken for news: all up to `stable`
    /// are known to be committed. A joiner that is not whole may still be copied an older one.
    pub(crate) fn forget_unmarked<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if self.whole {
            for key in self.marks.forget_unmarked(self.history.stable()) {
                ctx.engine.note(self.id(), &mark_name(&key), None);
            }
        }
    }

    /// Whether the key is marked, or about to be as far as the head knows.
    pub(crate) fn is_hot(&self, key: &[u8]) -> bool {
        self.marks.get(key).is_some() || self.pending_mark(key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mark(stay: u64, version: u64) -> Mark {
        Mark { stay, version, keyhash: 5, match_value: Match(6) }
    }

    #[test]
    fn a_mark_survives_its_note() {
        assert_eq!(Mark::from_note(&mark(3, 4).to_note()), Some(mark(3, 4)));
        assert_eq!(Mark::from_note(&[0; NOTE_LEN - 1]), None);
        assert_eq!(Mark::from_note(&[0; NOTE_LEN + 1]), None);
    }

    #[test]
    fn an_older_change_is_no_news_even_after_the_key_was_unmarked() {
        let mut marks = Marks::default();
        assert!(marks.change(b"k", mark(3, 7)));
        assert!(marks.change(b"k", mark(0, 9)));
        assert!(!marks.change(b"k", mark(3, 7)), "doubled by the network");
        assert_eq!(marks.get(b"k"), None);
        assert!(marks.forget_unmarked(8).is_empty());
        assert_eq!(marks.forget_unmarked(9), [Box::from(*b"k")]);
        assert!(marks.with_hash(5).is_empty() && !marks.knows(b"k"));
    }
}
