//! A controller with its store, and members that obey at once unless told otherwise.

use super::member::Obedient;
use crate::{Controller, ControllerConfig, KeyspaceSpec, MemberState, Saved, Status};
use cluster::{
    ClusterId, CopyProgress, HotPolicy, KeyspaceKind, Map, Member, MemberReport, NodeId, NodeSpec,
    Order, Partition, Report, Selection, Versions,
};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Endpoint;

pub(super) const POLL: Duration = crate::POLL_INTERVAL;

/// Rounds after which a world that still sends orders at one instant is running in circles.
const ROUNDS_MAX: usize = 1_000;

/// Things that may happen before everything must have come to rest.
const STEPS_MAX: usize = 100_000;

#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) config: ControllerConfig,
    pub(super) controller: Controller,
    /// What the store holds.
    pub(super) saved: Option<Saved>,
    pub(super) members: BTreeMap<Member, Obedient>,
    /// Every order delivered.
    pub(super) delivered: Vec<(Member, Order)>,
    /// Version of what nodes do together in a chain.
    pub(super) chain: u16,
    /// How long a node of a closed chain takes to settle.
    pub(super) settling: Duration,
    /// How long a copy takes.
    pub(super) copying: Duration,
    /// How long a node takes to forget what it holds without a replica.
    pub(super) forgetting: Duration,
}

pub(super) fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(std::net::SocketAddr::from(([10, 0, 0, host], port)))
}

pub(super) fn node(id: u16) -> Member {
    Member::Node(NodeId(id))
}

pub(super) fn ids(nodes: &[u16]) -> Vec<NodeId> {
    nodes.iter().map(|id| NodeId(*id)).collect()
}

pub(super) fn spec_of_node(id: u16) -> NodeSpec {
    NodeSpec { id: NodeId(id), endpoint: endpoint(9, 8_000 + id * 10), shards: 2 }
}

pub(super) fn config(nodes: u16, switches: u8) -> ControllerConfig {
    ControllerConfig {
        seed: 7,
        cluster: ClusterId(0xc1),
        switches: (0..switches).map(|i| endpoint(i, wire::PORT)).collect(),
        nodes: (0..nodes).map(spec_of_node).collect(),
        caches: Vec::new(),
        controls: BTreeMap::new(),
        poll_interval: POLL,
        lease: crate::LEASE,
        overlap: Duration::ZERO,
        copy_bytes_per_s: crate::COPY_BYTES_PER_S,
        hot_selection: Selection::default(),
        content: None,
        load_floor: crate::LOAD_FLOOR,
        split_bytes: crate::SPLIT_BYTES,
    }
}

pub(super) fn hash(name: &str, partitions: u32, replicas: u8) -> KeyspaceSpec {
    let kind = KeyspaceKind::Hash;
    let (splits, hot) = (Vec::new(), HotPolicy::default());
    KeyspaceSpec { name: name.into(), kind, partitions, replicas, splits, hot }
}

impl World {
    pub(super) fn new(nodes: u16, switches: u8) -> Self {
        Self::of(config(nodes, switches))
    }

    pub(super) fn of(config: ControllerConfig) -> Self {
        let now = Instant::from_unix_ms(1_000);
        let controller = Controller::new(config.clone(), None, now).unwrap();
        let mut world = Self {
            now,
            config,
            controller,
            saved: None,
            members: BTreeMap::new(),
            delivered: Vec::new(),
            chain: Versions::ours().chain,
            settling: Duration::ZERO,
            copying: Duration::ZERO,
            forgetting: Duration::ZERO,
        };
        world.meet_members();
        world
    }

    /// A world in which everybody is ready.
    pub(super) fn settled(nodes: u16, switches: u8) -> Self {
        let mut world = Self::new(nodes, switches);
        world.settle();
        assert!(world.status().ready, "{:?}", world.status());
        world
    }

