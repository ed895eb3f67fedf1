//! Placement follows load (TurboKV section 5.1): what a node has to do is evened out between nodes,
//! not only how many replicas each of them has.
//!
//! A node's load is what it has to handle: the reads of partitions whose tail it is, and the writes
//! of all partitions that it is a member of. It is measured against the mean, by what each node can
//! bear. The levers, the cheapest first: another member becomes the tail, which copies nothing; a
//! replica moves to another node; and what no node can bear beside anything else is split, which
//! copies nothing either. Partitions are also split when they are large, and merged when they have
//! been cold and small for long.
//!
//! What keeps it from doing too much are rules that other stores' balancers had to learn. It begins
//! only above a ratio and a floor, several samples in a row; it judges the state that what is under
//! way will lead to; it counts nothing of a partition that has just changed; it leaves a partition
//! alone for a while after each change, for longer each time; and no replica goes back to a node
//! that it left not long ago.
//!
//! Before all that comes room: a node that is nearly full gives replicas to nodes that are not, and
//! nothing goes to one that would then be nearly full.
//!
//! Nothing of this is durable: a controller that comes back measures anew.

mod change;
mod cuts;
mod decide;
mod fills;
mod footprint;
mod loads;
mod log;
mod merge;
mod node_counts;
mod owed;
mod quiet;
mod rate;
mod rest;
mod room;
mod samples;
mod split;
mod status;

pub use change::{Change, Cut};
pub(crate) use decide::Burdens;
pub use log::{PlacementDecision, Purpose};
#[cfg(test)]
pub(crate) use rest::NO_RETURN;
pub use status::{NodeBurden, PartitionRate, PlacementStatus};

use crate::capacity::Weights;
use crate::decisions::{Decisions, Level};
use crate::holdings::Holdings;
use cluster::{
    HotOrder, Incarnation, Map, MaybeMutant, Mutant, NodeId, NodeReport, Partition, PartitionId,
    SwitchCounters,
};
use decide::{Scene, Shares};
use fills::Fills;
use loads::Loads;
use log::Log;
use machine::Instant;
use owed::Owed;
use quiet::Quiet;
use rate::Rate;
use rest::Rests;
use room::{Relief, Stuck};
use samples::Samples;
use std::collections::BTreeMap;

/// Samples in a row in which a node has to have too much before anything is done.
const SAMPLES: u8 = 3;

/// Where placement stands.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// Requests per second under which a node is never too busy.
    floor: u64,
    /// From so many bytes on a partition is large.
    split_bytes: u64,
    loads: Loads,
    samples: Samples,
    quiet: Quiet,
    rests: Rests,
    owed: Owed,
    stuck: Stuck,
    /// Samples in a row in which a node had too much.
    over: u8,
    /// Whether load is being evened out: then it goes on until little is left to even out.
    active: bool,
    /// Of a sample that was not looked at yet.
    news: bool,
    /// Changes that were under way when it was looked last.
    running: usize,
    log: Log,
}

/// What looking goes by.
pub(crate) struct PlacementInputs<'a> {
    pub(crate) now: Instant,
    pub(crate) map: &'a Map,
    pub(crate) weights: &'a Weights,
    pub(crate) holdings: Holdings,
    /// Nodes that may be given replicas.
    pub(crate) takers: Vec<NodeId>,
    /// Changes that were begun and that the map shows only in part.
    pub(crate) under_way: &'a BTreeMap<PartitionId, Change>,
    /// Whether a partition can be split and merged now.
    pub(crate) can_be_remade: Box<dyn Fn(&Partition) -> bool + 'a>,
    /// How many partitions there may be more.
    pub(crate) parts_left: usize,
    /// Nothing is to begin.
    pub(crate) paused: bool,
    pub(crate) mutant: MaybeMutant,
}

impl Placement {
    /// Nodes are never too busy with less than so many requests per second, and partitions large
    /// from so many bytes on.
    pub(crate) fn new(floor: u64, split_bytes: u64) -> Self {
        Self {
            floor,
            split_bytes,
            loads: Loads::default(),
            samples: Samples::default(),
            quiet: Quiet::default(),
            rests: Rests::default(),
            owed: Owed::default(),
            stuck: Stuck::default(),
            over: 0,
            active: false,
            news: false,
            running: 0,
            log: Log::default(),
        }
    }

    /// A node says this of partitions.
    pub(crate) fn hear_node(&mut self, now: Instant, node: NodeId, report: &NodeReport) {
        self.samples.hear(now, node, &report.samples);
        self.loads.hear_node(node, &report.counts);
    }

