//! Hot keys: the kernel against the model of the switch, which chooses readers as the kernel did if
//! it was free to, and what becomes of the directory when things change.

use crate::delegations::delegated;
use crate::sealed::ready as ready_sealed;
use crate::stand::{Outcome, Stand, Switch, ready};
use crate::untouched::{CLIENT, tables};
use cluster::{
    HotEntry, HotOrder, Incarnation, KeyspaceId, Lease, Match, NodeId, NodeSpec, Selection,
    SwitchControl as _, SwitchTables,
};
use machine::{Instant, Outbox, Rng};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use switch::Pipeline;
use testkit::draw::{any_draw, any_tables, datagram};
use testkit::oracle::model::{Model, Sent};
use testkit::orders::{any_orders, done, order_for, warm};
use wire::{
    DelegationId, Endpoint, Generation, HEADER_LEN, Header, HotAnswer, HotGet, MgetKey, Op,
    Revision, Version, hop_flag,
};
use xdp::{Program, layout};

pub(crate) const INCARNATION: Incarnation = Incarnation(1);
/// Tables, and datagrams for each of them; a few orders come in between.
const TABLES: u64 = 500;
const DATAGRAMS: usize = 400;
/// Revisions that the orders for one of them have at most.
const REVISIONS: u64 = 5;

const REPLY_ADDR_AT: usize = 24;
const GENERATION_AT: usize = 52;
const OP_AT: usize = 92;

/// The datagram with an address that the kernel knows the way to, if it is a reply, and with one of
/// the generations that there are now.
fn here_and_now(mut bytes: Vec<u8>, base: u64) -> Vec<u8> {
    if bytes.len() >= HEADER_LEN && bytes[OP_AT] & 0x80 != 0 {
        let addr = Endpoint::from(std::net::SocketAddr::from(([10, 200, 0, bytes[40] % 4], 1)));
        bytes[REPLY_ADDR_AT..REPLY_ADDR_AT + 16].copy_from_slice(&addr.addr);
        let generation = bytes[GENERATION_AT..].first_chunk_mut::<8>().unwrap();
        let drawn = u64::from_be_bytes(*generation);
        if drawn < 8 {
            *generation = (base + drawn).to_be_bytes();
        }
    }
    bytes
}

/// The model of the switch in the kernel.
fn install(model: &mut Model, tables: &SwitchTables) {
    model.tables = Some(Rc::new(tables.clone()));
    if !tables.active {
        model.hot.forget(&mut model.counts);
    }
    for counts in [&mut model.counts.reads, &mut model.counts.writes] {
        counts.retain(|id, _| tables.partitions.iter().any(|it| it.id.to_string() == *id));
    }
}

/// Many writes went under delegations, and many copies of them.
fn has_delegated_enough(model: &Model, tables: u64) {
    let delegated = &model.counts.delegated;
    println!("delegated writes, by their grants: {delegated:?}");
    assert!(delegated["new"] > tables && delegated["again"] > tables);
    println!("replies of versions that were never given out: {}", model.counts.doubted);
    assert!(model.counts.doubted > tables);
}

/// What the programs send for a datagram, which has to be what the model sends. If it tells of
/// nodes that have not shown, what shows them comes first; it is left out if that does not.
fn agree(switch: &Switch<'_>, model: &mut Model, from: Endpoint, bytes: Vec<u8>) -> Vec<Sent> {
    let bytes = switch.named(bytes);
    let shows = model.unclear(&bytes);
    let mut sent = Vec::new();
    let comes = shows.into_iter().chain([(from, bytes)]);
    for (from, bytes) in comes.filter(|(from, bytes)| switch.takes(*from, bytes)) {
        if model.unclear(&bytes).is_some() {
            return Vec::new();
        }
        let Outcome::Dealt(dealt) = switch.process(from, &bytes) else {
            panic!("left: {from} {bytes:02x?}");
        };
        model.did.clone_from(&dealt);
        let wanted = model.process(from, &bytes);
        assert_eq!(dealt, wanted, "{from} {bytes:02x?} {:?}", model.tables);
        sent = dealt;
    }
    sent
}

/// For which nodes beside its chain each version of a key was stamped, and how many reads of one
/// went to those.
#[derive(Default)]
struct Readers {
    of: BTreeMap<(u16, u64, Version), BTreeSet<u16>>,
    asked: u64,
}

