//! Range match: the table behind partition lookup in switch and node.
//!
//! A binary search over thousands of bounds misses the cache at nearly every step. An index over
//! equal slices of the space that the bounds really take brackets the search first, so that with
//! evenly spread bounds it has one or two left to compare.
//!
//! ```text
//! bounds    0          8         12 13 14                23    first values of the intervals
//! buckets  <---------- 8..=11 | 12..=15 | 16..=19 | 20..=23 ----------->
//! below                0        2         5         5         6    bounds in earlier buckets
//! ```

use crate::Match;
use std::ops::Range;

/// Disjoint intervals of match values in order, each with a value.
#[derive(Clone, Debug)]
pub struct RangeTable<T> {
    firsts: Vec<u128>,
    rows: Vec<(Match, T)>,
    index: Index,
}

/// An interval of match values, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first value.
    pub first: Match,
    /// Its last value.
    pub last: Match,
}

impl<T> Default for RangeTable<T> {
    fn default() -> Self {
        Self { firsts: Vec::new(), rows: Vec::new(), index: Index::new(&[]) }
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
        let firsts: Vec<u128> = rows.iter().map(|(first, ..)| first.0).collect();
        let rows = rows.into_iter().map(|(_, last, value)| (last, value)).collect();
        let index = Index::new(&firsts);
        Self { firsts, rows, index }
    }

    /// The value of the interval that holds `at`. O(log n), and O(1) if the bounds are spread
    /// evenly.
    #[inline]
    #[must_use]
    pub fn find(&self, at: Match) -> Option<&T> {
        let (last, value) = self.rows.get(self.position(at)?)?;
        (at <= *last).then_some(value)
    }

