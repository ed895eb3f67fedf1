//! What may be lost while keys are delegated.
//!
//! A delegated write that was answered is with so many of the key's candidates as the keyspace has
//! replicas, `r`; and the key is recalled when all candidates but `r - 1` have said what they know.
//! So:
//!
//! > Of the candidates of a delegation at most `r - 1` may lose their disks while it lasts, or have
//! > lost them before and be taken for what they were when it is ordered.
//!
//! It lasts from the order that names it until the head of the key's partition has told everybody
//! that it is over; or, if no head ever began it, until all nodes have an order without it.

use cluster::{HotOrder, KeyspaceId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Body, DelegationId, Effect, Fields as _, Op, Packet, Revision};

/// Keyspace and keyhash of a key, and the number of its delegation.
type Name = (KeyspaceId, u64, DelegationId);

/// The delegations that last.
#[derive(Debug, Default)]
pub(super) struct Delegations(BTreeMap<Name, Delegation>);

#[derive(Debug, Default)]
struct Delegation {
    row: BTreeSet<NodeId>,
    replicas: usize,
    /// Nodes of the row that have lost their disks since it was ordered.
    forgetful: BTreeSet<NodeId>,
    /// Whether a head has begun it.
    begun: bool,
    /// Revision of the first order without it.
    ended: Option<Revision>,
}

impl Delegations {
    /// A controller gives this order, while these nodes have lost their disks and it does not know.
    pub(super) fn order(&mut self, order: &HotOrder, unnoticed: &BTreeSet<NodeId>) {
        let mut named = BTreeSet::new();
        for (it, delegation) in
            order.keys.iter().filter_map(|it| it.delegation.map(|delegation| (it, delegation)))
        {
            let name = (it.keyspace, it.keyhash, delegation.number);
            named.insert(name);
            self.0.entry(name).or_insert_with(|| {
                let row: BTreeSet<NodeId> = order.readers(it).map(|(node, _)| node).collect();
                let forgetful = row.intersection(unnoticed).copied().collect();
                let replicas = delegation.replicas.into();
                Delegation { row, replicas, forgetful, ..Delegation::default() }
            });
        }
        for (name, delegation) in &mut self.0 {
            let is_over = !named.contains(name) && name.2.order() < order.revision;
            delegation.ended = delegation.ended.or(is_over.then_some(order.revision));
        }
    }

    /// A node sends this.
    pub(super) fn see(&mut self, datagram: &[u8]) {
        if self.0.is_empty() {
            return;
        }
        let Ok(packet) = Packet::parse(datagram) else { return };
        if !matches!(packet.op(), Op::ChainWrite | Op::DelegationFetch | Op::DelegationEnd) {
            return;
        }
        let header = packet.header();
        let name = |delegation| (KeyspaceId(header.keyspace()), header.keyhash(), delegation);
        match packet.body() {
            Ok(Body::ChainWrite { fixed, .. }) if fixed.effect == Effect::Delegate as u8 => {
                self.begin(name(fixed.result.delegation()));
            }
            Ok(Body::DelegationFetch { fixed, .. }) => self.begin(name(fixed.delegation)),
            Ok(Body::DelegationEnd { delegation, .. }) => {
                self.0.remove(&name(delegation));
            }
            _ => {}
        }
    }

    fn begin(&mut self, name: Name) {
        if let Some(delegation) = self.0.get_mut(&name) {
            delegation.begun = true;
        }
    }

    /// Whether any key is on one.
    pub(super) fn any_is_under_way(&self) -> bool {
        self.0.values().any(|delegation| delegation.begun && delegation.ended.is_none())
    }

    /// Every node has an order of at least this revision.
    pub(super) fn all_have(&mut self, revision: Revision) {
        self.0.retain(|_, delegation| {
            delegation.begun || delegation.ended.is_none_or(|ended| ended > revision)
        });
    }

    /// Whether all keys can still return if this node loses its disk.
    pub(super) fn may_forget(&self, node: NodeId) -> bool {
        let concerned = self.0.values().filter(|delegation| delegation.row.contains(&node));
        concerned.into_iter().all(|delegation| {
            let others = delegation.forgetful.iter().filter(|it| **it != node).count();
            others + 1 < delegation.replicas
        })
    }

