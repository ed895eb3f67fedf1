//! A node of a rack: its machine, and the queue before it.

use super::RackSpec;
use super::agenda::{Alarm, Event, Unit};
use super::control::{MAIL, START, node_incarnation};
use super::finding::{Job, source_of};
use super::learning::EveryRead;
use super::meter::Meter;
use super::net::{Net, node_endpoint};
use client::Coordinator;
use cluster::StoreId;
use machine::{Full, Instant, Served, Service};
use node::engine::memory::MemoryEngine;
use node::{ALERT_REST, MemoryLimit, Node, NodeConfig};
use std::num::NonZero;
use wire::Endpoint;

/// A node and the queue before it.
pub(super) struct RackServer {
    pub(super) index: u16,
    pub(super) endpoint: Endpoint,
    pub(super) rate: u32,
    pub(super) machine: Node<MemoryEngine>,
    pub(super) service: Service<Job>,
    /// What passes on requests for others, if nodes do.
    pub(super) coordinator: Option<Coordinator>,
    pub(super) forward_permille: u32,
    /// What tells its cache of all that is read, if caches learn so.
    every_read: Option<EveryRead>,
    pub(super) alarm: Alarm,
    /// Alerts of the machine that were sent on, and when the next may be.
    alerts: u64,
    next_alert: Instant,
    /// Thousandths of requests served in the window of the meter.
    pub(super) served_permille: u64,
}

impl RackServer {
    pub(super) fn new(index: u16, spec: &RackSpec) -> Self {
        let rate = spec.rate_of(index);
        let (incarnation, tracker) = (node_incarnation(index), spec.caches.learning.tracker());
        let config = NodeConfig { shard: 0, shards: 1, incarnation, rate, tracker };
        let engine = MemoryEngine::new(StoreId(u64::from(index) + 1));
        let mut machine = Node::new(config, engine, START);
        machine.limit_memory(spec.store.memory_max.map(MemoryLimit::of));
        Self {
            index,
            endpoint: node_endpoint(index),
            rate,
            machine,
            service: Service::new(NonZero::new(rate).expect("a server serves")),
            coordinator: spec.coordinator(index),
            forward_permille: spec.finding.forward_permille,
            every_read: EveryRead::of(index, spec),
            alarm: Alarm::new(),
            alerts: 0,
            next_alert: START,
            served_permille: 0,
        }
    }

    /// Takes a request, or loses it if there is no room.
    pub(super) fn queue(&mut self, now: Instant, net: &mut Net, work: machine::Work, parcel: u32) {
        let idle = self.service.next_end().is_none();
        if let Err(Full) = self.service.take(now, work, Job::Serve(parcel)) {
            self.lose(net, work, parcel);
        } else if idle {
            self.plan_end(net);
        }
    }

    /// Whether it has nothing to serve, and no write to see through.
    pub(super) fn is_idle(&self) -> bool {
        self.service.next_end().is_none() && self.machine.pending() == 0
    }

    pub(super) fn plan_end(&self, net: &mut Net) {
        if let Some(at) = self.service.next_end() {
            net.agenda.plan(at, Event::Served { node: self.index });
        }
    }

    /// A service ends, and the next one begins.
    pub(super) fn serve(&mut self, now: Instant, net: &mut Net, meter: &Meter) {
        let served = self.service.finish(now).expect("planned for the end of a service");
        let Served { request, waiting } = served;
        if meter.covers(now) {
            self.served_permille += u64::from(request.permille());
        }
        match request {
            Job::Serve(parcel) => self.handle(now, net, parcel, waiting),
            Job::Pass { parcels, .. } => self.pass(now, net, &parcels, waiting),
        }
        self.plan_end(net);
    }

    pub(super) fn handle(&mut self, now: Instant, net: &mut Net, parcel: u32, waiting: u16) {
        let taken = net.take(parcel);
        self.machine.handle_packet(now, source_of(&taken), waiting, &taken.bytes);
        if let Some(every_read) = &mut self.every_read {
            every_read.see(now, self.endpoint, &taken.bytes, net);
        }
        net.put_back(parcel, taken);
        self.pump(now, net);
    }

    pub(super) fn wake(&mut self, now: Instant, net: &mut Net, _: &Meter) {
        if self.alarm.rings(now) && self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
        self.pump(now, net);
    }

    /// Lets its answers and alerts go, and sets the alarm.
    pub(super) fn pump(&mut self, now: Instant, net: &mut Net) {
        self.machine.flush().expect("memory does not fail");
        let alerts = self.machine.alerts();
        if alerts != self.alerts && now >= self.next_alert {
            (self.alerts, self.next_alert) = (alerts, now + ALERT_REST);
            net.agenda.plan(now + MAIL, Event::Alert { node: self.index });
        }
        while let Some(datagram) = self.machine.poll_transmit() {
            net.post(now, self.endpoint, datagram);
        }
        if let Some(at) = self.machine.poll_timeout() {
            self.alarm.set(&mut net.agenda, now, Unit::Node(self.index), at);
        }
    }
}
