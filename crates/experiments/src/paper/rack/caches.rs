//! Cache nodes of a rack (SwitchKV): the machine, and the queue before it.
//!
//! Every datagram that a cache takes from a switch or a node costs it one service: a read, whether
//! it is answered or sent on, and what nodes lend, change and report. What the switch says of rules
//! costs nothing. A fetch costs the node that it is for a service, as a read does.

use super::agenda::{Alarm, Event, Unit};
use super::control::{KEYSPACE, START, cache_incarnation};
use super::meter::Meter;
use super::net::{Net, Owner, cache_endpoint, node_endpoint, place_of};
use super::{Caches, Lookup, Rack, RackSpec};
use crate::paper::Load;
use cache::{Cache, CacheConfig, RulePace};
use cluster::{CacheId, CacheSpec, NodeId, Partition};
use machine::{Datagram, Full, Instant, Service, Work};
use node::TrackerConfig;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::time::Duration;
use wire::{CacheReportBody, CacheReports, DropReason, Endpoint, Header, Op, Packet};

/// A cache, and the queue before it.
pub(super) struct CacheNode {
    index: u16,
    endpoint: Endpoint,
    rate: u32,
    pub(super) machine: Cache,
    service: Service<u32>,
    alarm: Alarm,
    lookup: Lookup,
    /// Datagrams served and reads answered in the window of the meter.
    served: u64,
    answered: u64,
}

impl RackSpec {
    /// As the controller knows them.
    pub(super) fn cache_specs(&self) -> Vec<CacheSpec> {
        let spec =
            |index| CacheSpec { id: CacheId(index), endpoint: cache_endpoint(index), shards: 1 };
        (0..self.cache_count()).map(spec).collect()
    }

    pub(super) fn cache_count(&self) -> u16 {
        if self.arm.has_cache_nodes() { self.caches.count } else { 0 }
    }

    /// Requests per second that a cache serves.
    pub(super) fn cache_rate(&self) -> u32 {
        self.pace.node_rate().saturating_mul(self.caches.rate_times)
    }

    /// The cache of the node that a datagram is for, if that is a read and caches are asked first.
    pub(super) fn looked_up_at(&self, datagram: &Datagram<'_>) -> Option<Endpoint> {
        if self.cache_count() == 0 || self.caches.lookup == Lookup::ByRule {
            return None;
        }
        let Owner::Node(node) = place_of(datagram.to) else { return None };
        is_read(datagram.payload).then(|| cache_endpoint(node % self.cache_count()))
    }
}

impl Caches {
    fn rule_pace(self) -> RulePace {
        RulePace { per_second: self.rules_per_s, remove_within: self.remove_within }
    }
}

impl CacheNode {
    pub(super) fn new(index: u16, spec: &RackSpec) -> Self {
        let caches = spec.caches;
        let config = CacheConfig {
            id: CacheId(index),
            shard: (0, 1),
            incarnation: cache_incarnation(index),
            entries_max: usize::try_from(caches.items).expect("32 bits fit"),
            bytes_max: u64::MAX,
            rule_pace: caches.rule_pace(),
            admission: caches.learning.admission(),
            metric: TrackerConfig::default().metric,
        };
        let rate = spec.cache_rate();
        Self {
            index,
            endpoint: cache_endpoint(index),
            rate,
            machine: Cache::new(config, START),
            service: Service::new(NonZero::new(rate).expect("a cache serves")),
            alarm: Alarm::new(),
            lookup: caches.lookup,
            served: 0,
            answered: 0,
        }
    }

    /// Takes a datagram, or loses it if there is no room.
    pub(super) fn arrive(&mut self, now: Instant, net: &mut Net, parcel: u32, free: bool) {
        let work = work_of(&net.slot(parcel).bytes).filter(|_| !free);
        let Some(work) = work else { return self.handle(now, net, parcel, 0) };
        let idle = self.service.next_end().is_none();
        if let Err(Full) = self.service.take(now, work, parcel) {
            self.machine.count_drop(DropReason::QueueFull);
            net.lose(work, parcel);
        } else if idle {
            self.plan_end(net);
        }
    }

