//! Intervals of keys as a scan cuts them: by match value, which the switch sees, and by key, which
//! only nodes and clients see.

use cluster::{Keyspace, Match};
use std::ops::Bound;
use std::sync::Arc;

/// All keys whose match value lies in `first..=last` and that both edges let through. Never empty
/// by match value; an edge is there only if it cuts something off the outermost match value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) first: Match,
    pub(crate) last: Match,
    pub(crate) start: Option<Edge>,
    pub(crate) end: Option<Edge>,
}

/// A bound on keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) key: Arc<[u8]>,
    /// The match value of that key.
    pub(crate) at: Match,
    pub(crate) inclusive: bool,
}

impl Edge {
    pub(crate) fn new(key: &[u8], at: Match, inclusive: bool) -> Self {
        Self { key: key.into(), at, inclusive }
    }

    /// Where it stands in the order of the keyspace.
    fn place(&self) -> (Match, &[u8]) {
        (self.at, &self.key)
    }

    fn of(keyspace: &Keyspace, bound: Bound<&[u8]>) -> Option<Self> {
        let (key, inclusive) = match bound {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded => return None,
        };
        Some(Self::new(key, keyspace.match_value(key), inclusive))
    }
}

impl Interval {
    /// The interval between two bounds; `None` if no key can be in it.
    pub(crate) fn new(keyspace: &Keyspace, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Option<Self> {
        // No key is empty: a start there bounds nothing, an end there leaves nothing.
        let start = match start {
            Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
            other => other,
        };
        if matches!(end, Bound::Included([]) | Bound::Excluded([])) {
            return None;
        }
        let (start, end) = (Edge::of(keyspace, start), Edge::of(keyspace, end));
        let first = start.as_ref().map_or(Match::MIN, |edge| edge.at);
        let last = end.as_ref().map_or(Match::MAX, |edge| edge.at);
        Self { first, last, start, end }.checked()
    }

    /// All keys whose match value lies in `first..=last`, of the first only those behind `after`;
    /// `None` if that is none.
    pub(crate) fn of_matches(first: Match, last: Match, after: Option<&[u8]>) -> Option<Self> {
        let start = after.map(|key| Edge::new(key, first, false));
        Self { first, last, start, end: None }.checked()
    }

    /// The part whose match values lie in `first..=last`.
    pub(crate) fn clip(&self, first: Match, last: Match) -> Option<Self> {
        let (first, last) = (self.first.max(first), self.last.min(last));
        let start = self.start.clone().filter(|edge| edge.at >= first);
        let end = self.end.clone().filter(|edge| edge.at <= last);
        Self { first, last, start, end }.checked()
    }

    /// What a scan has come by once it has come to `key`, inclusive, and what lies ahead of it.
    pub(crate) fn split(
        &self,
        key: &[u8],
        at: Match,
        reverse: bool,
    ) -> (Option<Self>, Option<Self>) {
        // The key itself goes with what the scan has come by.
        let before = self.until(Edge::new(key, at, !reverse));
        let after = self.from(Edge::new(key, at, reverse));
        if reverse { (after, before) } else { (before, after) }
    }

    /// The part that `end` lets through.
    fn until(&self, end: Edge) -> Option<Self> {
        if end.at < self.first {
            return None;
        }
        let nearer = self.end.as_ref().is_none_or(|own| {
            end.place() < own.place() || (end.place() == own.place() && !end.inclusive)
        });
        if end.at > self.last || !nearer {
            return Some(self.clone());
        }
        Self { last: end.at, end: Some(end), ..self.clone() }.checked()
    }

    /// The part that `start` lets through.
    fn from(&self, start: Edge) -> Option<Self> {
        if start.at > self.last {
            return None;
        }
        let nearer = self.start.as_ref().is_none_or(|own| {
            start.place() > own.place() || (start.place() == own.place() && !start.inclusive)
        });
        if start.at < self.first || !nearer {
            return Some(self.clone());
        }
        Self { first: start.at, start: Some(start), ..self.clone() }.checked()
    }

    /// Whether the key is in it.
    pub(crate) fn holds(&self, key: &[u8], at: Match) -> bool {
        let place = (at, key);
        let after_start = self.start.as_ref().is_none_or(|start| {
            if start.inclusive { place >= start.place() } else { place > start.place() }
        });
        let before_end = self.end.as_ref().is_none_or(|end| {
            if end.inclusive { place <= end.place() } else { place < end.place() }
        });
        self.first <= at && at <= self.last && after_start && before_end
    }

    /// Where it stands among intervals that it does not overlap.
    pub(crate) fn order(&self) -> (Match, Option<&[u8]>) {
        (self.first, self.start.as_ref().map(|edge| &*edge.key))
    }

    fn checked(self) -> Option<Self> {
        let apart = match (&self.start, &self.end) {
            (Some(start), Some(end)) => {
                let (start_at, end_at) = (start.place(), end.place());
                start_at < end_at || (start_at == end_at && start.inclusive && end.inclusive)
            }
            _ => true,
        };
        (self.first <= self.last && apart).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{KeyspaceId, KeyspaceKind};
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 1..4).prop_map(|tail| {
            // Half of the keys differ only after the bytes that a match value holds.
            let mut key = if tail.len() == 2 { vec![b'a'; 16] } else { Vec::new() };
            key.extend(tail);
            key
        })
    }

    fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            any_key().prop_map(Bound::Included),
            any_key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    }

    proptest! {
        #[test]
        fn a_split_leaves_every_key_on_exactly_one_side(
            (start, end) in (any_bound(), any_bound()),
            (at, clip) in (any_key(), any_key()),
            probes in proptest::collection::vec(any_key(), 1..30),
            reverse in any::<bool>(),
        ) {
            let kind = KeyspaceKind::Range { prefix: Vec::new() };
            let (id, name) = (KeyspaceId(1), "r".into());
            let hot = cluster::HotPolicy::Off;
            let keyspace = Keyspace { id, name, kind, seed: 0, replicas: 1, hot, content: None };
            let bounds = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            let whole = Interval::new(&keyspace, bounds.0, bounds.1);
            let matched = |key: &[u8]| keyspace.match_value(key);
            let whole = whole.and_then(|it| it.clip(Match::MIN, matched(&clip)));
            let (done, rest) =
                whole.as_ref().map_or((None, None), |it| it.split(&at, matched(&at), reverse));
            for probe in probes {
                let inside = std::ops::RangeBounds::<[u8]>::contains(&bounds, &probe[..])
                    && matched(&probe) <= matched(&clip);
                let held = |it: &Option<Interval>| {
                    it.as_ref().is_some_and(|it| it.holds(&probe, matched(&probe)))
                };
                prop_assert_eq!(held(&whole), inside);
                let passed = if reverse { probe >= at } else { probe <= at };
                prop_assert_eq!(held(&done), inside && passed);
                prop_assert_eq!(held(&rest), inside && !passed);
            }
        }
    }
}
