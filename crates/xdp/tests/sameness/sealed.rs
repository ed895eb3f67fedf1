//! The sealed program does what the switch in user space does behind its envelopes.

use crate::stand::{GATEWAY, OWN, Outcome, SERVICE, Stand, XDP_REDIRECT};
use crate::wrapped::{
    Cookie, Made, Opener, Pair, any_wrapped, keys, of_somebody, rights, ring, wrap,
};
use envelope::{ENVELOPE_LEN, PassNumber, Period};
use machine::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use testkit::draw::{any_draw, any_tables, datagram, endpoint};
use testkit::frame::{self, Addresses};
use testkit::skip;
use wire::{Endpoint, EnvelopeKind, EnvelopeRefusal, Header, MgetKey, Op};
use xdp::Program;

/// Tables and datagrams for each of them.
const TABLES: u64 = 300;
const DATAGRAMS: usize = 1_000;

/// A stand and the loaded program, or nothing, and that is said.
pub(crate) fn ready(test: &str) -> Option<(Stand, Arc<Program>)> {
    let made = Stand::set_up().and_then(|stand| {
        let program = Program::load_sealed(SERVICE).map_err(|e| e.to_string())?;
        Ok((stand, Arc::new(program)))
    });
    made.map_err(|why| skip::report(test, &why)).ok()
}

fn pair(stand: &Stand, program: Arc<Program>) -> Pair<'_> {
    Pair { switch: stand.switch(program, true), user: Opener::new() }
}

#[test]
fn random_packets_in_random_envelopes() {
    let Some((stand, program)) = ready("random packets in envelopes") else { return };
    let instructions = program.instructions();
    println!("instructions that the verifier went through: {instructions:?}");
    assert!(instructions.iter().all(|(_, count)| *count < 500_000), "half of its limit");
    let mut both = pair(&stand, program);
    both.allow(rights());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut rng = Rng::new(1);
    let (mut dealt, mut left) = (0, 0);
    let mut sealed = [0; 5];
    for revision in 1..=TABLES {
        let mut tables = any_tables().new_tree(&mut runner).unwrap().current();
        tables.revision = wire::Revision::new(revision);
        tables.active = revision % 50 != 0;
        both.install(&tables);
        let current = Period(1_000_000 + revision / 7);
        both.turn(current);
        let ring = ring(&tables);
        for _ in 0..DATAGRAMS {
            let draw = any_draw().new_tree(&mut runner).unwrap().current();
            let (from, mut bytes) = datagram(&tables, &draw);
            let from = of_somebody(&mut rng, from, &mut bytes);
            let bytes = any_wrapped(&mut rng, (&ring, current), from, &bytes);
            match both.switch.process(from, &bytes) {
                Outcome::Dealt(sent) => {
                    let wanted = both.user.process(from, &bytes);
                    assert_eq!(sent, wanted, "revision {revision}: {from} {bytes:02x?}");
                    sent.iter().for_each(|(_, it)| sealed[usize::from(it[2])] += 1);
                    dealt += 1;
                }
                Outcome::Left => left += 1,
            }
        }
        both.compare(&format!("revision {revision}"));
    }
    println!("{dealt} datagrams dealt with in the kernel, {left} left to the socket");
    println!("sent: {sealed:?} by kind");
    assert!(sealed[usize::from(EnvelopeKind::Request as u8) + 1..].iter().all(|it| *it > 500));
    println!("refused: {:?}", both.refused());
    assert!(dealt > left);
    for (why, count) in both.refused().iter() {
        assert_eq!(count > 0, why != EnvelopeRefusal::End, "{why:?}");
    }
}

/// A GET of a client, and what it comes in.
fn get_in(from: Endpoint, period: Period, cookie: Cookie, end: u64) -> Vec<u8> {
    let client = PassNumber::new(0, 5).unwrap().client(1);
    let header = Header { op: Op::Get as u8, keyspace: 1, client, seq: 9, ..Header::default() };
    let mut packet = Vec::new();
    wire::emit(&mut packet, &header, &[b"key"]);
    wrap(from, &packet, Made { kind: EnvelopeKind::Request as u8, period, cookie, end })
}

