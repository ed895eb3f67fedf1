//! Writes of a delegated key, through whole pipelines.

use crate::rack::{
    INCARNATION, KEYHASH, KEYSPACE, NOTHING, Says, TAIL, at, copied, endpoint, get, get_at_home,
    lease, mget, new, one, order, prove, reply, started, tables, warm,
};
use cluster::{Delegation, HotOrder, Mutant, Selection, SwitchControl as _};
use machine::{Instant, Outbox};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use switch::{Directory, Pipeline};
use wire::{
    ClientReply, Code, DelegatedReply, DelegationId, DirectoryClock, DropReason, Fields as _,
    Generation, GrantedPut, HEADER_LEN, Header, HomeWrite, Op, PutBody, Revision, Version, flag,
    hop_flag,
};

const CLIENT: u64 = 77;
/// Version of the DELEGATE in all these tests.
const DELEGATE: u64 = 40;

/// The key in generation 1, under the delegation of this number, if any, with two nodes in each
/// chain.
fn order_on(revision: u64, delegation: Option<u64>, readers: u16) -> HotOrder {
    let mut order = order(revision, 1, readers, Selection::Random);
    order.keys[0].delegation = delegation.map(|number| Delegation {
        number: DelegationId::new(number),
        replicas: 2,
        copies: 1,
    });
    order
}

/// A request of the key.
#[derive(Clone, Copy, Debug)]
struct Ask {
    op: Op,
    flags: u8,
    expiry_ms: u64,
    client: u64,
    seq: u64,
    lag: u16,
    directory_clock: u64,
}

const PUT: Ask =
    Ask { op: Op::Put, flags: 0, expiry_ms: 0, client: CLIENT, seq: 9, lag: 0, directory_clock: 0 };

/// One whose client says nothing of those before.
const LATE: Ask = Ask { lag: u16::MAX, ..PUT };

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Went {
    Home {
        version: u64,
        directory_clock: u64,
        old: bool,
    },
    /// Home, because there is no room to remember it.
    Crowded,
    Delegation {
        delegation: u64,
        version: u64,
        chain: Vec<u16>,
    },
    Dropped(DropReason),
}

fn ask(pipeline: &mut Pipeline, now: Instant, ask: Ask) -> Went {
    let Ask { op, flags, expiry_ms, client, seq, lag, directory_clock } = ask;
    let mut header = [0; HEADER_LEN];
    let fields = Header {
        op: op as u8,
        flags,
        keyspace: KEYSPACE.0,
        keyhash: KEYHASH,
        key_len: 3,
        client,
        seq,
        lag,
        ..Header::default()
    };
    fields.write(&mut header);
    // A version means nothing in what a client says.
    let clock = DirectoryClock::new(directory_clock);
    HomeWrite { granted: Version::new(1234), clock }.write(&mut header);
    let mut bytes = Vec::new();
    let fixed = PutBody { expiry_ms }.to_bytes();
    wire::emit(&mut bytes, &Header::read(&header), &[&fixed, b"keyvalue"]);
    let mut out = Outbox::default();
    if let Err(why) = pipeline.process(now, endpoint(60_000), &mut bytes, &mut out) {
        assert!(out.is_empty());
        return Went::Dropped(why);
    }
    let sent = out.pop().expect("it was not dropped");
    let header: &[u8; HEADER_LEN] = sent.payload.first_chunk().unwrap();
    let chain = header.chain();
    let ids = chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
    let chain: Vec<u16> = ids.take(header.chain_len().into()).collect();
    assert_eq!((sent.to, header.chain_pos()), (endpoint(chain[0]), 0));
    assert_eq!((header.partition(), header.epoch()), (1, 1));
    let HomeWrite { granted: version, clock } = HomeWrite::read(header);
    match header.hop_flags() {
        hop_flag::GRANTED => Went::Delegation {
            delegation: GrantedPut::read(header).delegation.get(),
            version: version.get(),
            chain,
        },
        hop_flag::CROWDED => {
            assert_eq!((version, chain[0]), (Version::NONE, TAIL));
            Went::Crowded
        }
        flags => {
            assert_eq!((flags & !hop_flag::OLD, chain[0]), (0, TAIL));
            Went::Home { version: version.get(), directory_clock: clock.get(), old: flags != 0 }
        }
    }
}

