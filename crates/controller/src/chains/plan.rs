//! What a partition's chain is to become: pure functions of the map and of what is seen.
//!
//! Nothing is remembered about why a partition was closed. When all of it has settled, what it is
//! to open as is worked out from what is seen then, by the same rules by which it was closed.

use super::compare::Comparison;
use super::leftovers::Leftovers;
use super::replica_counts::{Intent, Tally};
use super::sight::{Outlook, Sight};
use crate::decisions::Level;
use crate::placement::Change;
use cluster::{Away, Epoch, MaybeMutant, Mutant, NodeId, Partition, Returned};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use wire::Revision;

/// One partition as it is, with all that its next configuration depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) partition: &'a Partition,
    /// How many members its keyspace wants.
    pub(crate) replicas: usize,
    /// What came of comparing the nodes of a closed chain, once all of them have settled.
    pub(crate) compared: Option<&'a Comparison>,
    /// Its learner holds everything.
    pub(crate) caught_up: bool,
    /// The copy that is to begin in it.
    pub(crate) intent: Option<Intent>,
    /// What is to be changed of it because of its load.
    pub(crate) change: Option<&'a Change>,
    /// The neighbour that it is to become one with.
    pub(crate) mate: Option<Mate<'a>>,
    pub(crate) outlook: &'a Outlook,
    pub(crate) leftovers: &'a Leftovers,
    /// The shares of all nodes, without this partition.
    pub(crate) tally: &'a Tally,
    /// Revision of the map that the change will come with.
    pub(crate) revision: Revision,
    /// How many partitions there may be more.
    pub(crate) parts_left: usize,
    pub(crate) mutant: MaybeMutant,
}

/// A neighbour of a partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mate<'a> {
    pub(crate) partition: &'a Partition,
    /// As for the [`Case`].
    pub(crate) compared: Option<&'a Comparison>,
}

/// A partition's next configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) next: Partition,
    /// The other parts, in their order, if it is split.
    pub(crate) rest: Vec<Partition>,
    /// Whether the partition after it is taken in.
    pub(crate) absorbs: bool,
    pub(crate) reason: Reason,
    /// The copy that it is closed for.
    pub(crate) intent: Option<Intent>,
    /// Who was found to hold other than those that are right.
    pub(crate) unequal: Vec<NodeId>,
}

impl Step {
    pub(super) fn new(next: Partition, reason: Reason) -> Self {
        Self { next, rest: Vec::new(), absorbs: false, reason, intent: None, unequal: Vec::new() }
    }
}

/// What becomes of a closed partition that may be to be merged.
pub(super) enum Union {
    /// It is not.
    Not,
    /// Its neighbour has not settled yet, or makes the step.
    Later,
    Now(Box<Step>),
}

/// Why a partition changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Closed: nodes of it have fallen silent.
    Lost,
    /// Closed: its learner holds everything.
    Whole,
    /// Closed: it has too few members.
    Short,
    /// Closed: a departing member is to be replaced.
    Leaving,
    /// Closed: a member leaves for a while.
    Ending,
    /// Closed: a node that had left for a while is there again.
    Back,
    /// Closed: another node has fewer replicas.
    Uneven,
    /// Closed: another node has less to do.
    Loaded,
    /// Closed: a node of it is not wanted any longer.
    Unwanted,
    /// Closed: it is to become two.
    Large,
    /// Closed: it is to become one with another.
    Small,
    /// Made into others: all of it has settled.
    Remade,
    /// Opened: all of it has settled.
    Settled,
}

impl Reason {
    /// How much it matters to people.
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Lost => Level::Trouble,
            Self::Whole
            | Self::Short
            | Self::Leaving
            | Self::Ending
            | Self::Back
            | Self::Uneven
            | Self::Loaded
            | Self::Unwanted
            | Self::Large
            | Self::Small
            | Self::Remade
            | Self::Settled => Level::Usual,
        }
    }
}

/// A chain as it ought to be, in no order.
pub(super) struct Target {
    pub(super) members: Vec<NodeId>,
    pub(super) copy: Option<Intent>,
}

