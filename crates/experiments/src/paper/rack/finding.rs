//! Who finds the nodes that requests are for (TurboKV, section 8), and what that takes.

use super::net::{Net, Owner, Parcel, SERVICE, client_endpoint, coordinator_endpoint, place_of};
use super::{Rack, RackServer, RackSpec};
use client::{Coordination, Coordinator, Routes};
use machine::{Full, Instant, Rng, Work};
use std::sync::Arc;
use wire::{DropReason, Endpoint, Fields as _, Packet};

/// Who finds the nodes that requests are for, and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Who does.
    pub by: Finder,
    /// What it takes a node to pass on what is for another, in thousandths of what it takes it to
    /// serve a request.
    pub forward_permille: u32,
    /// Cables that a datagram passes which no switch program looks at.
    pub cables_past: u32,
}

/// Who finds the nodes that requests are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finder {
    /// The switch on the way.
    Switch,
    /// Each client, by a map that is never old.
    Clients,
    /// Any node, by a map that is never old: requests go to nodes at random.
    Nodes,
}

impl Finding {
    /// As in Pegasus' evaluation: by the switch. Nodes are one cable from each other, as if they
    /// had a network of their own.
    pub const PEGASUS: Self = Self { by: Finder::Switch, forward_permille: 0, cables_past: 1 };
}

impl Finder {
    /// All of them, as figures show them.
    pub const ALL: [Self; 3] = [Self::Switch, Self::Clients, Self::Nodes];

    /// What tables and plots call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Switch => "in-switch",
            Self::Clients => "client-driven",
            Self::Nodes => "server-driven",
        }
    }

    /// What users call it.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Clients => "client",
            Self::Nodes => "server",
        }
    }
}

impl RackSpec {
    /// What passes on requests for others beside this node, if nodes do.
    pub(super) fn coordinator(&self, node: u16) -> Option<Coordinator> {
        let address = coordinator_endpoint(node);
        // It asks nothing by itself but multigets, which there are none of.
        let (id, rng) = (COORDINATOR_IDS + u64::from(node), Rng::new(node.into()));
        (self.finding.by == Finder::Nodes).then(|| Coordinator::new(address, SERVICE, id, rng))
    }
}

/// Ids of coordinators; those of clients are below.
const COORDINATOR_IDS: u64 = 1 << 32;

impl Rack {
    /// Whoever coordinates hears of a new map at once: the others are compared with in the best
    /// case, as in TurboKV's evaluation.
    pub(super) fn tell_map(&mut self) {
        let map = self.controller.map();
        match self.spec.finding.by {
            _ if self.filling => {}
            Finder::Switch => {}
            Finder::Clients => {
                for (index, user) in (0..).zip(&mut self.users) {
                    let routes = Routes::new(map, client_endpoint(index));
                    user.machine.coordinate(Coordination::Client(Arc::new(routes)));
                }
            }
            Finder::Nodes => {
                let all: Arc<[Endpoint]> = (0..self.spec.nodes).map(coordinator_endpoint).collect();
                for user in &mut self.users {
                    user.machine.coordinate(Coordination::Coordinators(Arc::clone(&all)));
                }
                let coordinators = self.nodes.iter_mut().filter_map(|it| it.coordinator.as_mut());
                coordinators.for_each(|coordinator| coordinator.install(map));
            }
        }
    }
}

/// What waits before a node, as parcels.
#[derive(Debug)]
pub(super) enum Job {
    /// It is to be served.
    Serve(u32),
    /// What came to the node's coordinator has become these, each for the node that it is for, and
    /// takes so much.
    Pass { parcels: Vec<u32>, permille: u32 },
}

impl Job {
    pub(super) fn permille(&self) -> u32 {
        match self {
            Self::Serve(_) => SERVED_PERMILLE,
            Self::Pass { permille, .. } => *permille,
        }
    }
}

const SERVED_PERMILLE: u32 = 1_000;

impl RackServer {
    /// Takes a request that may be for other nodes, or loses it if there is no room. What is for
    /// this node is served, what is for another costs what it takes to pass it on.
    pub(super) fn coordinate(&mut self, now: Instant, net: &mut Net, parcel: u32) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let taken = net.take(parcel);
        coordinator.handle_packet(now, taken.from, &taken.bytes);
        let (mut parcels, mut permille) = (Vec::new(), 0);
        while let Some(datagram) = coordinator.poll_transmit() {
            let here = datagram.to == self.endpoint;
            permille += if here { SERVED_PERMILLE } else { self.forward_permille };
            let from = if here { taken.from } else { coordinator_endpoint(self.index) };
            parcels.push(net.keep(from, datagram));
        }
        net.put_back(parcel, taken);
        let idle = self.service.next_end().is_none();
        let job = Job::Pass { parcels: parcels.clone(), permille };
        if let Err(Full) = self.service.take_for(now, Work::Request, permille, job) {
            parcels.into_iter().for_each(|parcel| self.lose(net, Work::Request, parcel));
        } else if idle {
            self.plan_end(net);
        }
    }

    /// What was for this node is served, and the rest leaves.
    pub(super) fn pass(&mut self, now: Instant, net: &mut Net, parcels: &[u32], waiting: u16) {
        for parcel in parcels {
            if net.slot(*parcel).to == self.endpoint {
                self.handle(now, net, *parcel, waiting);
            } else {
                net.send(now, *parcel);
            }
        }
    }

    /// There was no room for it.
    pub(super) fn lose(&mut self, net: &mut Net, work: Work, parcel: u32) {
        self.machine.count_drop(DropReason::QueueFull);
        net.lose(work, parcel);
    }
}

/// Whom a node answers. What a coordinator has passed on it answers the client, as if that had sent
/// it: TurboKV's servers pass requests on and no answers back. (A node of a real cluster believes
/// no address in a packet, and answers the coordinator.)
pub(super) fn source_of(parcel: &Parcel) -> Endpoint {
    match (place_of(parcel.from), Packet::parse(&parcel.bytes)) {
        (Owner::Coordinator(_), Ok(packet)) => {
            let header = packet.header();
            Endpoint { addr: header.reply_addr(), port: header.reply_port() }
        }
        _ => parcel.from,
    }
}
