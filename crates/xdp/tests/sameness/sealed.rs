//! The sealed program does what the switch in user space does behind its envelopes.

use crate::stand::{Outcome, SERVICE, Stand};
use crate::wrapped::{Opener, Pair, any_wrapped, of_somebody, rights, ring};
use envelope::Period;
use machine::Rng;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;
use testkit::draw::{any_draw, any_tables, datagram};
use testkit::skip;
use wire::{EnvelopeKind, EnvelopeRefusal};
use xdp::Program;

/// Tables and datagrams for each of them.
const TABLES: u64 = 300;
const DATAGRAMS: usize = 1_000;

/// A stand and the loaded program, or nothing, and that is said.
fn ready(test: &str) -> Option<(Stand, Arc<Program>)> {
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
