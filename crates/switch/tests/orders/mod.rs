//! Random orders of hot keys.

use crate::draw;
use crate::oracle::compare::LIFE;
use crate::oracle::model::Sent;
use cluster::{HotEntry, HotOrder, KeyspaceId, Life, NodeId, Selection, SwitchTables};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use wire::{Header, Op, hop_flag};

/// Orders of hot keys, each with a revision one above that of the one before. There are at most 4
/// readers, all of which a switch looks at.
pub(crate) fn any_orders() -> impl Strategy<Value = Vec<HotOrder>> {
    let key = |place: usize| (Just(place), 1u64..6, 0u16..4, 0u16..=4);
    let keys = subsequence((0..8).collect::<Vec<usize>>(), 0..=8)
        .prop_flat_map(move |places| places.into_iter().map(key).collect::<Vec<_>>());
    let places = vec((proptest::option::weighted(0.9, 0usize..9), 0u64..2), 4..7);
    let selection = prop_oneof![
        Just(Selection::Random),
        Just(Selection::Reported),
        Just(Selection::Predicted),
    ];
    let revisions = |orders: Vec<HotOrder>| {
        let numbered = (1u64..).zip(orders).map(|(revision, mut order)| {
            order.revision = revision;
            order.keys.iter_mut().for_each(|key| key.stay = key.stay.min(revision));
            order
        });
        numbered.collect()
    };
    let order = (keys, places, selection).prop_map(|(keys, places, selection)| {
        let mut order = HotOrder { selection, switch: LIFE, ..HotOrder::default() };
        for (node, life) in places {
            // Node ids are places in the node table until that is known.
            let place = node.and_then(|node| Some((NodeId(u16::try_from(node).ok()?), Life(life))));
            let is_new = order.places.iter().all(|it| it.map(|p| p.0) != place.map(|p| p.0));
            order.places.push(place.filter(|_| is_new));
        }
        let key = |(place, stay, first, readers): (usize, u64, u16, u16)| HotEntry {
            keyspace: KeyspaceId(if place % 2 == 0 { draw::HASH } else { draw::RANGE }),
            key: vec![],
            keyhash: place as u64 / 2,
            stay,
            first,
            readers,
        };
        order.keys.extend(keys.into_iter().map(key));
        order
    });
    vec(order, 1..5).prop_map(revisions)
}

/// The order for these tables: the places are nodes of theirs, or of none.
pub(crate) fn order_for(tables: &SwitchTables, order: &HotOrder) -> HotOrder {
    let id = |place: NodeId| match tables.nodes.get(usize::from(place.0)) {
        Some(node) => Some(node.id),
        None => (0..).map(NodeId).find(|id| tables.nodes.iter().all(|node| node.id != *id)),
    };
    let mut order = order.clone();
    for at in 0..order.places.len() {
        let found = order.places[at].and_then(|(place, life)| Some((id(place)?, life)));
        let is_new = order.places[..at].iter().flatten().all(|it| Some(it.0) != found.map(|f| f.0));
        order.places[at] = found.filter(|_| is_new);
    }
    order
}

/// Replies that prove most keys at this version, and copies of it on most nodes.
pub(crate) fn warm(
    tables: &SwitchTables,
    order: &HotOrder,
    version: u64,
    mut dice: u64,
) -> Vec<Sent> {
    let mut replies = Vec::new();
    for key in &order.keys {
        for (place, node) in tables.nodes.iter().enumerate() {
            dice = machine::Rng::new(dice).next_u64();
            if dice.is_multiple_of(4) {
                continue;
            }
            let op = if place == 0 { Op::GetReply } else { Op::HotCopied };
            let mut header = Header {
                op: op as u8,
                hop_flags: hop_flag::NEWEST,
                keyspace: key.keyspace.0,
                keyhash: key.keyhash,
                object_version: version,
                node: node.id.0,
                reply_port: 9,
                ..Header::default()
            };
            header.chain[8..].copy_from_slice(&key.stay.to_be_bytes());
            let mut bytes = Vec::new();
            wire::emit(&mut bytes, &header, &[]);
            replies.push((node.endpoint, bytes));
        }
    }
    replies
}
