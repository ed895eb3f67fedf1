//! A controller with its store, and members that obey at once unless told otherwise.

use crate::{Controller, ControllerConfig, KeyspaceSpec, MemberState, Saved, Status};
use cluster::{
    KeyspaceKind, Map, Member, NodeId, NodeReport, NodeSpec, Order, PartitionCount, Report,
    StoreId, SwitchCounters,
};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Endpoint;

pub(super) const POLL: Duration = Duration::from_millis(200);

/// Rounds after which a world that still sends orders at one instant is running in circles.
const ROUNDS_MAX: usize = 100;

/// A member as the controller sees it.
#[derive(Clone, Debug)]
pub(super) struct Obedient {
    pub(super) alive: bool,
    /// Installs nothing, though it answers.
    pub(super) stuck: bool,
    pub(super) store: StoreId,
    pub(super) installed: u64,
    pub(super) counts: Vec<PartitionCount>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) config: ControllerConfig,
    pub(super) controller: Controller,
    /// What the store holds.
    pub(super) saved: Option<Saved>,
    pub(super) members: BTreeMap<Member, Obedient>,
    /// Every order delivered.
    pub(super) delivered: Vec<(Member, Order)>,
}

pub(super) fn endpoint(host: u8, port: u16) -> Endpoint {
    Endpoint::from(std::net::SocketAddr::from(([10, 0, 0, host], port)))
}

pub(super) fn node(id: u16) -> Member {
    Member::Node(NodeId(id))
}

pub(super) fn spec_of_node(id: u16) -> NodeSpec {
    NodeSpec { id: NodeId(id), endpoint: endpoint(9, 8_000 + id * 10), shards: 2 }
}

pub(super) fn config(nodes: u16, switches: u8) -> ControllerConfig {
    ControllerConfig {
        seed: 7,
        switches: (0..switches).map(|i| endpoint(i, wire::PORT)).collect(),
        nodes: (0..nodes).map(spec_of_node).collect(),
        poll_interval: POLL,
    }
}

pub(super) fn hash(name: &str, partitions: u32, replicas: u8) -> KeyspaceSpec {
    let kind = KeyspaceKind::Hash;
    KeyspaceSpec { name: name.into(), kind, partitions, replicas, splits: Vec::new() }
}

impl World {
    pub(super) fn new(nodes: u16, switches: u8) -> Self {
        let now = Instant::from_unix_ms(1_000);
        let config = config(nodes, switches);
        let controller = Controller::new(config.clone(), None, now).unwrap();
        let mut world = Self {
            now,
            config,
            controller,
            saved: None,
            members: BTreeMap::new(),
            delivered: Vec::new(),
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

    fn meet_members(&mut self) {
        let switches = (0..).zip(&self.config.switches).map(|(i, _)| Member::Switch(i));
        let nodes = self.config.nodes.iter().map(|n| Member::Node(n.id));
        for (member, store) in switches.chain(nodes).zip(100..) {
            self.members.entry(member).or_insert(Obedient {
                alive: true,
                stuck: false,
                store: StoreId(store),
                installed: 0,
                counts: Vec::new(),
            });
        }
    }

    /// The controller is killed and started again from its store, perhaps reconfigured.
    pub(super) fn restart(&mut self, config: ControllerConfig) {
        self.controller = Controller::new(config.clone(), self.saved.clone(), self.now).unwrap();
        self.config = config;
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
        let it = self.members.get_mut(&member).unwrap();
        if !it.alive {
            return self.controller.handle_silence(self.now, member);
        }
        let revision = match &order {
            Order::Report => 0,
            Order::Tables(tables) => tables.revision,
            Order::Assign(assignment) if assignment.store != it.store => 0,
            Order::Assign(assignment) => assignment.revision,
        };
        if !it.stuck {
            it.installed = it.installed.max(revision);
        }
        let report = self.report_of(member);
        self.controller.handle_report(self.now, member, report);
    }

    pub(super) fn report_of(&self, member: Member) -> Report {
        let it = &self.members[&member];
        let (revision, store) = (it.installed, it.store);
        match member {
            Member::Switch(_) => {
                let partitions = it.counts.clone();
                Report::Switch(SwitchCounters { revision, partitions, ..Default::default() })
            }
            Member::Node(_) => {
                Report::Node(NodeReport { revision, store, requests: 5, pending: 1 })
            }
        }
    }

    /// Time passes to the next instant that the controller asks for.
    pub(super) fn step(&mut self) {
        let at = self.controller.poll_timeout().unwrap();
        assert!(at > self.now, "a drained controller asks for a later instant");
        self.now = at;
        self.controller.handle_timeout(at);
    }

    /// Lives through a few poll intervals.
    pub(super) fn live(&mut self) {
        self.settle();
        let end = self.now + POLL * 3;
        while self.now < end {
            self.step();
            self.settle();
        }
    }

    pub(super) fn status(&self) -> Status {
        self.controller.status(self.now)
    }

    pub(super) fn map(&self) -> Map {
        self.controller.map().clone()
    }

    pub(super) fn state_of(&self, member: Member) -> MemberState {
        let status = self.status();
        status.members.iter().find(|m| m.member == member).unwrap().state
    }

    pub(super) fn member(&mut self, member: Member) -> &mut Obedient {
        self.members.get_mut(&member).unwrap()
    }

    /// The member's process is started anew.
    pub(super) fn restart_member(&mut self, member: Member) {
        self.member(member).installed = 0;
    }

    /// The full orders delivered since the last call.
    pub(super) fn full_orders(&mut self) -> Vec<Member> {
        let delivered = std::mem::take(&mut self.delivered);
        let full = delivered.into_iter().filter(|(_, order)| *order != Order::Report);
        full.map(|(member, _)| member).collect()
    }
}