fn put(pipeline: &mut Pipeline, seq: u64, directory_clock: u64) -> Went {
    ask(pipeline, at(0), Ask { seq, directory_clock, lag: u16::try_from(seq - 1).unwrap(), ..PUT })
}

/// A reply to a PUT: what the client is told.
fn answer(pipeline: &mut Pipeline, seq: u64, says: Says) -> u64 {
    let mut bytes = [0; HEADER_LEN];
    let header = Header {
        op: Op::PutReply as u8,
        code: says.code as u8,
        hop_flags: if says.newest { hop_flag::GRANTED } else { 0 },
        keyspace: KEYSPACE.0,
        keyhash: KEYHASH,
        client: CLIENT,
        seq,
        reply_port: 1,
        node: says.node,
        ..Header::default()
    };
    header.write(&mut bytes);
    let (delegated_at, delegation) =
        (Version::new(says.version), DelegationId::new(says.delegation));
    DelegatedReply { delegated_at, delegation }.write(&mut bytes);
    let sent = one(pipeline, at(0), endpoint(says.node), bytes.to_vec());
    ClientReply::read(sent.first_chunk().unwrap()).clock.get()
}

/// The head says that this write is delegated.
fn say_delegated(pipeline: &mut Pipeline, seq: u64, delegation: u64) -> u64 {
    answer(pipeline, seq, Says { code: Code::Delegated, version: DELEGATE, delegation, ..NOTHING })
}

/// A switch with four nodes for the key, which is on delegation 2; and perhaps with a bug.
fn delegated(mutant: Option<Mutant>) -> Pipeline {
    let mut pipeline = new(4, Selection::Random);
    if let Some(mutant) = mutant {
        pipeline.mutant(mutant);
    }
    pipeline.install_hot(&order_on(2, Some(2), 4)).unwrap();
    pipeline
}

fn delegation_of(went: &Went) -> (u64, u64) {
    let Went::Delegation { delegation, version, chain } = went else { panic!("{went:?}") };
    let distinct: BTreeSet<_> = chain.iter().collect();
    assert_eq!((chain.len(), distinct.len()), (2, 2));
    assert!(chain.iter().all(|node| (1..=4).contains(node)));
    (*delegation, *version)
}

const BEFORE: u64 = 2 << 16;
const BEGUN: u64 = BEFORE + 1;

#[test]
fn a_delegation_begins_with_the_heads_word_and_from_then_on_writes_are_stamped() {
    let mut pipeline = delegated(None);
    let home = Went::Home { version: 0, directory_clock: BEFORE, old: false };
    assert_eq!(put(&mut pipeline, 1, BEFORE), home, "named, not begun");
    assert_eq!(say_delegated(&mut pipeline, 2, 3), BEFORE, "another delegation");
    assert_eq!(say_delegated(&mut pipeline, 2, 0), BEFORE, "DELEGATE is not committed");
    assert_eq!(say_delegated(&mut pipeline, 1, 2), BEGUN, "the client is told of the beginning");
    assert_eq!(say_delegated(&mut pipeline, 3, 2), BEGUN, "which there is one of");
    let begun = Went::Home { version: 0, directory_clock: BEGUN, old: false };
    assert_eq!(put(&mut pipeline, 4, BEFORE), begun, "a copy of it may have been home before");
    assert_eq!(
        delegation_of(&put(&mut pipeline, 1, BEFORE)),
        (2, 41),
        "the head said that none was"
    );
    assert_eq!(delegation_of(&put(&mut pipeline, 3, 0)), (2, 42));
    assert_eq!(delegation_of(&put(&mut pipeline, 5, BEGUN)), (2, 43));
    assert_eq!(delegation_of(&put(&mut pipeline, 6, BEGUN + 9)), (2, 44));
    assert_eq!(pipeline.counters().hot[0].writes, 6, "they are counted wherever they go");
}