/// Keys turn while packets come: each is opened with those before or after, and sealed with those
/// of either.
#[test]
fn keys_turn_while_packets_come() {
    let Some((stand, program)) = ready("keys that turn") else { return };
    let mut switch = stand.switch(Arc::clone(&program), true);
    let tables = crate::untouched::tables(SocketAddr::from(([10, 2, 0, 1], 9000)));
    switch.plane.install_ring(&ring(&tables)).unwrap();
    switch.install(&tables);
    let first = 1_000_000;
    switch.plane.install_keys(&keys(Period(first))).unwrap();
    let from = endpoint(200, 4);
    let client = frame::v4(from).unwrap();
    let addresses =
        |from| Addresses { dmac: OWN, smac: GATEWAY, from, to: (*SERVICE.ip(), SERVICE.port()) };
    let mut by_period = BTreeMap::new();
    let plane = &mut switch.plane;
    std::thread::scope(|scope| {
        // The keys of both are there all the time.
        let turns = scope.spawn(|| {
            for turn in 1..=100 {
                plane.install_keys(&keys(Period(first + turn % 2))).unwrap();
            }
        });
        while !turns.is_finished() {
            for (period, end) in [(first, 3), (first + 1, 5)] {
                let datagram = get_in(from, Period(period), Cookie::Right, end);
                let frame = frame::build(&addresses(client), &datagram);
                let run = program.run("keyway_one", &frame, stand.ifindex, 1).unwrap();
                assert_eq!(run.action, XDP_REDIRECT, "it is opened");
                let (_, sent) = frame::parse(&run.frame).unwrap();
                let byte = sent[3];
                let sealed = [first, first + 1].map(Period).into_iter();
                let sealed = sealed.filter(|it| it.byte() == byte).map(|period| {
                    let kind = EnvelopeKind::Member as u8;
                    let made = Made { kind, period, cookie: Cookie::None, end };
                    wrap(from, &sent[ENVELOPE_LEN..], made)
                });
                assert_eq!(sealed.collect::<Vec<_>>(), [sent], "it is sealed");
                *by_period.entry(byte).or_insert(0) += 1;
            }
        }
    });
    println!("sealed by period: {by_period:?}");
    assert_eq!(by_period.len(), 2);
    assert_eq!(switch.plane.read_envelope_refusals().unwrap(), Default::default());
}

/// A client that has no cookie is sent one, with which it is let through; another address and
/// another period have others.
#[test]
fn who_has_no_cookie_is_sent_one() {
    let Some((stand, program)) = ready("cookies") else { return };
    let mut both = pair(&stand, program);
    both.install(&crate::untouched::tables(SocketAddr::from(([10, 2, 0, 1], 9000))));
    let period = Period(1_000_000);
    both.turn(period);
    for from in [endpoint(200, 4), endpoint(201, 4), endpoint(200, 5)] {
        for (cookie, sent) in [(Cookie::None, 2), (Cookie::Wrong, 0), (Cookie::Right, 1)] {
            // The second time it is known, or is not yet.
            for turn in [0, 1, 0] {
                let datagram = get_in(from, Period(period.0 + turn), cookie, 7);
                let Outcome::Dealt(dealt) = both.switch.process(from, &datagram) else {
                    panic!("it is left")
                };
                assert_eq!(dealt, both.user.process(from, &datagram));
                let lens: Vec<usize> = dealt.iter().map(|(_, it)| it.len()).collect();
                match sent {
                    0 => assert!(lens.is_empty()),
                    1 => assert_eq!(lens, [datagram.len()]),
                    _ => assert_eq!(lens, [ENVELOPE_LEN]),
                }
            }
        }
    }
    both.compare("cookies");
}

/// All that a tag may cover: MGETs of any number of keys have the tags of the crate for envelopes.
#[test]
fn tags_cover_any_number_of_slots() {
    let Some((stand, program)) = ready("tags over slots") else { return };
    let mut both = pair(&stand, program);
    both.install(&crate::untouched::tables(SocketAddr::from(([10, 2, 0, 1], 9000))));
    let period = Period(1_000_000);
    both.turn(period);
    let mut rng = Rng::new(3);
    let from = endpoint(200, 4);
    for keys in 1..=32_u8 {
        let client = PassNumber::new(0, 5).unwrap().client(1);
        let header = Header {
            op: Op::Mget as u8,
            keyspace: 1,
            bitmap: u32::MAX,
            client,
            seq: 9,
            ..Header::default()
        };
        let drawn: Vec<u64> = (0..keys).map(|_| rng.next_u64()).collect();
        let slots = drawn.iter().map(|it| MgetKey {
            match_value: u128::from(*it) << 60,
            keyhash: *it,
            key: b"key",
        });
        let mut packet = Vec::new();
        wire::emit_mget(&mut packet, &header, slots);
        let made = Made {
            kind: EnvelopeKind::Request as u8,
            period,
            cookie: Cookie::Right,
            end: rng.next_u64(),
        };
        let datagram = wrap(from, &packet, made);
        let Outcome::Dealt(dealt) = both.switch.process(from, &datagram) else {
            panic!("it is left")
        };
        assert_eq!(dealt, both.user.process(from, &datagram), "{keys} keys");
        assert_eq!(dealt.len(), 1);
    }
    both.compare("slots");
}