    /// This node loses its disk.
    pub(super) fn forget(&mut self, node: NodeId) {
        for delegation in self.0.values_mut().filter(|delegation| delegation.row.contains(&node)) {
            delegation.forgetful.insert(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotEntry, Incarnation};
    use wire::{DelegationEndBody, Generation, Header};

    const KEY: &[u8] = b"k";

    /// An order that names a delegation of one key, if it does, with two replicas on nodes 0 to 3.
    fn order(revision: u64, delegation: Option<u64>) -> HotOrder {
        let delegation = delegation.map(|number| cluster::Delegation {
            number: DelegationId::new(number),
            replicas: 2,
            copies: 0,
        });
        let entry = HotEntry {
            keyspace: KeyspaceId(1),
            key: KEY.to_vec(),
            keyhash: 7,
            match_value: cluster::Match(0),
            generation: Generation::new(1),
            first: 0,
            readers: 4,
            delegation,
        };
        let places = (0..5).map(|id| Some((NodeId(id), Incarnation(1)))).collect();
        HotOrder {
            revision: Revision::new(revision),
            places,
            keys: vec![entry],
            ..HotOrder::default()
        }
    }

    fn datagram(op: Op, payload: &[u8]) -> Vec<u8> {
        let key_len = u16::try_from(KEY.len()).unwrap();
        let header = Header { op: op as u8, keyspace: 1, keyhash: 7, key_len, ..Header::default() };
        let mut datagram = Vec::new();
        wire::emit(&mut datagram, &header, &[payload, KEY]);
        datagram
    }

    #[test]
    fn all_replicas_but_one_of_the_candidates_may_forget_until_the_delegation_is_over() {
        let mut delegations = Delegations::default();
        delegations.order(&order(2, Some(2)), &BTreeSet::new());
        assert!((0..5).all(|id| delegations.may_forget(NodeId(id))));
        delegations.forget(NodeId(1));
        let may = |delegations: &Delegations| {
            (0..5).map(|id| delegations.may_forget(NodeId(id))).collect::<Vec<_>>()
        };
        assert_eq!(
            may(&delegations),
            [false, true, false, false, true],
            "node 4 is not in the row"
        );
        // Another delegation of the key has lost nobody yet, but the first one lasts.
        delegations.order(&order(3, Some(3)), &BTreeSet::new());
        assert_eq!(may(&delegations), [false, true, false, false, true]);
        let body = DelegationEndBody { delegation: DelegationId::new(2) }.to_bytes();
        delegations.see(&datagram(Op::DelegationEnd, &body));
        assert!((0..5).all(|id| delegations.may_forget(NodeId(id))));
    }

    #[test]
    fn a_loss_that_nobody_has_noticed_yet_counts_for_a_delegation_that_begins() {
        let mut delegations = Delegations::default();
        delegations.order(&order(2, Some(2)), &BTreeSet::from([NodeId(1), NodeId(4)]));
        let may = [0, 1, 4].map(|id| delegations.may_forget(NodeId(id)));
        assert_eq!(may, [false, true, true]);
    }

    #[test]
    fn a_delegation_that_no_head_began_is_over_when_all_nodes_have_an_order_without_it() {
        for begun in [false, true] {
            let mut delegations = Delegations::default();
            delegations.order(&order(2, Some(2)), &BTreeSet::new());
            delegations.forget(NodeId(1));
            if begun {
                let body = wire::DelegationFetchBody {
                    delegation: DelegationId::new(2),
                    ended: Revision::new(3),
                }
                .to_bytes();
                delegations.see(&datagram(Op::DelegationFetch, &body));
            }
            delegations.order(&order(5, None), &BTreeSet::new());
            delegations.all_have(Revision::new(4));
            assert!(!delegations.may_forget(NodeId(0)));
            delegations.all_have(Revision::new(5));
            assert_eq!(delegations.may_forget(NodeId(0)), !begun);
        }
    }
}
