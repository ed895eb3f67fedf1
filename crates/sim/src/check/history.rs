//! What the clients asked and saw, key by key, and whether it keeps the promises.

use super::atomic::{self, Batch};
use super::draw::Violation;
use super::linear::{self, Verdict};
use super::op::Op;
use super::properties::breaches;
use super::shrink::shrink;
use std::collections::BTreeMap;

/// A key of a workload: which kind of keyspace, and the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Whether it is in the keyspace that is scanned.
    pub ordered: bool,
    /// The bytes.
    pub key: Vec<u8>,
}

/// The operations on every key, and whatever was wrong without looking at an order.
#[derive(Clone, Debug, Default)]
pub struct History {
    keys: BTreeMap<Key, Vec<Op>>,
    batches: Vec<Batch>,
    violations: Vec<String>,
}

/// What became of a history.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Every broken promise, in words.
    pub violations: Vec<String>,
    /// Those that a key's history shows, each shrunk to be looked at.
    pub pictures: Vec<Violation>,
    /// Keys whose histories were too much for the bound of the search.
    pub unchecked: usize,
}

impl History {
    /// Writes down an operation on a key.
    pub fn record(&mut self, key: &Key, op: Op) {
        self.keys.entry(key.clone()).or_default().push(op);
    }

    /// Writes down what keys have in common that were in one batch, each of which is recorded as
    /// well.
    pub fn batch(&mut self, batch: Batch) {
        self.batches.push(batch);
    }

    /// Something that needs no look at an order.
    pub fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Operations recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Every key with its operations.
    pub fn keys(&self) -> impl Iterator<Item = (&Key, &[Op])> {
        self.keys.iter().map(|(key, ops)| (key, ops.as_slice()))
    }

    /// Takes in what somebody else recorded.
    pub fn merge(&mut self, other: Self) {
        for (key, ops) in other.keys {
            self.keys.entry(key).or_default().extend(ops);
        }
        self.batches.extend(other.batches);
        self.violations.extend(other.violations);
    }

    /// Looks at every key. `skew_ms` is how far clocks of nodes may be ahead, so that values go
    /// earlier by as much.
    #[must_use]
    pub fn check(self, skew_ms: u64) -> Judgement {
        let mut judgement = Judgement { violations: self.violations, ..Judgement::default() };
        judgement.violations.extend(atomic::breaches(&self.batches, &self.keys));
        for (key, ops) in &self.keys {
            let name = String::from_utf8_lossy(&key.key);
            for breach in breaches(ops) {
                let what = format!("{}: {}", breach.promise.name(), breach.what);
                let culprits = breach.culprits.iter().filter_map(|index| ops.get(*index));
                let ops: Vec<Op> = culprits.cloned().collect();
                let culprits = (0..ops.len()).collect();
                judgement.add(Violation { key: name.clone().into_owned(), what, ops, culprits });
            }
            let finding = linear::check(ops, skew_ms);
            match finding.verdict {
                Verdict::Linearizable => {}
                Verdict::Exhausted => judgement.unchecked += 1,
                Verdict::Violation => judgement.add(picture(&name, ops, skew_ms)),
            }
        }
        judgement
    }
}

impl Judgement {
    fn add(&mut self, violation: Violation) {
        self.violations.push(format!("key {}: {}", violation.key, violation.what));
        self.pictures.push(violation);
    }
}

fn picture(key: &str, ops: &[Op], skew_ms: u64) -> Violation {
    let fails = |ops: &[Op]| linear::check(ops, skew_ms).verdict == Verdict::Violation;
    let ops = shrink(ops, SHRINK_TRIES, fails);
    let finding = linear::check(&ops, skew_ms);
    let what = format!("linearizable (G1): {}", finding.why);
    Violation { key: key.into(), what, ops, culprits: finding.culprits }
}

/// Looks at a history while it is shrunk: a few for each operation of a world.
const SHRINK_TRIES: usize = 2_000;
