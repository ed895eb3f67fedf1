//! The second phase: all faults end, and what was promised for that must come true within a bounded
//! time.

use super::{Unit, World};
use crate::actor::{Actor, ReadBy, keys};
use crate::options::Faults;
use crate::role::Role;
use cluster::{Map, Match, NodeId, NodeReport, Partition};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::{ManifestBody, PartKey, Version};

impl World {
    /// Heals the world and looks at what becomes of it: replication is back, everybody agrees,
    /// every request is answered, replicas are equal, and all that was written can be read.
    pub(super) fn finish(&mut self) {
        for actor in &mut self.actors {
            actor.rest();
        }
        self.heal();
        let began = self.now;
        self.resume_copies();
        let healed_max = self.healed_max();
        if self.settles_within(healed_max, Self::has_recovered) {
            self.stats.healed_within = self.now.since(began);
        } else {
            let why = self.status_in_words();
            let text = format!("not recovered {healed_max:?} after the last fault: {why}");
            return self.history.violation(text);
        }
        self.let_leases_lapse();
        let now = self.now;
        for actor in &mut self.actors {
            actor.be_patient(now, &mut self.history);
        }
        if !self.options.faults.full_every.is_zero() {
            self.fill_memory();
        }
        for index in 0..self.actors.len() {
            self.actor_goes_on(index, |actor| actor.work_on(now, HEALED_REQUESTS, HEALED_THINK));
        }
        self.wait_for_actors();
        self.make_all_room();
        self.keep_turning();
        self.read_all();
        self.come_to_rest();
        // To compare replicas makes them count anew.
        self.check_totals();
        self.rot_and_verify();
        // What came back from delegations since is as it was there.
        self.read_all();
        self.come_to_rest();
        self.wait_for_parts();
        self.check_parts();
        self.check_switches();
        self.check_replicas();
        self.check_totals();
        self.check_equal(self.leader);
        self.check_altered();
        self.wait_for_loads();
        self.count_epochs();
    }

    /// Waits for the last that faults do: a switch that was not heard while they lasted may find
    /// only now that its lease has ended, and then forgets its directory once more.
    fn let_leases_lapse(&mut self) {
        self.run_until(self.now + self.options.lease * 2, |_| false);
        self.settles_within(QUIET_MAX, Self::has_recovered);
    }

    /// One client reads all keys, and must be answered.
    fn read_all(&mut self) {
        let (now, keys) = (self.now, keys(&self.options.load));
        self.actor_goes_on(0, |actor| actor.read(now, keys, ReadBy::Get));
        self.wait_for_actors();
    }

    /// Waits until nothing is under way: no write, and no delegation, which end when nobody writes.
    fn come_to_rest(&mut self) {
        let rests = |world: &Self| {
            world.is_quiet() && world.has_recovered() && world.delegations_are_over()
        };
        if !self.settles_within(QUIET_MAX, rests) {
            let why = self.status_in_words();
            self.history.violation(format!("no rest in a healed world: {why}"));
        }
    }

    /// Waits until nobody holds parts of what is no value.
    fn wait_for_parts(&mut self) {
        let gone = |world: &Self| {
            let machines = world.shards.iter().filter_map(|shard| shard.machine.as_ref());
            world.is_quiet() && machines.map(node::Node::uploads).sum::<usize>() == 0
        };
        if !self.settles_within(PARTS_MAX, gone) {
            self.history.violation("parts of what is no value are never dropped".into());
        }
    }

    /// Whoever has a part has the manifest that names it, and the other way round. Nodes without a
    /// replica record are not asked: one that was removed while it forgot a partition has some of
    /// it still.
    fn check_parts(&mut self) {
        let mut wrong = Vec::new();
        let machines = self.shards.iter().filter_map(|shard| shard.machine.as_ref());
        for shard in machines.filter(|it| it.partitions() > 0) {
            let (mut wanted, mut there) = (BTreeSet::new(), BTreeSet::new());
            for ((keyspace, at, key), value) in shard.engine().big_values() {
                if PartKey::parse(key).is_some() {
                    there.insert((*keyspace, *at, key.clone()));
                } else if let Some(manifest) = ManifestBody::parse(key, value) {
                    let upload = manifest.upload();
                    let parts = (0..manifest.parts()).map(|index| PartKey { key, upload, index });
                    wanted.extend(parts.map(|part| (*keyspace, *at, part.to_bytes())));
                }
            }
            let lost: Vec<_> = wanted.difference(&there).collect();
            let left: Vec<_> = there.difference(&wanted).collect();
            if !lost.is_empty() || !left.is_empty() {
                wrong
                    .push(format!("parts that are missing: {lost:?}; that nobody needs: {left:?}"));
            }
        }
        for text in wrong {
            self.history.violation(text);
        }
    }