impl Readers {
    fn note(&mut self, sent: &[Sent]) {
        for (_, bytes) in sent {
            let header = Header::read(bytes.first_chunk().unwrap());
            let ids = header.chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
            // The version of the grant, or the floor.
            let HotGet { floor: version, .. } = HotGet::of(&header);
            let name = (header.keyspace, header.keyhash, version);
            if header.op == Op::Put as u8 && header.hop_flags & hop_flag::GRANTED != 0 {
                self.of.insert(name, ids.skip(header.chain_len.into()).collect());
            } else if header.op == Op::Get as u8 && header.hop_flags & hop_flag::HOT != 0 {
                let asked =
                    ids.take(1).any(|id| self.of.get(&name).is_some_and(|of| of.contains(&id)));
                self.asked += u64::from(asked);
            }
        }
    }
}

/// The order, with all that it numbers so much later.
fn later(mut order: HotOrder, by: u64) -> HotOrder {
    order.revision = Revision::new(order.revision.get() + by);
    for key in &mut order.keys {
        key.generation = Generation::new(key.generation.get() + by);
        if let Some(delegation) = &mut key.delegation {
            delegation.number = DelegationId::new(delegation.number.get() + by);
        }
    }
    order
}

#[test]
fn hot_keys_are_what_the_model_says() {
    let Some((stand, program)) = ready("hot keys at random in the kernel") else { return };
    at_random(stand.switch(program, true), TABLES);
}

#[test]
fn hot_keys_in_envelopes_are_what_the_model_says() {
    let Some((stand, program)) = ready_sealed("hot keys in envelopes") else { return };
    at_random(stand.sealed_switch(program), TABLES / 5);
}

fn at_random(mut switch: Switch<'_>, tables_in_all: u64) {
    let mut model = Model { leased: true, ..Model::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut dice = Rng::new(8);
    let (mut taken, mut orders_in_all, mut spread, mut parts) = (0, 0, 0, 0);
    let mut readers = Readers::default();
    for revision in 1..=tables_in_all {
        let mut tables = any_tables().new_tree(&mut runner).unwrap().current();
        tables.revision = Revision::new(revision);
        tables.active = revision % 20 != 0;
        switch.install(&tables);
        install(&mut model, &tables);
        let base = revision * REVISIONS;
        let orders = any_orders().new_tree(&mut runner).unwrap().current();
        let (mut orders, mut present) = (orders.iter(), HotOrder::default());
        for number in 0..DATAGRAMS {
            let mut all = Vec::new();
            if number % 100 == 0
                && let Some(order) = orders.next()
            {
                let order = later(order_for(&tables, order), base);
                switch.plane.install_hot(&order).unwrap();
                if tables.active {
                    let Model { hot, delegate, counts, .. } = &mut model;
                    hot.install(&order, INCARNATION, delegate, counts);
                }
                orders_in_all += 1;
                let is_taken = switch.plane.hot_revision() == order.revision;
                taken += u64::from(is_taken);
                all = warm(&tables, &order, Version::new(revision % 4), base + number as u64);
                present = if is_taken { order } else { present };
            }
            // A few numbers at a time, so that copies meet and low-water marks rise.
            let from = (revision * DATAGRAMS as u64 + number as u64) / 8;
            if number % 2 == 0 {
                let clock = model.delegate.directory_clock;
                all.extend(delegated(&tables, &present, &mut dice, clock, from));
            }
            let draw = any_draw().new_tree(&mut runner).unwrap().current();
            all.push(datagram(&tables, &draw));
            for (from, bytes) in all {
                let sent = agree(&switch, &mut model, from, here_and_now(bytes, base));
                readers.note(&sent);
                let for_copies =
                    |bytes: &[u8]| bytes[OP_AT] == Op::Mget as u8 && bytes[48..52] != [0; 4];
                parts += sent.iter().filter(|(_, bytes)| for_copies(bytes)).count() as u64;
                for (from, bytes) in done(&tables, if number % 3 > 0 { &sent } else { &[] }) {
                    let sent = agree(&switch, &mut model, from, here_and_now(bytes, base));
                    readers.note(&sent);
                }
            }
        }
        assert_eq!(switch.counts(), model.counts, "revision {revision}");
        spread += model.counts.hot_spread.values().sum::<u64>();
    }
    has_delegated_enough(&model, tables_in_all);
    println!("{} reads went to nodes that a write was stamped for", readers.asked);
    assert!(readers.asked > tables_in_all);
    println!(
        "{taken} of {orders_in_all} orders taken; of the last ones {spread} reads were spread; \
         {parts} parts of MGETs with keys for copies"
    );
    assert!(spread > tables_in_all && parts > tables_in_all);
    assert!(taken > tables_in_all);
}

/// One key with two readers.
pub(crate) fn order(revision: u64, generation: u64) -> HotOrder {
    let key = HotEntry {
        keyspace: KeyspaceId(1),
        key: b"key".into(),
        keyhash: KEYHASH,
        match_value: Match(0),
        generation: Generation::new(generation),
        first: 0,
        readers: 2,
        delegation: None,
    };
    let places = [2, 3].map(|node| Some((NodeId(node), Incarnation(1)))).into();
    HotOrder {
        revision: Revision::new(revision),
        switch: INCARNATION,
        selection: Selection::Reported,
        places,
        keys: vec![key],
        ..HotOrder::default()
    }
}

pub(crate) const KEYHASH: u64 = 0x1234_5678_9abc_def0;
pub(crate) const HOME: u16 = 1;

/// A switch with a chain of one node, and two more that may hold copies.
pub(crate) fn hot_switch(stand: &Stand, program: Program) -> Switch<'_> {
    let mut switch = stand.switch(program, true);
    switch.install(&rack(1));
    switch.plane.install_hot(&order(1, 1)).unwrap();
    switch
}

