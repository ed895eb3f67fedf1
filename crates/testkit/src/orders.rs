//! Random orders of hot keys.

use crate::draw;
use crate::oracle::compare::INCARNATION;
use crate::oracle::model::Sent;
use crate::oracle::numbers::Numbers;
use cluster::{
    Delegation, HotEntry, HotOrder, Incarnation, KeyspaceId, Match, NodeId, Selection, SwitchTables,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use wire::{
    Code, DelegationId, Generation, GrantedPut, HEADER_LEN, Header, KeyReply, Op, Revision,
    Version, hop_flag,
};

/// Orders of hot keys, each with a revision one above that of the one before. There are at most 4
/// readers, all of which a switch looks at.
pub fn any_orders() -> impl Strategy<Value = Vec<HotOrder>> {
    // Mostly numbers that may be taken.
    let generation = || prop_oneof![8 => Just(0u64), 1 => 1u64..6];
    let replicas = || prop_oneof![1u8..=3, 1u8..=2];
    let delegation = move || proptest::option::weighted(0.7, (generation(), replicas(), 0u16..=4));
    let key = move |place: usize| (Just(place), generation(), 0u16..4, 0u16..=4, delegation());
    let keys = subsequence((0..8).collect::<Vec<usize>>(), 0..=8)
        .prop_flat_map(move |places| places.into_iter().map(key).collect::<Vec<_>>());
    let places = vec((proptest::option::weighted(0.9, 0usize..9), 0u64..2), 4..7);
    let selection = prop_oneof![
        Just(Selection::Random),
        Just(Selection::Reported),
        Just(Selection::Predicted),
    ];
    let at_home_since = prop_oneof![2 => Just(0), 1 => 1u64..5].prop_map(Revision::new);
    let order = (keys, places, selection, at_home_since);
    let order = order.prop_map(|(keys, places, selection, at_home_since)| {
        let mut order =
            HotOrder { switch: INCARNATION, at_home_since, selection, ..HotOrder::default() };
        for (node, incarnation) in places {
            // Node ids are places in the node table until that is known.
            let place = node.and_then(|node| {
                Some((NodeId(u16::try_from(node).ok()?), Incarnation(incarnation)))
            });
            let is_new = order.places.iter().all(|it| it.map(|p| p.0) != place.map(|p| p.0));
            order.places.push(place.filter(|_| is_new));
        }
        let delegation = |(number, replicas, copies)| Delegation {
            number: DelegationId::new(number),
            replicas,
            copies,
        };
        let key = |(place, generation, first, readers, on): KeyDraw| HotEntry {
            keyspace: KeyspaceId(if place % 2 == 0 { draw::HASH } else { draw::RANGE }),
            key: vec![],
            keyhash: place as u64 / 2,
            match_value: Match(draw::low_of(place as u64 / 2).into()),
            generation: Generation::new(generation),
            first,
            readers,
            delegation: on.map(delegation),
        };
        order.keys.extend(keys.into_iter().map(key));
        order.keys.sort_by_key(|key| key.keyspace);
        order
    });
    vec(order, 1..5).prop_map(|mut orders| {
        let mut numbers = Numbers::default();
        for (revision, order) in (1..).zip(&mut orders) {
            order.revision = Revision::new(revision);
            numbers.give(order);
        }
        orders
    })
}

/// One key as drawn: its place among keys, its generation, its candidates, and of its delegation
/// the number, the length of chains and the copies.
type KeyDraw = (usize, u64, u16, u16, Option<(u64, u8, u16)>);

/// The order for these tables: the places are nodes of theirs, or of none.
pub fn order_for(tables: &SwitchTables, order: &HotOrder) -> HotOrder {
    let id = |place: NodeId| match tables.nodes.get(usize::from(place.0)) {
        Some(node) => Some(node.id),
        None => (0..).map(NodeId).find(|id| tables.nodes.iter().all(|node| node.id != *id)),
    };
    let mut order = order.clone();
    for at in 0..order.places.len() {
        let found =
            order.places[at].and_then(|(place, incarnation)| Some((id(place)?, incarnation)));
        let is_new = order.places[..at].iter().flatten().all(|it| Some(it.0) != found.map(|f| f.0));
        order.places[at] = found.filter(|_| is_new);
    }
    order
}

/// Replies that prove most keys at this version, begin most delegations, and copies on most nodes.
pub fn warm(tables: &SwitchTables, order: &HotOrder, version: Version, mut dice: u64) -> Vec<Sent> {
    let mut replies = Vec::new();
    for key in &order.keys {
        for (place, node) in tables.nodes.iter().enumerate() {
            dice = machine::Rng::new(dice).next_u64();
            if dice.is_multiple_of(4) {
                continue;
            }
            let op = match place {
                0 if dice.is_multiple_of(2) => Op::GetReply,
                0 => Op::HotPublish,
                1 if key.delegation.is_some() => Op::PutReply,
                _ => Op::HotCopied,
            };
            let delegated = op == Op::PutReply;
            let mut header = Header {
                code: if delegated { Code::Delegated as u8 } else { 0 },
                client: dice % draw::CLIENTS,
                seq: dice / draw::CLIENTS % draw::REQUESTS,
                op: op as u8,
                hop_flags: hop_flag::NEWEST,
                keyspace: key.keyspace.0,
                keyhash: key.keyhash,
                node: node.id.0,
                reply_port: 9,
                ..Header::default()
            };
            KeyReply { version }.put(&mut header);
            if delegated {
                header.client = draw::client_of(&header);
            }
            let delegation =
                key.delegation.filter(|_| delegated).map(|delegation| delegation.number);
            header.chain[8..].copy_from_slice(
                &delegation.map_or(key.generation.get(), DelegationId::get).to_be_bytes(),
            );
            let mut bytes = Vec::new();
            wire::emit(&mut bytes, &header, &[]);
            replies.push((node.endpoint, bytes));
        }
    }
    replies
}

/// The answer of the last of its chain to a delegated write, if that is what was sent, and reads of
/// the key after it.
pub fn done(tables: &SwitchTables, sent: &[Sent]) -> Vec<Sent> {
    answer(tables, sent).map_or_else(Vec::new, |(answer, read)| vec![answer, read.clone(), read])
}

fn answer(tables: &SwitchTables, sent: &[Sent]) -> Option<(Sent, Sent)> {
    let [(_, request)] = sent else { return None };
    let request = Header::read(request.first_chunk::<HEADER_LEN>()?);
    if request.op != Op::Put as u8 || request.hop_flags & hop_flag::GRANTED == 0 {
        return None;
    }
    let ids = request.chain.chunks(2).take(request.chain_len.into());
    let last = ids.map(|id| NodeId(u16::from_be_bytes([id[0], id[1]]))).next_back()?;
    let node = tables.nodes.iter().find(|node| node.id == last)?;
    let Header { keyspace, keyhash, client, seq, .. } = request;
    let mut header = Header {
        op: Op::PutReply as u8,
        hop_flags: hop_flag::GRANTED,
        node: last.0,
        reply_port: 9,
        keyspace,
        keyhash,
        client,
        seq,
        ..Header::default()
    };
    KeyReply { version: GrantedPut::of(&request).version }.put(&mut header);
    let (mut answer, mut read) = (Vec::new(), Vec::new());
    wire::emit(&mut answer, &header, &[]);
    let op = Op::Get as u8;
    let match_value = request.match_value;
    let header = Header { op, keyspace, keyhash, match_value, ..Header::default() };
    wire::emit(&mut read, &header, &[]);
    Some(((node.endpoint, answer), (draw::endpoint(200, 1), read)))
}
