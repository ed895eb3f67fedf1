//! Random orders of hot keys.

use crate::draw;
use crate::oracle::compare::LIFE;
use crate::oracle::model::Sent;
use cluster::{HotEntry, HotOrder, KeyspaceId, Life, Match, NodeId, Selection, SwitchTables, Trip};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use std::collections::BTreeMap;
use wire::{Code, Header, Op, hop_flag};

/// Orders of hot keys, each with a revision one above that of the one before. There are at most 4
/// readers, all of which a switch looks at.
pub(crate) fn any_orders() -> impl Strategy<Value = Vec<HotOrder>> {
    // Mostly numbers that may be taken, see `number`.
    let stay = || prop_oneof![8 => Just(0u64), 1 => 1u64..6];
    let trip = move || proptest::option::weighted(0.7, (stay(), prop_oneof![1u8..=3, 1u8..=2]));
    let key = move |place: usize| (Just(place), stay(), 0u16..4, 0u16..=4, trip());
    let keys = subsequence((0..8).collect::<Vec<usize>>(), 0..=8)
        .prop_flat_map(move |places| places.into_iter().map(key).collect::<Vec<_>>());
    let places = vec((proptest::option::weighted(0.9, 0usize..9), 0u64..2), 4..7);
    let selection = prop_oneof![
        Just(Selection::Random),
        Just(Selection::Reported),
        Just(Selection::Predicted),
    ];
    let order = (keys, places, selection).prop_map(|(keys, places, selection)| {
        let mut order = HotOrder { selection, switch: LIFE, ..HotOrder::default() };
        for (node, life) in places {
            // Node ids are places in the node table until that is known.
            let place = node.and_then(|node| Some((NodeId(u16::try_from(node).ok()?), Life(life))));
            let is_new = order.places.iter().all(|it| it.map(|p| p.0) != place.map(|p| p.0));
            order.places.push(place.filter(|_| is_new));
        }
        let trip = |(number, replicas)| Trip { number, replicas, copies: 0 };
        let key = |(place, stay, first, readers, on): KeyDraw| HotEntry {
            keyspace: KeyspaceId(if place % 2 == 0 { draw::HASH } else { draw::RANGE }),
            key: vec![],
            keyhash: place as u64 / 2,
            match_value: Match(draw::low_of(place as u64 / 2).into()),
            stay,
            first,
            readers,
            trip: on.map(trip),
        };
        order.keys.extend(keys.into_iter().map(key));
        order.keys.sort_by_key(|key| key.keyspace);
        order
    });
    vec(order, 1..5).prop_map(|mut orders| {
        number(&mut orders);
        orders
    })
}

/// Gives the orders their numbers. A key that was there keeps its stay, and its trip; others have
/// new ones. But a number that was drawn, and not 0, stays as it was drawn.
fn number(orders: &mut [HotOrder]) {
    let mut before: BTreeMap<(KeyspaceId, u64), (u64, Option<u64>)> = BTreeMap::new();
    for (revision, order) in (1u64..).zip(orders) {
        order.revision = revision;
        let mut numbers = BTreeMap::new();
        for key in &mut order.keys {
            let name = (key.keyspace, key.keyhash);
            let (stay, trip) = before.get(&name).copied().unwrap_or((revision, None));
            let drawn = |drawn: u64, usual| if drawn == 0 { usual } else { drawn.min(revision) };
            key.stay = drawn(key.stay, stay);
            key.trip = key.trip.filter(|trip| u16::from(trip.replicas) <= key.readers);
            if let Some(on) = &mut key.trip {
                on.number = drawn(on.number, trip.unwrap_or(revision)).max(key.stay);
            }
            numbers.insert(name, (key.stay, key.trip.map(|trip| trip.number)));
        }
        before = numbers;
    }
}

/// One key as drawn: its place among keys, its stay, its row of places, and number and length of
/// chains of its trip.
type KeyDraw = (usize, u64, u16, u16, Option<(u64, u8)>);

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

/// Replies that prove most keys at this version, begin most trips, and copies on most nodes.
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
            let op = match place {
                0 => Op::GetReply,
                1 if key.trip.is_some() => Op::PutReply,
                _ => Op::HotCopied,
            };
            let away = op == Op::PutReply;
            let mut header = Header {
                code: if away { Code::Away as u8 } else { 0 },
                client: dice % draw::CLIENTS,
                seq: dice / draw::CLIENTS % draw::REQUESTS,
                op: op as u8,
                hop_flags: hop_flag::NEWEST,
                keyspace: key.keyspace.0,
                keyhash: key.keyhash,
                object_version: version,
                node: node.id.0,
                reply_port: 9,
                ..Header::default()
            };
            if away {
                header.client = draw::client_of(&header);
            }
            let trip = key.trip.filter(|_| away).map(|trip| trip.number);
            header.chain[8..].copy_from_slice(&trip.unwrap_or(key.stay).to_be_bytes());
            let mut bytes = Vec::new();
            wire::emit(&mut bytes, &header, &[]);
            replies.push((node.endpoint, bytes));
        }
    }
    replies
}