pub(crate) fn rack(revision: u64) -> SwitchTables {
    let mut tables = tables(addr(HOME));
    tables.nodes.extend([2, 3].map(|id| NodeSpec { id: NodeId(id), ..tables.nodes[0] }));
    tables.nodes.iter_mut().for_each(|node| node.endpoint = Endpoint::from(addr(node.id.0)));
    SwitchTables { revision: Revision::new(revision), ..tables }
}

pub(crate) fn addr(node: u16) -> SocketAddr {
    SocketAddr::from(([10, 2, 0, u8::try_from(node).unwrap()], 9000))
}

/// What a node says of the key: `version`, and of which stay.
pub(crate) fn says(op: Op, node: u16, version: u64, generation: u64) -> Header {
    let client = Endpoint::from(SocketAddr::from(([10, 200, 0, 1], 9)));
    let mut header = Header {
        op: op as u8,
        keyspace: 1,
        keyhash: KEYHASH,
        hop_flags: hop_flag::NEWEST,
        node,
        reply_addr: client.addr,
        reply_port: client.port,
        ..Header::default()
    };
    let (version, generation) = (Version::new(version), Generation::new(generation));
    HotAnswer { version, generation }.put(&mut header);
    header
}

pub(crate) fn bytes(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, header, &[]);
    bytes
}

/// Hands a reply to the programs.
pub(crate) fn reply(switch: &Switch<'_>, header: &Header) {
    let from = Endpoint::from(addr(header.node));
    let Outcome::Dealt(sent) = switch.process(from, &bytes(header)) else { panic!("left") };
    assert_eq!(sent.len(), 1, "a reply is sent on");
}

/// Floor of what only a tail may answer.
const AT_TAIL: u64 = u64::MAX;

/// Where a GET of the key goes, with which floor and stay; none if it is not stamped.
pub(crate) fn asks(switch: &Switch<'_>) -> (u16, Option<(u64, u64)>) {
    let get = Header { op: Op::Get as u8, keyspace: 1, keyhash: KEYHASH, ..Header::default() };
    let from = Endpoint::from(SocketAddr::from((CLIENT.0, CLIENT.1)));
    let Outcome::Dealt(sent) = switch.process(from, &bytes(&get)) else { panic!("left") };
    let [(to, datagram)] = &sent[..] else { panic!("{sent:?}") };
    let header = Header::read(datagram.first_chunk().unwrap());
    let node = u16::from(header.chain[1]);
    assert_eq!(*to, Endpoint::from(addr(node)));
    let HotGet { floor, generation } = HotGet::of(&header);
    (node, (header.hop_flags == hop_flag::HOT).then_some((floor.get(), generation.get())))
}

