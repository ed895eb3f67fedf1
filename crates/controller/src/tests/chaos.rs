//! A world in which everything goes wrong that can, and that looks after every single thing that
//! happens whether it was allowed to.

use super::member::Obedient;
use super::world::{World, hash, node};
use crate::{CommandError, Saved};
use cluster::{
    Assignment, Epoch, Install, Member, Mutant, NodeId, Order, Partition, PartitionId, Report,
    StoreId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Revision;

/// Storage nodes; there are two switches beside them.
pub(super) const NODES: u16 = 5;

/// Messages on their way at most; the oldest are lost.
const LATE_MAX: usize = 40;

/// Something that happens. Members are counted: nodes, then switches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Create a keyspace of this size.
    Create(u32, u8),
    /// Live for so many milliseconds.
    Run(u64),
    /// The controller is stopped for so many milliseconds.
    Stall(u64),
    /// From now on the store takes its time.
    SlowStore,
    /// The store is as fast as ever.
    Save,
    /// The controller dies and comes back, perhaps just after it has saved.
    Die { saves: bool },
    /// A member's process ends.
    Kill(u16),
    /// It is started again, and can be reached.
    Revive(u16),
    /// Its process is started anew: the old one has ended, for a memory has one process at a time.
    Restart(u16),
    /// It is started somewhere else with an empty memory, and the old process may run on.
    Wipe(u16),
    /// The controller no longer reaches it, or does again.
    CutOff(u16),
    /// It installs nothing any more, or does again.
    Stick(u16),
    /// Clients ask it past the switch from now on, and it lends keys to caches, or not any more.
    Ask(u16),
    /// Messages from and to it take their time, or do not.
    Delay(u16),
    /// A message that takes its time arrives.
    Arrive(usize),
    /// It does not.
    Lose(usize),
    /// A node is to leave.
    Drain(u16),
    /// Or not.
    Keep(u16),
    /// Copies pause, or go on.
    Pause(bool),
}

#[derive(Clone, Debug)]
enum Late {
    /// With the number of the controller that waits for the answer.
    Order(Member, Box<Order>, u32),
    Report(Member, Box<Report>),
}

pub(super) struct Chaos {
    pub(super) world: World,
    late: Vec<Late>,
    delayed: BTreeSet<Member>,
    /// Processes that were replaced while they ran on.
    ghosts: Vec<(Member, Obedient)>,
    slow_store: bool,
    mutant: Option<Mutant>,
    names: u32,
    stores: u64,
    /// Controllers that have died.
    died: u32,
    /// What was last durable.
    before: Option<Saved>,
    /// Which closed epochs nodes have settled in.
    settled: BTreeSet<(NodeId, PartitionId, Epoch)>,
    /// Which memories hold which partitions, since which revision.
    holds: BTreeSet<(NodeId, StoreId, PartitionId, Revision)>,
}

fn member(index: u16) -> Member {
    if index < NODES { node(index) } else { Member::Switch(index - NODES) }
}

pub(super) fn play_all(chaos: &mut Chaos, steps: &[Step]) {
    for step in steps {
        chaos.play(*step);
        chaos.check();
    }
}

impl Chaos {
    pub(super) fn new(
        clocks_permille: &[u64],
        settling_ms: u64,
        copying_ms: u64,
        forgetting_ms: u64,
    ) -> Self {
        let mut world = World::new(NODES, 2);
        world.settling = Duration::from_millis(settling_ms);
        world.copying = Duration::from_millis(copying_ms);
        world.forgetting = Duration::from_millis(forgetting_ms);
        for (it, permille) in world.members.values_mut().zip(clocks_permille) {
            it.clock_permille = *permille;
        }
        Self {
            world,
            late: Vec::new(),
            delayed: BTreeSet::new(),
            ghosts: Vec::new(),
            slow_store: false,
            mutant: None,
            names: 0,
            stores: 10_000,
            died: 0,
            before: None,
            settled: BTreeSet::new(),
            holds: BTreeSet::new(),
        }
    }

    /// The controller breaks a rule from now on.
    pub(super) fn mutant(&mut self, mutant: Mutant) {
        self.mutant = Some(mutant);
        self.world.controller.mutant(mutant);
    }

