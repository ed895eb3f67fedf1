//! What the fuzz targets do with the bytes that they are given. Also run by `cargo test` over the
//! vectors, which are the seeds of `cargo xtask fuzz`.

mod envelope;
pub mod form;
pub mod seeds;

pub use envelope::envelope;

use crate::oracle::compare::{Both, INCARNATION};
use crate::oracle::counts::Counts;
use crate::oracle::numbers::Numbers;
use cluster::{
    Delegation, Epoch, HotEntry, HotOrder, Incarnation, KeyspaceId, Match, NodeId, NodeSpec,
    Partition, PartitionId, Selection, SwitchTables,
};
use form::{HOLE, IN_RANGE, KEYSPACES, MEND, NODE_IDS, NODE_SOURCE, OLDER, ORDER, STANDBY};
use std::net::SocketAddr;
use wire::{
    Body, CacheMessage, CopyEntry, DelegationId, Effect, Endpoint, Fields as _, Found, Generation,
    HEADER_LEN, MAGIC, New, Op, Packet, RecallBody, Revision, VERSION,
};

/// The packet parser and all bodies, on the bytes as they are and with their checks mended.
pub fn packet(bytes: &[u8]) {
    let mut mended_bytes = bytes.to_vec();
    mend(&mut mended_bytes);
    for bytes in [bytes, &mended_bytes] {
        if let Ok(packet) = Packet::parse(bytes) {
            assert_eq!([&packet.header()[..], packet.payload()].concat(), bytes);
            assert!(packet.chain().len() <= wire::CHAIN_MAX);
            if let Ok(body) = packet.body() {
                walk(&packet, body);
            }
        }
    }
}

/// A write between members has what its effect needs.
fn chain_write_fits(effect: u8, key: &[u8], value: &[u8]) {
    if effect == Effect::Batch as u8 {
        let steps = wire::ChainSteps::of(value);
        assert_eq!(steps.iter().next().map(|step| step.key), Some(key));
        return;
    }
    let returns = effect == Effect::Recall as u8;
    let most = wire::ENTRY_MAX + if returns { RecallBody::LEN } else { 0 };
    assert!(!key.is_empty() && key.len() + value.len() <= most);
}

fn entry_fits(key: &[u8], value: &[u8]) {
    assert!(!key.is_empty() && key.len() + value.len() <= wire::ENTRY_MAX);
}

/// Looks at everything in a body, and at what its type promises.
fn walk(packet: &Packet<'_>, body: Body<'_>) {
    match body {
        Body::Get { key }
        | Body::Del { key }
        | Body::Incr { key, .. }
        | Body::Cas { key, new: New::Same | New::Nothing, .. }
        | Body::ChainExpire { key } => entry_fits(key, &[]),
        Body::Describe { name } => entry_fits(name, &[]),
        Body::Put { key, value, .. }
        | Body::Cas { key, new: New::Value(value), .. }
        | Body::DelegationWrite { key, value, .. }
        | Body::DelegationFound { found: Found::Value(value), key, .. } => entry_fits(key, value),
        Body::ChainWrite { fixed, key, value } | Body::ChainOffer { fixed, key, value } => {
            chain_write_fits(fixed.effect, key, value);
        }
        Body::Batch(steps) => {
            let count = steps.iter().inspect(|step| entry_fits(step.key, &[])).count();
            assert!((1..=wire::BATCH_STEPS_MAX).contains(&count));
        }
        Body::HotCopy { key, .. }
        | Body::DelegationFetch { key, .. }
        | Body::DelegationFound { key, .. }
        | Body::DelegationEnd { key, .. }
        | Body::DelegationCommit { key, .. }
        | Body::DelegationDurable { key, .. } => entry_fits(key, &[]),
        Body::Cache(message) => cache_message_fits(message),
        Body::Mget(keys) => {
            assert_eq!(keys.iter().count(), keys.count());
            assert_eq!(keys.count(), usize::from(packet.header().count()));
            for key in keys.iter() {
                assert!((1..=wire::KEY_MAX).contains(&key.key.len()));
            }
        }
        Body::Range { limit, start, end } => {
            assert!(limit > 0 && start.len().max(end.len()) <= wire::KEY_MAX);
        }
        Body::MgetReply(entries) => {
            let bits = entries.iter().fold(0u32, |bits, (index, ..)| bits | 1 << index);
            assert_eq!(bits, packet.header().bitmap());
        }
        Body::RangeReply(entries) => {
            assert_eq!(entries.iter().count(), usize::from(packet.header().count()));
        }
        Body::Refusal(code) => refusal_fits(code, packet.payload()),
        Body::ChainCopy(entries) => {
            for entry in entries.iter() {
                if let CopyEntry::Record { key, value, .. } = entry {
                    entry_fits(key, value);
                }
            }
        }
        Body::ChainMend { key, value, .. } => entry_fits(key, value),
        Body::ChainVerify { key, .. } | Body::ChainVerified { last: key, .. } => {
            assert!(key.len() <= wire::KEY_MAX);
        }
        Body::Goodbye | Body::ChainGoodbye | Body::ChainOffered => {
            assert!(packet.payload().is_empty());
        }
        Body::ChainDurable(versions) => assert!(versions.iter().count() > 0),
        Body::ChainAck | Body::ChainCommit | Body::ChainStable { .. } | Body::ChainCopied => {
            assert!(packet.op().is_chain());
        }
        _ => assert!(packet.op().is_reply()),
    }
}