/// Proves the key at version 5, which node 2 holds.
pub(crate) fn warm_up(switch: &Switch<'_>, generation: u64) {
    reply(switch, &says(Op::GetReply, HOME, 5, generation));
    reply(switch, &says(Op::HotCopied, 2, 5, generation));
    assert_eq!(asks(switch), (2, Some((5, generation))));
}

#[test]
fn the_directory_is_forgotten_when_others_may_have_forwarded() {
    let Some((stand, program)) = ready("forgetting hot keys in the kernel") else { return };
    let mut switch = hot_switch(&stand, program);
    let lease = |ms| Lease {
        cluster: cluster::ClusterId(0),
        incarnation: INCARNATION,
        revision: Revision::NONE,
        from: Instant::from_unix_ms(ms),
        duration_ms: 1,
    };
    let at = Instant::from_unix_ms;
    let hour = 3_600_000;
    warm_up(&switch, 1);
    switch.plane.renew(at(1_000 + hour - 1), &lease(2_000 + hour));
    assert_eq!(asks(&switch), (2, Some((5, 1))), "there was a lease at that time");
    switch.plane.renew(at(2_001 + hour), &lease(2_001 + hour));
    assert_eq!(
        (asks(&switch), switch.plane.hot_revision()),
        ((HOME, None), Revision::NONE),
        "there was none"
    );
    switch.plane.install_hot(&order(2, 1)).unwrap();
    assert_eq!(asks(&switch), (HOME, None), "that generation was here before");
    switch.plane.install_hot(&HotOrder { switch: Incarnation(9), ..order(3, 3) }).unwrap();
    assert_eq!(asks(&switch), (HOME, None), "for another incarnation");
    switch.plane.install_hot(&order(3, 3)).unwrap();
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 3))));
    reply(&switch, &says(Op::GetReply, HOME, 9, 1));
    reply(&switch, &says(Op::HotCopied, 2, 9, 1));
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 3))), "the proof was of another generation");
    warm_up_at(&switch, 3, 9);

    switch.install(&SwitchTables { active: false, ..rack(2) });
    assert_eq!((switch.plane.hot_revision(), switch.counts().hot_reads.len()), (Revision::NONE, 0));
    switch.install(&rack(3));
    assert_eq!(asks(&switch), (HOME, None), "it stood by");
    switch.plane.install_hot(&order(4, 3)).unwrap();
    assert_eq!(switch.plane.hot_revision(), Revision::NONE);
    switch.plane.install_hot(&HotOrder { map: Revision::new(2), ..order(4, 4) }).unwrap();
    assert_eq!(switch.plane.hot_revision(), Revision::NONE, "of the time before it stood by");
    switch.plane.install_hot(&HotOrder { map: Revision::new(3), ..order(4, 4) }).unwrap();
    warm_up(&switch, 4);
}

fn warm_up_at(switch: &Switch<'_>, generation: u64, version: u64) {
    reply(switch, &says(Op::GetReply, HOME, version, generation));
    assert_eq!(asks(switch), (2, Some((version, generation))));
}

#[test]
fn a_new_program_keeps_what_is_known_of_hot_keys() {
    let Some((stand, program)) = ready("hot keys when the program is replaced") else { return };
    let mut switch = hot_switch(&stand, program);
    warm_up(&switch, 1);
    let next = switch.plane.loader().spare().unwrap();
    switch.plane.replace(next).unwrap();
    assert_eq!(asks(&switch), (2, Some((5, 1))), "floor, proof and holders are where they were");
    reply(&switch, &says(Op::PutReply, HOME, 6, 1));
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))));
    assert_eq!(switch.counts().hot_reads["1-123456789abcdef0"], 3);
    assert_eq!(switch.counts().hot_spread["1-123456789abcdef0"], 2);
    switch.plane.install_hot(&HotOrder { keys: vec![], ..order(2, 1) }).unwrap();
    assert_eq!(asks(&switch), (HOME, None), "it is taken out through the new program");
}