    /// One with a keyspace, in which everybody has been up for a while.
    pub(super) fn with_keyspace(nodes: u16, switches: u8, partitions: u32, replicas: u8) -> Self {
        let mut world = Self::settled(nodes, switches);
        let now = world.now;
        world.controller.create_keyspace(now, hash("a", partitions, replicas)).unwrap();
        world.live_for(Duration::from_secs(3));
        let status = world.status();
        assert!(status.ready && status.covered && status.replicated, "{status:?}");
        world.full_orders();
        world
    }

    fn meet_members(&mut self) {
        let switches = (0..).zip(&self.config.switches).map(|(i, _)| Member::Switch(i));
        let map = self.controller.map();
        let nodes = map.nodes.iter().map(|n| Member::Node(n.id));
        let caches = map.caches.iter().map(|it| Member::Cache(it.id));
        for member in switches.chain(nodes).chain(caches) {
            let number = match member {
                Member::Switch(index) => 200 + u64::from(index),
                Member::Node(id) => 100 + u64::from(id.0),
                Member::Cache(id) => 300 + u64::from(id.0),
            };
            self.members.entry(member).or_insert_with(|| Obedient::new(number));
        }
    }

    /// The controller is killed and started again from its store, perhaps reconfigured.
    pub(super) fn restart(&mut self, config: ControllerConfig) {
        self.controller = Controller::new(config.clone(), self.saved.clone(), self.now).unwrap();
        self.config = config;
        self.meet_members();
        // As the driver does before anything else: the new term is to be durable.
        self.save();
    }

    pub(super) fn add_node(&mut self, id: u16) {
        let control = std::net::SocketAddr::from(([10, 0, 1, 0], 9_000 + id));
        self.controller.add_node(self.now, spec_of_node(id), control).unwrap();
        self.meet_members();
    }

    pub(super) fn save(&mut self) {
        if let Some(saved) = self.controller.poll_save() {
            let revision = saved.map.revision;
            self.saved = Some(saved);
            self.controller.handle_saved(self.now, revision);
        }
    }

