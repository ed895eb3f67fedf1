//! Small histories, right, wrong and random: the search says what trying everything says.

use crate::brute;
use crate::generate::{self, Fault, Mix, Workload};
use machine::{Instant, Rng};
use sim::check::linear::check;
use sim::check::{Op, OpKind, Verdict};
use wire::Version;

fn agree(ops: &[Op], skew_ms: u64, what: &str) -> bool {
    let holds = brute::linearizable(ops, skew_ms);
    let finding = check(ops, skew_ms);
    let want = if holds { Verdict::Linearizable } else { Verdict::Violation };
    let list: Vec<String> = ops.iter().map(ToString::to_string).collect();
    assert_eq!(finding.verdict, want, "{what}\n{}\n{}", list.join("\n"), finding.why);
    holds
}

fn mixes(rng: &mut Rng) -> Mix {
    let pick = |rng: &mut Rng, n: u64| rng.below(n);
    let workload =
        [Workload::Register, Workload::Counter, Workload::Anything][pick(rng, 3) as usize];
    let expires = workload != Workload::Counter && rng.chance(1, 3);
    Mix {
        ops: 2 + pick(rng, 6) as usize,
        clients: 1 + pick(rng, 4) as usize,
        unknown: [0, 20, 50][pick(rng, 3) as usize],
        versions: rng.chance(2, 3),
        workload,
        skew_ms: expires.then(|| pick(rng, 3)),
    }
}

#[test]
fn correct_and_spoiled_histories_get_the_answer_of_the_plain_search() {
    let mut rng = Rng::new(1);
    let (mut kept, mut broken) = (0, 0);
    for round in 0..20_000 {
        let mix = mixes(&mut rng);
        let skew_ms = mix.skew_ms.unwrap_or(0);
        let ops = generate::history(mix, &mut rng);
        assert!(agree(&ops, skew_ms, &format!("round {round}: {mix:?}")));
        for fault in Fault::ALL {
            let Some(spoiled) = generate::spoil(&ops, fault, &mut rng) else { continue };
            let held = agree(&spoiled, skew_ms, &format!("round {round}: {mix:?}, {fault:?}"));
            if held { kept += 1 } else { broken += 1 }
        }
    }
    // Some faults leave a history that may have been; both kinds must have been tried.
    assert!(kept > 500 && broken > 1_500, "{kept} kept, {broken} broken");
}

#[test]
fn random_operations_get_the_answer_of_the_plain_search() {
    let mut rng = Rng::new(2);
    let (mut holds, mut rejected) = (0, 0);
    for round in 0..8_000 {
        let versions = rng.chance(1, 2);
        let expires = rng.chance(1, 3);
        let ops: Vec<Op> = (0..2 + rng.below(4))
            .map(|client| random_op(&mut rng, client as usize, versions, expires))
            .collect();
        let held = agree(&ops, rng.below(3), &format!("round {round}"));
        if held { holds += 1 } else { rejected += 1 }
    }
    assert!(holds > 1_000 && rejected > 1_000, "{holds} held, {rejected} rejected");
}

fn random_op(rng: &mut Rng, client: usize, versions: bool, expires: bool) -> Op {
    let few = |rng: &mut Rng| 1 + rng.below(2) as i64;
    let maybe = |rng: &mut Rng| rng.chance(2, 3).then(|| 1 + rng.below(2) as i64);
    let called = rng.below(8);
    let unknown = rng.chance(1, 4);
    let told = |rng: &mut Rng| (!unknown).then(|| rng.chance(1, 2));
    let expiry_ms = if expires { rng.below(9) } else { 0 };
    let kind = match rng.below(if unknown { 4 } else { 6 }) {
        0 => OpKind::Put { value: few(rng), expiry_ms },
        1 => OpKind::Del { existed: told(rng) },
        2 => {
            let (expect, value) = (maybe(rng), maybe(rng));
            // Nobody swaps nothing for nothing.
            let expect = expect.or_else(|| value.is_none().then(|| few(rng)));
            let expiry_ms = if value.is_some() { expiry_ms } else { 0 };
            OpKind::Cas { expect, at: None, value, expiry_ms, written: told(rng) }
        }
        3 => {
            let sum = (!unknown).then(|| 1 + rng.below(4) as i64);
            OpKind::Incr { delta: few(rng), sum }
        }
        _ => OpKind::Read(maybe(rng)),
    };
    let returned = (!unknown).then(|| Instant::from_unix_ms(called + rng.below(5)));
    let mut op = Op {
        client,
        called: Instant::from_unix_ms(called),
        returned,
        kind,
        version: Version::NONE,
    };
    let sees_nothing = matches!(kind, OpKind::Read(None) | OpKind::Del { existed: Some(false) });
    if versions && !unknown && (!sees_nothing || rng.chance(1, 2)) {
        op.version = Version::new(rng.below(5));
    }
    op
}
