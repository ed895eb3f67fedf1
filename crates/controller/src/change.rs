//! Changing chains: close, settle, open, for all partitions that can take a step at once.

use crate::balance;
use crate::capacity::Weights;
use crate::compare::{Comparison, compare};
use crate::controller::Controller;
use crate::hot::node_report;
use crate::leftovers::Leftovers;
use crate::peer::{Contact, Peer, Standing};
use crate::plan::{Case, Outlook, Reason, Sight, Step};
use crate::replica_counts::{Intent, Intents, Tally};
use cluster::{
    KeyspaceId, Map, Member, MemberReport, Mutant, NodeId, NodeReport, Partition, PartitionId,
    Settled,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Revision;

/// How often the nodes of a closed partition are asked whether they have settled: a few times what
/// a round trip takes, for all that time clients wait.
const CLOSED_POLL: Duration = Duration::from_millis(10);

/// How often those who give and take a copy are asked how far it has come: clients do not wait, and
/// a copy takes longer than this.
const COPY_POLL: Duration = Duration::from_millis(25);

/// What is remembered between steps. All of it can be lost: it is seen or picked anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    /// Learners that were heard to hold everything, and since when they are in the chain.
    caught_up: BTreeMap<PartitionId, (NodeId, Revision)>,
    intents: Intents,
    pub(crate) leftovers: Leftovers,
    /// What the last step went by.
    outlook: Outlook,
    /// Something else than the outlook has changed since.
    stale: bool,
}

impl Plans {
    /// For a controller that begins with this revision.
    pub(crate) fn new(begun: Revision) -> Self {
        Self { leftovers: Leftovers::new(begun), ..Self::default() }
    }

    /// The next step has to look at everything.
    pub(crate) fn disturb(&mut self) {
        self.stale = true;
    }

    /// Notes of which partitions this node has become a whole learner. O(partitions) if there are
    /// any.
    pub(crate) fn note_caught_up(&mut self, map: &Map, node: NodeId, report: &NodeReport) {
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
        let copy = if partition.has_learner { running } else { intent };
        copy.filter(|copy| !outlook.of(copy.giver).gone)
    }

    /// Forgets what has been carried out, or has come to nothing.
    fn tidy(&mut self, map: &Map) {
        let closed = map.partitions.iter().filter(|p| !p.open).map(|p| p.id);
        let closed: BTreeSet<PartitionId> = closed.collect();
        self.intents.retain(|id, _| closed.contains(id));
        let caught_up = map.partitions.iter().filter(|p| self.has_caught_up(p)).map(|p| p.id);
        let caught_up: BTreeSet<PartitionId> = caught_up.collect();
        self.caught_up.retain(|id, _| caught_up.contains(id));
    }
}

impl Controller {
    /// Decides whatever can be decided now. The last decision must be durable. O(partitions) if
    /// anything has changed, else O(nodes).
    pub(crate) fn step(&mut self) {
        if !self.may_decide() {
            return;
        }
        self.shorten_leases();
        self.switch_over();
        let outlook = self.outlook();
        if !self.plans.stale && self.plans.outlook == outlook {
            return;
        }
        let steps = self.steps(&outlook);
        self.plans.stale = false;
        self.plans.outlook = outlook;
        self.take(steps);
        self.plans.tidy(&self.state.map);
        self.watches.keep_running(&self.state.map);
        self.forgive_the_unplaced();
        self.set_paces();
    }

    /// A shorter lease than a predecessor's counts for successors once the longer ones are over.
    fn shorten_leases(&mut self) {
        let lease_ms = self.config.lease_ms();
        if self.state.lease_ms > lease_ms && self.alone_at <= self.now {
            let saw = format!("no lease of {} ms is left", self.state.lease_ms);
            self.state.lease_ms = lease_ms;
            self.advance(saw, format!("count on {lease_ms} ms"));
        }
    }

    /// Another switch becomes the active one when the active one has certainly fallen silent.
    fn switch_over(&mut self) {
        let active = Member::Switch(self.state.map.active_switch);
        let silent = |p: &Peer| p.contact == Contact::Silent && self.is_out(p);
        if !self.peers.get(&active).is_some_and(silent) {
            return;
        }
        let fit = |p: &Peer| p.is_serving() && p.steady_at <= self.now;
        let next = self.peers.iter().find_map(|(member, peer)| match member {
            Member::Switch(index) if fit(peer) => Some(*index),
            Member::Switch(_) | Member::Node(_) => None,
        });
        if let Some(next) = next {
            self.state.map.active_switch = next;
            self.hot.switch_over();
            let saw = format!("{active} is silent and its lease has ended");
            self.advance(saw, format!("make switch {next} the active one"));
        }
    }

