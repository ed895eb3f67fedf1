//! Promises that can be told from versions and sums alone, in time linear in the history but for a
//! sort. Linearizability implies all of them; these say which promise was broken, and see it also
//! where the search for an order gives up.

use super::op::{Op, OpKind};
use std::collections::BTreeMap;
use wire::Version;

/// A promise that a key's history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which promise.
    pub promise: Promise,
    /// What happened, as a sentence.
    pub what: String,
    /// The operations that show it, by index.
    pub culprits: Vec<usize>,
}

/// The promises that are looked at here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// G2: a write takes effect exactly once.
    ExactlyOnce,
    /// G3: a write that was acknowledged is never lost.
    Durable,
    /// G4: what was read does not vanish.
    NoDirtyRead,
}

impl Promise {
    /// Its number among the promises, and what it says.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ExactlyOnce => "exactly once (G2)",
            Self::Durable => "durable (G3)",
            Self::NoDirtyRead => "no dirty read (G4)",
        }
    }
}

/// Everything that is broken in the history of one key; the first of each kind.
#[must_use]
pub fn breaches(ops: &[Op]) -> Vec<Breach> {
    [shared_version(ops), repeated_sum(ops), wrong_total(ops)]
        .into_iter()
        .flatten()
        .chain(gone_backwards(ops))
        .collect()
}

/// Two writes never have one version.
fn shared_version(ops: &[Op]) -> Option<Breach> {
    let mut owners: BTreeMap<Version, usize> = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        if op.version.is_none() || !op.is_acknowledged_write() {
            continue;
        }
        if let Some(other) = owners.insert(op.version, index) {
            let what = format!("two writes were both answered at version {}", op.version);
            let culprits = vec![other, index];
            return Some(Breach { promise: Promise::ExactlyOnce, what, culprits });
        }
    }
    None
}

/// What was answered is never followed by something older: neither what a write was told, nor what
/// a read saw.
fn gone_backwards(ops: &[Op]) -> Vec<Breach> {
    let mut ends: Vec<usize> = (0..ops.len()).collect();
    ends.retain(|index| {
        ops.get(*index).is_some_and(|op| op.version > Version::NONE && !op.is_unknown())
    });
    let mut starts = ends.clone();
    let at = |index: &usize| ops.get(*index);
    ends.sort_by_key(|index| at(index).and_then(|op| op.returned));
    starts.sort_by_key(|index| at(index).map(|op| op.called));
    let mut found: BTreeMap<Promise, Breach> = BTreeMap::new();
    let mut ended = ends.into_iter().peekable();
    let (mut newest_write, mut newest_read) = (None, None);
    for later in starts {
        let Some(op) = ops.get(later) else { continue };
        while let Some(earlier) =
            ended.next_if(|earlier| at(earlier).is_some_and(|e| e.precedes(op)))
        {
            let seen = ops.get(earlier).map_or(Version::NONE, |op| op.version);
            let read = matches!(ops.get(earlier).map(|op| op.kind), Some(OpKind::Read(_)));
            let newest = if read { &mut newest_read } else { &mut newest_write };
            if newest.is_none_or(|(version, _)| version < seen) {
                *newest = Some((seen, earlier));
            }
        }
        let wrote = op.is_acknowledged_write();
        let behind = |newest: Option<(Version, usize)>| {
            // A write has a version of its own; a read may see the same again.
            newest.filter(|(version, _)| *version > op.version || (wrote && *version == op.version))
        };
        for (promise, newest) in
            [(Promise::Durable, newest_write), (Promise::NoDirtyRead, newest_read)]
        {
            if let Some((version, earlier)) = behind(newest) {
                found.entry(promise).or_insert_with(|| {
                    let what = gone_text(promise, version, op);
                    Breach { promise, what, culprits: vec![earlier, later] }
                });
            }
        }
    }
    found.into_values().collect()
}

fn gone_text(promise: Promise, version: Version, later: &Op) -> String {
    let before = match promise {
        Promise::NoDirtyRead => "was read",
        Promise::Durable | Promise::ExactlyOnce => "was acknowledged",
    };
    format!(
        "version {version} {before}, and later client {} was answered at version {}",
        later.client, later.version
    )
}

/// Whether the key is a counter that only grows: then every sum tells how many came before.
fn only_grows(ops: &[Op]) -> bool {
    let grows = |op: &Op| match op.kind {
        OpKind::Read(_) => true,
        OpKind::Incr { delta, .. } => delta > 0,
        OpKind::Put { .. } | OpKind::Del { .. } | OpKind::Cas { .. } => false,
    };
    let counts = |op: &Op| matches!(op.kind, OpKind::Incr { .. });
    ops.iter().all(grows) && ops.iter().any(counts)
}

