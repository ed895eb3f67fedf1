//! Range match: the table behind partition lookup in switch and node.

use crate::Match;

/// Disjoint intervals of match values in order, each with a value.
#[derive(Clone, Debug)]
pub struct RangeTable<T> {
    firsts: Vec<u128>,
    rows: Vec<(Match, T)>,
}

impl<T> Default for RangeTable<T> {
    fn default() -> Self {
        Self { firsts: Vec::new(), rows: Vec::new() }
    }
}

impl<T> RangeTable<T> {
    /// Builds the table from `(first, last, value)`, both ends inclusive, in any order.
    ///
    /// # Panics
    ///
    /// If two intervals overlap or one is empty: a checked [`Map`](crate::Map) has neither.
    #[must_use]
    pub fn new(mut rows: Vec<(Match, Match, T)>) -> Self {
        rows.sort_by_key(|(first, ..)| *first);
        let disjoint = rows.windows(2).all(|pair| match pair {
            [(_, last, _), (first, ..)] => last < first,
            _ => true,
        });
        assert!(disjoint && rows.iter().all(|(first, last, _)| first <= last), "sound intervals");
        let firsts = rows.iter().map(|(first, ..)| first.0).collect();
        let rows = rows.into_iter().map(|(_, last, value)| (last, value)).collect();
        Self { firsts, rows }
    }

    /// The value of the interval that holds `at`. O(log n).
    #[inline]
    #[must_use]
    pub fn find(&self, at: Match) -> Option<&T> {
        let (_, last, value) = self.get(self.position(at)?)?;
        (at <= last).then_some(value)
    }

    /// Index of the last interval that begins at or before `at`. O(log n).
    #[inline]
    #[must_use]
    pub fn position(&self, at: Match) -> Option<usize> {
        self.firsts.partition_point(|first| *first <= at.0).checked_sub(1)
    }

    /// Interval number `index`: first, last, value.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<(Match, Match, &T)> {
        let (last, value) = self.rows.get(index)?;
        Some((Match(*self.firsts.get(index)?), *last, value))
    }

    /// All intervals, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Match, Match, &T)> {
        self.firsts.iter().zip(&self.rows).map(|(first, (last, v))| (Match(*first), *last, v))
    }

    /// How many intervals there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
