//! A controller's store that is lost, or replaced by an older copy, until somebody notices. Then
//! the newest is put back or, in half of the worlds, the map is made anew from what nodes have on
//! record.

use super::World;
use super::faults::{Harm, Relief};
use super::process::ProcessState;
use crate::queue::Event;
use crate::role::Role;
use cluster::{Incarnation, MaybeMutant, NodeId, NodeRecord, ShardRecord, SwitchRecord};
use controller::{Basis, Saved, rebuild};
use std::collections::BTreeSet;
use std::time::Duration;

impl World {
    /// Stops the controller and takes its store away, or puts an older copy of it back.
    pub(super) fn lose_map(&mut self) {
        if self.loses_maps() {
            let Some(newest) = self.saved.clone() else { return };
            self.note(format_args!("the map is lost: revision {}", newest.map.revision));
            self.newest_map = Some(newest);
            let role = Role::Controller(self.leader);
            if self.process(role).is_up() {
                self.crash(role, Harm::None);
            }
        } else if !self.put_old_map_back() {
            return;
        }
        self.stats.maps_aged += 1;
        let until = self.now + Duration::from_secs(1) + self.length();
        self.queue.schedule(until, Event::Relief(Relief::Map));
    }

    /// The older copy says of nodes that are down what was so once, and they do not contradict it.
    fn put_old_map_back(&mut self) -> bool {
        let role = Role::Controller(self.leader);
        let nodes = (0..self.cast.nodes).map(Role::Node);
        let all_up = nodes.chain([role]).all(|role| self.process(role).state == ProcessState::Up);
        let Some(old) = self.old_maps.front().cloned().filter(|_| all_up) else { return false };
        self.note(format_args!("an old map is put back: revision {}", old.map.revision));
        self.crash(role, Harm::None);
        self.newest_map = self.saved.replace(old);
        true
    }

    /// Whether maps are made anew in this world.
    fn rebuilds(&self) -> bool {
        self.options.seed.is_multiple_of(2)
    }

    /// Whether stores are lost in this world and no older copy is found.
    fn loses_maps(&self) -> bool {
        self.options.seed.is_multiple_of(4)
    }

    /// Whether there is no map now that a controller could begin with.
    pub(super) fn has_no_map(&self) -> bool {
        self.newest_map.is_some() && self.loses_maps()
    }

    /// Somebody has noticed. Nodes that are down or still have leases are waited for.
    pub(super) fn mend_map(&mut self) {
        if self.newest_map.is_none() || !self.rebuilds() {
            return self.put_newest_map_back();
        }
        if !(0..self.cast.nodes).all(|node| self.is_up_without_lease(node)) {
            return self.queue.schedule(self.now + ASK_AGAIN, Event::Relief(Relief::Map));
        }
        match self.make_map_anew() {
            Ok(made) => {
                self.note(format_args!("the map is made anew: revision {}", made.map.revision));
                self.stats.maps_rebuilt += 1;
                self.note_changes(&made);
                let recorded = (0..self.cast.nodes).map(|node| self.record(node).revision).max();
                self.altered.forget_after(recorded.unwrap_or_default());
                self.newest_map = None;
                self.begin_with(made);
            }
            Err(why) => {
                self.note(format_args!("the map is not made anew: {why}"));
                self.put_newest_map_back();
            }
        }
    }

    pub(super) fn put_newest_map_back(&mut self) {
        let Some(newest) = self.newest_map.take() else { return };
        self.note(format_args!("the newest map is put back: revision {}", newest.map.revision));
        self.begin_with(newest);
    }

    fn begin_with(&mut self, saved: Saved) {
        self.saved = Some(saved);
        let role = Role::Controller(self.leader);
        if self.process(role).is_up() {
            self.crash(role, Harm::None);
        } else {
            self.schedule_restart(role, self.now);
        }
    }

    /// From what all nodes have on record. A node that has come back with less than it had, and was
    /// not found out by the controller that knew better, is nobody's fault here: two losses at once
    /// are not promised to be seen.
    fn make_map_anew(&mut self) -> Result<Saved, String> {
        let older = self.saved.clone().filter(|_| !self.loses_maps());
        let newest = self.newest_map.clone().ok_or("nothing is lost")?;
        let known = self.saved.replace(newest.clone());
        self.forget_the_healed();
        self.saved = known;
        if !self.aged.is_empty() || !self.forgetful(&newest).is_empty() {
            return Err("a disk was harmed as well".to_owned());
        }
        let records: Vec<NodeRecord> = (0..self.cast.nodes).map(|node| self.record(node)).collect();
        let config = self.controller_config();
        let pipelines = self.switches.iter().filter_map(|it| it.pipeline.as_ref());
        let switches: Vec<SwitchRecord> =
            pipelines.map(|it| SwitchRecord { revision: it.revision() }).collect();
        let without = BTreeSet::new();
        let mutant = self.options.mutant.map(MaybeMutant::of).unwrap_or_default();
        let basis = Basis {
            config: &config,
            records: &records,
            switches: &switches,
            without: &without,
            older: older.as_ref(),
            mutant,
        };
        rebuild(&basis, self.now).map(|made| made.saved).map_err(|error| error.to_string())
    }

    fn is_up_without_lease(&self, node: u16) -> bool {
        let local = self.process(Role::Node(node)).clock.clone().read(self.now);
        let shards = self.shards.get(self.shards_of(node)).unwrap_or_default();
        let without = |it: &node::Node<_>| !it.is_leased(local);
        shards.iter().all(|shard| shard.machine.as_ref().is_some_and(without))
    }

    fn record(&self, node: u16) -> NodeRecord {
        let shards = self.shards.get(self.shards_of(node)).unwrap_or_default();
        let machines = shards.iter().filter_map(|shard| shard.machine.as_ref());
        let records: Vec<ShardRecord> = machines.map(node::Node::on_record).collect();
        let incarnation: Incarnation = self.process(Role::Node(node)).incarnation;
        let store = self.store(node).unwrap_or_default();
        NodeRecord::of_shards((NodeId(node), store, incarnation), false, &records)
    }
}

/// How often an operator looks whether all nodes are there.
const ASK_AGAIN: Duration = Duration::from_millis(200);
