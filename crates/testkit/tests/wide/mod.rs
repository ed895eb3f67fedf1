//! Hot keys with more places in their rows than a bank has, in clusters of hundreds of nodes.

use crate::under_a_delegation;
use cluster::{Delegation, SwitchTables};
use cluster::{HotEntry, HotOrder, Incarnation, KeyspaceId, Match, NodeId, NodeSpec, Selection};
use proptest::collection::vec;
use proptest::prelude::*;
use testkit::draw::{self, any_bounds, any_draw, datagram, endpoint, partitions};
use testkit::oracle::compare::{Both, INCARNATION};
use testkit::oracle::numbers::Numbers;
use testkit::orders::{done, warm};
use wire::{DelegationId, Generation, Revision, Version};

/// Nodes that copies may be on: as many as two to a host leave room for.
const NODES_MAX: u16 = 300;

/// Nodes that partitions are on, after those. There are no copies on them: nobody could tell why a
/// read has gone there.
const HOMES: u16 = 8;

fn any_wide_tables() -> impl Strategy<Value = SwitchTables> {
    (70..NODES_MAX, any_bounds()).prop_map(|(count, bounds)| {
        let ids: Vec<NodeId> = (0..count + HOMES).map(NodeId).collect();
        let node = |id: &NodeId| NodeSpec {
            id: *id,
            endpoint: endpoint((id.0 / 2) as u8, 9000 + 3 * (id.0 % 2)),
            shards: 1 + id.0 % 3,
        };
        let nodes = ids.iter().map(node).collect();
        let partitions = partitions(draw::HASH, bounds, &ids[count.into()..]);
        SwitchTables {
            caches: Vec::new(),
            fenced: Vec::new(),
            cluster: cluster::ClusterId(0),
            revision: Revision::new(1),
            active: true,
            nodes,
            partitions,
        }
    })
}

/// A key as drawn: where its candidates begins, how many those are, and of its delegation the nodes
/// in a chain and the copies.
type KeyDraw = (u16, u16, Option<(u8, u16)>);

fn any_wide_key() -> impl Strategy<Value = KeyDraw> {
    let delegation = proptest::option::weighted(0.7, (1u8..=3, 0u16..=8));
    (any::<u16>(), 65..NODES_MAX, delegation)
}

/// An order for so many nodes, but for its numbers. A few places are holes.
fn wide_order(nodes: usize, keys: &[KeyDraw], holes: &[u8], selection: u8) -> HotOrder {
    let selection =
        [Selection::Random, Selection::Reported, Selection::Predicted][usize::from(selection % 3)];
    let nodes = u16::try_from(nodes).expect("few nodes") - HOMES;
    let place = |(node, hole): (u16, &u8)| (*hole > 8).then_some((NodeId(node), Incarnation(1)));
    let places = (0..nodes).zip(holes.iter().cycle()).map(place).collect();
    let key = |(keyhash, &(first, readers, delegation)): (u64, &KeyDraw)| HotEntry {
        keyspace: KeyspaceId(draw::HASH),
        key: vec![],
        keyhash,
        match_value: Match(draw::low_of(keyhash).into()),
        generation: Generation::NONE,
        first: first % nodes,
        readers: readers.min(nodes),
        delegation: delegation.map(|(replicas, copies)| Delegation {
            number: DelegationId::NONE,
            replicas,
            copies,
        }),
    };
    let keys = (0..).zip(keys).map(key).collect();
    HotOrder {
        revision: Revision::NONE,
        switch: INCARNATION,
        selection,
        places,
        keys,
        ..HotOrder::default()
    }
}

proptest! {
    // Each case takes as long as many of the others do.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn many_candidates_are_what_the_model_says(
        tables in any_wide_tables(), orders in vec(vec(any_wide_key(), 1..4), 1..4),
        holes in vec(any::<u8>(), 80..200), draws in vec(any_draw(), 400),
        dice in any::<u64>(), selection in any::<u8>(),
    ) {
        let mut both = Both::new(true);
        both.install(&tables);
        let (mut orders, mut numbers) = ((1..).zip(&orders), Numbers::default());
        for (number, draw) in draws.into_iter().enumerate() {
            if number % 100 == 0 && let Some((revision, keys)) = orders.next() {
                let mut order = wide_order(tables.nodes.len(), keys, &holes, selection);
                order.revision = Revision::new(revision);
                numbers.give(&mut order);
                both.install_hot(&order);
                for (from, bytes) in warm(&tables, &order, Version::new(3), dice ^ revision) {
                    both.process_any(from, &bytes);
                }
            }
            let mut draw = under_a_delegation(draw);
            draw.keyspace = draw::HASH;
            let is_done = draw.from.dice.is_multiple_of(2);
            let (from, bytes) = datagram(&tables, &draw);
            let sent = both.process_any(from, &bytes);
            for (from, bytes) in done(&tables, if is_done { &sent } else { &[] }) {
                both.process_any(from, &bytes);
            }
        }
        both.counts();
    }
}