/// As where a key is read by multigets alone, whose replies nobody looks into.
#[test]
fn a_publish_proves_and_takes_holders_away_as_a_reply_does() {
    let Some((stand, program)) = ready("publishes in the kernel") else { return };
    let switch = hot_switch(&stand, program);
    reply(&switch, &says(Op::HotPublish, HOME, 5, 2));
    reply(&switch, &says(Op::HotCopied, 2, 5, 1));
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))), "that was of another generation");
    reply(&switch, &says(Op::HotPublish, HOME, 5, 1));
    assert_eq!(asks(&switch), (2, Some((5, 1))));
    let lost = Header { code: wire::Code::NotHere as u8, ..says(Op::HotPublish, 2, 0, 1) };
    reply(&switch, &Header { hop_flags: 0, ..lost });
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))));
}

#[test]
fn what_passes_the_socket_raises_the_floor_in_the_kernel() {
    let Some((stand, program)) = ready("hot keys behind the program") else { return };
    let switch = hot_switch(&stand, program);
    let mut behind =
        Pipeline::behind(INCARNATION, Arc::new(switch.plane.kernel_directory().unwrap()));
    let now = Instant::from_unix_ms(1_000);
    behind.renew(
        now,
        &Lease {
            cluster: cluster::ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: now,
            duration_ms: 1,
        },
    );
    behind.install(&rack(1)).unwrap();
    behind.install_hot(&order(1, 1)).unwrap();
    assert_eq!(behind.hot_revision(), Revision::NONE, "the kernel has them");
    let mut passes = |from: SocketAddr, header: &Header| {
        let mut out = Outbox::default();
        behind.process(now, from.into(), &mut bytes(header), &mut out).unwrap();
        let sent = out.pop().unwrap();
        (sent.to, Header::read(sent.payload.first_chunk().unwrap()))
    };
    warm_up(&switch, 1);
    // An answer that came in fragments, say.
    let (to, _) = passes(addr(HOME), &says(Op::PutReply, HOME, 7, 1));
    assert_eq!(to, SocketAddr::from(([10, 200, 0, 1], 9)).into());
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))));
    passes(addr(3), &says(Op::HotCopied, 3, 7, 1));
    assert_eq!(asks(&switch), (3, Some((7, 1))));
    let code = wire::Code::NotHere as u8;
    passes(addr(3), &Header { code, hop_flags: hop_flag::HOT, ..says(Op::GetReply, 3, 0, 1) });
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))));
    let other = Header { keyhash: KEYHASH + 1, ..says(Op::PutReply, HOME, 99, 1) };
    passes(addr(HOME), &other);
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))));
    // What it forwards itself it grants and spreads, as the kernel does.
    let get = Header { op: Op::Get as u8, keyspace: 1, keyhash: KEYHASH, ..Header::default() };
    let from = SocketAddr::from((CLIENT.0, CLIENT.1));
    let (to, header) = passes(from, &get);
    assert_eq!((to, header.hop_flags), (addr(HOME).into(), hop_flag::HOT));
    assert_eq!(HotGet::of(&header).floor, Version::ABOVE_ALL);
    passes(addr(2), &says(Op::HotCopied, 2, 7, 1));
    let (to, header) = passes(from, &get);
    let read = HotGet { floor: Version::new(7), generation: Generation::new(1) };
    assert_eq!((to, HotGet::of(&header), header.chain_len), (addr(2).into(), read, 1));
    let (to, header) = passes(from, &Header { flags: wire::flag::AT_HOME, ..get });
    assert_eq!((to, HotGet::of(&header).floor), (addr(HOME).into(), Version::ABOVE_ALL));
    assert_eq!(switch.counts().dropped.len(), 0);
}