    /// Partitions of the map were made of others, which are there no more.
    pub(crate) fn note_remade(
        &mut self,
        now: Instant,
        map: &Map,
        (origins, parts): (&[PartitionId], &[PartitionId]),
    ) {
        let rate = |id: &PartitionId| self.loads.of(*id);
        let all = origins.iter().map(rate).fold(Rate::default(), Rate::plus);
        let count = parts.len();
        let parts = map.partitions.iter().filter(|it| parts.contains(&it.id));
        let expected: Vec<(PartitionId, Rate)> = parts
            .clone()
            .map(|it| {
                let [origin] = origins else { return (it.id, all) };
                let bounds = (it.first, it.last);
                (it.id, self.samples.rate_of_part((*origin, all), bounds, count))
            })
            .collect();
        for it in parts {
            self.samples.expect(now, (it.id, (it.first, it.last)), (origins, count));
        }
        let before: Vec<_> = origins.iter().map(|id| (*id, rate(id).all())).collect();
        let after: Vec<_> = expected.iter().map(|(id, rate)| (*id, rate.all())).collect();
        self.rests.note_parts(now, &before, &after);
        if let [(joint, _)] = expected[..] {
            self.quiet.note_merged(origins, joint);
        }
        for (id, rate) in expected {
            self.loads.expect(now, id, rate);
        }
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
    pub(crate) fn shares(&self, sight: &PlacementInputs<'_>) -> Shares {
        self.scene(sight).shares()
    }

    /// Where it stands, for people, and what would be changed if nothing were waited for.
    pub(crate) fn status(&self, sight: &PlacementInputs<'_>) -> PlacementStatus {
        let rates: BTreeMap<PartitionId, Rate> = self.loads.rates().collect();
        let rate = |it: &Partition| {
            let (rate, held) = (rates.get(&it.id), self.samples.held(it));
            let known = rate.is_some() || held.is_some();
            let Rate { reads, writes, scanned, bytes_in, bytes_out } =
                rate.copied().unwrap_or_default();
            let partition = it.id;
            let rate =
                PartitionRate { partition, reads, writes, scanned, bytes_in, bytes_out, held };
            known.then_some(rate)
        };
        let burdens = |shares: &Shares, fills: &Fills| {
            let burden = |(node, load, permille)| {
                let room_permille = fills.permille(node);
                NodeBurden { node, load, permille, room_permille }
            };
            shares.all().map(burden).collect()
        };
        let scene = self.scene(sight);
        let (planned, after) = match scene.relief().changes {
            none if none.is_empty() => scene.changes(),
            changes => {
                let after = scene.shares_after(&changes);
                (changes, after)
            }
        };
        PlacementStatus {
            partitions: sight.map.partitions.iter().filter_map(rate).collect(),
            nodes: burdens(&scene.shares(), &scene.fills),
            paused: sight.paused,
            under_way: sight.under_way.values().cloned().collect(),
            predicted: burdens(&after, &scene.fills_after(&planned)),
            planned,
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

    /// A replica has moved away from a node, for whatever reason: what moves by itself is not to
    /// undo that.
    pub(crate) fn note_left(&mut self, now: Instant, partition: PartitionId, node: NodeId) {
        self.rests.note_left(now, partition, node);
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
    pub(crate) fn burdens<'a>(&'a self, sight: &'a PlacementInputs<'a>) -> Burdens<'a> {
        self.scene(sight).burdens(&self.quiet)
    }

    /// What is to be changed now: looked for with each sample and, while load is being evened out,
    /// when something that was under way has ended.
    pub(crate) fn look(
        &mut self,
        sight: &PlacementInputs<'_>,
        decisions: &mut Decisions,
    ) -> Vec<Change> {
        let sampled = std::mem::take(&mut self.news);
        let ended =
            sight.under_way.len() < std::mem::replace(&mut self.running, sight.under_way.len());
        if !(sampled || ended && self.active) {
            return Vec::new();
        }
        let before = self.shares(sight);
        if sampled {
            self.take_stock(sight, &before);
        }
        if sight.paused {
            return Vec::new();
        }
        if sampled {
            let changes = self.make_room(sight, &before, decisions);
            if !changes.is_empty() {
                return changes;
            }
        }
        let changes = self.even_out(sight, (&before, sampled), decisions);
        if !changes.is_empty() || !sampled {
            return changes;
        }
        self.fit_sizes(sight, &before, decisions)
    }

    /// There is a new sample.
    fn take_stock(&mut self, sight: &PlacementInputs<'_>, before: &Shares) {
        self.rests.forget_old(sight.now);
        self.samples.keep(sight.map);
        self.owed.note(sight.now, (sight.map, &sight.holdings), &self.samples);
        self.quiet.note(sight.now, sight.map, &self.loads, self.floor);
        if sight.under_way.is_empty() {
            let known = |id: PartitionId| sight.map.partitions.iter().any(|it| it.id == id);
            let all_settled = self.loads.all_settled(sight.map);
            let is_counted = |id| if known(id) { self.loads.is_settled(id) } else { all_settled };
            self.log.find(before.worst_permille(), is_counted);
        }
        let floor = self.floor(sight.mutant);
        self.over = if before.is_uneven(floor) { self.over.saturating_add(1) } else { 0 };
    }

    /// What is to be changed because nodes are filling: one that is full takes no writes, whatever
    /// it has to do.
    fn make_room(
        &mut self,
        sight: &PlacementInputs<'_>,
        before: &Shares,
        decisions: &mut Decisions,
    ) -> Vec<Change> {
        let scene = self.scene(sight);
        let Relief { changes, nodes, stuck } = scene.relief();
        let (after, fills) = (scene.shares_after(&changes), scene.fills_after(&changes));
        let (before_fills, saw) = (scene.fills.clone(), scene.fills.describe(&nodes));
        let news = self.stuck.note(&stuck, &before_fills);
        if !news.is_empty() {
            let did = "nothing: no node has room for what could go; add nodes, or raise \
                       max_memory or give them larger disks";
            let saw = before_fills.describe(&news);
            decisions.note(sight.now, Level::Trouble, saw, did, "");
        }
        if changes.is_empty() {
            return changes;
        }
        let permille = (before.worst_permille(), after.worst_permille());
        let texts = (saw, format!("predicted: {}", fills.describe(&room::changed_by(&changes))));
        self.decide(sight.now, (Purpose::Room, permille), texts, &changes, decisions);
        changes
    }

    /// What is to be changed because nodes have too much to do.
    fn even_out(
        &mut self,
        sight: &PlacementInputs<'_>,
        (before, sampled): (&Shares, bool),
        decisions: &mut Decisions,
    ) -> Vec<Change> {
        let begins = !self.active && self.over >= SAMPLES;
        if !self.active && !begins {
            return Vec::new();
        }
        let scene = self.scene(sight);
        let (changes, after) = if sampled { scene.changes() } else { scene.moves_of_little() };
        if changes.is_empty() && !sampled {
            return changes;
        }
        if changes.is_empty() {
            if begins {
                let did = "nothing: no other order of a chain, no move of a replica and no cut \
                           evens it out";
                decisions.note(sight.now, Level::Usual, before.describe(), did, "");
            }
            // Parts may be changed when they are counted.
            if self.active && sight.under_way.is_empty() && !self.loads.awaits_parts() {
                let saw = format!("load is as even as it can be: {}", before.describe());
                decisions.note(sight.now, Level::Usual, saw, "leave it", "");
                (self.active, self.over) = (false, 0);
            }
            // Not again with each sample.
            self.over = if begins { 0 } else { self.over };
            return changes;
        }
        self.active = true;
        let permille = (before.worst_permille(), after.worst_permille());
        let predicted = format!("predicted: {}", after.describe());
        let texts = (before.describe(), predicted);
        self.decide(sight.now, (Purpose::Load, permille), texts, &changes, decisions);
        changes
    }

    /// What is to be changed because partitions have become too large, or so small that nobody
    /// needs them.
    fn fit_sizes(
        &mut self,
        sight: &PlacementInputs<'_>,
        shares: &Shares,
        decisions: &mut Decisions,
    ) -> Vec<Change> {
        let scene = self.scene(sight);
        let (large, saw) = (scene.large(), "partitions are large");
        let (changes, saw) = match large.is_empty() {
            false => (large, saw),
            true => (scene.merges(&self.quiet), "neighbours have been cold and small for long"),
        };
        if !changes.is_empty() {
            let worst = shares.worst_permille();
            let texts = (saw.to_owned(), format!("predicted: {}", shares.describe()));
            self.decide(sight.now, (Purpose::Size, (worst, worst)), texts, &changes, decisions);
        }
        changes
    }

    fn decide(
        &mut self,
        now: Instant,
        (purpose, permille): (Purpose, (u64, u64)),
        (saw, predicted): (String, String),
        changes: &[Change],
        decisions: &mut Decisions,
    ) {
        let did: Vec<String> = changes.iter().map(ToString::to_string).collect();
        decisions.note(now, Level::Usual, saw, did.join("; "), predicted);
        self.log.note(now, (purpose, permille), changes);
        for change in changes {
            self.rests.note(now, change);
        }
    }

    fn floor(&self, mutant: MaybeMutant) -> u64 {
        if mutant.is(Mutant::NoFloor) { 0 } else { self.floor }
    }

    fn scene<'a>(&'a self, sight: &'a PlacementInputs<'a>) -> Scene<'a> {
        Scene {
            now: sight.now,
            floor: self.floor(sight.mutant),
            map: sight.map,
            loads: &self.loads,
            samples: &self.samples,
            weights: sight.weights,
            fills: Fills::new(
                (sight.map, &sight.holdings),
                (&self.samples, &self.owed),
                sight.under_way,
            ),
            takers: &sight.takers,
            rests: &self.rests,
            under_way: sight.under_way,
            can_be_remade: &*sight.can_be_remade,
            parts_left: sight.parts_left,
            split_bytes: self.split_bytes,
            mutant: sight.mutant,
        }
    }
}