    /// Index of the last interval that begins at or before `at`. As fast as [`find`](Self::find).
    #[inline]
    #[must_use]
    pub fn position(&self, at: Match) -> Option<usize> {
        let bracket = self.index.bracket(at.0);
        let below = bracket.start;
        let inside = self.firsts.get(bracket)?.partition_point(|first| *first <= at.0);
        (below + inside).checked_sub(1)
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

    /// The part of a span inside the interval that holds its first value (`reverse`: its last), the
    /// rest of it, and that interval's value. `None` if no interval holds that.
    #[must_use]
    pub fn cut(
        &self,
        Span { first, last }: Span,
        reverse: bool,
    ) -> Option<(Span, Option<Span>, &T)> {
        let at = if reverse { last } else { first };
        let (begins, ends, value) = self.get(self.position(at)?)?;
        if at > ends {
            return None;
        }
        let piece = Span { first: first.max(begins), last: last.min(ends) };
        // At the ends of the space the rest, which would begin outside it, is empty.
        let rest = if reverse {
            piece.first.0.checked_sub(1).map(|last| Span { first, last: Match(last) })
        } else {
            piece.last.0.checked_add(1).map(|first| Span { first: Match(first), last })
        };
        Some((piece, rest.filter(|rest| rest.first <= rest.last), value))
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

/// Which bounds can be the last at or before a match value.
#[derive(Clone, Debug)]
struct Index {
    /// Where bucket 0 begins. The second bound, not the first: that one is 0 in every covered
    /// keyspace, and would stretch the buckets over a space that skewed keys leave empty.
    start: u128,
    /// Bits by which a distance from `start` is shifted to give its bucket.
    shift: u32,
    /// For each bucket and one more, how many bounds lie in earlier buckets.
    below: Vec<u32>,
}

/// Two buckets per bound keep most of them at one bound or none; 8192 of them take 32 KiB, which
/// leaves room in a first-level cache and half a second-level one even for 65536 partitions.
const BUCKETS_MAX: usize = 8192;

impl Index {
    fn new(firsts: &[u128]) -> Self {
        let start = firsts.get(1).copied().unwrap_or_default();
        let span = firsts.last().map_or(0, |last| last.saturating_sub(start));
        let buckets = (2 * firsts.len()).next_power_of_two().clamp(2, BUCKETS_MAX);
        let shift = (u128::BITS - span.leading_zeros()).saturating_sub(buckets.ilog2());
        let mut index = Self { start, shift, below: vec![0; buckets + 1] };
        for first in firsts {
            let after = index.bucket(*first) + 1;
            *index.below.get_mut(after).expect("one entry more than buckets") += 1;
        }
        let mut sum = 0;
        for count in &mut index.below {
            sum += *count;
            *count = sum;
        }
        index
    }

    /// Grows with `at`: bounds of earlier buckets are smaller, those of later ones greater.
    #[inline]
    fn bucket(&self, at: u128) -> usize {
        let last = self.below.len() - 2;
        let slice = at.saturating_sub(self.start) >> self.shift;
        usize::try_from(slice).map_or(last, |bucket| bucket.min(last))
    }

    /// The bounds of the bucket of `at`; all bounds before them are smaller than `at`.
    #[inline]
    fn bracket(&self, at: u128) -> Range<usize> {
        let bucket = self.bucket(at);
        let below = |i| self.below.get(i).map_or(0, |n| *n as usize);
        below(bucket)..below(bucket + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table over these bounds, each interval ending where the next begins; value: its number.
    fn table(bounds: &[u128]) -> RangeTable<usize> {
        let ends = bounds.iter().skip(1).map(|next| next - 1).chain([u128::MAX]);
        let rows = bounds.iter().zip(ends).enumerate();
        RangeTable::new(rows.map(|(i, (first, last))| (Match(*first), Match(last), i)).collect())
    }

    fn scan(bounds: &[u128], at: u128) -> Option<usize> {
        bounds.iter().rposition(|first| *first <= at)
    }

    fn agrees_around(bounds: &[u128], more: &[u128]) {
        let table = table(bounds);
        let near = bounds.iter().flat_map(|b| [b.saturating_sub(1), *b, b.saturating_add(1)]);
        for at in near.chain(more.iter().copied()).chain([0, u128::MAX]) {
            assert_eq!(table.position(Match(at)), scan(bounds, at), "{at:032x} in {bounds:x?}");
            assert_eq!(table.find(Match(at)).copied(), scan(bounds, at));
        }
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        let table = RangeTable::<()>::default();
        assert_eq!(table.find(Match::MIN), None);
        assert_eq!(table.find(Match::MAX), None);
        assert!(RangeTable::<()>::new(Vec::new()).position(Match(7)).is_none());
    }

    #[test]
    fn a_gap_belongs_to_nobody() {
        let table = RangeTable::new(vec![(Match(10), Match(19), 'a'), (Match(30), Match(39), 'b')]);
        let found = [9, 10, 19, 20, 29, 30, 39, 40].map(|at| table.find(Match(at)).copied());
        let (a, b) = (Some('a'), Some('b'));
        assert_eq!(found, [None, a, a, None, None, b, b, None]);
    }

    #[test]
    fn even_bounds_leave_at_most_two_to_compare() {
        for count in [1u128, 2, 3, 128, 1000, 4096] {
            let bounds: Vec<u128> = (0..count).map(|i| (u128::MAX / count) * i).collect();
            let table = table(&bounds);
            assert!(bounds.iter().all(|at| table.index.bracket(*at).len() <= 2));
            agrees_around(&bounds, &[]);
        }
    }

    #[test]
    fn bounds_crowded_into_a_corner_are_still_bracketed() {
        let crowded = (0..4095u128).map(|i| (0x7573_6572 << 96) + (i << 64));
        let bounds: Vec<u128> = std::iter::once(0).chain(crowded).collect();
        let table = table(&bounds);
        assert!(bounds.iter().skip(1).all(|at| table.index.bracket(*at).len() <= 2));
        agrees_around(&bounds, &[]);
    }

    #[test]
    #[should_panic(expected = "sound intervals")]
    fn overlapping_intervals_are_refused() {
        let _ = RangeTable::new(vec![(Match(0), Match(5), ()), (Match(5), Match(9), ())]);
    }

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(
            mut bounds in proptest::collection::vec(any::<u128>(), 1..200),
            narrow in 0u32..128,
            base in any::<u128>(),
            more in proptest::collection::vec(any::<u128>(), 0..50),
        ) {
            for bound in &mut bounds {
                *bound = base.wrapping_add(*bound >> narrow);
            }
            bounds.sort_unstable();
            bounds.dedup();
            agrees_around(&bounds, &more);
        }
    }
}
