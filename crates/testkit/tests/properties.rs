//! The pipeline against a naive model, for random tables and random datagrams.

#[cfg(test)]
mod hints;
#[cfg(test)]
mod wide;

use cluster::{NodeId, NodeSpec, SwitchTables};
use proptest::collection::vec;
use proptest::prelude::*;
use testkit::draw::{
    self, Damage, Draw, any_bounds, any_draw, any_tables, datagram, endpoint, partitions,
};
use testkit::oracle::compare::Both;
use testkit::orders::{any_orders, done, order_for, warm};
use wire::{
    Code, HEADER_LEN, Header, Op, RangeBody, RangeInterval, Revision, Version, flag, hop_flag,
};

/// A keyspace whole, one node.
fn published(bounds: Vec<draw::Bound>) -> SwitchTables {
    let node = NodeSpec { id: NodeId(5), endpoint: endpoint(1, 9000), shards: 3 };
    let partitions = partitions(draw::RANGE, bounds, &[node.id]);
    SwitchTables {
        caches: Vec::new(),
        fenced: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(1),
        active: true,
        nodes: vec![node],
        partitions,
    }
}

/// The same for one of a few hot keys, whole, and mostly a write that may be delegated.
fn under_a_delegation(mut draw: Draw) -> Draw {
    let op = match draw.op % 7 {
        0 => Op::PutReply,
        1 => Op::Get,
        2 => Op::Mget,
        _ => Op::Put,
    };
    draw.op = Op::ALL.iter().position(|it| *it == op).expect("it is one of them");
    draw.damage = Damage::None;
    draw.from.dice |= 16;
    draw.true_node = true;
    if draw.keyspace != draw::RANGE {
        draw.keyspace = draw::HASH;
    }
    let header = &mut draw.header;
    header.keyhash %= draw::HASHES;
    header.client %= draw::CLIENTS;
    header.seq = 1 + header.seq % draw::REQUESTS;
    header.lag %= 6;
    header.flags &= flag::AT_HOME;
    if op == Op::PutReply && header.code != 0 {
        header.code = Code::Delegated as u8;
    }
    draw.payload = vec![0; 9];
    draw
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_pipeline_does_what_the_model_does(
        tables in any_tables(), draws in vec(any_draw(), 1..30),
    ) {
        let mut both = Both::new(true);
        both.install(&tables);
        for draw in draws {
            let (from, bytes) = datagram(&tables, &draw);
            both.process(from, &bytes);
        }
        both.counts();
    }

    #[test]
    fn hot_keys_are_what_the_model_says(
        tables in any_tables(), orders in any_orders(), draws in vec(any_draw(), 1..80),
        version in (0u64..4).prop_map(Version::new), dice in any::<u64>(),
    ) {
        let mut both = Both::new(true);
        both.install(&tables);
        let mut orders = orders.iter();
        for (number, draw) in draws.iter().enumerate() {
            if number % 20 == 0 && let Some(order) = orders.next() {
                let order = order_for(&tables, order);
                both.install_hot(&order);
                for (from, bytes) in warm(&tables, &order, version, dice ^ number as u64) {
                    both.process_any(from, &bytes);
                }
            }
            let (from, bytes) = datagram(&tables, draw);
            both.process_any(from, &bytes);
        }
        both.counts();
    }

    #[test]
    fn writes_are_delegated_as_the_model_says(
        tables in any_tables(), orders in any_orders(), draws in vec(any_draw(), 1..120),
        version in (0u64..4).prop_map(Version::new), dice in any::<u64>(),
    ) {
        let mut both = Both::new(true);
        both.install(&tables);
        let mut orders = orders.iter();
        for (number, draw) in draws.into_iter().enumerate() {
            if number % 30 == 0 && let Some(order) = orders.next() {
                let order = order_for(&tables, order);
                both.install_hot(&order);
                for (from, bytes) in warm(&tables, &order, version, dice ^ number as u64) {
                    both.process_any(from, &bytes);
                }
            }
            let is_done = draw.from.dice.is_multiple_of(2);
            let (from, bytes) = datagram(&tables, &under_a_delegation(draw));
            let sent = both.process_any(from, &bytes);
            for (from, bytes) in done(&tables, if is_done { &sent } else { &[] }) {
                both.process_any(from, &bytes);
            }
        }
        both.counts();
    }

    #[test]
    fn without_tables_nothing_leaves(tables in any_tables(), draw in any_draw()) {
        let (from, bytes) = datagram(&tables, &draw);
        let mut both = Both::new(true);
        prop_assert!(both.process(from, &bytes).is_empty());
        prop_assert_eq!(both.counts().emitted, 0);
    }

    #[test]
    fn new_tables_take_over_and_older_ones_do_not(
        first in any_tables(), second in any_tables(), draws in vec(any_draw(), 1..10),
    ) {
        let mut both = Both::new(true);
        both.install(&first);
        both.install(&second);
        let newer = if second.revision < first.revision { first } else { second };
        for draw in draws {
            let (from, bytes) = datagram(&newer, &draw);
            both.process(from, &bytes);
        }
        both.counts();
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        tables in any_tables(), bytes in vec(any::<u8>(), 0..1600), port in any::<u16>(),
    ) {
        let mut both = Both::new(true);
        both.install(&tables);
        both.process(endpoint(0, port), &bytes);
        both.counts();
    }

    #[test]
    fn asking_on_after_each_cut_covers_the_interval_once_and_in_order(
        bounds in any_bounds(), ends in any::<[u128; 2]>(), narrow in 0u32..127,
        count in 1u8..40, reverse in any::<bool>(),
    ) {
        let mut both = Both::new(true);
        both.install(&published(bounds));
        let [a, b] = ends.map(|end| end >> narrow);
        let (first, last) = (a.min(b), a.max(b));
        let mut left = Some((first, last));
        let mut rounds = 0;
        while let Some((low, high)) = left {
            let flags = if reverse { flag::REVERSE } else { 0 };
            let mut header = Header { op: Op::Range as u8, flags, count, ..Header::default() };
            header.keyspace = draw::RANGE;
            RangeInterval { first: low, last: high }.put(&mut header);
            let mut bytes = Vec::new();
            wire::emit(&mut bytes, &header, &[&RangeBody { limit: 1 }.to_bytes()]);
            let sent = both.process(endpoint(200, 1), &bytes);
            prop_assert!(!sent.is_empty());
            for (_, piece) in &sent {
                let piece: &[u8; HEADER_LEN] = piece.first_chunk().unwrap();
                let (low, high) = left.expect("no piece after the last");
                let RangeInterval { first: a, last: b } = RangeInterval::read(piece);
                prop_assert_eq!(if reverse { b } else { a }, if reverse { high } else { low });
                left = if reverse {
                    (a != low).then(|| (low, a - 1))
                } else {
                    (b != high).then(|| (b + 1, high))
                };
            }
            let (_, final_piece) = sent.last().unwrap();
            prop_assert_eq!(final_piece[3] & hop_flag::CUT != 0, left.is_some());
            rounds += 1;
            prop_assert!(rounds <= 12, "each round takes at least one of at most 11 partitions");
        }
    }
}
