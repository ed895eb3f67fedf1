//! Counters and loads of a switch by name, those that are 0 left out: the form in which model,
//! switch and vectors are compared.

use cluster::HotCount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use switch::{Counters, Loads};

/// Everything a switch has counted or noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counts {
    /// Datagrams that passed the parser, by operation.
    pub packets: BTreeMap<String, u64>,
    /// Datagrams sent.
    pub emitted: u64,
    /// Drops, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Reads, by partition id.
    pub reads: BTreeMap<String, u64>,
    /// Writes, by partition id.
    pub writes: BTreeMap<String, u64>,
    /// Last load report, by node id.
    pub loads: BTreeMap<String, u64>,
    /// Reads of hot keys, by keyspace and keyhash.
    pub hot_reads: BTreeMap<String, u64>,
    /// Those of them that went to copies.
    pub hot_spread: BTreeMap<String, u64>,
    /// Writes of hot keys.
    pub hot_writes: BTreeMap<String, u64>,
    /// Writes sent under delegations, by whether their grant is new or they had it before.
    pub delegated: BTreeMap<String, u64>,
    /// Keys of MGETs that were hot, by where they went.
    pub hot_keys: BTreeMap<String, u64>,
    /// Replies of versions that were never given out.
    pub doubted: u64,
}

/// A hot key as counts name it.
pub fn hot_name(keyspace: u16, keyhash: u64) -> String {
    format!("{keyspace}-{keyhash:016x}")
}

impl Counts {
    /// Those of a switch.
    pub fn of(counters: &Counters, reports: &Loads) -> Self {
        let loads = counters.partitions();
        let hot = |of: fn(&HotCount) -> u64| {
            let hot = counters.hot().iter().map(|load| &load.count);
            named(hot.map(|it| (hot_name(it.keyspace.0, it.keyhash), of(it))))
        };
        let mut counts = Self {
            packets: named(counters.packets().map(|(op, n)| (op.name(), n))),
            emitted: counters.emitted(),
            dropped: named(counters.dropped().map(|(reason, n)| (reason.name(), n))),
            reads: named(loads.iter().map(|load| (load.partition, load.reads))),
            writes: named(loads.iter().map(|load| (load.partition, load.writes))),
            loads: BTreeMap::new(),
            hot_reads: hot(|it| it.reads),
            hot_spread: hot(|it| it.spread),
            hot_writes: hot(|it| it.writes),
            delegated: named(["new", "again"].into_iter().zip(counters.delegated())),
            hot_keys: named(["home", "copy"].into_iter().zip(counters.hot_keys())),
            doubted: counters.doubted(),
        };
        for (node, load) in reports.iter() {
            counts.loads.insert(node.to_string(), load.into());
        }
        counts
    }
}

impl Counts {
    /// What is counted of hot keys, as long as they stay.
    pub fn hot(&mut self) -> [&mut BTreeMap<String, u64>; 3] {
        [&mut self.hot_reads, &mut self.hot_spread, &mut self.hot_writes]
    }
}

fn named<N: ToString>(counters: impl Iterator<Item = (N, u64)>) -> BTreeMap<String, u64> {
    counters.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_string(), n)).collect()
}
