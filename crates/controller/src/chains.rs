//! Changing chains: close, settle, open, for all partitions that can take a step at once.

mod balance;
mod compare;
mod copying;
mod explain;
mod leftovers;
mod load;
mod merge;
mod plan;
mod replica_counts;
mod seen;
mod sight;
mod split;

pub(crate) use seen::{Seen, weights};

use crate::decisions::Level;
use crate::ledger::Ledger;
use crate::placement::{Change, Placement, PlacementStatus};
use crate::saved::Saved;
use cluster::{KeyspaceId, Map, MemberReport, NodeId, NodeReport, Partition, PartitionId, Report};
use leftovers::Leftovers;
use machine::Instant;
use plan::{Case, Mate, Reason, Step};
use replica_counts::{Intent, Intents, Tally};
use sight::Outlook;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Revision;

/// How long nothing is looked at that seems not to have changed. What forbids a step may pass with
/// time alone: a node has too much to do for another replica, or has only just lost that one.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The chains, as far as they are to change. What is remembered between steps can all be lost: it
/// is seen or picked anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// Learners that were heard to hold everything, and since when they are in the chain.
    caught_up: BTreeMap<PartitionId, (NodeId, Revision)>,
    intents: Intents,
    /// What is to be changed because of the load, as long as the map shows only part of it.
    changes: BTreeMap<PartitionId, Change>,
    leftovers: Leftovers,
    /// What the last step went by.
    outlook: Outlook,
    /// When it was taken.
    looked: Option<Instant>,
    /// Something else than the outlook has changed since.
    stale: bool,
    /// Who has given up a replica to another, and could have kept it, as long as nobody was told.
    left: Vec<(PartitionId, NodeId)>,
    /// What was made of what, as long as nobody was told.
    remade: Vec<(Vec<PartitionId>, Vec<PartitionId>)>,
    /// How often a member that had settled was found to hold other than the rest.
    unequal: u64,
}

impl Chains {
    /// For a controller that begins with this revision.
    pub(crate) fn new(begun: Revision) -> Self {
        Self { leftovers: Leftovers::new(begun), ..Self::default() }
    }

    /// The next step has to look at everything.
    pub(crate) fn disturb(&mut self) {
        self.stale = true;
    }

    /// A node has nothing to do with a partition any more, and may still hold something of it.
    pub(crate) fn note_lost(&mut self, node: NodeId, partition: PartitionId, revision: Revision) {
        self.leftovers.note_lost(node, partition, revision);
        self.disturb();
    }