#[test]
fn multigets_of_one_hot_key_reach_all_that_hold_it_and_are_counted() {
    let Some((stand, program)) = ready("hot keys of multigets in the kernel") else { return };
    let mut switch = hot_switch(&stand, program);
    switch.plane.install_hot(&HotOrder { selection: Selection::Random, ..order(2, 1) }).unwrap();
    let mget = Header { op: Op::Mget as u8, keyspace: 1, bitmap: 1, ..Header::default() };
    let key = MgetKey { match_value: 0, keyhash: KEYHASH, key: b"key" };
    let mut request = Vec::new();
    wire::emit_mget(&mut request, &mget, [key].into_iter());
    let from = Endpoint::from(SocketAddr::from((CLIENT.0, CLIENT.1)));
    let asked = |switch: &Switch<'_>| {
        let Outcome::Dealt(sent) = switch.process(from, &request) else { panic!("left") };
        let [(_, datagram)] = &sent[..] else { panic!("{sent:?}") };
        u16::from(Header::read(datagram.first_chunk().unwrap()).chain[1])
    };
    assert_eq!(asked(&switch), HOME, "nobody holds it");
    warm_up(&switch, 1);
    reply(&switch, &says(Op::HotCopied, 3, 5, 1));
    let nodes: BTreeSet<u16> = (0..100).map(|_| asked(&switch)).collect();
    assert_eq!(nodes, BTreeSet::from([2, 3]));
    let counted = || switch.plane.read_counters().unwrap().hot_keys();
    assert_eq!(counted(), [1, 100], "home and copies");
    // What comes to the socket behind is spread and counted there.
    let mut behind =
        Pipeline::behind(INCARNATION, Arc::new(switch.plane.kernel_directory().unwrap()));
    let now = Instant::from_unix_ms(1_000);
    behind.renew(
        now,
        &Lease {
            cluster: cluster::ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: now,
            duration_ms: 1,
        },
    );
    behind.install(&rack(1)).unwrap();
    let mut nodes = BTreeSet::new();
    for _ in 0..100 {
        let mut out = Outbox::default();
        behind.process(now, from, &mut request.clone(), &mut out).unwrap();
        let header = Header::read(out.pop().unwrap().payload.first_chunk().unwrap());
        nodes.insert(u16::from(header.chain[1]));
    }
    assert_eq!(nodes, BTreeSet::from([2, 3]));
    assert_eq!((counted(), behind.counters_ref().hot_keys()), ([1, 100], [0, 100]));
}

/// Both processors raise the floor at the same time.
#[test]
fn no_raise_is_lost_among_processors() {
    let Some((stand, program)) = ready("raising floors on all processors") else { return };
    let switch = hot_switch(&stand, program);
    let keepers = [0, 1].map(|_| switch.plane.kernel_directory().unwrap());
    warm_up(&switch, 1);
    let most = 20_000;
    std::thread::scope(|scope| {
        for (kernel_directory, first) in keepers.iter().zip([0, 1]) {
            scope.spawn(move || {
                for version in (first..=most).step_by(2) {
                    let header = bytes(&says(Op::PutReply, HOME, version, 1));
                    assert!(kernel_directory.note(header.first_chunk().unwrap()));
                }
            });
        }
    });
    assert_eq!(asks(&switch), (HOME, Some((AT_TAIL, 1))), "nobody holds the newest yet");
    reply(&switch, &says(Op::HotCopied, 2, most, 1));
    assert_eq!(asks(&switch), (2, Some((most, 1))));
}

#[test]
fn as_many_hot_keys_as_there_is_room_for() {
    let Some((stand, program)) = ready("many hot keys in the kernel") else { return };
    let mut switch = hot_switch(&stand, program);
    let all = |revision: u64, generation: u64| {
        let keys = (0..wire::HOT_KEYS_MAX as u64).map(|at| HotEntry {
            keyhash: KEYHASH + at,
            ..order(revision, generation).keys[0].clone()
        });
        HotOrder { keys: keys.collect(), ..order(revision, generation) }
    };
    for (revision, generation) in [(2, 2), (3, 2), (4, 4)] {
        let order = all(revision, generation);
        let begin = std::time::Instant::now();
        switch.plane.install_hot(&order).unwrap();
        println!("{} keys, generation {generation}: {:?}", order.keys.len(), begin.elapsed());
        assert_eq!(switch.plane.hot_revision(), Revision::new(revision));
        warm_up(&switch, generation);
        let last = KEYHASH + wire::HOT_KEYS_MAX as u64 - 1;
        reply(&switch, &Header { keyhash: last, ..says(Op::GetReply, HOME, 8, generation) });
    }
    assert_eq!(switch.counts().hot_reads.len(), 1);
    let (key, entry) = (layout::HotKey::LEN, layout::Hot::LEN);
    println!("{key} bytes of key and {entry} of entry");
    assert!(key + entry <= 128);
}