/// No two increments of a growing counter were told the same sum.
fn repeated_sum(ops: &[Op]) -> Option<Breach> {
    if !only_grows(ops) {
        return None;
    }
    let mut owners: BTreeMap<i64, usize> = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        let OpKind::Incr { sum: Some(sum), .. } = op.kind else { continue };
        if let Some(other) = owners.insert(sum, index) {
            let what = format!("two increments were both told the sum {sum}");
            let culprits = vec![other, index];
            return Some(Breach { promise: Promise::ExactlyOnce, what, culprits });
        }
    }
    None
}

/// A read of a growing counter sees at least what was acknowledged before it began, and at most
/// what was asked for before it ended.
fn wrong_total(ops: &[Op]) -> Option<Breach> {
    if !only_grows(ops) {
        return None;
    }
    let (index, last, seen) = ops
        .iter()
        .enumerate()
        .filter_map(|(index, op)| match op.kind {
            OpKind::Read(seen) if !op.is_unknown() => Some((index, op, seen.unwrap_or(0))),
            _ => None,
        })
        .max_by_key(|(_, op, _)| op.called)?;
    let deltas = |wanted: &dyn Fn(&Op) -> bool| -> i64 {
        let counted = ops.iter().filter(|op| wanted(op));
        counted.map(|op| if let OpKind::Incr { delta, .. } = op.kind { delta } else { 0 }).sum()
    };
    let least = deltas(&|op| op.precedes(last));
    let most = deltas(&|op| last.returned.is_some_and(|end| op.called <= end));
    if (least..=most).contains(&seen) {
        return None;
    }
    let what = format!(
        "the counter is {seen}, though increments of {least} were acknowledged before and of \
         {most} were asked for"
    );
    Some(Breach { promise: Promise::ExactlyOnce, what, culprits: vec![index] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Instant;

    fn op(client: usize, called: u64, returned: u64, kind: OpKind, version: u64) -> Op {
        let returned = (returned > 0).then_some(Instant(returned));
        Op { client, called: Instant(called), returned, kind, version: Version::new(version) }
    }

    const fn put(value: i64) -> OpKind {
        OpKind::Put { value, expiry_ms: 0 }
    }

    const fn incr(sum: Option<i64>) -> OpKind {
        OpKind::Incr { delta: 1, sum }
    }

    fn promises(ops: &[Op]) -> Vec<Promise> {
        breaches(ops).into_iter().map(|breach| breach.promise).collect()
    }

    #[test]
    fn a_good_history_breaks_nothing() {
        let ops = [
            op(0, 1, 5, put(1), 1),
            op(1, 2, 6, OpKind::Read(Some(1)), 1),
            op(0, 7, 0, put(2), 0),
            op(1, 8, 9, OpKind::Read(Some(2)), 2),
            op(1, 10, 11, OpKind::Read(Some(2)), 2),
        ];
        assert_eq!(promises(&ops), []);
    }

    #[test]
    fn an_acknowledged_write_that_is_gone_is_seen() {
        let ops =
            [op(0, 1, 2, put(1), 1), op(0, 3, 4, put(2), 2), op(1, 5, 6, OpKind::Read(Some(1)), 1)];
        assert_eq!(promises(&ops), [Promise::Durable]);
    }

    #[test]
    fn a_read_that_vanishes_is_seen() {
        let ops = [
            op(0, 1, 2, put(1), 1),
            op(0, 3, 0, put(2), 0),
            op(1, 5, 6, OpKind::Read(Some(2)), 2),
            op(2, 7, 8, OpKind::Read(Some(1)), 1),
        ];
        assert_eq!(promises(&ops), [Promise::NoDirtyRead]);
        let overlapping = [ops[2].clone(), op(2, 6, 8, OpKind::Read(Some(1)), 1)];
        assert_eq!(promises(&overlapping), [], "both were under way at once");
    }

    #[test]
    fn a_version_given_twice_is_seen() {
        let ops = [op(0, 1, 5, put(1), 3), op(1, 2, 6, put(2), 3)];
        assert_eq!(promises(&ops), [Promise::ExactlyOnce]);
    }

    #[test]
    fn increments_that_were_applied_twice_or_lost_are_seen() {
        let twice = [op(0, 1, 2, incr(Some(1)), 1), op(1, 3, 4, OpKind::Read(Some(2)), 2)];
        assert_eq!(promises(&twice), [Promise::ExactlyOnce]);
        let lost = [
            op(0, 1, 2, incr(Some(1)), 1),
            op(0, 3, 4, incr(Some(1)), 2),
            op(1, 5, 6, OpKind::Read(Some(1)), 2),
        ];
        assert_eq!(promises(&lost), [Promise::ExactlyOnce, Promise::ExactlyOnce]);
        let unknown = [
            op(0, 1, 2, incr(Some(1)), 1),
            op(0, 3, 0, incr(None), 0),
            op(1, 5, 6, OpKind::Read(Some(2)), 2),
        ];
        assert_eq!(promises(&unknown), [], "the unknown one may have taken place");
    }
}
