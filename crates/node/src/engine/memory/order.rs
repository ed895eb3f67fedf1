//! How a tree of ordered keys is searched without building a key for it.
//!
//! Match values stand inside the tree's nodes, so that most comparisons fetch no key.

use super::block::Block;
use crate::engine::{Interval, bounds_cross};
use cluster::Match;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

/// Records in the order of their keys.
pub(super) type Tree = BTreeMap<OrderedKey, Block>;

/// Where a key stands: by match value, then by the key, which is the order of the keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderedKey {
    match_value: Match,
    key: Box<[u8]>,
}

impl OrderedKey {
    pub(super) fn new(match_value: Match, key: &[u8]) -> Self {
        Self { match_value, key: key.into() }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn match_value(&self) -> Match {
        self.match_value
    }
}

/// A [`OrderedKey`], whether it owns its key or borrows it: what the tree is searched by.
pub(super) trait Placed {
    fn place(&self) -> (Match, &[u8]);
}

impl Placed for OrderedKey {
    fn place(&self) -> (Match, &[u8]) {
        (self.match_value, &self.key)
    }
}

impl Placed for (Match, &[u8]) {
    fn place(&self) -> (Match, &[u8]) {
        *self
    }
}

impl PartialEq for dyn Placed + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Placed + '_ {}

impl PartialOrd for dyn Placed + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Placed + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl<'a> Borrow<dyn Placed + 'a> for OrderedKey {
    fn borrow(&self) -> &(dyn Placed + 'a) {
        self
    }
}

/// The records of an interval; `None` if its ends cross.
pub(super) fn range<'t>(
    tree: &'t Tree,
    interval: &Interval<'_>,
) -> Option<btree_map::Range<'t, OrderedKey, Block>> {
    let start = match interval.start {
        Bound::Included(key) => Bound::Included((interval.first, key)),
        Bound::Excluded(key) => Bound::Excluded((interval.first, key)),
        Bound::Unbounded => Bound::Included((interval.first, &[][..])),
    };
    let end = match interval.end {
        Bound::Included(key) => Bound::Included((interval.last, key)),
        Bound::Excluded(key) => Bound::Excluded((interval.last, key)),
        Bound::Unbounded => match interval.last.0.checked_add(1) {
            Some(next) => Bound::Excluded((Match(next), &[][..])),
            None => Bound::Unbounded,
        },
    };
    if bounds_cross(&start, &end) {
        return None;
    }
    Some(tree.range::<dyn Placed, _>((start.as_ref().map(placed), end.as_ref().map(placed))))
}

fn placed<'a>(place: &'a (Match, &'a [u8])) -> &'a (dyn Placed + 'a) {
    place
}