#[test]
fn a_copy_goes_where_the_first_went() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    let first: Vec<Went> = (2..40).map(|seq| put(&mut pipeline, seq, BEGUN)).collect();
    let again: Vec<Went> = (2..40).map(|seq| put(&mut pipeline, seq, BEGUN)).collect();
    assert_eq!(first, again);
    let versions: BTreeSet<u64> = first.iter().map(|went| delegation_of(went).1).collect();
    assert_eq!(versions, (42..80).collect(), "each has its own");
    // What other operations say of the client's holder is nothing to the table.
    let ended = Ask { seq: 30, lag: 0, directory_clock: BEGUN, ..PUT };
    assert_eq!(ask(&mut pipeline, at(0), ended), again[28]);
    assert_eq!(put(&mut pipeline, 29, BEGUN), Went::Dropped(DropReason::StaleRequest));
    assert_eq!(put(&mut pipeline, 31, BEGUN), again[29]);
}

#[test]
fn what_depends_on_the_state_goes_home_unstamped() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    let home = Went::Home { version: 0, directory_clock: BEGUN, old: false };
    for op in [Op::Del, Op::Cas, Op::Incr, Op::Batch] {
        assert_eq!(ask(&mut pipeline, at(0), Ask { op, directory_clock: BEGUN, ..PUT }), home);
    }
    let keeps = Ask { flags: flag::KEEP_EXPIRY, directory_clock: BEGUN, ..PUT };
    assert_eq!(ask(&mut pipeline, at(0), keeps), home);
    let ends = Ask { expiry_ms: 1, directory_clock: BEGUN, ..PUT };
    assert_eq!(ask(&mut pipeline, at(0), ends), home);
}

#[test]
fn after_the_delegation_copies_come_home_with_their_grants() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    put(&mut pipeline, 2, BEGUN);
    pipeline.install_hot(&order_on(3, None, 4)).unwrap();
    let home = |version| Went::Home { version, directory_clock: 3 << 16, old: false };
    assert_eq!(put(&mut pipeline, 2, BEGUN), home(42));
    assert_eq!(put(&mut pipeline, 1, BEFORE), home(41));
    assert_eq!(put(&mut pipeline, 3, BEGUN), home(0));
    pipeline.install_hot(&order_on(4, Some(4), 4)).unwrap();
    answer(
        &mut pipeline,
        9,
        Says { code: Code::Delegated, version: 1 << 40, delegation: 4, ..NOTHING },
    );
    let next = Went::Home { version: 42, directory_clock: (4 << 16) + 1, old: false };
    assert_eq!(put(&mut pipeline, 2, BEGUN), next, "home has to say first what became of it");
    say_delegated(&mut pipeline, 2, 4);
    assert_eq!(delegation_of(&put(&mut pipeline, 2, BEGUN)), (4, (1 << 40) + 2));
    say_delegated(&mut pipeline, 2, 2);
    assert_eq!(
        delegation_of(&put(&mut pipeline, 2, BEGUN)),
        (4, (1 << 40) + 2),
        "late word is none"
    );
    pipeline.install_hot(&order_on(5, Some(2), 4)).unwrap();
    assert_eq!(pipeline.hot_revision(), Revision::new(4), "no delegation comes again");
}

#[test]
fn a_delegation_that_an_order_names_again_goes_on() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    let first = put(&mut pipeline, 2, BEGUN);
    pipeline.install_hot(&order_on(3, Some(2), 4)).unwrap();
    assert_eq!(put(&mut pipeline, 2, BEGUN), first);
    assert_eq!(delegation_of(&put(&mut pipeline, 3, BEGUN)), (2, 43));
    assert_eq!(say_delegated(&mut pipeline, 4, 2), 3 << 16);
}

