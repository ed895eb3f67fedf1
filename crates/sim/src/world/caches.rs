//! Caches in the world.

use super::control::{Mandate, Reply};
use super::{Unit, World};
use crate::role::{CACHE_SHARDS, Role, cache_endpoint, node_spec, role_of};
use cache::{Admission, Cache, CacheConfig, RulePace};
use cluster::{CacheId, Incarnation, Install, MemberReport, Order, PartitionId};
use machine::{Instant, LoadMetric};
use node::{InstantReports, PeriodicReports, TrackerConfig};
use std::ops::Range;
use std::time::Duration;
use wire::{Endpoint, Fields as _, HEADER_LEN, Op};

impl World {
    pub(super) fn start_cache(&mut self, index: u16, incarnation: Incarnation, local: Instant) {
        let pace = RulePace { per_second: 400, remove_within: Duration::from_millis(200) };
        for (shard, place) in (0..).zip(cache_shards(index)) {
            let config = CacheConfig {
                id: CacheId(index),
                shard: (shard, CACHE_SHARDS),
                incarnation,
                entries_max: 4,
                bytes_max: 1 << 20,
                rule_pace: pace,
                admission: Admission::ByLoad,
                metric: TRACKER.metric,
            };
            let mut machine = Cache::new(config, local);
            if let Some(mutant) = self.options.mutant {
                machine.mutant(mutant);
            }
            if let Some(cache) = self.caches.get_mut(place) {
                *cache = Some(machine);
            }
        }
    }

    pub(super) fn end_cache(&mut self, index: u16) {
        for cache in self.caches.get_mut(cache_shards(index)).into_iter().flatten() {
            *cache = None;
        }
    }

    pub(super) fn cache_takes(
        &mut self,
        (index, shard): (u16, u16),
        local: Instant,
        from: Endpoint,
        bytes: &[u8],
    ) {
        let index = usize::from(index * CACHE_SHARDS + shard);
        let Some(Some(cache)) = self.caches.get_mut(index) else { return };
        let before = cache.hits();
        cache.handle_packet(local, from, 0, bytes);
        self.stats.cached += cache.hits() - before;
        self.pump(Unit::Cache(index));
    }

    /// Nodes lose the caches, or all but caches and switches lose a node, which may lend on.
    pub(super) fn part_caches(&mut self) {
        let nodes = (0..self.cast.nodes).map(Role::Node);
        let links: Vec<(Role, Role)> = if self.rng.chance(1, 2) {
            self.note("caches and nodes do not reach each other");
            let caches = (0..self.cast.caches).map(Role::Cache);
            let pairs = caches.flat_map(|it| nodes.clone().map(move |node| (it, node)));
            pairs.flat_map(|(it, node)| [(it, node), (node, it)]).collect()
        } else {
            let lender = Role::Node(self.below(self.cast.nodes));
            self.note(format_args!("only caches and switches reach {lender}"));
            let masters = (0..self.cast.controllers).map(Role::Controller);
            let others = nodes.filter(|node| *node != lender).chain(masters);
            others.flat_map(|it| [(it, lender), (lender, it)]).collect()
        };
        let until = self.now + self.length();
        self.cut_until(until, links);
    }

    /// Sends what a shard of a cache wants sent.
    pub(super) fn pump_cache(&mut self, index: usize) {
        let role = self.role_of_unit(Unit::Cache(index));
        let Some(Some(cache)) = self.caches.get_mut(index) else { return };
        let from = (role, cache_endpoint(u16::try_from(index).expect("few caches")));
        while let Some(datagram) = cache.poll_transmit() {
            let wires = (&mut self.net, &mut self.queue, self.guard.as_deref_mut());
            super::traffic::post(wires, self.now, from, datagram);
        }
    }

    pub(super) fn order_cache(
        &mut self,
        index: u16,
        local: Instant,
        (mandate, order): (&Mandate, &Order),
    ) {
        let shards = self.caches.get_mut(cache_shards(index)).into_iter().flatten().flatten();
        let reports = shards.map(|cache| {
            if let Some(Install::Cache(tables)) = &order.install {
                cache.install(local, tables);
            }
            if let Some(rules_max) = order.rules_max {
                let of_shard = rules_max / cache_shards(index).len() as u64;
                cache.set_rules_max(usize::try_from(of_shard).unwrap_or(usize::MAX));
            }
            cache.report()
        });
        let joined = reports.reduce(|one, other| one.with(&other));
        let Some(state) = joined.map(MemberReport::Cache) else { return };
        let role = Role::Cache(index);
        let report = self.report(role, state);
        cache_shards(index).for_each(|place| self.pump(Unit::Cache(place)));
        self.answer(role, mandate, Reply::Report(Box::new(report)));
    }

    /// Where a switch sends a read whose rules are wrong, in worlds in which switches are blind: to
    /// any cache, or past the one that holds the key.
    pub(super) fn sent_astray_to_a_cache(&mut self, to: Endpoint, payload: &[u8]) -> Endpoint {
        if self.options.caches == 0 || !self.options.load.blind {
            return to;
        }
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else { return to };
        let is_read = Op::from_wire(header.op()) == Some(Op::Get);
        if !is_read || !self.rng.chance(1, 3) {
            return to;
        }
        match role_of(to).0 {
            Role::Node(_) => cache_endpoint(self.below(self.options.caches * CACHE_SHARDS)),
            Role::Cache(_) => {
                let chain = header.chain();
                let tail = chain.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
                let partition = PartitionId(header.partition());
                node_spec(tail, self.options.shards).endpoint_of(partition)
            }
            _ => to,
        }
    }
}

/// The places of a cache's shards.
pub(super) fn cache_shards(index: u16) -> Range<usize> {
    let shards = usize::from(CACHE_SHARDS);
    usize::from(index) * shards..(usize::from(index) + 1) * shards
}

/// Which keys nodes tell caches of: soon, and though they have little to do, as they always have in
/// a world. It is what is lent that is looked at.
pub(super) const TRACKER: TrackerConfig = TrackerConfig {
    metric: LoadMetric { segment: Duration::from_millis(100), newest_permille: 500 },
    periodic: Some(PeriodicReports { keys: 16 }),
    instant: Some(InstantReports { last: 50, more_than: 8, waiting_min: 0 }),
};