    /// Looks whether anything is to be changed because of the load. The next step begins it, or it
    /// is forgotten.
    pub(crate) fn look_at_load(
        &mut self,
        ledger: &mut Ledger,
        (seen, placement): (Seen<'_>, &mut Placement),
    ) {
        let Ledger { state, decisions, .. } = ledger;
        let outlook = seen.outlook(state);
        for (origins, parts) in self.remade.drain(..) {
            placement.note_remade(seen.now, &state.map, (&origins, &parts));
        }
        for (partition, node) in self.left.drain(..) {
            placement.note_left(seen.now, partition, node);
        }
        let changes = placement.look(&seen.of_load(state, &outlook, &self.changes), decisions);
        changes.into_iter().for_each(|change| self.wish(change));
    }

    /// This is wanted. The next step begins it, or it is forgotten.
    pub(crate) fn wish(&mut self, change: Change) {
        if let Change::Merge { partition, with } = change {
            self.changes.insert(with, Change::Merge { partition: with, with: partition });
        }
        self.changes.insert(change.partition(), change);
        self.disturb();
    }

    /// How many partitions there may be more.
    pub(crate) fn parts_left(&self, state: &Saved) -> usize {
        split::parts_left(state)
    }

    /// Whether a change of this partition is to begin, or is under way.
    pub(crate) fn is_changing(&self, partition: PartitionId) -> bool {
        self.changes.contains_key(&partition)
    }

    /// Who has how much to do, and what is changed because of it.
    pub(crate) fn placement_status(
        &self,
        state: &Saved,
        (seen, placement): (Seen<'_>, &Placement),
    ) -> PlacementStatus {
        let outlook = seen.outlook(state);
        placement.status(&seen.of_load(state, &outlook, &self.changes))
    }

    /// How often a member of a chain that had settled was found to hold other than the rest.
    pub(crate) fn unequal(&self) -> u64 {
        self.unequal
    }

    /// Takes what a node says of its chains, if it is `accepted`, and what it said before.
    pub(crate) fn hear(
        &mut self,
        map: &Map,
        (node, report): (NodeId, &NodeReport),
        accepted: bool,
        last: Option<&Report>,
    ) {
        self.note_caught_up(map, node, report);
        let news = accepted && self.leftovers.note_report(map, node, report);
        if news || !last.is_some_and(|last| says_the_same(last, report)) {
            self.disturb();
        }
    }

    /// A node has begun another incarnation: what it had caught up with it has to say again, for a
    /// copy of what it lacked begins anew.
    pub(crate) fn forget_caught_up(&mut self, node: NodeId) {
        self.caught_up.retain(|_, (learner, _)| *learner != node);
        self.disturb();
    }

    /// Notes of which partitions this node has become a whole learner. O(partitions) if there are
    /// any.
    fn note_caught_up(&mut self, map: &Map, node: NodeId, report: &NodeReport) {
        if report.caught_up.is_empty() {
            return;
        }
        for partition in map.partitions.iter().filter(|p| p.learner() == Some(node)) {
            let said = report.caught_up.binary_search(&(partition.id, partition.epoch)).is_ok();
            if let Some(since) = partition.since(node).filter(|_| said) {
                self.caught_up.insert(partition.id, (node, since));
            }
        }
    }

    fn has_caught_up(&self, partition: &Partition) -> bool {
        let learner = partition.learner().and_then(|node| Some((node, partition.since(node)?)));
        learner.is_some() && self.caught_up.get(&partition.id) == learner.as_ref()
    }

    /// The copy that takes the time of its giver and its taker: one that has ended does not, nor
    /// one that nobody gives. (A chain that has lost all its members keeps its learner, which
    /// others may need.)
    fn copy(
        &self,
        partition: &Partition,
        intent: Option<Intent>,
        outlook: &Outlook,
    ) -> Option<Intent> {
        let ends = partition.tail().zip(partition.learner());
        let running = ends.map(|(giver, taker)| Intent { giver, taker });
        let running = running.filter(|_| !self.has_caught_up(partition));
        // One after another, if several are missing: while a partition is closed because one has
        // ended, the next is to begin.
        let copy = running.or(intent);
        copy.filter(|copy| !outlook.of(copy.giver).gone)
    }

    /// Forgets what has been carried out, or has come to nothing.
    fn tidy(&mut self, map: &Map) {
        let closed = map.partitions.iter().filter(|p| !p.open).map(|p| p.id);
        let closed: BTreeSet<PartitionId> = closed.collect();
        self.intents.retain(|id, _| closed.contains(id));
        let copied = map.partitions.iter().filter(|p| p.has_learner).map(|p| p.id);
        let copied: BTreeSet<PartitionId> = copied.collect();
        self.changes.retain(|id, _| closed.contains(id) || copied.contains(id));
        let caught_up = map.partitions.iter().filter(|p| self.has_caught_up(p)).map(|p| p.id);
        let caught_up: BTreeSet<PartitionId> = caught_up.collect();
        self.caught_up.retain(|id, _| caught_up.contains(id));
    }

    /// Takes every step that can be taken now; tells whether there was anything new to look at. The
    /// last decision must be durable. O(partitions) if anything has changed, else O(nodes).
    pub(crate) fn step(
        &mut self,
        ledger: &mut Ledger,
        (seen, placement): (Seen<'_>, &Placement),
    ) -> bool {
        let outlook = seen.outlook(&ledger.state);
        let looked_lately = self.looked.is_some_and(|at| seen.now < at + LOOK_AGAIN);
        if !self.stale && self.outlook == outlook && looked_lately {
            return false;
        }
        let steps = self.steps(ledger, &outlook, (seen, placement));
        self.stale = false;
        self.looked = Some(seen.now);
        self.outlook = outlook;
        self.take(ledger, seen.now, steps);
        self.tidy(&ledger.state.map);
        true
    }

    /// The next step of every partition that can take one; those who lack most come first.
    fn steps(
        &self,
        ledger: &Ledger,
        outlook: &Outlook,
        (seen, placement): (Seen<'_>, &Placement),
    ) -> Vec<(usize, Step)> {
        let map = &ledger.state.map;
        let keyspaces = map.keyspaces.iter().map(|k| (k.id, usize::from(k.replicas)));
        let replicas: BTreeMap<KeyspaceId, usize> = keyspaces.collect();
        let wanted = |p: &Partition| replicas.get(&p.keyspace).copied().unwrap_or(1);
        let revision = ledger.state.next_revision(seen.now);
        let parts_left = Cell::new(split::parts_left(&ledger.state));
        let next = |partition: &Partition, intent: Option<Intent>, tally: &Tally| {
            let (replicas, parts_left) = (wanted(partition), &parts_left);
            let about = (map, outlook, tally);
            self.next_step(seen, about, (partition, replicas), (intent, revision), parts_left)
        };
        let copy = |p: &Partition, intent| self.copy(p, intent, outlook);
        let mut order: Vec<(usize, &Partition)> = map.partitions.iter().enumerate().collect();
        order.sort_by_key(|(_, p)| Reverse(wanted(p).saturating_sub(p.members().len())));
        let intents = &self.intents;
        let intent_of = |p: &Partition| intents.get(&p.id).copied();
        let mut tally = Tally::default();
        for partition in &map.partitions {
            tally.add(partition, copy(partition, intent_of(partition)));
        }
        let mut steps = Vec::new();
        for (index, partition) in &order {
            let intent = intent_of(partition);
            tally.remove(partition, copy(partition, intent));
            match next(partition, intent, &tally) {
                Some(step) => {
                    tally.add(&step.next, copy(&step.next, step.intent));
                    step.rest.iter().for_each(|part| tally.add(part, None));
                    steps.push((*index, step));
                }
                None => tally.add(partition, copy(partition, intent)),
            }
        }
        if !steps.is_empty() {
            return steps;
        }
        let sight = seen.of_load(&ledger.state, outlook, &self.changes);
        let burdens = placement.burdens(&sight);
        let moves = balance::moves(map, outlook, &self.leftovers, &burdens, tally.clone());
        let moves: Intents = moves.into_iter().collect();
        for (index, partition) in order {
            let Some(intent) = moves.get(&partition.id) else { continue };
            tally.remove(partition, None);
            steps.extend(next(partition, Some(*intent), &tally).map(|step| (index, step)));
            tally.add(partition, None);
        }
        steps
    }

    /// The next step of a partition that wants so many replicas, if it can take one.
    fn next_step(
        &self,
        seen: Seen<'_>,
        (map, outlook, tally): (&Map, &Outlook, &Tally),
        (partition, replicas): (&Partition, usize),
        (intent, revision): (Option<Intent>, Revision),
        parts_left: &Cell<usize>,
    ) -> Option<Step> {
        let caught_up = self.has_caught_up(partition);
        let compared = seen.compared(partition, caught_up);
        let change = self.changes.get(&partition.id);
        let mate = mate(map, change);
        let mates = mate.and_then(|it| seen.compared(it, self.has_caught_up(it)));
        let case = Case {
            partition,
            replicas,
            compared: compared.as_ref(),
            caught_up,
            intent,
            change,
            mate: mate.map(|partition| Mate { partition, compared: mates.as_ref() }),
            outlook,
            leftovers: &self.leftovers,
            tally,
            revision,
            parts_left: parts_left.get(),
            mutant: seen.mutant,
        };
        let step = case.next()?;
        parts_left.update(|left| left - step.rest.len());
        Some(step)
    }

    /// Takes the steps, all in one revision.
    fn take(&mut self, ledger: &mut Ledger, now: Instant, mut steps: Vec<(usize, Step)>) {
        if steps.is_empty() {
            return;
        }
        ledger.state.advance(now);
        for (_, step) in &mut steps {
            step.name_parts(&mut ledger.state);
        }
        // A part that is added does not move what comes before it.
        steps.sort_by_key(|(index, _)| Reverse(*index));
        let revision = ledger.revision();
        let changed = format!("revision {revision}");
        let mut by_reason: BTreeMap<Reason, Vec<&Step>> = BTreeMap::new();
        for (_, step) in &steps {
            by_reason.entry(step.reason).or_default().push(step);
        }
        for (reason, steps) in by_reason {
            let (saw, did) = explain::explain(&self.outlook, reason, &steps);
            ledger.decisions.note(now, reason.level(), saw, did, changed.clone());
        }
        for (index, step) in steps {
            self.note_unequal(ledger, now, &step);
            let Some(partition) = ledger.state.map.partitions.get_mut(index) else { continue };
            if let Some(intent) = step.intent {
                self.intents.insert(partition.id, intent);
            }
            if step.next.resumes != partition.resumes {
                // It had caught up once, and has to say so again.
                self.caught_up.remove(&partition.id);
            }
            let held = partition.chain.iter().chain(partition.away.iter().map(|it| &it.node));
            let lost = held.filter(|node| !step.next.concerns(**node));
            for node in lost {
                self.leftovers.note_lost(*node, partition.id, revision);
                // A copy took its place.
                if partition.has_learner && self.outlook.takers().any(|taker| taker == *node) {
                    self.left.push((partition.id, *node));
                }
            }
            for node in partition.chain.iter().filter(|node| !step.next.chain.contains(node)) {
                let mut fences = ledger.state.map.fences.iter_mut();
                if let Some(fence) = fences.find(|fence| fence.node == *node) {
                    fence.left = revision;
                }
            }
            let remakes = step.remakes();
            let parts = [&step.next].into_iter().chain(&step.rest).map(|it| it.id).collect();
            let before = std::mem::replace(partition, step.next);
            let taken = step.absorbs.then(|| ledger.state.map.partitions.remove(index + 1));
            if remakes {
                let gone: Vec<Partition> = [before].into_iter().chain(taken).collect();
                self.note_made_into_others(&gone, parts, revision);
            }
            ledger.state.map.partitions.splice(index + 1..index + 1, step.rest);
        }
        let sound = ledger.state.map.check();
        assert!(sound.is_ok(), "a change of chains made the map unsound: {sound:?}");
    }

    /// Partitions are no more, and these parts are made of them.
    fn note_made_into_others(
        &mut self,
        gone: &[Partition],
        parts: Vec<PartitionId>,
        revision: Revision,
    ) {
        for gone in gone {
            for node in gone.chain.iter().chain(gone.away.iter().map(|it| &it.node)) {
                self.leftovers.note_lost(*node, gone.id, revision);
            }
            self.leftovers.note_made_into_others(gone.id);
            self.changes.remove(&gone.id);
        }
        self.remade.push((gone.iter().map(|it| it.id).collect(), parts));
    }

    /// Nodes have lost what they had acknowledged, or hold it otherwise: an operator should know.
    fn note_unequal(&mut self, ledger: &mut Ledger, now: Instant, step: &Step) {
        for node in &step.unequal {
            self.unequal += 1;
            let saw =
                format!("node {node} holds other than it should of partition {}", step.next.id);
            let did = "have it copied there if there is anybody who has it";
            ledger.decisions.note(now, Level::Trouble, saw, did, "");
        }
    }
}

/// The partition that another is to become one with.
fn mate<'a>(map: &'a Map, change: Option<&Change>) -> Option<&'a Partition> {
    let Some(Change::Merge { with, .. }) = change else { return None };
    map.partitions.iter().find(|it| it.id == *with)
}

/// Whether the last report said the same of what chains wait for.
fn says_the_same(last: &Report, report: &NodeReport) -> bool {
    let MemberReport::Node(last) = &last.state else { return false };
    (&last.settled, &last.caught_up) == (&report.settled, &report.caught_up)
}