#[test]
fn grants_outlive_the_directory_and_what_came_before_it_is_old() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    put(&mut pipeline, 2, BEGUN);
    let end = at(3_600_000_000);
    pipeline.renew(end, &lease(end, 3_600_000));
    assert_eq!(pipeline.hot_revision(), Revision::NONE);
    let of = |seq| Ask { seq, lag: u16::try_from(seq - 1).unwrap(), directory_clock: BEGUN, ..PUT };
    let forgot = |version| Went::Home { version, directory_clock: BEGUN, old: false };
    assert_eq!(ask(&mut pipeline, end, of(3)), forgot(0), "heads know of no later order from here");
    let mut late = order_on(7, Some(7), 4);
    late.keys[0].generation = Generation::new(7);
    pipeline.install_hot(&late).unwrap();
    let old = |version| Went::Home { version, directory_clock: 7 << 16, old: true };
    assert_eq!(ask(&mut pipeline, end, of(3)), old(0), "another switch may have stamped it");
    let new = Went::Home { version: 0, directory_clock: 7 << 16, old: false };
    assert_eq!(ask(&mut pipeline, end, Ask { directory_clock: 7 << 16, ..of(4) }), new);
}

#[test]
fn a_client_is_remembered_while_its_requests_may_be_on_their_way() {
    for (silent_secs, kept) in [(500, true), (700, false)] {
        let mut pipeline = delegated(None);
        say_delegated(&mut pipeline, 1, 2);
        pipeline.install_hot(&order_on(3, None, 4)).unwrap();
        let late = at(silent_secs * 1_000_000);
        pipeline.renew(late, &lease(late, 1_000));
        let version = if kept { 41 } else { 0 };
        let home = Went::Home { version, directory_clock: 3 << 16, old: false };
        assert_eq!(ask(&mut pipeline, late, Ask { seq: 1, directory_clock: BEFORE, ..PUT }), home);
    }
}

#[test]
fn with_too_few_nodes_writes_stay_home() {
    let mut pipeline = new(4, Selection::Random);
    pipeline.install_hot(&order_on(2, Some(2), 2)).unwrap();
    say_delegated(&mut pipeline, 1, 2);
    let went = put(&mut pipeline, 1, 0);
    let Went::Delegation { chain, .. } = went else { panic!("{went:?}") };
    assert_eq!(chain.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&1, &2]));
    pipeline.install(&tables(2, 2, &[TAIL])).unwrap();
    let home = Went::Home { version: 0, directory_clock: BEGUN, old: false };
    assert_eq!(put(&mut pipeline, 2, BEGUN), home, "node 2 is not in the tables");
    say_delegated(&mut pipeline, 3, 2);
    assert_eq!(put(&mut pipeline, 3, BEGUN), home);
}

#[test]
fn of_two_nodes_the_less_busy_takes_the_write() {
    let mut pipeline = new(2, Selection::Reported);
    let mut order = order_on(2, Some(2), 2);
    order.selection = Selection::Reported;
    order.keys[0].delegation =
        Some(Delegation { number: DelegationId::new(2), replicas: 1, copies: 0 });
    pipeline.install_hot(&order).unwrap();
    for (node, load) in [(1, 9), (2, 3)] {
        reply(&mut pipeline, at(0), Says { op: Op::RangeReply, node, load, ..NOTHING });
    }
    say_delegated(&mut pipeline, 1, 2);
    for seq in 1..20 {
        let Went::Delegation { chain, .. } = put(&mut pipeline, seq, BEGUN) else {
            panic!("{seq}")
        };
        assert_eq!(chain, [2]);
    }
}

#[test]
fn who_answers_for_a_delegation_holds_the_newest() {
    let mut pipeline = delegated(None);
    prove(&mut pipeline, 1, 7);
    say_delegated(&mut pipeline, 1, 2);
    let says = |node, version| Says { node, version, newest: true, ..NOTHING };
    for (seq, version) in [(2, 42), (5, 43)] {
        let went = put(&mut pipeline, seq, BEGUN);
        assert!(
            matches!(went, Went::Delegation { version: its, .. } if its == version),
            "{went:?}"
        );
    }
    answer(&mut pipeline, 2, says(3, 42));
    let stamped = get(&mut pipeline, at(0));
    assert_eq!((stamped.node, stamped.floor), (3, 42));
    answer(&mut pipeline, 1, says(2, 41));
    assert_eq!(get(&mut pipeline, at(0)).node, 3, "41 is not the floor any more");
    answer(&mut pipeline, 4, Says { code: Code::Delegated, ..says(1, 50) });
    assert_eq!(get(&mut pipeline, at(0)).floor, 42, "that was no decision");
    answer(&mut pipeline, 5, Says { newest: false, ..says(4, 43) });
    assert_eq!(get(&mut pipeline, at(0)).node, TAIL, "a head holds no copy for having answered");
}

