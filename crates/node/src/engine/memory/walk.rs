//! Walks through a partition in memory, which go on whatever becomes of it meanwhile.

use super::order::{Place, Placed};
use super::{Block, Slot};
use crate::engine::Record;
use cluster::Match;
use hashbrown::HashTable;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

/// How far a walk through a partition has come. In a hash keyspace it takes 8 bytes for each
/// record there was at the beginning; in an ordered one it is the key to go on with. Its clones
/// share those.
#[derive(Clone, Debug)]
pub struct Cursor(Walk);

#[derive(Clone, Debug)]
enum Walk {
    Hashed(HashedWalk),
    Ordered(OrderedWalk),
    Over,
}

/// A table gives no order that would survive its growing, so the walk brings one along.
#[derive(Clone, Debug)]
struct HashedWalk {
    /// Those of all records at the beginning, each once. Sorted, so that the way is the same
    /// wherever a table puts its records.
    keyhashes: Arc<[u64]>,
    /// Index of the one to go on with.
    next: usize,
    /// The key to go on with, among those of that keyhash: they are visited in order.
    from: Option<Box<[u8]>>,
}

#[derive(Clone, Debug)]
struct OrderedWalk {
    /// The place to go on with.
    from: Place,
    /// How many records were taken.
    taken: usize,
}

impl Cursor {
    /// To the beginning of a partition of a hash keyspace; `None` is an empty one.
    pub(super) fn hashed(slots: Option<&HashTable<Slot>>) -> Self {
        let mut keyhashes: Vec<u64> =
            slots.into_iter().flatten().map(|slot| slot.keyhash).collect();
        keyhashes.sort_unstable();
        keyhashes.dedup();
        Self(Walk::Hashed(HashedWalk { keyhashes: keyhashes.into(), next: 0, from: None }))
    }

    /// To the beginning of a partition of an ordered keyspace.
    pub(super) fn ordered(first: Match) -> Self {
        Self(Walk::Ordered(OrderedWalk { from: Place::new(first, &[]), taken: 0 }))
    }

    /// Visits the next records of the partition, which is in one of the two or empty.
    pub(super) fn go_on(
        &mut self,
        slots: Option<&HashTable<Slot>>,
        tree: Option<&BTreeMap<Place, Block>>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let flow = match (&mut self.0, slots, tree) {
            (Walk::Hashed(walk), Some(slots), _) => walk.go_on(slots, visit),
            (Walk::Ordered(walk), _, Some(tree)) => walk.go_on(tree, visit),
            (Walk::Hashed(_) | Walk::Ordered(_) | Walk::Over, ..) => ControlFlow::Continue(()),
        };
        if flow.is_continue() {
            self.0 = Walk::Over;
        }
        flow
    }

    /// Thousandths of the walk that are done, if the partition now has so many ordered records.
    pub(super) fn walked(&self, ordered: usize) -> u16 {
        match &self.0 {
            Walk::Hashed(walk) => thousandths(walk.next, walk.keyhashes.len()),
            Walk::Ordered(walk) => thousandths(walk.taken, ordered),
            Walk::Over => 1_000,
        }
    }
}

impl HashedWalk {
    fn go_on(
        &mut self,
        slots: &HashTable<Slot>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(keyhash) = self.keyhashes.get(self.next) {
            let from = self.from.take();
            let mut start = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
            while let Some(block) = first_of(slots, *keyhash, start) {
                if visit(block.key(), block.record()).is_break() {
                    self.from = Some(block.key().into());
                    return ControlFlow::Break(());
                }
                start = Bound::Excluded(block.key());
            }
            self.next += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Of the records with this keyhash, hardly ever more than one, the first with a key from here on.
fn first_of<'s>(
    slots: &'s HashTable<Slot>,
    keyhash: u64,
    start: Bound<&[u8]>,
) -> Option<&'s Block> {
    slots
        .iter_hash(keyhash)
        .filter(|slot| slot.keyhash == keyhash)
        .map(|slot| &slot.block)
        .filter(|block| (start, Bound::Unbounded).contains(block.key()))
        .min_by_key(|block| block.key())
}

impl OrderedWalk {
    fn go_on(
        &mut self,
        tree: &BTreeMap<Place, Block>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let start: &dyn Placed = &self.from;
        for (place, block) in
            tree.range::<dyn Placed, _>((Bound::Included(start), Bound::Unbounded))
        {
            if visit(place.key(), block.record()).is_break() {
                self.from = place.clone();
                return ControlFlow::Break(());
            }
            self.taken += 1;
        }
        ControlFlow::Continue(())
    }
}

fn thousandths(part: usize, of: usize) -> u16 {
    let thousandths = part.saturating_mul(1_000) / of.max(1);
    u16::try_from(thousandths).map_or(1_000, |thousandths| thousandths.min(1_000))
}
