//! What the clients asked and saw, key by key, and whether it keeps the promises.

use crate::lincheck::{self, Op, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A key of the simulated workload: which keyspace, and the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) ordered: bool,
    pub(crate) key: Vec<u8>,
}

/// The operations on every key, and whatever was wrong without looking at an order.
#[derive(Debug, Default)]
pub(crate) struct History {
    keys: BTreeMap<Key, Vec<Op>>,
    violations: Vec<String>,
}

impl History {
    pub(crate) fn record(&mut self, key: &Key, op: Op) {
        self.keys.entry(key.clone()).or_default().push(op);
    }

    pub(crate) fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Operations recorded.
    pub(crate) fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }

    /// Every violation, in words; and the keys whose histories were too much for the search.
    pub(crate) fn check(mut self, skew_ms: u64) -> (Vec<String>, usize) {
        let mut unchecked = 0;
        for (key, ops) in &self.keys {
            let name = String::from_utf8_lossy(&key.key);
            match lincheck::check(ops, skew_ms) {
                Verdict::Linearizable => {}
                Verdict::Exhausted => unchecked += 1,
                Verdict::Violation => {
                    let mut text = format!("key {name} is not linearizable:");
                    let mut ops = ops.clone();
                    ops.sort_by_key(|op| op.called);
                    for op in ops {
                        let _ = write!(text, "\n    {op}");
                    }
                    self.violations.push(text);
                }
            }
        }
        (self.violations, unchecked)
    }
}