#[test]
fn a_version_that_was_never_given_out_is_sent_on_and_not_believed() {
    let mut pipeline = delegated(None);
    prove(&mut pipeline, 1, 7);
    let doubted = |pipeline: &Pipeline| pipeline.counters_ref().doubted();
    answer(&mut pipeline, 9, Says { node: 3, version: 30, ..NOTHING });
    assert_eq!((get(&mut pipeline, at(0)).floor, doubted(&pipeline)), (30, 0), "it has not begun");
    say_delegated(&mut pipeline, 1, 2);
    for (count, op) in (1..).zip([Op::GetReply, Op::PutReply, Op::HotCopied, Op::HotPublish]) {
        let says = Says { op, node: 3, version: DELEGATE + 2, newest: true, ..NOTHING };
        // Which fails if it is not sent on: it may be of another key with the same hash.
        reply(&mut pipeline, at(0), says);
        let read = get(&mut pipeline, at(0));
        assert_eq!((read.floor, doubted(&pipeline)), (30, count), "{op:?}");
    }
    answer(&mut pipeline, 1, Says { node: 3, version: DELEGATE + 1, newest: true, ..NOTHING });
    assert_eq!((get(&mut pipeline, at(0)).floor, doubted(&pipeline)), (DELEGATE + 1, 4));
}

/// One such reply would take the key delegated from all copies, for ever.
#[test]
fn a_version_that_cannot_be_captures_no_key() {
    const MOST: u64 = wire::VERSION_MAX as u64;
    for delegation in [None, Some(2)] {
        let mut pipeline = new(4, Selection::Random);
        pipeline.install_hot(&order_on(2, delegation, 4)).unwrap();
        let ops = [Op::GetReply, Op::PutReply, Op::DelReply, Op::CasReply, Op::IncrReply];
        let ops = ops.into_iter().chain([Op::HotCopied, Op::HotPublish]);
        let mut doubted = 0;
        for (op, version) in
            ops.flat_map(|op| [MOST + 1, u64::MAX - 1, u64::MAX].map(|it| (op, it)))
        {
            reply(&mut pipeline, at(0), Says { op, node: 3, version, newest: true, ..NOTHING });
            doubted += 1;
            assert_eq!(pipeline.counters_ref().doubted(), doubted, "{op:?} {version}");
        }
        for version in [MOST - 1, MOST, u64::MAX - (1 << 32), u64::MAX] {
            answer(
                &mut pipeline,
                1,
                Says { code: Code::Delegated, delegation: 2, version, ..NOTHING },
            );
        }
        warm(&mut pipeline, 4, 7);
        let read = get(&mut pipeline, at(0));
        assert_eq!((read.floor, pipeline.counters_ref().doubted()), (7, doubted));
        if delegation.is_some() {
            assert_eq!(say_delegated(&mut pipeline, 1, 2), BEGUN, "none of those has begun it");
        }
    }
}

