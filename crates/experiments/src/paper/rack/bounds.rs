//! What a rack can serve at best, and what is left of that if every key is served at home.

use super::control::KEYSPACE;
use super::{Finder, Finding, Order, Rack};
use crate::paper::netcache::ITEMS_MAX;
use crate::paper::{Load, Scans, Skew};
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
    /// The same, but cache nodes hold the keys that are read most: what makes a cache full, or the
    /// node that is left with most.
    pub lent: f64,
    /// The same, if all nodes were left with as much: the least of cache / hits and nodes / misses.
    pub lent_cap: f64,
    /// Share of requests that are reads of those keys.
    pub hits: f64,
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
    /// The bounds for a load, as popularity is at its beginning. O(keys), of which no more than a
    /// million are looked at that lie by their hash.
    #[must_use]
    pub fn bounds(&self, load: &Load) -> Bounds {
        self.bounds_by(load, self.spec.finding.by)
    }

    /// The same, if somebody else found the nodes that requests are for.
    #[must_use]
    pub fn bounds_by(&self, load: &Load, by: Finder) -> Bounds {
        let spec = &self.spec;
        let rates = (0..spec.nodes).map(|node| f64::from(spec.rate_of(node)));
        let full = |visits: &[f64]| {
            let nodes = visits.iter().zip(rates.clone());
            nodes.map(|(visits, rate)| rate / visits).fold(f64::MAX, f64::min)
        };
        let (visits, pieces) = self.visits(load, 0, by);
        let asked = load.reads() + load.writes() + load.scans() * pieces;
        let passed = self.passed_on(by) * asked * (1.0 - 1.0 / f64::from(spec.nodes));
        let cap = rates.clone().sum::<f64>() / (load.visits(spec.replicas, pieces) + passed);
        let hashing = full(&visits);
        let (lent, lent_cap, hits) = self.lent(load, by);
        let (visits, _) = self.visits(load, ITEMS_MAX as u64, by);
        let cached = full(&visits).min(cap * CACHED_TIMES_MAX);
        Bounds { cap, hashing, cached, lent, lent_cap, hits }
    }

    /// The most that [`Bounds::lent`] would be for reads if caches held as few of the most popular
    /// keys as is best.
    #[must_use]
    pub fn lent_at_best(&self, load: &Load) -> f64 {
        let (mut visits, _) = self.visits(load, 0, self.spec.finding.by);
        let tails: Vec<usize> = self.controller.map().partitions.iter().map(tail_place).collect();
        let caches = f64::from(self.spec.cache_count()) * f64::from(self.spec.cache_rate());
        let all = self.weight_of_all(load.skew);
        let (mut hits, mut best) = (0.0, 0.0_f64);
        for (key, home) in (0..u64::from(self.spec.caches.items)).zip(self.homes()) {
            let share = weight(load.skew, key) / all;
            let tail = tails.get(home).and_then(|node| visits.get_mut(*node));
            *tail.expect("homes are in the map") -= share;
            hits += share;
            let nodes = (0..self.spec.nodes).map(|node| f64::from(self.spec.rate_of(node)));
            let full = visits.iter().zip(nodes).map(|(visits, rate)| rate / visits);
            best = best.max(full.fold(caches / hits, f64::min));
        }
        best
    }

    /// What is said of cache nodes in [`Bounds`]. A write of what they hold costs them a service,
    /// too.
    fn lent(&self, load: &Load, by: Finder) -> (f64, f64, f64) {
        let count = self.spec.cache_count();
        let keys = u64::from(count) * u64::from(self.spec.caches.items);
        let held: f64 = (0..keys.min(self.spec.keys)).map(|key| weight(load.skew, key)).sum();
        let held = held / self.weight_of_all(load.skew);
        let hits = held * load.reads();
        let written = (0..keys.min(self.spec.keys)).map(|key| weight(load.write_skew(), key));
        let written = written.sum::<f64>() / self.weight_of_all(load.write_skew());
        let cache_work = hits + written * load.writes();
        let rate = f64::from(count) * f64::from(self.spec.cache_rate());
        let caches = if cache_work > 0.0 { rate / cache_work } else { f64::MAX };
        let (visits, _) = self.visits(load, keys, by);
        let rates = (0..self.spec.nodes).map(|node| f64::from(self.spec.rate_of(node)));
        let together = rates.clone().sum::<f64>() / visits.iter().sum::<f64>();
        let busiest = visits.iter().zip(rates).map(|(visits, rate)| rate / visits);
        (busiest.fold(caches, f64::min), caches.min(together), hits)
    }

    /// The popularity of all keys together.
    pub(super) fn weight_of_all(&self, skew: Skew) -> f64 {
        match skew {
            Skew::Uniform => self.spec.keys as f64,
            Skew::Zipf(theta) => zeta(self.spec.keys, theta),
        }
    }

    /// How often a request visits each node on average, if no node serves reads of the `cached`
    /// most popular keys; and in how many partitions a scan has keys, each of which is asked once.
    /// (One with more keys than a datagram holds is asked again for the rest.)
    fn visits(&self, load: &Load, cached: u64, by: Finder) -> (Vec<f64>, f64) {
        let map = self.controller.map();
        let mut partitions: Vec<(&Partition, Asked)> =
            map.partitions.iter().map(|it| (it, Asked::default())).collect();
        let contents = self.contents.as_ref().expect("the rack is filled");
        let homes = self.homes();
        let of_writes = load.write_skew();
        let (all, all_writes) = (self.weight_of_all(load.skew), self.weight_of_all(of_writes));
        let (mut rest, mut rest_writes) = (all, all_writes);
        for key in 0..self.looked_up() {
            let number = contents.number(key);
            let (weight, write) = (weight(load.skew, key), weight(of_writes, key));
            (rest, rest_writes) = (rest - weight, rest_writes - write);
            let number = usize::try_from(number).expect("there is room for all keys");
            let mut behind = homes.iter().skip(number).copied();
            let home = behind.next().expect("a key's number");
            if let Some((_, asked)) = partitions.get_mut(home) {
                asked.writes += write;
                asked.reads += if key < cached { 0.0 } else { weight };
                asked.scans += weight;
            }
            let Some(Scans { keys_max, .. }) = load.scans else { continue };
            // Lengths are even from 1 on, so a scan gets as far as this with that chance. The first
            // key that it has of a partition stands for all of them.
            let mut before = home;
            for (far, home) in (1..keys_max).zip(behind) {
                if home != before
                    && let Some((_, asked)) = partitions.get_mut(home)
                {
                    asked.scans += weight * (keys_max - far) as f64 / keys_max as f64;
                }
                before = home;
            }
        }
        if self.looked_up() < self.spec.keys {
            // All others together are as popular in one partition as in another.
            let parts = partitions.len() as f64;
            for (_, asked) in &mut partitions {
                asked.reads += rest / parts;
                asked.writes += rest_writes / parts;
            }
        }
        let (reads, scans) = (load.reads(), load.scans());
        let mut visits = vec![0.0; self.nodes.len()];
        let mut visit = |NodeId(node): NodeId, share: f64| {
            let visits = visits.get_mut(usize::from(node));
            *visits.expect("chains are made of nodes") += share;
        };
        let (mut pieces, mut targets) = (0.0, vec![0.0; self.nodes.len()]);
        let mut target = |NodeId(node): NodeId, share: f64| {
            *targets.get_mut(usize::from(node)).expect("chains are made of nodes") += share;
        };
        for (partition, asked) in partitions {
            let write = asked.writes / all_writes * load.writes();
            partition.members().iter().for_each(|node| visit(*node, write));
            let read = asked.reads / all * reads + asked.scans / all * scans;
            let tail = partition.tail().expect("nothing fails");
            visit(tail, read);
            target(tail, read);
            target(partition.head().expect("nothing fails"), write);
            pieces += asked.scans / all;
        }
        // Whoever passes requests on gets an equal share of them, and passes on what is for others.
        let share = self.passed_on(by) / f64::from(self.spec.nodes);
        let together: f64 = targets.iter().sum();
        for (visits, mine) in visits.iter_mut().zip(&targets) {
            *visits += share * (together - mine);
        }
        (visits, pieces)
    }

    /// What it takes a node to pass a request on, if nodes do, in requests.
    fn passed_on(&self, by: Finder) -> f64 {
        let Finding { forward_permille, .. } = self.spec.finding;
        if by == Finder::Nodes { f64::from(forward_permille) / 1_000.0 } else { 0.0 }
    }

    /// Of how many of the most popular keys it is looked up where they lie.
    fn looked_up(&self) -> u64 {
        let by_hash = self.spec.store.order == Order::Hash;
        if by_hash { self.spec.keys.min(LOOKED_UP_MAX) } else { self.spec.keys }
    }

    /// In which partition, by its place in the map, the key of each of their numbers lies.
    fn homes(&self) -> Vec<usize> {
        let map = self.controller.map();
        let keyspace = map.keyspace(KEYSPACE).expect("the rack has one");
        let contents = self.contents.as_ref().expect("the rack is filled");
        let mut name = Vec::with_capacity(self.spec.store.key_bytes);
        let home = |number| {
            name.clear();
            contents.names.write(number, &mut name);
            let at = keyspace.match_value(&name);
            let after = map.partitions.partition_point(|it| it.first <= at);
            after.checked_sub(1).expect("partitions cover everything")
        };
        (0..self.looked_up()).map(home).collect()
    }
}

/// Of more keys those that are less popular are spread by their hash as evenly as matters.
const LOOKED_UP_MAX: u64 = 1 << 20;

/// How popular the keys of a partition are that nodes read, those that they write, and the scans
/// that have keys there.
#[derive(Default)]
struct Asked {
    reads: f64,
    writes: f64,
    scans: f64,
}

/// The node that serves reads of a partition, by its place among all.
fn tail_place(partition: &Partition) -> usize {
    usize::from(partition.tail().expect("nothing fails").0)
}

/// The popularity of a key, whose number is its rank.
pub(super) fn weight(skew: Skew, key: u64) -> f64 {
    match skew {
        Skew::Uniform => 1.0,
        Skew::Zipf(theta) => ((key + 1) as f64).powf(-theta),
    }
}
