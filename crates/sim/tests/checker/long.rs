//! Long histories: those of a correct key are accepted, and one fault anywhere in them is found.

use crate::generate::{self, Mix, Workload};
use machine::Rng;
use sim::check::linear::check;
use sim::check::{Op, OpKind, Verdict};
use wire::Version;

const LONG: Mix = Mix {
    ops: 100_000,
    clients: 16,
    unknown: 5,
    versions: true,
    workload: Workload::Register,
    skew_ms: None,
};

/// Every kind of history that a cluster may give.
fn mixes() -> [Mix; 6] {
    let counter = Mix { workload: Workload::Counter, ..LONG };
    [
        LONG,
        Mix { unknown: 30, ..LONG },
        Mix { skew_ms: Some(3), ..LONG },
        Mix { unknown: 0, ..counter },
        counter,
        Mix { unknown: 30, ..counter },
    ]
}

fn position(rng: &mut Rng, ops: &[Op], is: impl Fn(&Op) -> bool) -> usize {
    let first = rng.below(ops.len() as u64) as usize;
    let places = (first..ops.len()).chain(0..first);
    places.into_iter().find(|index| is(&ops[*index])).expect("a long history has one")
}

/// A read gives what was there before a write that was answered before the read began.
fn stale_read(ops: &mut [Op], rng: &mut Rng) -> usize {
    let is_late = |op: &Op| {
        matches!(op.kind, OpKind::Read(Some(_)))
            && op.version > Version::new(100)
            && op.returned.is_some()
    };
    let read = position(rng, ops, is_late);
    let newest = ops.iter().filter(|op| op.precedes(&ops[read]) && op.version < ops[read].version);
    let newest = newest.map(|op| op.version).max().expect("it is late");
    let older = ops.iter().filter(|op| matches!(op.kind, OpKind::Read(Some(_))));
    let older = older.filter(|op| op.version < newest).max_by_key(|op| op.version);
    let older = older.expect("it is late");
    (ops[read].kind, ops[read].version) = (older.kind, older.version);
    read
}

/// A write that was answered is gone: who should have seen it sees what was there before.
fn lost_write(ops: &mut [Op], rng: &mut Rng) -> usize {
    let saw = |op: &Op| matches!(op.kind, OpKind::Read(Some(_)));
    let reads: Vec<Op> = ops.iter().filter(|op| saw(op)).cloned().collect();
    let is_seen = |op: &Op| {
        op.is_acknowledged_write()
            && op.version > Version::new(100)
            && reads.iter().any(|read| read.version == op.version && op.precedes(read))
    };
    let write = position(rng, ops, is_seen);
    let lost = ops[write].version;
    let before = reads.iter().filter(|read| read.version < lost).max_by_key(|op| op.version);
    let before = before.expect("it is late");
    for op in ops.iter_mut().filter(|op| saw(op) && op.version == lost) {
        (op.kind, op.version) = (before.kind, before.version);
    }
    write
}

/// A write takes effect again, as a newer version, over what others wrote; one read sees it.
fn applied_again(ops: &mut [Op], rng: &mut Rng) -> usize {
    let is_late =
        |op: &Op| matches!(op.kind, OpKind::Read(Some(_))) && op.version > Version::new(100);
    let read = position(rng, ops, is_late);
    let again = ops.iter().filter(|op| op.is_acknowledged_write() && op.version > Version::NONE);
    let again = again
        .filter(|op| op.precedes(&ops[read]) && op.version.saturating_add(50) < ops[read].version);
    let again = again.filter_map(|op| op.leaves()?).next_back().expect("it is late");
    // A version that no other write of the key has.
    let used: std::collections::BTreeSet<Version> = ops.iter().map(|op| op.version).collect();
    let next = used.range(ops[read].version.next()..).next().copied();
    ops[read].version = next.unwrap_or(Version::ABOVE_ALL).before();
    while used.contains(&ops[read].version) {
        ops[read].version = ops[read].version.next();
    }
    ops[read].kind = OpKind::Read(Some(again));
    read
}

/// An increment counts twice from some point on.
fn counted_twice(ops: &mut [Op], rng: &mut Rng) -> usize {
    let is_sum = |op: &Op| {
        matches!(op.kind, OpKind::Incr { sum: Some(_), .. }) && op.version > Version::new(100)
    };
    let twice = position(rng, ops, is_sum);
    let (version, delta) = match ops[twice].kind {
        OpKind::Incr { delta, .. } => (ops[twice].version, delta),
        _ => unreachable!("it was looked for"),
    };
    for op in ops.iter_mut().filter(|op| op.version > version) {
        match &mut op.kind {
            OpKind::Incr { sum: Some(sum), .. } => *sum += delta,
            OpKind::Read(Some(value)) => *value += delta,
            _ => {}
        }
    }
    twice
}

#[test]
fn long_histories_are_judged_and_a_fault_in_them_is_found() {
    for mix in mixes() {
        let skew_ms = mix.skew_ms.unwrap_or(0);
        let ops = generate::history(mix, &mut Rng::new(0));
        let finding = check(&ops, skew_ms);
        assert_eq!(finding.verdict, Verdict::Linearizable, "{mix:?}: {}", finding.why);
        let counts = mix.workload == Workload::Counter;
        if mix.unknown > 5 || mix.skew_ms.is_some() || counts && mix.unknown > 0 {
            // An increment of unknown outcome may be what a fault looks like; and where much is
            // open, the search gives up on a fault only after a minute.
            continue;
        }
        let last: fn(&mut [Op], &mut Rng) -> usize =
            if mix.workload == Workload::Counter { counted_twice } else { applied_again };
        for (name, fault) in
            [("stale", stale_read as _), ("lost", lost_write as _), ("again", last)]
        {
            let (mut spoiled, mut rng) = (ops.clone(), Rng::new(9));
            fault(&mut spoiled, &mut rng);
            let finding = check(&spoiled, skew_ms);
            assert_eq!(finding.verdict, Verdict::Violation, "{name} in {mix:?}");
        }
    }
}
