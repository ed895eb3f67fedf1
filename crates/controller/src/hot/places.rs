//! Places of nodes in the order of hot keys: by them switches know who holds which copy.

use cluster::{Incarnation, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A node in its present incarnation, or a hole.
pub(crate) type ReaderPlace = Option<(NodeId, Incarnation)>;

/// Who has which place. A node keeps its place as long as it is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    places: Vec<ReaderPlace>,
    changes: u64,
}

impl Places {
    /// Takes in who is there now. Who has gone leaves a hole, and who comes takes the first one, or
    /// the end.
    pub(crate) fn update(&mut self, present: &BTreeMap<NodeId, Incarnation>) {
        let before = self.places.clone();
        let mut new = present.clone();
        for place in &mut self.places {
            *place = place.and_then(|(node, _)| Some((node, new.remove(&node)?)));
        }
        let mut new = new.into_iter();
        for hole in self.places.iter_mut().filter(|place| place.is_none()) {
            *hole = new.next();
        }
        let room = wire::NODES_MAX.saturating_sub(self.places.len());
        self.places.extend(new.take(room).map(Some));
        self.changes += u64::from(self.places != before);
    }

    pub(crate) fn list(&self) -> &[ReaderPlace] {
        &self.places
    }

    /// How many nodes have one.
    pub(crate) fn nodes(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// How often who is there has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// All places from `first` on, round the end.
    fn round(&self, first: u16) -> impl Iterator<Item = ReaderPlace> {
        let round = self.places.iter().cycle().skip(first.into());
        round.take(self.places.len()).copied()
    }

    /// So many nodes from the place `first` on, round the end, by their ids: `0-3 7`.
    pub(crate) fn named(&self, first: u16, nodes: usize) -> String {
        let found = self.round(first).flatten().take(nodes).map(|(node, _)| node.0);
        let mut runs: Vec<(u16, u16)> = Vec::new();
        for node in found.collect::<BTreeSet<u16>>() {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(node) => *last = node,
                _ => runs.push((node, node)),
            }
        }
        let text = |(first, last): (u16, u16)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        runs.into_iter().map(text).collect::<Vec<_>>().join(" ")
    }

    /// How many places from `first` on, round the end, hold so many nodes.
    pub(crate) fn span(&self, first: u16, nodes: usize) -> u16 {
        let (mut found, mut span) = (0, 0);
        for place in self.round(first) {
            if found == nodes {
                break;
            }
            span += 1;
            found += usize::from(place.is_some());
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(nodes: &[(u16, u64)]) -> BTreeMap<NodeId, Incarnation> {
        nodes.iter().map(|(id, incarnation)| (NodeId(*id), Incarnation(*incarnation))).collect()
    }

    fn ids(places: &Places) -> Vec<Option<u16>> {
        places.list().iter().map(|place| place.map(|(NodeId(id), _)| id)).collect()
    }

    #[test]
    fn nodes_keep_their_places_and_holes_are_filled_first() {
        let mut places = Places::default();
        places.update(&present(&[(1, 1), (2, 1), (3, 1)]));
        assert_eq!(ids(&places), [Some(1), Some(2), Some(3)]);
        places.update(&present(&[(1, 1), (3, 2)]));
        assert_eq!(ids(&places), [Some(1), None, Some(3)]);
        assert_eq!(
            places.list()[2],
            Some((NodeId(3), Incarnation(2))),
            "another incarnation, the same place"
        );
        places.update(&present(&[(1, 1), (3, 2), (4, 1), (5, 1)]));
        assert_eq!(ids(&places), [Some(1), Some(4), Some(3), Some(5)]);
        places.update(&present(&[(1, 1)]));
        assert_eq!(ids(&places), [Some(1), None, None, None], "keys begin at any of them");
    }

    #[test]
    fn holes_do_not_make_copies_fewer() {
        let mut places = Places::default();
        places.update(&present(&[(1, 1), (2, 1), (3, 1), (4, 1)]));
        assert_eq!(places.span(3, 2), 2);
        places.update(&present(&[(2, 1), (3, 1), (4, 1)]));
        assert_eq!(places.span(3, 2), 3, "node 4, the hole, node 2");
        assert_eq!(places.span(1, 3), 3);
        assert_eq!(places.span(0, 3), 4);
        assert_eq!(places.span(0, 9), 4, "there are no more");
        assert_eq!(Places::default().span(0, 2), 0);
    }

    #[test]
    fn nodes_of_the_candidates_are_named_in_runs() {
        let mut places = Places::default();
        places.update(&present(&[(0, 1), (1, 1), (2, 1), (3, 1), (7, 1)]));
        assert_eq!(places.named(0, 3), "0-2");
        assert_eq!(places.named(3, 4), "0-1 3 7");
        assert_eq!((places.named(1, 9).as_str(), places.named(1, 0).as_str()), ("0-3 7", ""));
        places.update(&present(&[(0, 1), (2, 1), (3, 1), (7, 1)]));
        assert_eq!(places.named(0, 3), "0 2-3", "a hole holds nothing");
    }
}
