//! What a rack can serve at best, and what is left of that if every key is served at home.

use super::control::KEYSPACE;
use super::{KEY_BYTES, Rack};
use crate::paper::netcache::ITEMS_MAX;
use crate::paper::{Load, Skew};
use cluster::{NodeId, Partition};
use workload::zeta;

/// Requests per second that no spreading of load can get beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Whatever spreads it: what all nodes serve together, over the nodes that serve a request.
    pub cap: f64,
    /// Where each key is served at its home alone: what makes the node with the hottest keys busy.
    /// As the hash of this rack's seed places them.
    pub hashing: f64,
    /// The same, but a switch answers all reads of the keys that are read most, as many as it can
    /// cache: what makes the node busy that is left with most. At most [`CACHED_TIMES_MAX`] times
    /// the cap.
    pub cached: f64,
}

/// Of a switch that answers everything no rack says how much that is.
pub const CACHED_TIMES_MAX: f64 = 12.0;

impl Bounds {
    /// How many times as much as hashing any balancer can serve.
    #[must_use]
    pub fn gain_max(&self) -> f64 {
        self.cap / self.hashing
    }
}

impl Rack {
    /// The bounds for a load, as popularity is at its beginning. O(keys).
    #[must_use]
    pub fn bounds(&self, load: &Load) -> Bounds {
        let spec = &self.spec;
        let rates = (0..spec.nodes).map(|node| f64::from(spec.rate_of(node)));
        let cap = rates.clone().sum::<f64>() / load.visits(spec.replicas);
        let full = |visits: Vec<f64>| {
            let nodes = visits.into_iter().zip(rates.clone());
            nodes.map(|(visits, rate)| rate / visits).fold(f64::MAX, f64::min)
        };
        let hashing = full(self.visits(load, 0));
        let cached = full(self.visits(load, ITEMS_MAX as u64)).min(cap * CACHED_TIMES_MAX);
        Bounds { cap, hashing, cached }
    }

    /// How often a request visits each node on average, if no node serves reads of the `cached`
    /// most popular keys.
    fn visits(&self, load: &Load, cached: u64) -> Vec<f64> {
        let map = self.controller.map();
        let keyspace = map.keyspace(KEYSPACE).expect("the rack has one");
        let mut partitions: Vec<(&Partition, Asked)> =
            map.partitions.iter().map(|it| (it, Asked::default())).collect();
        let contents = self.contents.as_ref().expect("the rack is filled");
        let mut name = Vec::with_capacity(KEY_BYTES);
        for key in 0..self.spec.keys {
            name.clear();
            contents.names.write(key, &mut name);
            let at = keyspace.match_value(&name);
            let after = partitions.partition_point(|(it, _)| it.first <= at);
            let home = after.checked_sub(1).and_then(|place| partitions.get_mut(place));
            let (_, asked) = home.expect("partitions cover everything");
            let weight = weight(load.skew, key);
            asked.writes += weight;
            asked.reads += if key < cached { 0.0 } else { weight };
        }
        let all: f64 = match load.skew {
            Skew::Uniform => self.spec.keys as f64,
            Skew::Zipf(theta) => zeta(self.spec.keys, theta),
        };
        let reads = f64::from(load.reads_percent) / 100.0;
        let mut visits = vec![0.0; self.nodes.len()];
        let mut visit = |NodeId(node): NodeId, share: f64| {
            let visits = visits.get_mut(usize::from(node));
            *visits.expect("chains are made of nodes") += share;
        };
        for (partition, asked) in partitions {
            let write = asked.writes / all * (1.0 - reads);
            partition.members().iter().for_each(|node| visit(*node, write));
            visit(partition.tail().expect("nothing fails"), asked.reads / all * reads);
        }
        visits
    }
}

/// How popular the keys of a partition are that nodes read, and those that they write.
#[derive(Default)]
struct Asked {
    reads: f64,
    writes: f64,
}

/// The popularity of a key, whose number is its rank.
fn weight(skew: Skew, key: u64) -> f64 {
    match skew {
        Skew::Uniform => 1.0,
        Skew::Zipf(theta) => ((key + 1) as f64).powf(-theta),
    }
}
