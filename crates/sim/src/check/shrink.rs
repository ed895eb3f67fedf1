//! Makes a failing history small enough to look at.
//!
//! Only what weakens a history is done to it, so that what is left fails for a reason that was
//! there before: a read is left out, a write's answer is forgotten (then it may have taken place at
//! any time or never), and a write of unknown outcome is left out if nobody could tell whether it
//! took place.

use super::op::{Op, OpKind};
use wire::Version;

/// Leaves out and weakens operations while the history still fails, with at most `tries` looks.
/// The operations come back in the order of their calls.
pub fn shrink(history: &[Op], mut tries: usize, fails: impl Fn(&[Op]) -> bool) -> Vec<Op> {
    let mut ops = history.to_vec();
    ops.sort_by_key(|op| (op.called, op.client));
    let mut attempt = |candidate: Vec<Op>, ops: &mut Vec<Op>| {
        if tries == 0 || candidate.len() + known(&candidate) >= ops.len() + known(ops) {
            return false;
        }
        tries -= 1;
        let still = fails(&candidate);
        if still {
            *ops = candidate;
        }
        still
    };
    let mut size = ops.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < ops.len() {
            let taken = weakened(&ops, from..from + size);
            if !attempt(taken, &mut ops) {
                from += size;
            }
        }
        size /= 2;
    }
    attempt(without_unseen(&ops), &mut ops);
    ops
}

/// How many operations say how they ended.
fn known(ops: &[Op]) -> usize {
    ops.iter().filter(|op| !op.is_unknown()).count()
}

/// The history without the reads of this range, and with the answers to its writes forgotten.
fn weakened(ops: &[Op], range: std::ops::Range<usize>) -> Vec<Op> {
    let parts = ops.iter().enumerate().filter_map(|(index, op)| {
        if !range.contains(&index) {
            return Some(op.clone());
        }
        op.may_write().then(|| forget(op))
    });
    parts.collect()
}

fn forget(op: &Op) -> Op {
    let kind = match op.kind {
        OpKind::Del { .. } => OpKind::Del { existed: None },
        OpKind::Cas { expect, at, value, expiry_ms, .. } => {
            OpKind::Cas { expect, at, value, expiry_ms, written: None }
        }
        OpKind::Incr { delta, .. } => OpKind::Incr { delta, sum: None },
        kind @ (OpKind::Read(_) | OpKind::Put { .. }) => kind,
    };
    Op { returned: None, version: Version::NONE, kind, ..op.clone() }
}

/// The history without those unknown writes whose value nobody saw, if only reads and writes that
/// do not depend on what they find are left to tell.
fn without_unseen(ops: &[Op]) -> Vec<Op> {
    let blind = |op: &Op| match op.kind {
        OpKind::Read(_) | OpKind::Put { .. } => true,
        OpKind::Del { .. } | OpKind::Cas { .. } | OpKind::Incr { .. } => op.is_unknown(),
    };
    let saw = |value: i64| ops.iter().any(|op| op.kind == OpKind::Read(Some(value)));
    let saw_nothing = ops.iter().any(|op| op.kind == OpKind::Read(None));
    let seen = |op: &Op| match op.kind {
        OpKind::Put { value, expiry_ms } | OpKind::Cas { value: Some(value), expiry_ms, .. } => {
            saw(value) || (expiry_ms > 0 && saw_nothing)
        }
        OpKind::Cas { value: None, .. } => saw_nothing,
        OpKind::Del { .. } => saw_nothing,
        OpKind::Read(_) | OpKind::Incr { .. } => true,
    };
    if !ops.iter().all(blind) || ops.iter().any(|op| matches!(op.kind, OpKind::Incr { .. })) {
        return ops.to_vec();
    }
    ops.iter().filter(|op| !op.is_unknown() || seen(op)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::linear::{Verdict, check};
    use machine::Instant;

    #[test]
    fn a_stale_read_among_much_else_is_left_alone() {
        let op = |client, at: u64, kind, version| Op {
            client,
            called: Instant(10 * at),
            returned: Some(Instant(10 * at + 5)),
            kind,
            version,
        };
        let mut ops = Vec::new();
        for n in 0u32..100 {
            let value = i64::from(n);
            let version = u64::from(n) + 1;
            ops.push(op(
                0,
                2 * u64::from(n),
                OpKind::Put { value, expiry_ms: 0 },
                Version::new(version),
            ));
            ops.push(op(1, 2 * u64::from(n) + 1, OpKind::Read(Some(value)), Version::new(version)));
        }
        ops.push(op(2, 201, OpKind::Read(Some(40)), Version::new(41)));
        let fails = |ops: &[Op]| check(ops, 0).verdict == Verdict::Violation;
        assert!(fails(&ops));
        let small = shrink(&ops, 1_000, fails);
        assert!(fails(&small));
        assert!(small.len() <= 4, "{small:?}");
        assert!(small.iter().any(|op| op.client == 2), "the stale read is the point");
    }
}