    fn delegations_are_over(&self) -> bool {
        let Some(controller) = self.controller() else { return false };
        let status = controller.status(self.now);
        let mut generations = status.hot.iter().filter_map(|it| it.generation);
        generations.all(|generation| generation.delegation.is_none())
    }

    /// Ends all faults: everybody is up again, with what is left.
    fn heal(&mut self) {
        self.healed = true;
        self.put_newest_map_back();
        self.net.heal();
        self.make_all_room();
        self.end_all_leaving();
        self.store.is_full = false;
        for role in self.cast.roles() {
            self.go_on(role);
            self.start(role);
        }
    }

    /// How long a healed world may take to full replication. Copies of a flooded partition made one
    /// after another are to be waited for.
    pub(super) fn healed_max(&self) -> Duration {
        let flood = self.options.load.flood as u64 * FLOODED_BYTES;
        let copies = u64::from(self.options.replicas) * flood;
        HEALED_MAX + Duration::from_secs(copies / self.options.copy_bytes_per_s)
    }

    pub(super) fn actor_goes_on(&mut self, index: usize, how: impl FnOnce(&mut Actor)) {
        if let Some(actor) = self.actors.get_mut(index) {
            how(actor);
        }
        self.pump(Unit::Actor(index));
    }

    pub(super) fn wait_for_actors(&mut self) {
        let end = self.now + ANSWERED_MAX;
        let idle = |world: &Self| world.actors.iter().all(Actor::is_idle);
        if !self.run_until(end, idle) {
            let left: usize = self.actors.iter().map(Actor::waiting).sum();
            self.history.violation(format!("{left} requests never ended"));
        }
    }

    /// Lets time pass until this is so; looks every now and then, for it may take long to tell.
    pub(super) fn settles_within(&mut self, most: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + most;
        while self.now < end {
            if is_so(self) {
                return true;
            }
            self.run_until(self.now + LOOK_EVERY, |_| false);
        }
        is_so(self)
    }

    /// Whether the controller says that every partition has all its replicas and everybody follows,
    /// and nobody holds anything who is to hold nothing.
    pub(super) fn has_recovered(&self) -> bool {
        let Some(controller) = self.controller() else { return false };
        if self.keyspaces.is_none() {
            return false;
        }
        let Some(saved) = &self.saved else { return false };
        let departs = |node: &NodeId| saved.departing.contains(node);
        let mut partitions = controller.map().partitions.iter();
        let whole = |it: &Partition| it.open && !it.has_learner && !it.chain.iter().any(departs);
        if !partitions.all(whole) {
            return false;
        }
        // By the world's time, which is near enough for what is asked here.
        let status = controller.status(self.now);
        let follow = status.replicated && status.ready && self.all_follow(controller.map());
        follow && self.reports().all(|report| report.vacating.is_empty())
    }

    /// What each shard that is up says of itself.
    fn reports(&self) -> impl Iterator<Item = NodeReport> {
        let machines = self.shards.iter().filter_map(|shard| shard.machine.as_ref());
        machines.map(|machine| machine.report(self.now))
    }

    /// Whether every switch, and every node of the map, has installed it: what the controller says
    /// of them may be a moment old.
    fn all_follow(&self, map: &Map) -> bool {
        let mut switches = self.switches.iter().map(|it| it.pipeline.as_ref());
        let mut nodes = map.nodes.iter().flat_map(|it| self.shards_of(it.id.0));
        let installed = |index: usize| {
            Some(self.shards.get(index)?.machine.as_ref()?.report(self.now).revision)
        };
        switches.all(|it| it.is_some_and(|it| it.revision() == map.revision))
            && nodes.all(|index| installed(index) == Some(map.revision))
    }

