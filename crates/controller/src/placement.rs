//! Placement follows load (TurboKV section 5.1): what a node has to do is evened out between nodes,
//! not only how many replicas each of them has.
//!
//! A node's load is what it has to handle: the reads of partitions whose tail it is, and the writes
//! of all partitions that it is a member of. It is measured against the mean, by what each node can
//! bear. The levers, the cheapest first: another member becomes the tail, which copies nothing; a
//! replica moves to another node.
//!
//! What keeps it from doing too much are rules that other stores' balancers had to learn. It begins
//! only above a ratio and a floor, several samples in a row; it judges the state that what is under
//! way will lead to; it counts nothing of a partition that has just changed; it leaves a partition
//! alone for a while after each change, for longer each time; and no replica goes back to a node
//! that it left not long ago.
//!
//! Nothing of this is durable: a controller that comes back measures anew.

mod change;
mod decide;
mod loads;
mod log;
mod rest;
mod status;

pub use change::Change;
pub(crate) use decide::Burdens;
pub use log::PlacementDecision;
pub use status::{NodeBurden, PartitionRate, PlacementStatus};

use crate::capacity::Weights;
use crate::decisions::{Decisions, Level};
use cluster::{HotOrder, Incarnation, Map, MaybeMutant, NodeId, PartitionId, SwitchCounters};
use decide::{Scene, Shares};
use loads::{Loads, Rate};
use log::Log;
use machine::Instant;
use rest::Rests;
use std::collections::BTreeMap;

/// Samples in a row in which a node has to have too much before anything is done.
const SAMPLES: u8 = 3;

/// Where placement stands.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// Requests per second under which a node is never too busy.
    floor: u64,
    loads: Loads,
    rests: Rests,
    /// Samples in a row in which a node had too much.
    over: u8,
    /// Whether load is being evened out: then it goes on until little is left to even out.
    active: bool,
    /// Of a sample that was not looked at yet.
    news: bool,
    log: Log,
}

/// What looking goes by.
pub(crate) struct Sight<'a> {
    pub(crate) now: Instant,
    pub(crate) map: &'a Map,
    pub(crate) weights: &'a Weights,
    /// Nodes that may be given replicas.
    pub(crate) takers: &'a [NodeId],
    /// Changes that were begun and that the map shows only in part.
    pub(crate) under_way: &'a BTreeMap<PartitionId, Change>,
    /// Nothing is to begin.
    pub(crate) paused: bool,
    pub(crate) mutant: MaybeMutant,
}

impl Placement {
    /// Nodes are never too busy with less than so many requests per second.
    pub(crate) fn new(floor: u64) -> Self {
        let (loads, rests, log) = (Loads::default(), Rests::default(), Log::default());
        Self { floor, loads, rests, over: 0, active: false, news: false, log }
    }

    /// The active switch says what it has counted.
    pub(crate) fn hear_switch(
        &mut self,
        now: Instant,
        by: (u16, Incarnation),
        counters: &SwitchCounters,
        (map, hot): (&Map, &HotOrder),
    ) {
        self.news |= self.loads.note(now, by, counters, (map, hot));
    }

    /// What each node has to do by that, when all that is under way has come to its end.
    pub(crate) fn shares(&self, sight: &Sight<'_>) -> Shares {
        self.scene(sight).shares()
    }

    /// Where it stands, for people, and what would be changed if nothing were waited for.
    pub(crate) fn status(&self, sight: &Sight<'_>) -> PlacementStatus {
        let rate = |(partition, Rate { reads, writes })| PartitionRate { partition, reads, writes };
        let burden = |(node, load, permille)| NodeBurden { node, load, permille };
        let scene = self.scene(sight);
        let (planned, after) = scene.changes();
        PlacementStatus {
            partitions: self.loads.rates().map(rate).collect(),
            nodes: scene.shares().all().map(burden).collect(),
            paused: sight.paused,
            under_way: sight.under_way.values().copied().collect(),
            planned,
            predicted: after.all().map(burden).collect(),
            decisions: self.log.iter().cloned().collect(),
            turns: self.log.turns,
            moves: self.log.moves,
            splits: self.log.splits,
            merges: self.log.merges,
        }
    }

    /// An operator wants this change: what moves by itself is not to undo it.
    pub(crate) fn note_wished(&mut self, now: Instant, change: &Change) {
        self.rests.note(now, change);
    }

    /// How many decisions there were.
    pub(crate) fn noted(&self) -> u64 {
        self.log.noted()
    }

    /// The decisions after the first `seen`, as far as they are remembered.
    pub(crate) fn since(&self, seen: u64) -> impl Iterator<Item = &PlacementDecision> {
        self.log.since(seen)
    }

    /// The same, to tell which replicas can be moved for other reasons.
    pub(crate) fn burdens<'a>(&'a self, sight: &Sight<'a>) -> Burdens<'a> {
        self.scene(sight).burdens()
    }

    /// What is to be changed now; nothing if there is no new sample.
    pub(crate) fn look(&mut self, sight: &Sight<'_>, decisions: &mut Decisions) -> Vec<Change> {
        if !std::mem::take(&mut self.news) {
            return Vec::new();
        }
        self.rests.forget_old(sight.now);
        let before = self.shares(sight);
        if sight.under_way.is_empty() {
            self.log.find(before.worst_permille(), |partition| self.loads.is_settled(partition));
        }
        self.over = if before.is_uneven(self.floor) { self.over.saturating_add(1) } else { 0 };
        let begins = !self.active && self.over >= SAMPLES;
        if sight.paused || !self.active && !begins {
            return Vec::new();
        }
        let (changes, after) = self.scene(sight).changes();
        if changes.is_empty() {
            if begins {
                let did =
                    "nothing: no other order of a chain and no move of a replica evens it out";
                decisions.note(sight.now, Level::Usual, before.describe(), did, "");
            }
            if self.active && sight.under_way.is_empty() {
                let saw = format!("load is as even as it can be: {}", before.describe());
                decisions.note(sight.now, Level::Usual, saw, "leave it", "");
                (self.active, self.over) = (false, 0);
            }
            // Not again with each sample.
            self.over = if begins { 0 } else { self.over };
            return changes;
        }
        self.active = true;
        let did: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let predicted = format!("predicted: {}", after.describe());
        decisions.note(sight.now, Level::Usual, before.describe(), did.join("; "), predicted);
        let (saw, predicted) = (before.worst_permille(), after.worst_permille());
        self.log.note(sight.now, (saw, predicted), &changes);
        for change in &changes {
            self.rests.note(sight.now, change);
        }
        changes
    }

    fn scene<'a>(&'a self, sight: &Sight<'a>) -> Scene<'a> {
        Scene {
            now: sight.now,
            floor: self.floor,
            map: sight.map,
            loads: &self.loads,
            weights: sight.weights,
            takers: sight.takers,
            rests: &self.rests,
            under_way: sight.under_way,
            mutant: sight.mutant,
        }
    }
}
