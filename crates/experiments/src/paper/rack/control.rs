//! The control plane of a rack: what the controller orders reaches its member, and the member's
//! report comes back, both some time later and none of them lost.

use super::agenda::{Event, Unit};
use super::net::{SERVICE, node_endpoint};
use super::{Rack, RackServer, RackSpec};
use cluster::{
    CacheId, ClusterId, HotPolicy, Incarnation, Install, Map, Member, MemberReport, NodeId,
    NodeReport, NodeSpec, Order, PartitionId, Report, SwitchControl as _, Versions,
};
use controller::{
    COPY_BYTES_PER_S, ControllerConfig, KeyspaceSpec, LEASE, POLL_INTERVAL, SPLIT_BYTES,
};
use machine::Instant;
use node::engine::Engine as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Something between the controller and a member.
#[derive(Debug)]
pub(super) enum Mail {
    Order(Member, Box<Order>),
    Report(Member, Box<Report>),
}

/// Replicas that nodes were given after others had been there, whatever for.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub(super) begun: u64,
    /// Who is being given what.
    learners: BTreeSet<(PartitionId, NodeId)>,
}

impl Copies {
    /// The map is another one.
    fn see(&mut self, map: &Map) {
        let now = map.partitions.iter().filter_map(|it| Some((it.id, it.learner()?)));
        let before = std::mem::replace(&mut self.learners, now.collect());
        self.begun += self.learners.difference(&before).count() as u64;
    }
}

/// How the controller of such a rack is configured.
pub(super) fn configuration(spec: &RackSpec) -> ControllerConfig {
    let RackSpec { nodes, seed, selection, .. } = *spec;
    let node = |id| NodeSpec { id: NodeId(id), endpoint: node_endpoint(id), shards: 1 };
    ControllerConfig {
        seed,
        cluster: ClusterId(seed),
        switches: vec![SERVICE],
        nodes: (0..nodes).map(node).collect(),
        caches: spec.cache_specs(),
        controls: BTreeMap::new(),
        poll_interval: POLL_INTERVAL,
        lease: LEASE,
        overlap: Duration::ZERO,
        copy_bytes_per_s: COPY_BYTES_PER_S,
        hot_selection: selection,
        content: None,
        load_floor: spec.store.load_floor.unwrap_or(u64::MAX),
        split_bytes: spec.store.load_floor.map_or(u64::MAX, |_| SPLIT_BYTES),
    }
}

impl Rack {
    /// Saves what the controller has decided, which takes no time, and sends its orders.
    pub(super) fn pump_controller(&mut self) {
        let mut is_new = false;
        while let Some(saved) = self.controller.poll_save() {
            self.controller.handle_saved(self.now, saved.map.revision);
            self.copies.see(&saved.map);
            is_new = true;
        }
        if is_new {
            self.tell_map();
        }
        while let Some((to, order)) = self.controller.poll_order() {
            self.mail(Mail::Order(to, Box::new(order)));
        }
        if let Some(at) = self.controller.poll_timeout() {
            self.controller_alarm.set(&mut self.net.agenda, self.now, Unit::Controller, at);
        }
    }

    pub(super) fn wake_controller(&mut self) {
        if self.controller_alarm.rings(self.now) {
            if self.controller.poll_timeout().is_some_and(|at| at <= self.now) {
                self.controller.handle_timeout(self.now);
            }
            self.pump_controller();
        }
    }

    /// All mail takes equally long, so that it arrives in the order in which it is sent.
    fn mail(&mut self, mail: Mail) {
        self.post.push_back(mail);
        self.net.agenda.plan(self.now + MAIL, Event::Mail);
    }

    /// The next mail arrives.
    pub(super) fn mail_arrives(&mut self) {
        match self.post.pop_front().expect("one for each event") {
            Mail::Order(Member::Switch(_), order) => self.order_switch(&order),
            Mail::Order(Member::Node(node), order) => self.order_node(node, &order),
            Mail::Order(Member::Cache(cache), order) => self.order_cache(cache, &order),
            Mail::Report(from, report) => {
                self.controller.handle_report(self.now, from, *report);
                self.pump_controller();
            }
        }
    }

    /// A node wants its report to be asked for.
    pub(super) fn alert_arrives(&mut self, node: u16) {
        self.controller.handle_alert(self.now, NodeId(node));
        self.pump_controller();
    }

    fn order_switch(&mut self, Order { install, lease, hot, .. }: &Order) {
        if let Some(Install::Tables(tables)) = install {
            self.switch.install(tables).expect("tables of a sound map");
        }
        if let Some(lease) = lease {
            self.switch.renew(self.now, lease);
        }
        if let Some(hot) = hot {
            self.switch.install_hot(hot).expect("few keys");
        }
        let state = MemberReport::Switch(self.switch.counters());
        let report = Report {
            incarnation: SWITCH_INCARNATION,
            at: self.now,
            versions: Versions::ours(),
            keys: None,
            state,
        };
        self.mail(Mail::Report(Member::Switch(0), Box::new(report)));
    }