fn cache_message_fits(message: CacheMessage<'_>) {
    match message {
        CacheMessage::Loan { key, value, .. } | CacheMessage::Update { key, value, .. } => {
            entry_fits(key, value);
        }
        CacheMessage::Fetch { key } | CacheMessage::NoLoan { key } => entry_fits(key, &[]),
        CacheMessage::Recall { key, .. } | CacheMessage::Answer { key, .. } => {
            assert!(key.len() <= wire::KEY_MAX);
        }
        CacheMessage::Report(keys) => {
            assert!(keys.iter().inspect(|(_, key)| entry_fits(key, &[])).count() > 0);
        }
        CacheMessage::Rules(rules) => assert!(rules.iter().count() <= wire::CACHE_RULES_MAX),
        CacheMessage::Renew(_) | CacheMessage::Grant(_) | CacheMessage::Ruled => {}
    }
}

/// The pipeline against the model, with bytes of this [form]. Gives what both have counted.
pub fn pipeline(bytes: &[u8]) -> Counts {
    let mut rest = Bytes(bytes);
    let tables_len = rest.byte().into();
    let mut tables = tables(rest.take(tables_len));
    let mut both = Both::new(true);
    both.install(&tables);
    let (mut revision, mut numbers) = (0, Numbers::default());
    while !rest.0.is_empty() {
        let (source, len) = (rest.byte(), rest.short());
        let item = rest.take((len & !STANDBY).into());
        match len & STANDBY {
            ORDER => {
                let mut order = order(item, revision);
                numbers.give(&mut order);
                revision = (order.revision.max(Revision::new(revision))).get();
                both.install_hot(&order);
            }
            STANDBY => {
                for active in [false, true] {
                    tables.revision = tables.revision.next(0);
                    tables.active = active;
                    both.install(&tables);
                }
            }
            flag => {
                let mut datagram = item.to_vec();
                if flag == MEND {
                    mend(&mut datagram);
                }
                both.process_any(sender(&tables, source), &datagram);
            }
        }
    }
    both.counts()
}

fn sender(tables: &SwitchTables, source: u8) -> Endpoint {
    let node = source.checked_sub(NODE_SOURCE);
    let spec = node.and_then(|node| tables.nodes.get(usize::from(node / 4)));
    let from = match (spec, node) {
        (Some(spec), Some(node)) => spec.endpoint.with_port_offset(u16::from(node % 4)),
        _ => endpoint(200, 0).with_port_offset(u16::from(source)),
    };
    from.expect("low ports")
}

/// Puts right what random bytes seldom are. An op that is none becomes one that is.
fn mend(datagram: &mut [u8]) {
    let Some((header, payload)) = datagram.split_first_chunk_mut::<HEADER_LEN>() else { return };
    header.set_magic(MAGIC);
    header.set_version(VERSION);
    header.set_payload_len(u16::try_from(payload.len()).unwrap_or(u16::MAX));
    header.set_chain_len(header.chain_len() % 9);
    header.set_chain_pos(header.chain_pos() % header.chain_len().max(1));
    if Op::from_wire(header.op()).is_none() {
        header.set_op(Op::ALL[usize::from(header.op()) % Op::ALL.len()] as u8);
    }
    wire::seal(datagram);
}

/// Bytes that never run out: after the last come zeros.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Five nodes, a hash keyspace in quarters and a range keyspace in three parts.
const DEFAULT_TABLES: &[u8] = b"\x04\x00\x01\x02\x02\x01\
    \x04\x00\x00\x10\x40\x00\x11\x80\x00\x0b\xc0\x00\x04\
    \x03\x00\x00\x02\x61\x00\x1a\x6d\x00\x09";