    pub(super) fn status_in_words(&self) -> String {
        let Some(controller) = self.controller() else { return "there is no controller".into() };
        let status = controller.status(self.now);
        let members =
            status.members.iter().map(|it| format!("{}: {:?}: {}", it.member, it.state, it.detail));
        let partitions = status.keyspaces.iter().flat_map(|it| &it.partitions).map(|it| {
            let (chain, learner, open) = (&it.chain, it.learner, it.open);
            format!("{} epoch {}: {chain:?} + {learner:?}, open: {open}", it.id, it.epoch)
        });
        let lines: Vec<String> = members.chain(partitions).collect();
        let decisions = status.decisions.iter().rev().take(12).rev();
        let decisions = decisions.map(|it| format!("{}: {} -> {}", it.at_ms, it.saw, it.did));
        let decisions: Vec<String> = decisions.collect();
        format!(
            "replicated: {}, ready: {}\n    {}\n    {}",
            status.replicated,
            status.ready,
            lines.join("\n    "),
            decisions.join("\n    ")
        )
    }

    /// Whether no node has anything pending.
    fn is_quiet(&self) -> bool {
        self.shards.iter().all(|s| s.machine.as_ref().is_some_and(|m| m.pending() == 0))
    }

    /// Waits until no switch believes that anything waits at a node: for nothing is asked for.
    fn wait_for_loads(&mut self) {
        let end = self.now + IDLE_MAX;
        while !self.believed_busy().is_empty() {
            if self.now >= end {
                let text = format!("idle nodes are taken for busy: {:?}", self.believed_busy());
                return self.history.violation(text);
            }
            self.run_until(self.now + LOOK_EVERY, |_| false);
        }
    }

    /// Switches, nodes, and how many requests are predicted to wait there.
    fn believed_busy(&mut self) -> Vec<(u16, NodeId, u64)> {
        let mut busy = Vec::new();
        for index in 0..self.cast.switches {
            let now = self.local(Role::Switch(index));
            let switch = self.switches.get(usize::from(index));
            let Some(pipeline) = switch.and_then(|it| it.pipeline.as_ref()) else { continue };
            let nodes = (0..self.options.nodes_all()).map(NodeId);
            let waiting = nodes.map(|node| (index, node, pipeline.loads().waiting(now, node)));
            busy.extend(waiting.filter(|(.., requests)| *requests > 0));
        }
        busy
    }

    /// Every switch has what the controller decided, and exactly one forwards.
    fn check_switches(&mut self) {
        let Some(controller) = self.controller() else { return };
        let map = controller.map();
        let mut wrong = Vec::new();
        for (index, switch) in (0..).zip(&self.switches) {
            let revision = switch.pipeline.as_ref().map(switch::Pipeline::revision);
            let wanted = map.switch_tables(index);
            if revision != Some(map.revision) || switch.installed.as_ref() != Some(&wanted) {
                wrong.push(format!("switch {index} has {:?}, not {wanted:?}", switch.installed));
            }
        }
        let known = |index: &u16| *index < self.cast.switches;
        if Some(map.active_switch).filter(known).is_none() {
            wrong.push(format!("there is no switch {}", map.active_switch));
        }
        for text in wrong {
            self.history.violation(text);
        }
    }

    /// Every member of a chain holds the same values, and nobody else holds any.
    fn check_replicas(&mut self) {
        let Some(controller) = self.controller() else { return };
        let map = controller.map();
        let mut wrong = Vec::new();
        for partition in &map.partitions {
            let mut copies = Vec::new();
            for node in map.nodes.iter().map(|node| node.id) {
                let values = self.values(node, partition);
                if partition.chain.contains(&node) {
                    copies.push((node, values));
                } else if !values.is_empty() {
                    wrong.push(format!(
                        "node {node} holds values of partition {} without a replica there: \
                         {values:?}",
                        partition.id
                    ));
                }
            }
            let first = copies.first().map(|(_, values)| values);
            if copies.iter().any(|(_, values)| Some(values) != first) {
                wrong.push(format!("replicas of partition {} differ: {copies:?}", partition.id));
            }
        }
        for text in wrong {
            self.history.violation(text);
        }
    }

