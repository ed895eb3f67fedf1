//! Looking at what a controller changes because of the load (G7 of the promises): nothing goes
//! back, and nothing changes too often.

mod shares;

use super::{Unit, World};
use crate::actor::ORDERED_KEYS;
use crate::role::Role;
use cluster::{Keyspace, Map, NodeId, Partition, PartitionId};
use controller::{Controller, PlacementChange, PlacementDecision, Purpose};
use machine::Instant;
use shares::Evening;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A partition is left alone for so long after its first change, and for twice as long after each
/// one more.
const REST: Duration = Duration::from_secs(10);

/// A part is counted for so long before anything is decided about it: two samples are thrown away
/// and four taken, the first of them of no more than its beginning.
const COUNTED: Duration = Duration::from_millis(2_400);

/// After so long it is not expected any more what a part is asked for, but counted: the
/// controller's ten seconds, which end with its next sample.
const EXPECTED: Duration = Duration::from_secs(11);

/// Parts that there may be for each node because of load: each has at least so small a part of what
/// a node ought to have, when it is cut.
const PARTS_OF_NODE: usize = 16;

/// Partitions that a world may come to by splits.
const PARTITIONS_MOST: usize = 16;

/// What one controller has changed so far, by its own clock, which is what it goes by. Worlds do
/// not last for ten minutes, after which a replica may go back.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Decisions that were looked at.
    seen: u64,
    left: BTreeSet<(PartitionId, NodeId)>,
    changes: BTreeMap<(PartitionId, Kind), (u32, Instant)>,
    /// Since when partitions are there, and whether they were made of others.
    there: BTreeMap<PartitionId, (Instant, bool)>,
    /// How partitions lay before.
    map: Map,
}

/// Kinds of changes after each of which a partition is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Shift,
    Cut,
}

impl Placed {
    /// Notes what partitions there are now.
    fn look_at_map(&mut self, now: Instant, map: &Map, wrong: &mut Vec<String>) {
        let before = std::mem::take(&mut self.there);
        let since = |it: &Partition| {
            before.get(&it.id).copied().unwrap_or_else(|| (now, it.made.is_some()))
        };
        self.there = map.partitions.iter().map(|it| (it.id, since(it))).collect();
        let grown = map.partitions.iter().filter(|it| it.grown).count();
        if grown > PARTS_OF_NODE * map.nodes.len() {
            wrong.push(format!("there are {grown} parts that have grown"));
        }
    }

    /// Looks at what is new. Says how many turns, moves and splits that is, and what should not be.
    fn look(
        &mut self,
        now: Instant,
        controller: &Controller,
        floor: u64,
    ) -> ([u64; 3], Vec<String>) {
        let (mut counts, mut wrong) = ([0; 3], Vec::new());
        self.look_at_map(now, controller.map(), &mut wrong);
        if self.seen == controller.placements_noted() {
            self.keep(controller.map());
            return (counts, wrong);
        }
        for decision in controller.placements_since(self.seen) {
            let PlacementDecision { purpose, changes, saw_permille, predicted_permille, .. } =
                decision;
            if *purpose == Purpose::Load {
                wrong.extend(self.look_at_load(now, controller, (changes, floor)));
                if predicted_permille > saw_permille {
                    wrong.push(format!("load is to become less even: {decision:?}"));
                }
            }
            for change in changes {
                wrong.extend(self.take(now, change));
                match change {
                    PlacementChange::Turn { .. } => counts[0] += 1,
                    PlacementChange::Move { .. } => counts[1] += 1,
                    PlacementChange::Split { .. } => counts[2] += 1,
                    PlacementChange::Merge { .. } => {}
                }
            }
        }
        self.seen = controller.placements_noted();
        self.keep(controller.map());
        (counts, wrong)
    }

    fn keep(&mut self, map: &Map) {
        if self.map.revision != map.revision {
            self.map = map.clone();
        }
    }