/// Any bytes make sound tables, none at all the default: nodes less 1, a byte for each (shards; bit
/// 6: it is missing; bit 7: it is fenced), and for each of two keyspaces its bounds, a byte and 3
/// for each (top of the first match value; start and length of the chain, bit 7: this partition is
/// missing).
fn tables(bytes: &[u8]) -> SwitchTables {
    let mut bytes = Bytes(if bytes.is_empty() { DEFAULT_TABLES } else { bytes });
    let mut tables =
        SwitchTables { revision: Revision::new(1), active: true, ..SwitchTables::default() };
    let count = 1 + bytes.byte() % 8;
    for (id, place) in NODE_IDS.into_iter().zip(0..count) {
        let byte = bytes.byte();
        let port = 9000 + 4 * u16::from(place % 2);
        let shards = u16::from(1 + byte % 4);
        if byte & 0x40 == 0 {
            let endpoint = endpoint(place / 2, port);
            tables.nodes.push(NodeSpec { id: NodeId(id), endpoint, shards });
        }
        if byte & 0x80 != 0 {
            tables.fenced.push(NodeId(id));
        }
    }
    for (keyspace, id_first) in KEYSPACES.into_iter().zip([11, 0x1_0000]) {
        let bounds = (0..bytes.byte() % 64).map(|_| (bytes.short(), bytes.byte()));
        let mut bounds: Vec<(u16, u8)> = bounds.collect();
        bounds.sort_by_key(|bound| bound.0);
        bounds.dedup_by_key(|bound| bound.0);
        let place = |bound: Option<&(u16, u8)>| bound.map(|bound| u128::from(bound.0) << 112);
        for (id, (number, (_, chain))) in (id_first..).zip(bounds.iter().enumerate()) {
            let first = place(bounds.get(number)).expect("its own bound");
            let last = place(bounds.get(number + 1)).map_or(u128::MAX, |next| next - 1);
            let start = usize::from(chain % 8);
            let members = NODE_IDS.iter().cycle().skip(start).take(usize::from(1 + chain / 8 % 8));
            if chain & 0x80 == 0 {
                tables.partitions.push(Partition {
                    id: PartitionId(id),
                    keyspace: KeyspaceId(keyspace),
                    first: Match(first),
                    last: Match(last),
                    epoch: Epoch(id ^ u32::from(*chain)),
                    chain: members.copied().map(NodeId).collect(),
                    open: true,
                    ..Partition::default()
                });
            }
        }
    }
    tables
}

/// Any bytes make a sound order, but for the numbers of generations and delegations. There are at
/// most 4 readers, all of which a switch looks at.
fn order(bytes: &[u8], before: u64) -> HotOrder {
    let mut bytes = Bytes(bytes);
    let how = bytes.byte();
    let selections = [Selection::Random, Selection::Reported, Selection::Predicted];
    let selection = selections[usize::from(how % 4 % 3)];
    let revision = match how / 4 {
        step if step < OLDER => before + 1 + u64::from(step),
        step => before.saturating_sub(64 - u64::from(step)).max(1),
    };
    let mut places: Vec<Option<(NodeId, Incarnation)>> = Vec::new();
    for _ in 0..bytes.byte() % 16 {
        let byte = bytes.byte();
        let node = NodeId(NODE_IDS[usize::from(byte % 8)]);
        let is_new = places.iter().flatten().all(|(other, _)| *other != node);
        let place = Some((node, Incarnation((byte / 8 % 4).into())));
        places.push(place.filter(|_| is_new && byte & HOLE == 0));
    }
    let mut keys: Vec<HotEntry> = Vec::new();
    while !bytes.0.is_empty() && !places.is_empty() {
        let key = key(&mut bytes, places.len());
        if keys.iter().all(|it| (it.keyspace, it.keyhash) != (key.keyspace, key.keyhash)) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| key.keyspace);
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection,
        places,
        keys,
        ..HotOrder::default()
    }
}

fn key(bytes: &mut Bytes<'_>, places: usize) -> HotEntry {
    let (row, numbers, on) = (bytes.byte(), bytes.byte(), bytes.byte());
    let replicas = on % 4;
    let delegation = Delegation {
        number: DelegationId::new(u64::from(numbers / 16)),
        replicas,
        copies: u16::from(on / 4 % 8),
    };
    let places = u8::try_from(places).expect("few places");
    HotEntry {
        keyspace: KeyspaceId(KEYSPACES[usize::from(row & IN_RANGE != 0)]),
        key: vec![],
        keyhash: bytes.long(),
        match_value: Match(bytes.long().into()),
        generation: Generation::new(u64::from(numbers % 16)),
        first: (row % 8 % places).into(),
        readers: (row / 8 % 8).min(4).min(places).into(),
        delegation: Some(delegation).filter(|_| replicas > 0),
    }
}

fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(SocketAddr::from(([10, 0, 0, host], port)))
}

fn refusal_fits(code: wire::Code, words: &[u8]) {
    let words_max = if code == wire::Code::StoreRefuses { wire::STORE_WORDS_MAX } else { 0 };
    assert!(!code.is_decided() && words.len() <= words_max);
}