    fn order_node(&mut self, node: NodeId, order: &Order) {
        let Order { install, clock, lease, direct, hot, .. } = order;
        let now = self.now;
        let Some(server) = self.nodes.get_mut(usize::from(node.0)) else { return };
        let machine = &mut server.machine;
        if let Some(Install::Assignment(assignment)) = install
            && machine.engine().store_id() == assignment.store
        {
            machine.install(now, assignment);
        }
        if let Some(clock) = clock {
            machine.set_clock(clock);
        }
        if let Some(lease) = lease {
            machine.renew(lease);
        }
        if let Some(lease) = direct {
            machine.renew_direct(lease);
        }
        if let Some(hot) = hot {
            machine.install_hot(now, Arc::clone(hot));
        }
        server.pump(now, &mut self.net);
        let report = server.machine.report(now);
        let state = MemberReport::Node(Box::new(self.as_heard(report)));
        let report = Report {
            incarnation: node_incarnation(node.0),
            at: now,
            versions: Versions::ours(),
            keys: None,
            state,
        };
        self.mail(Mail::Report(Member::Node(node), Box::new(report)));
    }

    fn order_cache(&mut self, id: CacheId, Order { install, .. }: &Order) {
        let now = self.now;
        let Some(cache) = self.cache_nodes.get_mut(usize::from(id.0)) else { return };
        if let Some(Install::Cache(tables)) = install {
            cache.machine.install(now, tables);
        }
        cache.pump(now, &mut self.net);
        let report = Report {
            incarnation: cache_incarnation(id.0),
            at: now,
            versions: Versions::ours(),
            keys: None,
            state: MemberReport::Cache(cache.machine.report()),
        };
        self.mail(Mail::Report(Member::Cache(id), Box::new(report)));
    }

    /// A node's report without the keys that the controller is not to hear of.
    fn as_heard(&self, mut report: NodeReport) -> NodeReport {
        if let (Some(most), Some(contents)) = (self.spec.hot_keys_max, &self.contents) {
            let rank = |key: &[u8]| contents.names.index(key).map(|it| contents.rank(it));
            report.hot.retain(|it| rank(&it.key).is_some_and(|rank| rank < most));
        }
        report
    }

    /// Lets the cluster form, creates the keyspace and waits until everybody serves it.
    pub(super) fn form(&mut self) {
        let end = self.now + FORM_MAX;
        self.pump_controller();
        while self.controller.map().keyspace(KEYSPACE).is_none() {
            assert!(self.step(end), "all nodes report within {FORM_MAX:?}");
            let spec = self.spec.arm.keyspace(KeyspaceSpec {
                name: KEYSPACE.to_owned(),
                kind: self.spec.kind(),
                partitions: self.spec.partitions(),
                replicas: self.spec.replicas,
                splits: self.spec.splits(),
                hot: HotPolicy::Off,
            });
            // Refused as long as a node has not been heard of.
            if self.controller.create_keyspace(self.now, spec).is_ok() {
                self.pump_controller();
            }
        }
        if self.spec.store.load_floor.is_none() && self.spec.store.memory_max.is_some() {
            // Else what no load moves would move for want of room.
            self.controller.pause_placement(self.now);
            self.pump_controller();
        }
        while !self.serves() {
            assert!(self.step(end), "a keyspace is served within {FORM_MAX:?}");
        }
    }

    /// Whether all have the newest map, and the right to serve by it.
    fn serves(&self) -> bool {
        let (now, revision) = (self.now, self.controller.map().revision);
        let ready = |server: &RackServer| {
            server.machine.is_leased(now) && server.machine.report(now).revision == revision
        };
        self.switch.is_leased(now)
            && self.switch.revision() == revision
            && self.nodes.iter().all(ready)
    }
}

/// The incarnation of the switch.
pub(super) const SWITCH_INCARNATION: Incarnation = Incarnation(1);

/// The incarnation of a node.
pub(super) fn node_incarnation(node: u16) -> Incarnation {
    Incarnation(u64::from(node) + 2)
}

/// The incarnation of a cache.
pub(super) fn cache_incarnation(cache: u16) -> Incarnation {
    Incarnation(u64::from(cache) + (1 << 32))
}

/// When a rack begins: not zero, so that nothing works by accident only at the beginning of time.
pub(super) const START: Instant = Instant::from_unix_ms(1_000_000);

/// The one keyspace.
pub(super) const KEYSPACE: &str = "paper";

/// An order's way, and a report's: a connection within a rack.
pub(super) const MAIL: Duration = Duration::from_micros(200);

/// How long a cluster may take to form.
const FORM_MAX: Duration = Duration::from_secs(10);