/// Numbers at their ends in whatever place, from whomever: none is reckoned with wrongly.
#[test]
fn no_number_in_any_place_of_any_packet_ends_a_switch() {
    let mut pipeline = delegated(None);
    prove(&mut pipeline, 1, 7);
    say_delegated(&mut pipeline, 1, 2);
    let mut out = Outbox::default();
    let base = Header {
        keyspace: KEYSPACE.0,
        keyhash: KEYHASH,
        key_len: 3,
        count: 1,
        reply_port: 1,
        client: CLIENT,
        seq: 1,
        ..Header::default()
    };
    let mut passed = 0;
    for op in Op::ALL {
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &Header { op: op as u8, ..base }, &[&[0; 40], b"key", &[1; 40]]);
        for (at_byte, len) in (4..HEADER_LEN).flat_map(|at| [1, 2, 4, 8].map(|len| (at, len))) {
            for (first, rest) in [(0, 0), (0, 1), (0xff, 0xff), (0x7f, 0xff), (0x80, 0)] {
                let mut changed = bytes.clone();
                let Some(field) = changed.get_mut(at_byte..at_byte + len) else { continue };
                field.fill(rest);
                field[0] = first;
                // The operation and the length are those of the packet.
                let mut header = Header::read(changed.first_chunk().unwrap());
                header.op = op as u8;
                let payload = changed.split_off(HEADER_LEN.min(changed.len()));
                for from in [endpoint(3), endpoint(60_000)] {
                    let mut sent = Vec::new();
                    wire::emit(&mut sent, &header, &[&payload]);
                    passed += u32::from(pipeline.process(at(1), from, &mut sent, &mut out).is_ok());
                    out = Outbox::default();
                }
            }
        }
    }
    assert!(passed > 10_000, "{passed} passed");
    let read = get(&mut pipeline, at(2));
    assert!(read.floor <= wire::VERSION_MAX as u64, "{}", read.floor);
}

#[test]
fn an_answer_that_outlives_the_last_delegation_still_says_who_holds_the_newest() {
    let mut pipeline = delegated(None);
    pipeline.install_hot(&order_on(3, None, 4)).unwrap();
    prove(&mut pipeline, 1, 7);
    answer(&mut pipeline, 2, Says { node: 3, version: 42, newest: true, ..NOTHING });
    assert_eq!(get(&mut pipeline, at(0)).node, 3);
}

#[test]
fn every_code_above_the_decided_ones_leaves_the_floor_alone() {
    let mut pipeline = delegated(None);
    prove(&mut pipeline, 1, 7);
    say_delegated(&mut pipeline, 1, 2);
    for code in Code::ALL.into_iter().filter(|code| !code.is_decided() && *code != Code::Delegated)
    {
        answer(
            &mut pipeline,
            2,
            Says { node: 3, version: DELEGATE + 1, newest: true, code, ..NOTHING },
        );
        assert_eq!(get(&mut pipeline, at(0)).floor, 7, "{code:?}");
    }
}

#[test]
fn reads_of_a_delegated_key_ask_home_for_the_floor() {
    let mut pipeline = delegated(None);
    let unproven = get(&mut pipeline, at(0));
    assert_eq!((unproven.node, unproven.floor), (TAIL, u64::MAX));
    assert_eq!(mget(&mut pipeline, at(0)), (TAIL, None));
    prove(&mut pipeline, 1, 7);
    for ask in [get, get_at_home] {
        let stamped = ask(&mut pipeline, at(0));
        assert_eq!((stamped.node, stamped.floor), (TAIL, 7));
    }
    assert_eq!(mget(&mut pipeline, at(0)), (TAIL, Some(7)));
    copied(&mut pipeline, 2, 7);
    for ask in [get, get_at_home] {
        let stamped = ask(&mut pipeline, at(0));
        assert_eq!((stamped.node, stamped.floor), (2, 7), "home is nothing special");
    }
    pipeline.install_hot(&order_on(3, None, 4)).unwrap();
    let home = get_at_home(&mut pipeline, at(0));
    assert_eq!((home.node, home.floor), (TAIL, u64::MAX));
}