    /// Saves and delivers until nothing is left to do at this instant.
    pub(super) fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.save();
            let Some((member, order)) = self.controller.poll_order() else { return };
            self.deliver(member, order);
        }
        panic!("orders without end at one instant: {:?}", self.delivered);
    }

    pub(super) fn deliver(&mut self, member: Member, order: Order) {
        self.delivered.push((member, order.clone()));
        match self.obey(member, &order) {
            Some(report) => self.controller.handle_report(self.now, member, report),
            None => self.controller.handle_silence(self.now, member),
        }
    }

    /// What a member answers to an order, if it is there.
    pub(super) fn obey(&mut self, member: Member, order: &Order) -> Option<Report> {
        let it = self.members.get_mut(&member).filter(|it| it.alive && !it.cut_off)?;
        it.obey(self.now, order);
        Some(self.report_of(member))
    }

    pub(super) fn report_of(&mut self, member: Member) -> Report {
        self.copy();
        let it = &self.members[&member];
        let state = match member {
            Member::Switch(_) => MemberReport::Switch(it.counters()),
            Member::Cache(_) => MemberReport::Cache(it.cache_report()),
            Member::Node(id) => {
                let mut report = it.report(self.now, id, [self.settling, self.forgetting]);
                report.copies = self.copies_of(id);
                MemberReport::Node(Box::new(report))
            }
        };
        Report {
            incarnation: it.tenure.incarnation(),
            at: it.clock(self.now),
            versions: Versions { chain: self.chain, ..Versions::ours() },
            keys: None,
            state,
        }
    }

    /// Copies come to their end: those whose tail and learner have both been there long enough.
    fn copy(&mut self) {
        let all = self.members.values().flat_map(|it| it.partitions().iter());
        let running: Vec<Partition> = all.filter(|p| p.has_learner && p.open).cloned().collect();
        for partition in running {
            let (Some(tail), Some(learner)) = (partition.tail(), partition.learner()) else {
                continue;
            };
            let done = self.copied(&partition, tail).zip(self.copied(&partition, learner));
            if done.is_some_and(|(given, taken)| given >= 1_000 && taken >= 1_000) {
                self.member(Member::Node(learner)).note_caught_up(&partition, learner);
            }
        }
    }

    /// Thousandths of the time that a copy takes, as far as this node is concerned.
    pub(super) fn copied(&self, partition: &Partition, node: NodeId) -> Option<u64> {
        let it = self.members.get(&Member::Node(node)).filter(|it| it.alive)?;
        let copying = self.controller.map().copy_bytes_per_s > 0;
        let entered = it.has_entered(partition).filter(|_| copying)?;
        let (spent, whole) = (self.now.since(entered).as_millis(), self.copying.as_millis());
        let permille = if spent >= whole { 1_000 } else { spent * 1_000 / whole };
        Some(u64::try_from(permille).unwrap())
    }

    fn copies_of(&self, node: NodeId) -> Vec<CopyProgress> {
        let mine = self.members[&Member::Node(node)].partitions().iter();
        let given = mine.filter(|p| p.open && p.has_learner && p.tail() == Some(node));
        let progress = given.map(|p| {
            let permille = self.copied(p, node).unwrap_or(0);
            CopyProgress {
                partition: p.id,
                epoch: p.epoch,
                permille: u16::try_from(permille).unwrap(),
                bytes: permille * 1_000,
            }
        });
        progress.collect()
    }

    /// Time passes to the next instant that the controller asks for.
    pub(super) fn step(&mut self) {
        let at = self.controller.poll_timeout().unwrap();
        assert!(at > self.now, "a drained controller asks for a later instant");
        self.now = at;
        self.controller.handle_timeout(at);
    }

    /// Incarnations through a few poll intervals.
    pub(super) fn live(&mut self) {
        self.live_for(POLL * 3);
    }

    pub(super) fn live_for(&mut self, time: Duration) {
        self.settle();
        let end = self.now + time;
        while self.now < end {
            self.step();
            self.settle();
        }
    }

    /// Incarnations until something holds, looking after every single thing that happens; says how
    /// long that took.
    pub(super) fn live_until(&mut self, holds: impl Fn(&Self) -> bool) -> Duration {
        let begin = self.now;
        for _ in 0..STEPS_MAX {
            if holds(self) {
                return self.now.since(begin);
            }
            if self.controller.durable_revision() < self.controller.map().revision {
                self.save();
            } else if let Some((member, order)) = self.controller.poll_order() {
                self.deliver(member, order);
            } else {
                self.step();
            }
        }
        panic!("it never held: {:#?}", self.status());
    }

    /// Incarnations until losses have been noticed and made good.
    pub(super) fn live_until_replicated(&mut self) {
        self.live_for(crate::LEASE * 2);
        self.live_until(|world| world.status().replicated);
    }

    pub(super) fn status(&self) -> Status {
        self.controller.status(self.now)
    }

    pub(super) fn map(&self) -> Map {
        self.controller.map().clone()
    }

    pub(super) fn partition(&self, index: usize) -> Partition {
        self.controller.map().partitions[index].clone()
    }

    /// How many replicas each node has, by id.
    pub(super) fn replicas_held(&self) -> Vec<usize> {
        self.status().load.iter().map(|node| node.partitions).collect()
    }

    pub(super) fn state_of(&self, member: Member) -> MemberState {
        let status = self.status();
        status.members.iter().find(|m| m.member == member).unwrap().state
    }

    pub(super) fn detail_of(&self, member: Member) -> String {
        let status = self.status();
        status.members.iter().find(|m| m.member == member).unwrap().detail.clone()
    }

    pub(super) fn member(&mut self, member: Member) -> &mut Obedient {
        self.members.get_mut(&member).unwrap()
    }

    pub(super) fn kill(&mut self, member: Member) {
        self.member(member).alive = false;
    }

    /// A member that was killed comes back with what it had.
    pub(super) fn revive(&mut self, member: Member) {
        self.member(member).restart();
        self.member(member).alive = true;
    }

    /// The full orders delivered since the last call.
    pub(super) fn full_orders(&mut self) -> Vec<Member> {
        let delivered = std::mem::take(&mut self.delivered);
        let full = delivered.into_iter().filter(|(_, order)| order.install.is_some());
        full.map(|(member, _)| member).collect()
    }
}
