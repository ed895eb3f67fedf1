//! The plainest checker there is: tries every order of the operations, every choice of those that
//! took effect at all, and every moment at which a value may have expired. For a handful of
//! operations only.

use sim::check::{Op, OpKind};
use wire::Version;

/// Whether some order explains the history.
pub(crate) fn linearizable(ops: &[Op], skew_ms: u64) -> bool {
    Brute { ops, skew_ms }.goes_on(&mut Point { done: vec![false; ops.len()], ..Point::default() })
}

struct Brute<'a> {
    ops: &'a [Op],
    skew_ms: u64,
}

#[derive(Clone, Debug, Default)]
struct Point {
    done: Vec<bool>,
    held: Option<(i64, u64)>,
    /// What is known of the versions, in the order of the effects.
    trace: Vec<Trace>,
    /// No operation that was answered before this millisecond may follow.
    expired_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum Trace {
    /// A write, of this version if it is known.
    Wrote(Option<Version>),
    /// Somebody saw the version of the last write.
    Saw(Version),
    /// Somebody saw nothing, at this version.
    Passed(Version),
}

impl Brute<'_> {
    fn goes_on(&self, point: &mut Point) -> bool {
        let open = || self.ops.iter().zip(&point.done).filter(|(_, done)| !**done);
        if open().all(|(op, _)| op.returned.is_none()) {
            return versions_fit(&point.trace);
        }
        if let Some((_, expiry)) = point.held.filter(|(_, expiry)| *expiry != 0) {
            let expired_ms = point.expired_ms.max(expiry.saturating_sub(self.skew_ms));
            let mut next = Point { held: None, expired_ms, ..point.clone() };
            if self.goes_on(&mut next) {
                return true;
            }
        }
        let first_recall = open().filter_map(|(op, _)| op.returned).min();
        for (index, op) in self.ops.iter().enumerate() {
            let too_late = first_recall.is_some_and(|at| op.called > at);
            let too_early = op.returned.is_some_and(|at| at.unix_ms() < point.expired_ms);
            let hidden = point.held.is_some_and(|(_, end)| end != 0 && op.called.unix_ms() >= end);
            if point.done[index] || too_late || too_early || hidden {
                continue;
            }
            let mut next = point.clone();
            next.done[index] = true;
            if happens(op, &mut next) && self.goes_on(&mut next) {
                return true;
            }
        }
        false
    }
}

/// Lets an operation take effect; false if it cannot have seen what it saw.
fn happens(op: &Op, point: &mut Point) -> bool {
    let present = point.held.map(|(value, _)| value);
    let expiry = point.held.map_or(0, |(_, expiry)| expiry);
    let (fits, write) = match op.kind {
        OpKind::Read(seen) => (seen == present, None),
        OpKind::Put { value, expiry_ms } => (true, Some(Some((value, expiry_ms)))),
        OpKind::Del { existed } => {
            (existed.is_none_or(|it| it == present.is_some()), present.map(|_| None))
        }
        OpKind::Cas { expect, value, expiry_ms, written, .. } => {
            let holds = present == expect;
            // What a comparison found at a version was there.
            let found = op.version.is_none() || written != Some(false) || present.is_some();
            let leaves = value.map(|value| (value, expiry_ms));
            (found && written.is_none_or(|it| it == holds), holds.then_some(leaves))
        }
        OpKind::Incr { delta, sum } => {
            let next = present.unwrap_or(0) + delta;
            (sum.is_none_or(|it| it == next), Some(Some((next, expiry))))
        }
    };
    let version = Some(op.version).filter(|version| !version.is_none());
    match write {
        Some(held) => {
            point.held = held;
            point.trace.push(Trace::Wrote(version));
        }
        None if present.is_some() => point.trace.extend(version.map(Trace::Saw)),
        None => point.trace.extend(version.map(Trace::Passed)),
    }
    fits
}

/// Whether whole numbers that grow can be given to the writes.
fn versions_fit(trace: &[Trace]) -> bool {
    // Whoever saw the version of a write tells what it was.
    let mut known: Vec<Option<Version>> = Vec::new();
    for step in trace {
        match (step, known.last_mut()) {
            (Trace::Wrote(version), _) => known.push(*version),
            (Trace::Saw(version), Some(last)) => {
                if last.is_some_and(|last| last != *version) {
                    return false;
                }
                *last = Some(*version);
            }
            (Trace::Saw(_), None) => return false,
            (Trace::Passed(_), _) => {}
        }
    }
    // The least that each can be.
    let (mut least, mut writes) = (Version::NONE, known.iter());
    for step in trace {
        match step {
            Trace::Wrote(_) => {
                let version = writes.next().copied().flatten().unwrap_or(least.next());
                if version <= least {
                    return false;
                }
                least = version;
            }
            Trace::Saw(_) => {}
            Trace::Passed(version) => {
                if *version < least {
                    return false;
                }
                least = *version;
            }
        }
    }
    true
}