#[test]
fn readers_are_chosen_with_the_chain_and_are_asked_when_the_write_is_acknowledged() {
    for (copies, asked) in [(0, 1), (1, 1), (2, 3), (3, 4), (9, 4)] {
        let mut pipeline = new(4, Selection::Random);
        let mut order = order_on(2, Some(2), 4);
        order.keys[0].delegation =
            Some(Delegation { number: DelegationId::new(2), replicas: 2, copies });
        pipeline.install_hot(&order).unwrap();
        say_delegated(&mut pipeline, 1, 2);
        prove(&mut pipeline, 1, DELEGATE);
        let Went::Delegation { version, chain, .. } = put(&mut pipeline, 2, BEGUN) else {
            panic!()
        };
        let readers = |pipeline: &mut Pipeline| -> BTreeSet<u16> {
            (0..200).map(|_| get(pipeline, at(0)).node).collect()
        };
        assert_eq!(readers(&mut pipeline), BTreeSet::from([TAIL]), "nobody holds DELEGATE");
        let done = Says { code: Code::Ok, newest: true, node: chain[1], version, ..NOTHING };
        answer(&mut pipeline, 2, done);
        let holders = readers(&mut pipeline);
        assert_eq!(holders.len(), asked, "{copies} copies");
        assert!(asked == 1 || chain.iter().all(|node| holders.contains(node)));
        assert!(holders.contains(&chain[1]));
        // One that comes late is not the floor, and says nothing of who holds that.
        put(&mut pipeline, 3, BEGUN);
        answer(&mut pipeline, 3, Says { version: version - 1, ..done });
        assert_eq!(readers(&mut pipeline), holders);
    }
}

#[test]
fn of_many_nodes_those_that_hold_a_version_are_in_one_bank_and_are_found() {
    let readers = 500;
    let mut pipeline = new(readers, Selection::Random);
    let mut order = order_on(2, Some(2), readers);
    order.keys[0].delegation =
        Some(Delegation { number: DelegationId::new(2), replicas: 2, copies: 3 });
    pipeline.install_hot(&order).unwrap();
    say_delegated(&mut pipeline, 1, 2);
    prove(&mut pipeline, 1, DELEGATE);
    let mut banks = BTreeSet::new();
    for seq in 2..200 {
        let Went::Delegation { version, chain, .. } = put(&mut pipeline, seq, BEGUN) else {
            panic!()
        };
        // Its readers are the nodes from 1 on.
        let bank = cluster::bank(readers.into(), usize::from(chain[0] - 1));
        answer(&mut pipeline, seq, Says { newest: true, node: chain[1], version, ..NOTHING });
        let holders: BTreeSet<u16> = (0..100).map(|_| get(&mut pipeline, at(0)).node).collect();
        assert!(holders.len() == 4 && chain.iter().all(|node| holders.contains(node)));
        assert!(holders.iter().all(|node| bank.contains(&usize::from(*node - 1))), "{holders:?}");
        banks.insert(bank.start);
    }
    assert_eq!(banks.len(), 8, "each write goes to any");
}

#[test]
fn mutants_break_what_they_say() {
    for (mutant, again) in [(None, 42), (Some(Mutant::ForgetGrants), 43)] {
        let mut pipeline = delegated(mutant);
        say_delegated(&mut pipeline, 1, 2);
        assert_eq!(delegation_of(&put(&mut pipeline, 2, BEGUN)), (2, 42));
        assert_eq!(delegation_of(&put(&mut pipeline, 2, BEGUN)), (2, again));
    }
    let mut pipeline = delegated(Some(Mutant::GrantUnborn));
    say_delegated(&mut pipeline, 1, 2);
    assert_eq!(delegation_of(&put(&mut pipeline, 2, BEFORE)), (2, 42));
}

#[test]
fn reports_say_that_writes_may_go_anywhere() {
    assert!(delegated(None).counters().capabilities.delegates);
}

/// Clients that a switch remembers.
const CLIENTS_MAX: u64 = 1 << 16;

