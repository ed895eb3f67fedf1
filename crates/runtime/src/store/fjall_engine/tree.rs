//! One ordered map on disk, with the changes that no batch has taken there yet.

use fjall::{Keyspace, OwnedWriteBatch, Slice};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

/// Which end a scan starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// How a key compares with another that it is visited before.
    fn earlier(self) -> Ordering {
        match self {
            Self::Forward => Ordering::Less,
            Self::Backward => Ordering::Greater,
        }
    }
}

/// Keys and what becomes of them; `None` is a key removed.
type Changes = BTreeMap<Slice, Option<Slice>>;

/// One of them.
type Change<'a> = (&'a Slice, &'a Option<Slice>);

/// One of fjall's keyspaces under the changes made to it since the last batch. Whoever makes them
/// bounds them, by syncing.
pub(super) struct Tree {
    on_disk: Keyspace,
    changed: Changes,
    /// What batches have that may not be on disk yet.
    taken: Changes,
    /// Keys of these whose change a crash does not take back.
    backed: BTreeSet<Slice>,
    /// A key that was removed since the last rotation, and is not there.
    removed: Option<Slice>,
    /// The same of the rotation before, until the next batch.
    removed_again: Option<Slice>,
}

impl Tree {
    pub(super) fn new(on_disk: Keyspace) -> Self {
        Self {
            on_disk,
            changed: Changes::new(),
            taken: Changes::new(),
            backed: BTreeSet::new(),
            removed: None,
            removed_again: None,
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> fjall::Result<Option<Slice>> {
        match self.changed.get(key).or_else(|| self.taken.get(key)) {
            Some(value) => Ok(value.clone()),
            None => self.on_disk.get(key),
        }
    }

    pub(super) fn put(&mut self, key: impl Into<Slice>, value: impl Into<Slice>) {
        self.change(key.into(), Some(value.into()));
    }

    pub(super) fn remove(&mut self, key: impl Into<Slice>) {
        self.change(key.into(), None);
    }

    fn change(&mut self, key: Slice, value: Option<Slice>) {
        self.backed.remove(&key);
        self.changed.insert(key, value);
    }

    /// A crash does not take back the change of this key, if there is one.
    pub(super) fn see_backed(&mut self, key: &[u8]) {
        if let Some((key, _)) = self.changed.get_key_value(key) {
            self.backed.insert(key.clone());
        }
    }

    /// Bytes of the files that hold it.
    #[cfg(test)]
    pub(super) fn disk_space(&self) -> u64 {
        self.on_disk.disk_space()
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether what reads see under this key is in no batch yet.
    pub(super) fn is_changed_at(&self, key: &[u8]) -> bool {
        self.changed.contains_key(key)
    }

    /// Whether a crash would take back what reads see under this key.
    pub(super) fn is_at_risk(&self, key: &[u8]) -> bool {
        self.changed.contains_key(key) && !self.backed.contains(key)
    }

    /// Keys of which that is so.
    pub(super) fn at_risk(&self) -> impl Iterator<Item = &Slice> {
        self.changed.keys().filter(|key| !self.backed.contains(*key))
    }

    /// Makes the batch remove what is on disk under a key that is not changed.
    pub(super) fn remove_on_disk(&mut self, key: impl Into<Slice>, batch: &mut OwnedWriteBatch) {
        self.add_to(batch, key.into(), None);
    }

    /// What batches have written goes to tables.
    ///
    /// fjall moves a table whose keys lie apart from those of all others to the last level as it
    /// is, with the marks of all that was removed, and never looks at it again. So what is written
    /// next says once more that a key of these is removed: tables that hold such marks touch the
    /// next, and are merged with it.
    pub(super) fn have_rotated(&mut self) {
        self.removed_again = self.removed.take();
    }

    /// What batches have is on disk.
    pub(super) fn have_written(&mut self) {
        self.taken.clear();
    }

    /// What reads see above what is on disk, in the order of the keys (or the reverse).
    pub(super) fn above<'a>(
        &'a self,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> impl Iterator<Item = Change<'a>> {
        let of = |changes: &'a Changes| {
            let mut range = changes.range::<[u8], _>(range);
            let next = move || match direction {
                Direction::Forward => range.next(),
                Direction::Backward => range.next_back(),
            };
            std::iter::from_fn(next).peekable()
        };
        let (mut taken, mut changed) = (of(&self.taken), of(&self.changed));
        std::iter::from_fn(move || {
            let order = match (taken.peek(), changed.peek()) {
                (Some((was, _)), Some((is, _))) => was.cmp(is),
                (Some(_), None) => return taken.next(),
                (None, _) => return changed.next(),
            };
            if order.is_eq() {
                taken.next();
            }
            if order == direction.earlier() { taken.next() } else { changed.next() }
        })
    }

    /// Visits entries in order of their keys (or the reverse) until told to break.
    pub(super) fn scan(
        &self,
        start: &Bound<Vec<u8>>,
        end: &Bound<Vec<u8>>,
        direction: Direction,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> fjall::Result<()> {
        if node::engine::bounds_cross(start, end) {
            return Ok(());
        }
        let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
        let on_disk = self.on_disk.range::<&[u8], _>(range);
        let above = self.above(range, direction);
        match direction {
            Direction::Forward => merge(on_disk, above, direction, visit),
            Direction::Backward => merge(on_disk.rev(), above, direction, visit),
        }
    }

    /// Where the batches take it.
    pub(super) fn on_disk(&self) -> &Keyspace {
        &self.on_disk
    }

    /// How many files hold it.
    #[cfg(test)]
    pub(super) fn table_count(&self) -> usize {
        self.on_disk.table_count()
    }

    /// Makes all changes part of the batch, which is then to be written.
    pub(super) fn move_changes(&mut self, batch: &mut OwnedWriteBatch) {
        let mut changed = std::mem::take(&mut self.changed);
        self.backed.clear();
        if let Some(key) = self.removed_again.take() {
            changed.entry(key).or_insert(None);
        }
        for (key, value) in &changed {
            self.add_to(batch, key.clone(), value.clone());
        }
        self.taken.append(&mut changed);
    }

    fn add_to(&mut self, batch: &mut OwnedWriteBatch, key: Slice, value: Option<Slice>) {
        match value {
            Some(value) => {
                for gone in [&mut self.removed, &mut self.removed_again] {
                    gone.take_if(|it| *it == key);
                }
                batch.insert(&self.on_disk, key, value);
            }
            None => {
                self.removed = Some(key.clone());
                batch.remove(&self.on_disk, key);
            }
        }
    }
}

/// Visits both, which come in this order; of equal keys the changed one counts.
pub(super) fn merge<'a>(
    on_disk: impl Iterator<Item = fjall::Guard>,
    changed: impl Iterator<Item = Change<'a>>,
    direction: Direction,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> fjall::Result<()> {
    let mut on_disk = on_disk.map(fjall::Guard::into_inner);
    let mut changed = changed.peekable();
    let mut stored = on_disk.next().transpose()?;
    loop {
        let order = match (&stored, changed.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((key, _)), Some((change, _))) => match key.cmp(change) {
                Ordering::Equal => Ordering::Equal,
                order if order == direction.earlier() => Ordering::Less,
                _ => Ordering::Greater,
            },
        };
        let step = match order {
            Ordering::Less => stored.as_ref().map(|(key, value)| visit(key, value)),
            Ordering::Greater | Ordering::Equal => changed
                .next()
                .and_then(|(key, value)| value.as_ref().map(|value| visit(key, value))),
        };
        if step.is_some_and(|flow| flow.is_break()) {
            return Ok(());
        }
        if order != Ordering::Greater {
            stored = on_disk.next().transpose()?;
        }
    }
}