    fn play(&mut self, step: Step) {
        let now = self.world.now;
        match step {
            Step::Create(partitions, replicas) => {
                self.names += 1;
                let spec = hash(&format!("k{}", self.names), partitions, replicas);
                let before = self.world.map();
                if self.world.controller.create_keyspace(now, spec).is_err() {
                    assert_eq!(self.world.map(), before, "what is refused changes nothing");
                }
            }
            Step::Run(ms) => self.run(Duration::from_millis(ms)),
            Step::Stall(ms) => {
                self.world.now = now + Duration::from_millis(ms);
                self.world.controller.handle_timeout(self.world.now);
            }
            Step::SlowStore => self.slow_store = true,
            Step::Save => {
                self.slow_store = false;
                self.world.save();
            }
            Step::Die { saves } => {
                if let Some(saved) = self.world.controller.poll_save().filter(|_| saves) {
                    self.world.saved = Some(saved);
                }
                self.world.restart(self.world.config.clone());
                // Answers go to the process that asked, and to no other.
                self.died += 1;
                self.late.retain(|late| !matches!(late, Late::Report(..)));
                self.mutant.into_iter().for_each(|mutant| self.mutant(mutant));
            }
            Step::Kill(index) => self.world.kill(member(index)),
            Step::Revive(index) => {
                self.world.revive(member(index));
                self.world.member(member(index)).cut_off = false;
            }
            Step::Restart(index) => self.world.member(member(index)).restart(),
            Step::Wipe(index) => {
                self.haunt(node(index));
                self.stores += 1;
                self.world.member(node(index)).wipe(self.stores);
            }
            Step::CutOff(index) => self.world.member(member(index)).cut_off ^= true,
            Step::Stick(index) => self.world.member(node(index)).stuck ^= true,
            Step::Ask(index) => self.world.member(node(index)).asked_directly ^= true,
            Step::Delay(index) => {
                if !self.delayed.remove(&member(index)) {
                    self.delayed.insert(member(index));
                }
            }
            Step::Arrive(index) => self.arrive(index),
            Step::Lose(index) => self.lose(index),
            Step::Drain(index) => allow(self.world.controller.drain_node(now, NodeId(index))),
            Step::Keep(index) => self.world.controller.keep_node(now, NodeId(index)).unwrap(),
            Step::Pause(true) => self.world.controller.pause_copies(now),
            Step::Pause(false) => self.world.controller.resume_copies(now),
        }
    }

    /// The process that is about to be replaced runs on, though nobody reaches it.
    fn haunt(&mut self, member: Member) {
        let old = self.world.members[&member].clone();
        self.ghosts.push((member, old));
        let now = self.world.now;
        self.ghosts.retain(|(_, ghost)| ghost.serves(now));
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        self.late.clear();
        self.delayed.clear();
        self.slow_store = false;
        for it in self.world.members.values_mut() {
            (it.alive, it.cut_off, it.stuck) = (true, false, false);
        }
        let now = self.world.now;
        self.world.controller.resume_copies(now);
    }