    fn plan_end(&self, net: &mut Net) {
        if let Some(at) = self.service.next_end() {
            net.agenda.plan(at, Event::Cached { cache: self.index });
        }
    }

    /// A service ends, and the next one begins.
    pub(super) fn serve(&mut self, now: Instant, net: &mut Net, meter: &Meter) {
        let served = self.service.finish(now).expect("planned for the end of a service");
        let counts = meter.covers(now);
        self.served += u64::from(counts);
        let before = self.machine.hits();
        self.handle(now, net, served.request, served.waiting);
        self.answered += if counts { self.machine.hits() - before } else { 0 };
        self.plan_end(net);
    }

    fn handle(&mut self, now: Instant, net: &mut Net, parcel: u32, waiting: u16) {
        let taken = net.take(parcel);
        self.machine.handle_packet(now, taken.from, waiting, &taken.bytes);
        net.put_back(parcel, taken);
        self.pump(now, net);
    }

    pub(super) fn wake(&mut self, now: Instant, net: &mut Net) {
        if self.alarm.rings(now) && self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        self.pump(now, net);
    }

    /// Lets go what it sends, and sets the alarm.
    pub(super) fn pump(&mut self, now: Instant, net: &mut Net) {
        while let Some(datagram) = self.machine.poll_transmit() {
            if self.lookup == Lookup::Aside && is_read(datagram.payload) {
                // To the client, which hears that it is not held, and from there to the node.
                net.post_by(now, self.endpoint, datagram, ASIDE_CABLES);
            } else {
                net.post(now, self.endpoint, datagram);
            }
        }
        if let Some(at) = self.machine.poll_timeout() {
            self.alarm.set(&mut net.agenda, now, Unit::Cache(self.index), at);
        }
    }
}

fn is_read(bytes: &[u8]) -> bool {
    Packet::parse(bytes).is_ok_and(|it| it.op() == Op::Get)
}

/// What a datagram costs a cache: reads what a node's would, what lenders say waits for nobody.
fn work_of(bytes: &[u8]) -> Option<Work> {
    match Packet::parse(bytes).ok()?.op() {
        Op::Get => Some(Work::Request),
        op if op.is_of_caches() && op != Op::CacheRuled => Some(Work::Chain),
        _ => None,
    }
}

/// What a datagram costs a node: as elsewhere, and what a cache fetches a service.
pub(super) fn node_work_of(bytes: &[u8]) -> Option<Work> {
    match Packet::parse(bytes).ok()?.op() {
        Op::CacheFetch => Some(Work::Chain),
        op => Work::of_op(op),
    }
}

impl Rack {
    /// Begins to count what caches do.
    pub(super) fn count_caches(&mut self) {
        self.cache_nodes.iter_mut().for_each(|it| (it.served, it.answered) = (0, 0));
    }

    /// The switch takes changes of rules at this pace from now on.
    pub(crate) fn set_rule_pace(&mut self, caches: Caches) {
        let now = self.now;
        for cache in &mut self.cache_nodes {
            cache.machine.set_rule_pace(now, caches.rule_pace());
        }
    }

    /// Keys that caches hold now.
    pub(super) fn held_by_caches(&self) -> usize {
        self.cache_nodes.iter().map(|it| it.machine.len()).sum()
    }

    /// Reads that caches have answered in the window, and how busy the busiest was.
    pub(super) fn counted_caches(&self, window: Duration) -> (u64, f64) {
        let busy = |it: &CacheNode| it.served as f64 / f64::from(it.rate) / window.as_secs_f64();
        let busiest = self.cache_nodes.iter().map(busy).fold(0.0, f64::max);
        (self.cache_nodes.iter().map(|it| it.answered).sum(), busiest)
    }