    /// Looks whether changes because of the load go by what has been decided before them. Whether
    /// partitions lay as they did before or do now when that was decided is all the same, if it is
    /// wrong either way.
    fn look_at_load(
        &self,
        now: Instant,
        controller: &Controller,
        (changes, floor): (&[PlacementChange], u64),
    ) -> Option<String> {
        let status = controller.status(now).placement;
        let is_new = |it: &PlacementChange| changes.iter().any(|new| new == it);
        let under_way: Vec<PlacementChange> =
            status.under_way.iter().filter(|it| !is_new(it)).cloned().collect();
        // What parts are asked for is expected first, which is not said.
        let is_shift = |it: &PlacementChange| {
            matches!(it, PlacementChange::Turn { .. } | PlacementChange::Move { .. })
        };
        let young = self.there.values().any(|(at, made)| *made && now.since(*at) < EXPECTED);
        if young || !under_way.iter().chain(changes).all(is_shift) {
            return None;
        }
        let evening = Evening { rates: &status.partitions, under_way: &under_way, floor };
        let wrong = evening.wrong(&self.map, changes);
        wrong.and_then(|_| evening.wrong(controller.map(), changes))
    }

    fn take(&mut self, now: Instant, change: &PlacementChange) -> Option<String> {
        let partition = change.partition();
        let (there, made) = self.there.get(&partition).copied().unwrap_or((now, false));
        if made && now.since(there) < COUNTED {
            let age = now.since(there);
            return Some(format!("partition {partition} changes after {age:?}: {change}"));
        }
        let kind = match change {
            PlacementChange::Split { .. } => Kind::Cut,
            _ => Kind::Shift,
        };
        let (count, first) = self.changes.entry((partition, kind)).or_insert((0, now));
        *count += 1;
        let rested = REST * (2_u32.saturating_pow(*count - 1) - 1);
        if now.since(*first) < rested {
            let times = format!("{count} times within {:?}", now.since(*first));
            return Some(format!("partition {partition} changes because of load {times}"));
        }
        let PlacementChange::Move { from, to, .. } = *change else { return None };
        self.left.insert((partition, from));
        let back = self.left.contains(&(partition, to));
        back.then(|| format!("partition {partition} goes back to node {to}, which it had left"))
    }
}

impl World {
    /// An operator has some partition split, or merged with the next, if it can be.
    pub(super) fn split_or_merge(&mut self) {
        let role = Role::Controller(self.leader);
        if !self.process(role).is_free() || self.keyspaces.is_none() {
            return;
        }
        let Some(map) = self.saved.as_ref().map(|saved| &saved.map) else { return };
        let place = usize::try_from(self.rng.below(map.partitions.len() as u64));
        let pair = place.ok().and_then(|place| map.partitions.get(place..)).unwrap_or_default();
        let (Some(partition), next) = (pair.first().cloned(), pair.get(1).map(|it| it.id)) else {
            return;
        };
        let keyspace = map.keyspaces.iter().find(|it| it.id == partition.keyspace);
        let ordered = keyspace.is_some_and(Keyspace::is_ordered);
        let many = map.partitions.len() >= PARTITIONS_MOST;
        let merges = many || self.rng.chance(1, 3);
        let at = ordered.then(|| format!("k{}", self.rng.below(ORDERED_KEYS)).into_bytes());
        let local = self.local(role);
        let master = self.controllers.get_mut(usize::from(self.leader));
        let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return };
        let id = partition.id;
        let (done, what) = match next.filter(|_| merges) {
            Some(next) => (controller.merge(local, (id, next)), "merge"),
            None if many => return,
            None => (controller.split(local, id, at.as_deref()), "split"),
        };
        if done.is_ok() {
            let count =
                if what == "merge" { &mut self.stats.merges } else { &mut self.stats.splits };
            *count += 1;
            self.note(format_args!("operator: {what} partition {id}"));
            self.pump(Unit::Master(self.leader.into()));
        }
    }

    /// Looks at what a controller has changed because of the load.
    pub(super) fn look_at_placement(&mut self, index: usize) {
        let local = self.local(self.role_of_unit(Unit::Master(index)));
        let floor = self.options.load_floor;
        let Some(master) = self.controllers.get_mut(index) else { return };
        let Some(machine) = &master.machine else { return };
        let ([turns, moves, cuts], wrong) = master.placed.look(local, machine, floor);
        self.stats.turns += turns;
        self.stats.moves += moves;
        self.stats.splits += cuts;
        for text in wrong {
            self.history.violation(text);
        }
    }
}