impl Case<'_> {
    /// The next configuration, if it can have another.
    pub(crate) fn next(&self) -> Option<Step> {
        let mut step = self.decide()?;
        // All of a chain do, or nobody.
        let before = self.partition.sends_early;
        let can = |node: &NodeId| self.sight(*node).sends_early.unwrap_or(before);
        for next in step.rest.iter_mut().chain([&mut step.next]) {
            next.sends_early = next.chain.iter().all(can);
        }
        Some(step)
    }

    fn decide(&self) -> Option<Step> {
        let partition = self.partition;
        if partition.chain.iter().any(|node| self.sight(*node).gone) {
            return self.close_without_the_gone();
        }
        if !partition.open {
            let compared = self.compared?;
            if let Some(back) = self.take_back() {
                return Some(back);
            }
            return match self.union(compared) {
                Union::Now(step) => Some(*step),
                Union::Later => None,
                Union::Not => Some(self.split(compared).unwrap_or_else(|| self.open())),
            };
        }
        // Whoever does not answer now would keep the partition closed until its lease ends.
        if !partition.chain.iter().all(|node| self.sight(*node).serving) {
            return None;
        }
        if self.mutant.is(Mutant::SplitOpen)
            && let Some(split) = self.split(&Comparison::default())
        {
            return Some(split);
        }
        let target = self.target();
        if self.mutant.is(Mutant::ShortenOpen) && target.members.len() < partition.members().len() {
            return Some(self.open());
        }
        let wished = || {
            let turns = self.turns(&target).then_some(Reason::Loaded);
            let splits = || self.is_to_split().then_some(Reason::Large);
            let merges = || self.is_to_merge().then_some(Reason::Small);
            turns.or_else(splits).or_else(merges)
        };
        let reason = match self.back() {
            Some(_) => Reason::Back,
            None => self.reason(&target).or_else(wished)?,
        };
        let begins = target.copy.filter(|copy| partition.learner() != Some(copy.taker));
        let next = Partition { epoch: self.next_epoch(), open: false, ..partition.clone() };
        Some(Step { intent: begins, ..Step::new(next, reason) })
    }

    pub(super) fn sight(&self, node: NodeId) -> Sight {
        self.outlook.of(node)
    }

    fn next_epoch(&self) -> Epoch {
        let Epoch(epoch) = self.partition.epoch;
        Epoch(epoch.checked_add(1).expect("32 bits outlast every partition"))
    }

    /// A chain keeps at least one member, and one that answers now: another whose lease has merely
    /// not ended yet may have lost its memory meanwhile, and whoever is cut off still has his.
    fn close_without_the_gone(&self) -> Option<Step> {
        let partition = self.partition;
        let stays = |node: &NodeId| !self.sight(*node).gone;
        // Nor can one be alone that came back with an older store.
        let aged =
            |node: &NodeId| partition.returned.iter().any(|it| it.node == *node && !it.remembers);
        let remains = |node: &NodeId| {
            let Sight { gone, serving, steady, outlasts, .. } = self.sight(*node);
            !gone && serving && steady && outlasts && !aged(node)
        };
        // Nor those who came back, while somebody may come back who was there all the time.
        let mut silent = partition.members().iter().filter(|node| !stays(node));
        let waits = silent.any(|node| !self.sight(*node).given_up);
        let goes_on = |node: &NodeId| remains(node) && (partition.has_stayed(*node) || !waits);
        if !partition.members().iter().any(goes_on) {
            return None;
        }
        let replicas_held =
            partition.chain.iter().zip(&partition.since).filter(|(node, _)| stays(node));
        let (chain, since): (Vec<_>, Vec<_>) =
            replicas_held.map(|(node, since)| (*node, *since)).unzip();
        // One that was to leave has not settled. What is pending there others have as well where
        // pending writes are united; elsewhere it may have committed what they give up.
        let away =
            if partition.sends_early { self.away_but(&chain) } else { partition.away.clone() };
        let next = Partition {
            epoch: self.next_epoch(),
            away,
            chain,
            since,
            has_learner: partition.learner().is_some_and(|node| stays(&node)),
            open: false,
            returned: partition.returned.iter().filter(|it| stays(&it.node)).copied().collect(),
            resumes: partition.resumes.filter(|_| partition.learner().is_some_and(|it| stays(&it))),
            ..partition.clone()
        };
        Some(Step { intent: self.intent, ..Step::new(next, Reason::Lost) })
    }

    /// The chain as it ought to be next, made of nodes that are all there.
    fn target(&self) -> Target {
        let partition = self.partition;
        let mut members = partition.members().to_vec();
        let learner = partition.learner();
        members.extend(learner.filter(|_| self.caught_up));
        members.retain(|node| !self.is_behind(*node));
        if members.iter().any(|node| self.goes_on(*node)) {
            members.retain(|node| !self.sight(*node).leaving);
        }
        while members.len() > self.replicas {
            let Some(least_wanted) = self.least_wanted(&members) else { break };
            members.retain(|node| *node != least_wanted);
        }
        let learner = learner.filter(|_| !self.caught_up);
        let room = self.with_room(&members);
        let copy = room.as_ref().and_then(|members| {
            let running = self.running(members, learner);
            running.or_else(|| self.resuming(members)).or_else(|| self.beginning(members))
        });
        match (room, copy) {
            (Some(members), Some(copy)) => Target { members, copy: Some(copy) },
            (_, None) | (None, Some(_)) => Target { members, copy: None },
        }
    }

    /// The members if there is room for a learner behind them. In the longest chain that can be it
    /// takes the place of a departing one before it holds anything.
    fn with_room(&self, members: &[NodeId]) -> Option<Vec<NodeId>> {
        let mut members = members.to_vec();
        if members.len() == wire::CHAIN_MAX {
            let departing = members.iter().position(|node| self.sight(*node).departing)?;
            members.remove(departing);
        }
        Some(members)
    }

    /// Whether others may leave a chain to this node.
    fn goes_on(&self, node: NodeId) -> bool {
        let Sight { gone, serving, leaving, .. } = self.sight(node);
        serving && !gone && !leaving
    }

    /// A node that had left for a while and is to be taken back, if there is room for it.
    fn back(&self) -> Option<Away> {
        let partition = self.partition;
        let is_back = |it: &&Away| self.goes_on(it.node) && !self.sight(it.node).departing;
        let room = partition.chain.len() < wire::CHAIN_MAX && !partition.has_learner;
        partition.away.iter().find(is_back).filter(|_| room).copied()
    }

    /// Takes it back into the closed chain, in which nothing is pending, so that what it holds is
    /// compared. It lacks what was written meanwhile, and counts for nothing by itself.
    fn take_back(&self) -> Option<Step> {
        let Away { node, since, .. } = self.back()?;
        let mut next = Partition { epoch: self.next_epoch(), ..self.partition.clone() };
        next.away.retain(|it| it.node != node);
        next.chain.push(node);
        next.since.push(since);
        next.returned.push(Returned { node, remembers: false, left: true });
        Some(Step { intent: self.intent, ..Step::new(next, Reason::Back) })
    }

    /// Who is away when these are in the chain: those who leave keep what they hold.
    fn away_but(&self, chain: &[NodeId]) -> Vec<Away> {
        let partition = self.partition;
        let leaves = |node: &&NodeId| {
            let Sight { leaving, departing, .. } = self.sight(**node);
            leaving && !departing && !chain.contains(node) && !self.is_behind(**node)
        };
        let leave = partition.members().iter().filter(leaves).filter_map(|node| {
            let since = partition.since(*node)?;
            Some(Away { node: *node, since, left: self.revision })
        });
        partition.away.iter().copied().chain(leave).collect()
    }

    /// How many are away, with those who leave now.
    pub(super) fn absent(&self, members: &[NodeId]) -> usize {
        self.away_but(members).len()
    }

    /// The first to go when there are too many: who does not answer, else the departing, else who
    /// is the fullest, else who came first.
    fn least_wanted(&self, members: &[NodeId]) -> Option<NodeId> {
        let moves_from = match self.change {
            Some(Change::Move { from, to, .. }) if members.contains(to) => Some(*from),
            _ => None,
        };
        let rank = |node: &&NodeId| {
            let Sight { serving, departing, .. } = self.sight(**node);
            let (full, since) = (self.with_one_more(**node), self.partition.since(**node));
            (!serving, departing, Some(**node) == moves_from, full, Reverse(since), **node)
        };
        members.iter().max_by_key(rank).copied()
    }

    pub(super) fn is_behind(&self, node: NodeId) -> bool {
        self.compared.is_some_and(|it| it.behind.contains(&node))
    }

    /// Why an open partition is to become the target; `None` if it is the target already.
    fn reason(&self, target: &Target) -> Option<Reason> {
        let set = |nodes: &[NodeId]| nodes.iter().copied().collect::<BTreeSet<_>>();
        let learner = target.copy.map(|copy| copy.taker);
        let partition = self.partition;
        if self.caught_up {
            return Some(Reason::Whole);
        }
        let same = set(partition.members()) == set(&target.members);
        let leaves = |node: &NodeId| self.sight(*node).leaving && !target.members.contains(node);
        if partition.members().iter().any(leaves) {
            return Some(Reason::Ending);
        }
        if learner.is_none() || learner == partition.learner() {
            return (!same || learner != partition.learner()).then_some(Reason::Unwanted);
        }
        if partition.members().len() < self.replicas {
            return Some(Reason::Short);
        }
        let leaving = self.is_anyone_departing(partition.members());
        let moves = self.moving(&target.members).is_some();
        Some(match (leaving, moves) {
            (true, _) => Reason::Leaving,
            (false, true) => Reason::Loaded,
            (false, false) => Reason::Uneven,
        })
    }

    /// Opens it with the chain that it ought to have. The roles go to those who have the fewest for
    /// the replicas that they have.
    pub(super) fn open(&self) -> Step {
        let Target { members, copy } = self.target();
        let share = |node: &NodeId| self.tally.of(*node);
        let (head, tail) = (self.partition.head(), self.partition.tail());
        let wanted = self.wanted_tail(&members);
        let by_tails = |node: &&NodeId| {
            let silent = !self.sight(**node).serving;
            let unwanted = wanted.is_some() && wanted != Some(**node);
            (silent, unwanted, share(node).tail_permille(), Some(**node) != tail, **node)
        };
        let tail = match copy {
            Some(Intent { giver, .. }) => Some(giver),
            None => members.iter().min_by_key(by_tails).copied(),
        };
        let mut rest: Vec<NodeId> =
            members.iter().copied().filter(|node| Some(*node) != tail).collect();
        rest.sort_unstable();
        let by_heads = |node: &&NodeId| (share(node).head_permille(), Some(**node) != head, **node);
        let head = rest.iter().min_by_key(by_heads).copied();
        rest.retain(|node| Some(*node) != head);
        let learner = copy.map(|copy| copy.taker);
        let chain: Vec<NodeId> = head.into_iter().chain(rest).chain(tail).chain(learner).collect();
        let resumed = self.compared.and_then(|it| it.resumes).filter(|it| Some(it.0) == learner);
        let running = self.partition.resumes.filter(|_| learner == self.partition.learner());
        // Who is behind comes in anew, but with what it holds if it is to be copied only the rest.
        let stays = |node: NodeId| !self.is_behind(node) || resumed.is_some();
        let since = chain.iter().map(|node| {
            let before = self.partition.since(*node).filter(|_| stays(*node));
            before.unwrap_or(self.revision)
        });
        let epoch = self.next_epoch();
        // Whoever is away is not waited for when there are enough without it.
        let mut away = self.away_but(&chain);
        away.retain(|_| members.len() < self.replicas);
        let next = Partition {
            epoch,
            away,
            since: since.collect(),
            chain,
            has_learner: learner.is_some(),
            open: true,
            opened: epoch,
            returned: Vec::new(),
            // All of it has settled, so that every node holds what it was made of.
            made: None,
            resumes: resumed.map(|(_, base)| base).or(running),
            ..self.partition.clone()
        };
        // Nor is it anybody's fault where more was written than can be told by its version: a key
        // that was delegated meanwhile came home with one that was given out before. A learner that
        // came back has not been told the sum over what was written before it came.
        let had_left = |node: &NodeId| {
            let resumed = self.partition.resumes.is_some();
            let back = self.partition.returned.iter().find(|it| it.node == *node);
            let is_learner = self.partition.learner() == Some(*node);
            back.is_some_and(|it| it.left) || is_learner && (resumed || back.is_some())
        };
        let behind = self.compared.iter().flat_map(|it| &it.behind).copied();
        let unequal = behind.filter(|node| !had_left(node)).collect();
        Step { unequal, ..Step::new(next, Reason::Settled) }
    }
}
