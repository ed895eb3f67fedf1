//! Walks through a partition in memory, which go on whatever becomes of it meanwhile.

use super::block::Block;
use super::order::{OrderedKey, Placed};
use super::table::Hashed;
use crate::engine::Record;
use cluster::Match;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// How far a walk through a partition has come.
#[derive(Clone, Debug)]
pub struct Cursor {
    next: Next,
    /// How many records were taken.
    taken: usize,
}

/// What a walk goes on with.
#[derive(Clone, Debug)]
enum Next {
    /// The records of a table, from this half of a match value, keyhash and key on. Its tree
    /// comes after them.
    Table(Option<(u64, u64, Box<[u8]>)>),
    /// The records of a tree, from this place on.
    Tree(OrderedKey),
    Over,
}

impl Cursor {
    /// To the beginning of a partition of a hash keyspace.
    pub(super) fn hashed() -> Self {
        Self { next: Next::Table(None), taken: 0 }
    }

    /// To the beginning of a partition of an ordered keyspace.
    pub(super) fn ordered(first: Match) -> Self {
        Self { next: Next::Tree(OrderedKey::new(first, &[])), taken: 0 }
    }

    /// Visits the next records of the partition, which is in one of the two or empty.
    pub(super) fn go_on(
        &mut self,
        table: Option<&Hashed>,
        tree: Option<&BTreeMap<OrderedKey, Block>>,
        mut visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut taken = 0;
        let mut visit = |key: &[u8], record: Record<'_>| {
            let flow = visit(key, record);
            taken += usize::from(flow.is_continue());
            flow
        };
        if let Next::Table(from) = &self.next {
            let from = from.as_ref().map(|(half, keyhash, key)| (*half, *keyhash, &**key));
            let broke_at = table.and_then(|it| it.index.walk(&it.slots, from, &mut visit));
            self.next = match broke_at {
                Some((half, keyhash, key)) => Next::Table(Some((half, keyhash, key.into()))),
                None => Next::Tree(OrderedKey::new(Match::MIN, &[])),
            };
        }
        if let Next::Tree(from) = &self.next {
            let from: &dyn Placed = from;
            let tree = tree.or_else(|| table.map(|table| &table.crowded));
            let rest = (Bound::Included(from), Bound::Unbounded);
            let mut rest = tree.into_iter().flat_map(|it| it.range::<dyn Placed, _>(rest));
            let broke_at =
                rest.find(|(place, block)| visit(place.key(), block.record()).is_break());
            self.next = broke_at.map_or(Next::Over, |(place, _)| Next::Tree(place.clone()));
        }
        self.taken += taken;
        match self.next {
            Next::Over => ControlFlow::Continue(()),
            Next::Table(_) | Next::Tree(_) => ControlFlow::Break(()),
        }
    }

    /// Thousandths of the walk that are done, if the partition now has so many records.
    pub(super) fn walked(&self, of: usize) -> u16 {
        if matches!(self.next, Next::Over) {
            return 1_000;
        }
        let thousandths = self.taken.saturating_mul(1_000) / of.max(1);
        u16::try_from(thousandths).map_or(1_000, |thousandths| thousandths.min(1_000))
    }
}
