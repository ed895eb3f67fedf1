//! Who crashes, and who comes back with what.

use super::{SERVICE, World, endpoint};
use crate::net::{Event, Role};
use cluster::NodeId;
use controller::{Controller, ControllerConfig};
use node::{Node, NodeConfig};
use std::time::Duration;
use switch::Pipeline;

impl World {
    pub(super) fn schedule_crash(&mut self) {
        let mean = u64::try_from(self.options.crash_every.as_nanos()).expect("short");
        if mean > 0 && !self.healed {
            let wait = Duration::from_nanos(mean / 2 + self.rng.below(mean));
            self.net.schedule(self.now + wait, Event::Crash);
        }
    }

    pub(super) fn crash(&mut self) {
        if self.healed {
            return;
        }
        let role = match self.rng.below(10) {
            0..2 => Role::Switch,
            2..4 => Role::Controller,
            _ => {
                let node = self.rng.below(u64::from(self.options.nodes));
                Role::Node(u16::try_from(node).expect("below a 16-bit number"))
            }
        };
        match role {
            Role::Switch => self.switch = None,
            Role::Controller => self.controller = None,
            Role::Node(node) => {
                for shard in self.shards.iter_mut().filter(|s| s.node == NodeId(node)) {
                    let Some(machine) = shard.machine.take() else { continue };
                    let mut disk = machine.into_engine();
                    disk.crash();
                    shard.disk = Some(disk);
                }
            }
        }
        self.stats.crashes += 1;
        let wait = Duration::from_micros(100 + self.rng.below(400_000));
        self.net.schedule(self.now + wait, Event::Restart(role));
    }

    pub(super) fn restart(&mut self, role: Role) {
        match role {
            Role::Switch if self.switch.is_none() => self.switch = Some(Pipeline::new()),
            Role::Controller if self.controller.is_none() => {
                let config = ControllerConfig {
                    seed: self.options.seed,
                    switches: vec![endpoint(SERVICE)],
                    nodes: self.specs.clone(),
                    poll_interval: Duration::from_millis(100),
                };
                let controller = Controller::new(config, self.saved.clone(), self.now);
                self.controller = Some(controller.expect("a sound configuration"));
            }
            Role::Node(node) => {
                for shard in self.shards.iter_mut().filter(|s| s.node == NodeId(node)) {
                    let Some(disk) = shard.disk.take() else { continue };
                    let config = NodeConfig { shard: shard.index, shards: self.options.shards };
                    let mut machine = Node::new(config, disk, self.now + shard.ahead);
                    if let Some(plant) = self.options.plant {
                        machine.plant(plant);
                    }
                    shard.machine = Some(machine);
                }
            }
            Role::Switch | Role::Controller => {}
        }
    }

    /// Ends all faults and asks every client for some more requests.
    pub(super) fn heal(&mut self) {
        self.healed = true;
        self.net.heal();
        self.restart(Role::Switch);
        self.restart(Role::Controller);
        for node in 0..self.options.nodes {
            self.restart(Role::Node(node));
        }
        self.run_until(World::is_ready);
        for actor in &mut self.actors {
            actor.heal(HEALED_REQUESTS);
        }
    }
}

/// Requests of each client on the healed network.
const HEALED_REQUESTS: usize = 10;
