//! Walks through a partition in memory, which go on whatever becomes of it meanwhile.

use super::block::Block;
use super::index::high;
use super::order::{OrderedKey, Placed, Tree};
use super::table::{Hashed, Slice};
use crate::engine::Area;
use cluster::{Keyspace, Match};
use std::ops::{Bound, ControlFlow};

/// How far a walk through a partition has come.
#[derive(Clone, Debug)]
pub struct Cursor {
    next: Next,
}

/// What a walk goes on with.
#[derive(Clone, Debug)]
enum Next {
    /// The table that has this match value, from there on.
    Table(Match),
    /// A table, from this half of a match value, keyhash and key on. Its tree comes after it.
    Slots(u64, u64, Box<[u8]>),
    /// The tree beside a table, or of an ordered keyspace, from this place on.
    Tree(OrderedKey),
    Over,
}

/// Takes a record, with a match value of its table and the keyhash that it is found by.
type Visit<'v> = dyn FnMut(Match, u64, &[u8], &Block) -> ControlFlow<()> + 'v;

impl Cursor {
    /// To the beginning of a partition.
    pub(super) fn new(area: &Area) -> Self {
        let next = if area.first > area.last {
            Next::Over
        } else if area.ordered {
            Next::Tree(OrderedKey::new(area.first, &[]))
        } else {
            Next::Table(area.first)
        };
        Self { next }
    }

    /// Where it goes on, about; `None` if it is over.
    pub(super) fn at(&self) -> Option<Match> {
        match &self.next {
            Next::Table(at) => Some(*at),
            Next::Slots(half, ..) => Some(from_high(*half)),
            Next::Tree(place) => Some(place.match_value()),
            Next::Over => None,
        }
    }

    /// Up to where it has come, which only grows: what lies in the tree beside a table comes after
    /// all that lies in the table.
    pub(super) fn passed(&self, area: &Area) -> Option<Match> {
        match &self.next {
            Next::Tree(place) if !area.ordered => {
                let slice = Slice::of(area.keyspace, place.match_value());
                Some(slice.next_first().unwrap_or(area.last).min(area.last))
            }
            _ => self.at(),
        }
    }

    /// Visits the next records of an ordered partition.
    pub(super) fn go_on_in_order(
        &mut self,
        area: &Area,
        tree: Option<&Tree>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        if let Next::Tree(from) = &self.next {
            let broke_at = tree.and_then(|tree| walk_tree(area.last, tree, from, visit));
            self.next = broke_at.map_or(Next::Over, Next::Tree);
        }
        self.flow()
    }

    /// Visits the next records of a partition that are in this table, which may be empty; after
    /// them the next table is to be visited. `keyspace` tells which keys at the bounds belong to
    /// the partition.
    pub(super) fn go_on(
        &mut self,
        area: &Area,
        keyspace: Option<&Keyspace>,
        (slice, table): (Slice, Option<&Hashed>),
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let from = match &self.next {
            Next::Table(at) => Some((high(*at), 0, &[][..])),
            Next::Slots(half, keyhash, key) => Some((*half, *keyhash, &**key)),
            Next::Tree(_) | Next::Over => None,
        };
        if let Some(from) = from {
            let broke_at = table.and_then(|table| {
                let ends = (from, high(area.last));
                table.index.walk(&table.slots, ends, |half, keyhash, block| {
                    if is_inside(area, keyspace, half, block.key()) {
                        visit(from_high(half), keyhash, block.key(), block)
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            });
            self.next = match broke_at {
                Some((half, keyhash, key)) => Next::Slots(half, keyhash, key.into()),
                None => Next::Tree(OrderedKey::new(slice.first().max(area.first), &[])),
            };
        }
        if let Next::Tree(from) = &self.next {
            let broke_at =
                table.and_then(|table| walk_tree(area.last, &table.crowded, from, visit));
            self.next = match (broke_at, slice.next_first().filter(|next| *next <= area.last)) {
                (Some(place), _) => Next::Tree(place),
                (None, Some(next)) => {
                    self.next = Next::Table(next);
                    return ControlFlow::Continue(());
                }
                (None, None) => Next::Over,
            };
        }
        self.flow()
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.next {
            Next::Over => ControlFlow::Continue(()),
            Next::Table(_) | Next::Slots(..) | Next::Tree(_) => ControlFlow::Break(()),
        }
    }
}

/// Visits what is in a tree from this place to the end of a match value, until the visitor breaks
/// off: at the place that is then given.
fn walk_tree(
    last: Match,
    tree: &Tree,
    from: &OrderedKey,
    visit: &mut Visit<'_>,
) -> Option<OrderedKey> {
    let from: &dyn Placed = from;
    let rest = tree.range::<dyn Placed, _>((Bound::Included(from), Bound::Unbounded));
    let mut rest = rest.take_while(|(place, _)| place.match_value() <= last);
    // Keys in trees have no keyhash to be found by.
    let broke_at =
        rest.find(|(place, block)| visit(place.match_value(), 0, place.key(), block).is_break());
    broke_at.map(|(place, _)| place.clone())
}

/// Whether a key whose match value has this upper half belongs to a partition.
fn is_inside(area: &Area, keyspace: Option<&Keyspace>, half: u64, key: &[u8]) -> bool {
    let is_bound = half == high(area.first) || half == high(area.last);
    let Some(keyspace) = keyspace.filter(|_| is_bound) else { return true };
    (area.first..=area.last).contains(&keyspace.match_value(key))
}

fn from_high(half: u64) -> Match {
    Match(u128::from(half) << 64)
}