    pub(super) fn with_cache(
        &mut self,
        cache: u16,
        what: impl FnOnce(&mut CacheNode, Instant, &mut Net, &super::Meter),
    ) {
        let node = self.cache_nodes.get_mut(usize::from(cache)).expect("caches are not taken away");
        what(node, self.now, &mut self.net, &self.meter);
    }

    /// Caches are told of the most popular keys, as if nodes had reported them, so often are they
    /// asked for when the rack is asked for this much; and hold them soon.
    pub(super) fn fill_caches(&mut self, load: &Load, rate: f64) {
        if self.cache_nodes.is_empty() || !self.spec.caches.filled || self.caches_filled {
            return;
        }
        self.caches_filled = true;
        self.wait(FOLLOWED_WITHIN);
        let all = u64::from(self.spec.caches.items) * u64::from(self.spec.cache_count());
        // Nodes answer fetches at their pace, and the switch takes rules at its own.
        let items = f64::from(self.spec.caches.items);
        let fetched = all as f64 / f64::from(self.spec.nodes) / f64::from(self.spec.rate_of(0));
        let ruled = items / f64::from(self.spec.caches.rules_per_s);
        let filling = Duration::from_secs_f64(ruled + 2.0 * fetched) + FILL_REST;
        // What is not read counts half as much with each second.
        let told = rate * filling.as_secs_f64().exp2();
        let reports = self.reports(load, told, all.min(self.spec.keys));
        let now = self.now;
        for (node, datagrams) in reports {
            let cache = node.0 % self.spec.cache_count();
            self.with_cache(cache, |cache, _, net, _| {
                for datagram in &datagrams {
                    cache.machine.handle_packet(now, node_endpoint(node.0), 0, datagram);
                }
                cache.pump(now, net);
            });
        }
        self.wait(filling);
    }

    /// Lets time pass without load.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// What nodes would report of the most popular keys.
    fn reports(&self, load: &Load, rate: f64, keys: u64) -> BTreeMap<NodeId, Vec<Vec<u8>>> {
        let map = self.controller.map();
        let keyspace = map.keyspace(KEYSPACE).expect("the rack has one");
        let contents = self.contents.as_ref().expect("the rack is filled");
        let all = self.weight_of_all(load.skew);
        let mut payloads: BTreeMap<NodeId, Vec<Vec<u8>>> = BTreeMap::new();
        for rank in 0..keys {
            let key = contents.names.name(contents.number(rank));
            let at = keyspace.match_value(&key);
            let place = map.partitions.partition_point(|it| it.first <= at);
            let home: Option<&Partition> =
                place.checked_sub(1).and_then(|it| map.partitions.get(it));
            let home = home.expect("partitions cover everything");
            let reads = rate * load.reads() * super::bounds::weight(load.skew, rank) / all;
            let report = CacheReportBody {
                keyspace: keyspace.id.0,
                partition: home.id.0,
                epoch: home.epoch.0,
                match_value: at.0,
                keyhash: keyspace.keyhash(&key),
                rate: (reads.ceil() as u32).max(1),
                key_len: 0,
            };
            let of_node = payloads.entry(home.tail().expect("nothing fails")).or_default();
            CacheReports::add(of_node, &report, &key);
        }
        for (node, payloads) in &mut payloads {
            payloads.iter_mut().for_each(|payload| *payload = report_of(node.0, payload));
        }
        payloads
    }
}

/// The datagram by which a node reports some keys.
pub(super) fn report_of(node: u16, payload: &[u8]) -> Vec<u8> {
    let header = Header { op: Op::CacheReport as u8, node, ..Header::default() };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[payload]);
    datagram
}

/// Cables from a cache to the switch, to a client, back, and to a node.
const ASIDE_CABLES: u32 = 4;

/// A cache takes nothing before the switch has answered it.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(1);

/// What is left is done within this.
const FILL_REST: Duration = Duration::from_millis(500);
