//! What may be lost while keys are on trips.
//!
//! A write of a trip that was answered is with so many nodes of the key's row as the keyspace has
//! replicas, `r`; and the key returns when all of the row but `r - 1` have said what they know. So:
//!
//! > of the nodes of a trip's row at most `r - 1` may lose their disks while it lasts, or have lost
//! > them before and be taken for what they were when it is ordered.
//!
//! It lasts from the order that names it until the head of the key's partition has told everybody
//! that it is over; or, if no head ever began it, until all nodes have an order without it.

use cluster::{HotOrder, KeyspaceId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Body, Effect, Fields as _, Op, Packet};

/// Keyspace and keyhash of a key, and the number of its trip.
type Name = (KeyspaceId, u64, u64);

/// The trips that last.
#[derive(Debug, Default)]
pub(super) struct Trips(BTreeMap<Name, Trip>);

#[derive(Debug, Default)]
struct Trip {
    row: BTreeSet<NodeId>,
    replicas: usize,
    /// Nodes of the row that have lost their disks since it was ordered.
    forgetful: BTreeSet<NodeId>,
    /// Whether a head has begun it.
    begun: bool,
    /// Revision of the first order without it.
    ended: Option<u64>,
}

impl Trips {
    /// A controller gives this order, while these nodes have lost their disks and it does not know.
    pub(super) fn order(&mut self, order: &HotOrder, unnoticed: &BTreeSet<NodeId>) {
        let mut named = BTreeSet::new();
        for (it, trip) in order.keys.iter().filter_map(|it| it.trip.map(|trip| (it, trip))) {
            let name = (it.keyspace, it.keyhash, trip.number);
            named.insert(name);
            self.0.entry(name).or_insert_with(|| {
                let row: BTreeSet<NodeId> = order.readers(it).map(|(node, _)| node).collect();
                let forgetful = row.intersection(unnoticed).copied().collect();
                let replicas = trip.replicas.into();
                Trip { row, replicas, forgetful, ..Trip::default() }
            });
        }
        for (name, trip) in &mut self.0 {
            let is_over = !named.contains(name) && name.2 < order.revision;
            trip.ended = trip.ended.or(is_over.then_some(order.revision));
        }
    }

    /// A node sends this.
    pub(super) fn see(&mut self, datagram: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let Ok(packet) = Packet::parse(datagram) else { return };
        if !matches!(packet.op(), Op::ChainWrite | Op::RoamFetch | Op::RoamEnd) {
            return;
        }
        let header = packet.header();
        let name = |trip| (KeyspaceId(header.keyspace()), header.keyhash(), trip);
        match packet.body() {
            Ok(Body::ChainWrite { fixed, .. }) if fixed.effect == Effect::Leave as u8 => {
                self.begin(name(fixed.result));
            }
            Ok(Body::RoamFetch { fixed, .. }) => self.begin(name(fixed.trip)),
            Ok(Body::RoamEnd { trip, .. }) => {
                self.0.remove(&name(trip));
            }
            _ => {}
        }
    }

    fn begin(&mut self, name: Name) {
        if let Some(trip) = self.0.get_mut(&name) {
            trip.begun = true;
        }
    }

    /// Whether any key is on one.
    pub(super) fn any_is_under_way(&self) -> bool {
        self.0.values().any(|trip| trip.begun && trip.ended.is_none())
    }

    /// Every node has an order of at least this revision.
    pub(super) fn all_have(&mut self, revision: u64) {
        self.0.retain(|_, trip| trip.begun || trip.ended.is_none_or(|ended| ended > revision));
    }

    /// Whether all keys can still return if this node loses its disk.
    pub(super) fn may_forget(&self, node: NodeId) -> bool {
        let concerned = self.0.values().filter(|trip| trip.row.contains(&node));
        concerned.into_iter().all(|trip| {
            let others = trip.forgetful.iter().filter(|it| **it != node).count();
            others + 1 < trip.replicas
        })
    }

    /// This node loses its disk.
    pub(super) fn forget(&mut self, node: NodeId) {
        for trip in self.0.values_mut().filter(|trip| trip.row.contains(&node)) {
            trip.forgetful.insert(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotEntry, Life};
    use wire::{Header, RoamEndBody};

    const KEY: &[u8] = b"k";

    /// An order that names a trip of one key, if it does, with two replicas on nodes 0 to 3.
    fn order(revision: u64, trip: Option<u64>) -> HotOrder {
        let trip = trip.map(|number| cluster::Trip { number, replicas: 2, copies: 0 });
        let entry = HotEntry {
            keyspace: KeyspaceId(1),
            key: KEY.to_vec(),
            keyhash: 7,
            match_value: cluster::Match(0),
            stay: 1,
            first: 0,
            readers: 4,
            trip,
        };
        let places = (0..5).map(|id| Some((NodeId(id), Life(1)))).collect();
        HotOrder { revision, places, keys: vec![entry], ..HotOrder::default() }
    }

    fn datagram(op: Op, payload: &[u8]) -> Vec<u8> {
        let key_len = u16::try_from(KEY.len()).unwrap();
        let header = Header { op: op as u8, keyspace: 1, keyhash: 7, key_len, ..Header::default() };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[payload, KEY]);
        datagram
    }

    #[test]
    fn all_replicas_but_one_of_a_row_may_forget_until_the_trip_is_over() {
        let mut trips = Trips::default();
        trips.order(&order(2, Some(2)), &BTreeSet::new());
        assert!((0..5).all(|id| trips.may_forget(NodeId(id))));
        trips.forget(NodeId(1));
        let may = |trips: &Trips| (0..5).map(|id| trips.may_forget(NodeId(id))).collect::<Vec<_>>();
        assert_eq!(may(&trips), [false, true, false, false, true], "node 4 is not in the row");
        // Another trip of the key has lost nobody yet, but the first one lasts.
        trips.order(&order(3, Some(3)), &BTreeSet::new());
        assert_eq!(may(&trips), [false, true, false, false, true]);
        let body = RoamEndBody { trip: 2 }.to_bytes();
        trips.see(&datagram(Op::RoamEnd, &body));
        assert!((0..5).all(|id| trips.may_forget(NodeId(id))));
    }

    #[test]
    fn a_loss_that_nobody_has_noticed_yet_counts_for_a_trip_that_begins() {
        let mut trips = Trips::default();
        trips.order(&order(2, Some(2)), &BTreeSet::from([NodeId(1), NodeId(4)]));
        let may = [0, 1, 4].map(|id| trips.may_forget(NodeId(id)));
        assert_eq!(may, [false, true, true]);
    }

    #[test]
    fn a_trip_that_no_head_began_is_over_when_all_nodes_have_an_order_without_it() {
        for begun in [false, true] {
            let mut trips = Trips::default();
            trips.order(&order(2, Some(2)), &BTreeSet::new());
            trips.forget(NodeId(1));
            if begun {
                let body = wire::RoamFetchBody { trip: 2, ended: 3 }.to_bytes();
                trips.see(&datagram(Op::RoamFetch, &body));
            }
            trips.order(&order(5, None), &BTreeSet::new());
            trips.all_have(4);
            assert!(!trips.may_forget(NodeId(0)));
            trips.all_have(5);
            assert_eq!(trips.may_forget(NodeId(0)), !begun);
        }
    }
}