    /// Whether others may take over from this member.
    fn is_out(&self, peer: &Peer) -> bool {
        let impatient = self.mutant.is(Mutant::ImpatientController);
        peer.is_gone(self.now) || (impatient && peer.is_delegated())
    }

    fn outlook(&self) -> Outlook {
        let nodes = self.state.map.nodes.iter().filter_map(|node| {
            let peer = self.peers.get(&Member::Node(node.id))?;
            let sight = Sight {
                gone: self.is_out(peer),
                serving: peer.is_serving(),
                steady: peer.steady_at <= self.now,
                departing: self.state.departing.contains(&node.id),
            };
            Some((node.id, sight))
        });
        let (nodes, weights) = (nodes.collect(), self.weights());
        Outlook { nodes, weights, paused: self.state.paused }
    }

    /// What nodes can bear, as their last reports say.
    pub(crate) fn weights(&self) -> Weights {
        let nodes = self.state.map.nodes.iter().map(|node| node.id);
        let rate = |node| node_report(self.peers.get(&Member::Node(node))?).map(|it| it.rate);
        Weights::new(nodes.map(|node| (node, rate(node).unwrap_or(0))))
    }

    /// The next step of every partition that can take one; those who lack most come first.
    fn steps(&self, outlook: &Outlook) -> Vec<(usize, Step)> {
        let map = &self.state.map;
        let keyspaces = map.keyspaces.iter().map(|k| (k.id, usize::from(k.replicas)));
        let replicas: BTreeMap<KeyspaceId, usize> = keyspaces.collect();
        let wanted = |p: &Partition| replicas.get(&p.keyspace).copied().unwrap_or(1);
        let revision = self.state.next_revision(self.now);
        let leftovers = &self.plans.leftovers;
        let next = |partition: &Partition, intent: Option<Intent>, tally: &Tally| {
            let replicas = wanted(partition);
            let caught_up = self.plans.has_caught_up(partition);
            let compared = self.compared(partition, caught_up);
            let case = Case {
                partition,
                replicas,
                compared: compared.as_ref(),
                caught_up,
                intent,
                outlook,
                leftovers,
                tally,
                revision,
            };
            case.next()
        };
        let copy = |p: &Partition, intent| self.plans.copy(p, intent, outlook);
        let mut order: Vec<(usize, &Partition)> = map.partitions.iter().enumerate().collect();
        order.sort_by_key(|(_, p)| Reverse(wanted(p).saturating_sub(p.members().len())));
        let intents = &self.plans.intents;
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
                    steps.push((*index, step));
                }
                None => tally.add(partition, copy(partition, intent)),
            }
        }
        if !steps.is_empty() {
            return steps;
        }
        let moves = balance::moves(map, outlook, leftovers, tally.clone());
        let moves: Intents = moves.into_iter().collect();
        for (index, partition) in order {
            let Some(intent) = moves.get(&partition.id) else { continue };
            tally.remove(partition, None);
            steps.extend(next(partition, Some(*intent), &tally).map(|step| (index, step)));
            tally.add(partition, None);
        }
        steps
    }

    /// What came of comparing the nodes of a closed chain, if all of them have said that they
    /// settled in this very epoch.
    fn compared(&self, partition: &Partition, caught_up: bool) -> Option<Comparison> {
        if partition.open {
            return None;
        }
        if self.mutant.is(Mutant::OpenUnsettled) {
            return Some(Comparison::default());
        }
        let said = |node: &NodeId| {
            let peer = self.peers.get(&Member::Node(*node))?;
            let report = peer.report.as_ref().filter(|_| peer.standing == Standing::Accepted)?;
            let MemberReport::Node(report) = &report.state else { return None };
            let sought = (partition.id, partition.epoch);
            let found = report.settled.binary_search_by_key(&sought, Settled::place).ok()?;
            Some((*node, *report.settled.get(found)?))
        };
        let settled: Option<BTreeMap<NodeId, Settled>> = partition.chain.iter().map(said).collect();
        let settled = settled?;
        if self.mutant.is(Mutant::OpenUncompared) {
            return Some(Comparison::default());
        }
        compare(partition, &settled, caught_up)
    }

    /// Takes the steps, all in one revision.
    fn take(&mut self, steps: Vec<(usize, Step)>) {
        if steps.is_empty() {
            return;
        }
        self.state.advance(self.now);
        let changed = format!("revision {}", self.state.map.revision);
        let mut by_reason: BTreeMap<Reason, Vec<&Step>> = BTreeMap::new();
        for (_, step) in &steps {
            by_reason.entry(step.reason).or_default().push(step);
        }
        for (reason, steps) in by_reason {
            let (saw, did) = self.explain_step(reason, &steps);
            self.decisions.note(self.now, saw, did, changed.clone());
        }
        for (index, step) in steps {
            self.tell_unequal(&step);
            let Some(partition) = self.state.map.partitions.get_mut(index) else { continue };
            if let Some(intent) = step.intent {
                self.plans.intents.insert(partition.id, intent);
            }
            if step.next.resumes != partition.resumes {
                // It had caught up once, and has to say so again.
                self.plans.caught_up.remove(&partition.id);
            }
            let lost = partition.chain.iter().filter(|node| !step.next.chain.contains(node));
            for node in lost {
                self.plans.leftovers.note_lost(*node, partition.id, self.state.map.revision);
            }
            *partition = step.next;
        }
        let sound = self.state.map.check();
        assert!(sound.is_ok(), "a change of chains made the map unsound: {sound:?}");
    }

    /// Nodes have lost what they had acknowledged, or hold it otherwise: an operator should know.
    fn tell_unequal(&mut self, step: &Step) {
        for node in &step.unequal {
            self.unequal += 1;
            let saw =
                format!("node {node} holds other than it should of partition {}", step.next.id);
            let did = "have it copied there if there is anybody who has it";
            self.decisions.note_seen(self.now, saw, did, true);
        }
    }

    fn explain_step(&self, reason: Reason, steps: &[&Step]) -> (String, String) {
        let some = list(steps.iter().map(|step| step.next.id.to_string()));
        let copies = || {
            let copies = steps.iter().filter_map(|s| Some((s.next.id, s.intent?)));
            list(
                copies.map(|(id, copy)| format!("{id} from node {} to {}", copy.giver, copy.taker)),
            )
        };
        let to_copy = |why: &str| (why.to_owned(), format!("close them to copy: {}", copies()));
        match reason {
            Reason::Lost => {
                let gone = list(self.plans.outlook.gone().map(|id| format!("node {id}")));
                let saw = format!("no answer and no lease left: {gone}");
                (saw, format!("close partitions without: {some}"))
            }
            Reason::Whole => (
                "copies have ended".to_owned(),
                format!("close partitions to make the learner a member: {some}"),
            ),
            Reason::Short => to_copy("partitions have too few members"),
            Reason::Leaving => to_copy("partitions have departing members"),
            Reason::Uneven => to_copy("nodes have more replicas than others"),
            Reason::Unwanted => (
                "nodes of partitions are no longer wanted there".to_owned(),
                format!("close partitions to let them go: {some}"),
            ),
            Reason::Settled => {
                let chains = list(steps.iter().map(|step| chain_text(&step.next)));
                ("closed partitions have settled".to_owned(), format!("open them: {chains}"))
            }
        }
    }

    /// A node without a replica holds nothing that could be missed, whatever memory it comes with.
    fn forgive_the_unplaced(&mut self) {
        let placed: BTreeSet<NodeId> =
            self.state.map.partitions.iter().flat_map(|p| p.chain.iter().copied()).collect();
        for (member, peer) in &mut self.peers {
            peer.may_hold &= matches!(member, Member::Node(id) if placed.contains(id));
        }
    }

    /// Asks those more often whom others wait for.
    fn set_paces(&mut self) {
        let usual = self.config.poll_interval;
        let mut paces: BTreeMap<NodeId, Duration> = BTreeMap::new();
        for partition in &self.state.map.partitions {
            let (nodes, pace) = match (partition.open, partition.has_learner) {
                (false, _) => (partition.chain.clone(), CLOSED_POLL),
                (true, true) => {
                    (partition.tail().into_iter().chain(partition.learner()).collect(), COPY_POLL)
                }
                (true, false) => continue,
            };
            for node in nodes {
                let known = paces.entry(node).or_insert(pace);
                *known = pace.min(*known);
            }
        }
        for (member, peer) in &mut self.peers {
            let Member::Node(id) = member else { continue };
            let haste = paces.get(id).filter(|_| peer.is_serving());
            peer.pace = haste.map_or(usual, |pace| usual.min(*pace));
            peer.due = peer.due.min(self.now + peer.pace);
        }
    }
}

/// How many things a decision names before it says how many more there are.
const NAMED_MAX: usize = 8;

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    let named = items.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn chain_text(partition: &Partition) -> String {
    let members: Vec<String> = partition.members().iter().map(ToString::to_string).collect();
    let learner = partition.learner().map_or(String::new(), |node| format!(" +{node}"));
    format!("{}: {}{learner}", partition.id, members.join(">"))
}
