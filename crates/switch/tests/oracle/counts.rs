//! Counters and loads of a switch by name, those that are 0 left out: the form in which model,
//! switch and vectors are compared.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use switch::{Counters, Loads};

/// Everything a switch has counted or noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Counts {
    /// Datagrams that passed the parser, by operation.
    pub(crate) packets: BTreeMap<String, u64>,
    /// Datagrams sent.
    pub(crate) emitted: u64,
    /// Drops, by reason.
    pub(crate) dropped: BTreeMap<String, u64>,
    /// Reads, by partition id.
    pub(crate) reads: BTreeMap<String, u64>,
    /// Writes, by partition id.
    pub(crate) writes: BTreeMap<String, u64>,
    /// Last load report, by node id.
    pub(crate) loads: BTreeMap<String, u64>,
}

impl Counts {
    /// Those of a switch.
    pub(crate) fn of(counters: &Counters, reports: &Loads) -> Self {
        let loads = counters.partitions();
        let mut counts = Self {
            packets: named(counters.packets().map(|(op, n)| (op.name(), n))),
            emitted: counters.emitted(),
            dropped: named(counters.dropped().map(|(reason, n)| (reason.name(), n))),
            reads: named(loads.iter().map(|load| (load.partition, load.reads))),
            writes: named(loads.iter().map(|load| (load.partition, load.writes))),
            loads: BTreeMap::new(),
        };
        for (node, load) in reports.iter() {
            counts.loads.insert(node.to_string(), load.into());
        }
        counts
    }
}

fn named<N: ToString>(counters: impl Iterator<Item = (N, u64)>) -> BTreeMap<String, u64> {
    counters.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_string(), n)).collect()
}