#[test]
fn who_finds_no_room_among_the_grants_is_sent_home_with_that_word_and_nobody_is_forgotten() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    let of = |client, seq, directory_clock| Ask { client, seq, directory_clock, ..PUT };
    let made_up = |n| 1_000 + n;
    // One of them is the client that has heard that the key is delegated.
    for n in 1..CLIENTS_MAX {
        let went = ask(&mut pipeline, at(0), of(made_up(n), 1, BEGUN));
        assert_eq!(delegation_of(&went), (2, 41 + n));
    }
    for directory_clock in [BEGUN, BEFORE] {
        let went = ask(&mut pipeline, at(0), of(made_up(CLIENTS_MAX), 1, directory_clock));
        assert_eq!(went, Went::Crowded, "first sent at {directory_clock}");
    }
    assert_eq!(pipeline.counters_ref().crowded(), 2);
    let again = ask(&mut pipeline, at(0), of(made_up(1), 1, BEGUN));
    assert_eq!(delegation_of(&again), (2, 42), "what it was given before");
    let next = ask(&mut pipeline, at(0), of(made_up(1), 2, BEGUN));
    assert_eq!(delegation_of(&next), (2, 41 + CLIENTS_MAX), "who is known has room");
    pipeline.install_hot(&order_on(3, None, 4)).unwrap();
    let home = ask(&mut pipeline, at(0), of(made_up(CLIENTS_MAX), 1, BEFORE));
    assert!(matches!(home, Went::Home { version: 0, .. }), "the key is at home: {home:?}");
}

/// A client says that it has ended.
fn say_goodbye(pipeline: &mut Pipeline, client: u64) {
    let op = Op::Goodbye as u8;
    let header = Header { op, keyspace: KEYSPACE.0, client, seq: 1, ..Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[]);
    let mut out = Outbox::default();
    pipeline.process(at(0), endpoint(60_000), &mut bytes, &mut out).unwrap();
    assert_eq!(out.pop().expect("its home hears it").to, endpoint(TAIL));
}

#[test]
fn who_has_said_goodbye_takes_no_room_from_others_and_is_given_nothing_any_more() {
    let mut pipeline = delegated(None);
    say_delegated(&mut pipeline, 1, 2);
    let of = |client, seq| Ask { client, seq, directory_clock: BEGUN, ..LATE };
    for n in 1..CLIENTS_MAX {
        ask(&mut pipeline, at(0), of(1_000 + n, 1));
    }
    assert_eq!(ask(&mut pipeline, at(0), of(1, 1)), Went::Crowded);
    for client in [1_001, 1_002, 3] {
        say_goodbye(&mut pipeline, client);
    }
    for client in [1, 2] {
        delegation_of(&ask(&mut pipeline, at(0), of(client, 1)));
    }
    assert_eq!(ask(&mut pipeline, at(0), of(4, 1)), Went::Crowded);
    let dropped = Went::Dropped(DropReason::StaleRequest);
    for seq in [1, 2] {
        assert_eq!(ask(&mut pipeline, at(0), of(1_001, seq)), dropped, "a late copy");
    }
    delegation_of(&ask(&mut pipeline, at(0), of(1_003, 1)));
    // What it was given is not asked about either, when the key has come home.
    pipeline.install_hot(&order_on(3, None, 4)).unwrap();
    assert_eq!(ask(&mut pipeline, at(0), of(1_001, 1)), dropped);
}

/// Requests of each of the threads.
const REQUESTS: u64 = 20_000;

#[test]
fn threads_give_a_request_one_grant_and_each_version_once() {
    let directory = Arc::new(Directory::new(INCARNATION));
    let mut threads: [Pipeline; 2] =
        std::array::from_fn(|_| Pipeline::sharing(INCARNATION, directory.clone()));
    for pipeline in &mut threads {
        started(pipeline, 4, Selection::Random);
    }
    threads[0].install_hot(&order_on(2, Some(2), 4)).unwrap();
    say_delegated(&mut threads[0], REQUESTS, 2);
    let [first, second] = thread::scope(|scope| {
        threads
            .map(|mut pipeline| {
                scope.spawn(move || {
                    let each = |seq| {
                        let one = Ask { seq, directory_clock: BEGUN, ..LATE };
                        ask(&mut pipeline, at(0), one)
                    };
                    (1..REQUESTS).map(each).collect::<Vec<_>>()
                })
            })
            .map(|thread| thread.join().unwrap())
    });
    assert_eq!(first, second);
    let versions: BTreeSet<u64> = first.iter().map(|went| delegation_of(went).1).collect();
    assert_eq!(versions, (42..41 + REQUESTS).collect());
}