    /// Whoever knows how many keys of a partition have a value knows it rightly.
    fn check_totals(&mut self) {
        let Some(controller) = self.controller() else { return };
        let partitions = controller.map().partitions.clone();
        let mut wrong = Vec::new();
        for (shard, partition) in
            self.shards.iter().flat_map(|shard| partitions.iter().map(move |it| (shard, it)))
        {
            let Some(machine) = &shard.machine else { continue };
            let Some((known, _)) = machine.keys_in(partition.id) else { continue };
            let values = machine.engine().values().filter(|((keyspace, at, key), ..)| {
                *keyspace == partition.keyspace
                    && partition.holds(Match(*at))
                    && wire::PartKey::parse(key).is_none()
            });
            let there = values.count() as u64;
            if known != there {
                wrong.push(format!(
                    "a node says that partition {} has {known} keys, and it has {there}",
                    partition.id
                ));
            }
        }
        for text in wrong {
            self.history.violation(text);
        }
    }

    /// Where disks keep what they have said to keep, members that have settled hold the same. What
    /// comes of it if they do not is not seen otherwise: who is behind is made equal.
    pub(super) fn check_equal(&mut self, controller: u16) {
        let Faults { amnesia_percent, aged_percent, torn_percent, spent_percent, .. } =
            self.options.faults;
        let master = self.controllers.get(usize::from(controller));
        let machine = master.and_then(|master| master.machine.as_ref());
        let unequal = machine.map_or(0, controller::Controller::unequal);
        let forged = self.options.links.forged_chain_permille;
        let harm = amnesia_percent + aged_percent + torn_percent + spent_percent + forged;
        let is_sound = harm == 0 && self.options.rot == 0;
        if is_sound && unequal > 0 {
            let text = format!("{unequal} times a settled member held other than the rest");
            self.history.violation(text);
        }
    }

    /// Keys, versions and values of a partition on the disk of a node.
    fn values(&self, node: NodeId, partition: &Partition) -> Vec<(Vec<u8>, Version, Vec<u8>)> {
        let shards = self.shards.get(self.shards_of(node.0)).unwrap_or_default();
        let shard = partition.id.0 % u32::from(self.options.shards);
        let mut mine = shards.iter().filter(|it| u32::from(it.index) == shard);
        let disk = mine.next().and_then(|it| it.machine.as_ref()).map(node::Node::engine);
        let values = disk.into_iter().flat_map(crate::disk::Disk::values);
        let inside = values.filter(|((keyspace, at, _), ..)| {
            *keyspace == partition.keyspace && partition.holds(Match(*at))
        });
        inside.map(|((.., key), version, value)| (key.clone(), version, value.to_vec())).collect()
    }

    fn count_epochs(&mut self) {
        let Some(controller) = self.controller() else { return };
        let epochs = controller.map().partitions.iter().map(|it| u64::from(it.epoch.0) - 1);
        self.stats.epochs = epochs.sum();
    }
}

/// Requests of each client in the healed world.
const HEALED_REQUESTS: usize = 10;
/// Mean time between them.
const HEALED_THINK: Duration = Duration::from_millis(5);
/// From the last fault to full replication at most, without a flood: leases to end, a few copies
/// one after another at the slowest rate, and what is late on the network.
const HEALED_MAX: Duration = Duration::from_secs(30);
/// What one write of a flood is in a copy: its record and its session.
const FLOODED_BYTES: u64 = 64;
/// For all answers: more than a client's patience.
const ANSWERED_MAX: Duration = Duration::from_secs(15);
/// For what is pending to be committed, and for delegations to end: a controller takes the rate of
/// writes over four seconds at most, of which the last that had any may be the first of eight, and
/// then waits for two and a half.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// For predictions to be gone: a hundred halvings of what a node that says no rate has to do.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// For parts of what is no value to go: they are given up after a while, asked for again now and
/// then, and dropped some time later.
const PARTS_MAX: Duration = Duration::from_secs(30);
/// How often to look whether the world has recovered.
const LOOK_EVERY: Duration = Duration::from_millis(20);