    /// Incarnations for a while, as a driver would have it, and checks everything on the way.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.world.now + time;
        loop {
            let world = &mut self.world;
            let unsaved = world.controller.durable_revision() < world.controller.map().revision;
            if unsaved && !self.slow_store {
                world.save();
            } else if let Some((member, order)) = world.controller.poll_order() {
                self.check_order(member, &order);
                self.carry(member, order);
            } else {
                // Before anything is saved it waits for nothing else.
                let Some(wake) = world.controller.poll_timeout() else { break };
                assert!(wake > world.now, "a drained controller asks for a later instant");
                if wake > end {
                    break;
                }
                world.now = wake;
                world.controller.handle_timeout(wake);
            }
            self.check();
        }
        self.world.now = end;
    }

    fn carry(&mut self, member: Member, order: Order) {
        if self.delayed.contains(&member) {
            return self.delay(Late::Order(member, Box::new(order), self.died));
        }
        match self.obey(member, &order) {
            Some(report) => {
                self.world.controller.handle_report(self.world.now, member, report);
            }
            None => self.world.controller.handle_silence(self.world.now, member),
        }
    }

    fn delay(&mut self, late: Late) {
        self.late.push(late);
        if self.late.len() > LATE_MAX {
            self.late.remove(0);
        }
    }

    /// An order gets to its member; its answer may take its time as well.
    fn arrive(&mut self, index: usize) {
        if self.late.is_empty() {
            return;
        }
        match self.late.remove(index % self.late.len()) {
            Late::Order(member, order, asked_by) => {
                let report = self.obey(member, &order).filter(|_| asked_by == self.died);
                if let Some(report) = report {
                    self.delay(Late::Report(member, Box::new(report)));
                }
            }
            Late::Report(member, report) => {
                self.world.controller.handle_report(self.world.now, member, *report);
            }
        }
    }

    fn lose(&mut self, index: usize) {
        if self.late.is_empty() {
            return;
        }
        match self.late.remove(index % self.late.len()) {
            // Whoever would miss the answer is gone.
            Late::Order(_, _, asked_by) if asked_by != self.died => {}
            Late::Order(member, ..) | Late::Report(member, _) => {
                self.world.controller.handle_silence(self.world.now, member);
            }
        }
    }

    /// A member does what it is told, and what that makes it hold is noted.
    fn obey(&mut self, member: Member, order: &Order) -> Option<Report> {
        self.world.delivered.push((member, order.clone()));
        let report = self.world.obey(member, order)?;
        let Member::Node(id) = member else { return Some(report) };
        let it = &self.world.members[&member];
        for partition in it.partitions() {
            if it.is_settled(partition, self.world.now, self.world.settling) {
                self.settled.insert((id, partition.id, partition.epoch));
            }
            if let Some(since) = partition.since(id).filter(|_| it.has_caught_up(partition, id)) {
                self.holds.insert((id, it.store, partition.id, since));
            }
        }
        Some(report)
    }

    /// Whether the node still has the memory that it was taken in with.
    pub(super) fn remembers(&self, node: NodeId) -> bool {
        let saved = self.world.saved.as_ref().unwrap();
        saved.stores.get(&node) == Some(&self.world.members[&Member::Node(node)].store)
    }

    pub(super) fn is_departing(&self, node: NodeId) -> bool {
        self.world.saved.as_ref().unwrap().departing.contains(&node)
    }

    /// What leaves is what the store holds, and a lease is for no less than that.
    fn check_order(&self, to: Member, order: &Order) {
        let Some(saved) = &self.world.saved else {
            let nothing = Order { clock: order.clock, ..Order::default() };
            return assert_eq!(*order, nothing, "nothing leaves before the first save");
        };
        let map = &saved.map;
        if let Some(install) = &order.install {
            assert_eq!(install.revision(), map.revision);
        }
        if let (Member::Node(_), Some(lease)) = (to, order.lease) {
            assert_eq!(lease.revision, map.revision, "it could serve by something older");
        }
        match (to, &order.install) {
            (_, None) => {}
            (Member::Switch(index), Some(Install::Tables(tables))) => {
                assert_eq!(*tables, map.switch_tables(index));
            }
            (Member::Node(id), Some(Install::Assignment(assignment))) => {
                let switch = self.world.config.switches[usize::from(map.active_switch)];
                let plain = map.assignment(id, saved.stores[&id], switch);
                let incarnation = saved.incarnations.get(&id).copied();
                let aged = saved.aged.get(&id).copied().unwrap_or_default();
                assert_eq!(*assignment, Assignment { incarnation, aged, ..plain });
            }
            (to, Some(install)) => panic!("{install:?} for {to}"),
        }
    }

    fn check(&mut self) {
        let controller = &self.world.controller;
        assert_eq!(controller.map().check(), Ok(()));
        let Some(saved) = self.world.saved.clone() else { return };
        assert!(controller.durable_revision() <= saved.map.revision);
        assert!(controller.map().revision >= saved.map.revision);
        self.check_stale_servers(&saved);
        let Some(before) = self.before.replace(saved.clone()) else {
            return self.note_new(&BTreeMap::new(), &saved);
        };
        if before != saved {
            self.check_change(&before, &saved);
        }
    }

    /// All processes that run, replaced ones too.
    fn processes(&self) -> impl Iterator<Item = (Member, &Obedient)> {
        let present = self.world.members.iter().map(|(member, it)| (*member, it));
        present.chain(self.ghosts.iter().map(|(member, it)| (*member, it)))
    }

    /// Nobody answers clients for a chain while another one may, nor brings a switch that is not
    /// named anything to anybody while the named one serves.
    fn check_stale_servers(&self, saved: &Saved) {
        for (who, process) in self.processes() {
            let Member::Node(id) = who else { continue };
            let reached_by = self.reached_by(id, process);
            let named = Member::Switch(saved.map.active_switch);
            let wrong = reached_by.iter().find(|switch| **switch != named);
            assert!(
                wrong.is_none() || saved.map.handing_over,
                "{wrong:?} reaches {who}, and {named} may serve"
            );
            let is_reached = !reached_by.is_empty() || process.answers_directly(self.world.now);
            if !process.serves(self.world.now) || !is_reached {
                continue;
            }
            for theirs in process.partitions().iter().filter(|p| p.open) {
                let ours = saved.map.partitions.iter().find(|p| p.id == theirs.id).unwrap();
                let same = ours.epoch == theirs.epoch;
                let asked_to_stop = !ours.open && ours.chain.contains(&id);
                assert!(same || asked_to_stop, "{who} serves {theirs:?}, but it is {ours:?}");
            }
        }
    }

    /// The switches that bring this node something that it takes. (A switch that was replaced gets
    /// nothing any more to bring: its address leads to the one that took its place.)
    fn reached_by(&self, id: NodeId, node: &Obedient) -> Vec<Member> {
        let Some(Install::Assignment(assignment)) = &node.installed else { return Vec::new() };
        let brings = |(who, it): &(&Member, &Obedient)| {
            let (Member::Switch(index), Some(Install::Tables(tables))) = (who, &it.installed)
            else {
                return false;
            };
            let is_named = self.world.config.switches[usize::from(*index)] == assignment.switch;
            let sends = tables.active && !tables.fenced.contains(&id);
            is_named && sends && it.serves(self.world.now)
        };
        let serves = node.serves(self.world.now);
        let switches = self.world.members.iter().filter(|it| serves && brings(it));
        switches.map(|(who, _)| *who).collect()
    }

    fn check_change(&mut self, before: &Saved, after: &Saved) {
        if after.term > before.term && after.map.revision == before.map.revision {
            let same = Saved { term: after.term, ..before.clone() };
            return assert_eq!(*after, same, "who takes over changes nothing by that");
        }
        assert!(after.map.revision > before.map.revision);
        for (id, store) in &after.stores {
            if before.stores.get(id).is_some_and(|old| old != store) {
                self.check_new_memory(*id, before, after);
            }
        }
        for (id, incarnation) in &after.incarnations {
            let begins = before.incarnations.get(id).is_some_and(|old| old != incarnation);
            if begins && before.stores.get(id) == after.stores.get(id) {
                let lent = self.world.members[&Member::Node(*id)].has_lent(self.world.now);
                assert!(!lent, "what node {id} has lent is still shown, and its chains change");
            }
        }
        let known: BTreeMap<PartitionId, &Partition> =
            before.map.partitions.iter().map(|p| (p.id, p)).collect();
        for new in &after.map.partitions {
            match known.get(&new.id) {
                Some(old) if *old == new => {}
                Some(old) if new.open => self.check_opening(old, new, before, after),
                Some(old) => self.check_closing(old, new, before, after),
                None => {}
            }
        }
        assert!(before.map.partitions.len() <= after.map.partitions.len());
        self.note_new(&known, after);
    }

    /// All members of a new partition hold all that is in it.
    fn note_new(&mut self, known: &BTreeMap<PartitionId, &Partition>, saved: &Saved) {
        for new in saved.map.partitions.iter().filter(|p| !known.contains_key(&p.id)) {
            let replicas_held = new.chain.iter().zip(&new.since);
            let hold = replicas_held.map(|(id, since)| (*id, saved.stores[id], new.id, *since));
            self.holds.extend(hold);
        }
    }

    /// A node is taken in with another memory only if it has no replica, or has never been given
    /// one.
    fn check_new_memory(&mut self, id: NodeId, before: &Saved, after: &Saved) {
        let (old, new) = (before.stores[&id], after.stores[&id]);
        for partition in after.map.partitions.iter().filter(|p| p.chain.contains(&id)) {
            let mine = |(node, store): (NodeId, StoreId)| node == id && store == old;
            let orders = self.world.delivered.iter().filter(|(to, _)| *to == Member::Node(id));
            let given = orders.filter_map(|(_, order)| match &order.install {
                Some(Install::Assignment(it)) if mine((it.node, it.store)) => Some(it),
                Some(Install::Assignment(_) | Install::Tables(_) | Install::Cache(_)) | None => {
                    None
                }
            });
            let since = partition.since(id).unwrap();
            let mut held = given.flat_map(|it| &it.partitions);
            let member = |p: &Partition| p.members().contains(&id);
            let held =
                held.any(|p| p.id == partition.id && p.since(id) == Some(since) && member(p));
            assert!(!held, "node {id} has forgotten {partition:?}");
            if self.holds.remove(&(id, old, partition.id, since)) {
                self.holds.insert((id, new, partition.id, since));
            }
        }
    }

    /// Only those whom nobody reaches are left out, and the others keep their order.
    fn check_closing(&self, old: &Partition, new: &Partition, before: &Saved, after: &Saved) {
        assert_eq!(new.epoch.0, old.epoch.0 + 1, "{old:?} {new:?}");
        let stays = |id: &&NodeId| new.chain.contains(id);
        let rest: Vec<NodeId> = old.chain.iter().filter(stays).copied().collect();
        assert_eq!(rest, new.chain);
        assert!(new.chain.iter().all(|id| old.since(*id) == new.since(*id)));
        assert_eq!(new.learner(), old.learner().filter(|id| new.chain.contains(id)));
        for lost in old.chain.iter().filter(|id| !new.chain.contains(id)) {
            let mut processes = self.processes().filter(|(m, _)| *m == Member::Node(*lost));
            let now = self.world.now;
            let reached = |it: &Obedient| !self.reached_by(*lost, it).is_empty() || it.lends(now);
            assert!(!processes.any(|(_, it)| reached(it)), "node {lost} may still serve {old:?}");
        }
        let reborn = |id: &NodeId| before.incarnations.get(id) != after.incarnations.get(id);
        let news = new.chain != old.chain || new.chain.iter().any(reborn);
        assert!(news || old.open, "closed for nothing: {old:?}");
    }

    /// All of the closed chain have settled, and all members hold everything.
    fn check_opening(&self, old: &Partition, new: &Partition, before: &Saved, after: &Saved) {
        assert!(!old.open && new.epoch.0 == old.epoch.0 + 1, "{old:?} {new:?}");
        for id in &old.chain {
            let settled = self.settled.contains(&(*id, old.id, old.epoch));
            assert!(settled, "node {id} has not settled: {old:?} {new:?}");
        }
        for id in new.members() {
            let since = new.since(*id).unwrap();
            assert_eq!(Some(since), old.since(*id));
            let holds = self.holds.contains(&(*id, after.stores[id], new.id, since));
            assert!(holds, "node {id} does not hold {new:?}");
        }
        if let Some(id) = new.learner().filter(|id| old.learner() != Some(*id)) {
            assert!(!old.chain.contains(&id));
            let since = new.since(id).unwrap();
            assert!(before.map.revision < since && since <= after.map.revision);
            let process = &self.world.members[&Member::Node(id)];
            let holds = process.holds(new.id, self.world.now, self.world.forgetting);
            assert!(!holds, "node {id} has not forgotten its last stay in {new:?}");
        }
    }
}

/// A command may be refused for a reason of the world's.
fn allow(result: Result<(), CommandError>) {
    match result {
        Ok(()) | Err(CommandError::TooFewNodes { .. } | CommandError::Foreign(_)) => {}
        Err(other) => panic!("{other}"),
    }
}
