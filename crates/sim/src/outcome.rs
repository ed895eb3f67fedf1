//! What a run came to.

use crate::check::Violation;
use crate::world::Attacks;
use std::time::Duration;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Every broken promise, in words; empty if all were kept.
    pub violations: Vec<String>,
    /// Those that the history of a key shows, each shrunk to be looked at.
    pub pictures: Vec<Violation>,
    /// What happened to the roles and the chains, a line for each, in the order of time.
    pub journal: Vec<String>,
    /// A hash over every event and its time: equal for equal options.
    pub fingerprint: u64,
    /// How much happened.
    pub stats: Stats,
}

/// How much happened in a run, or in many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events taken from the queue.
    pub events: u64,
    /// Requests that ended done.
    pub done: usize,
    /// Requests whose outcome stayed unknown.
    pub unknown: usize,
    /// Operations on single keys that the checker looked at.
    pub operations: usize,
    /// Keys whose histories were too much for the checker's bound of work.
    pub unchecked: usize,
    /// Crashes of any role.
    pub crashes: u64,
    /// Those of nodes, of switches and of controllers while a key was delegated.
    pub crashes_under_delegations: [u64; 3],
    /// Disks lost in these.
    pub disks_lost: u64,
    /// Nodes that came back with an older copy of their disk, or without its end.
    pub disks_aged: u64,
    /// Records that were made wrong, at one member each.
    pub rotten: u64,
    /// Stores of the controller that were lost, or replaced by older copies.
    pub maps_aged: u64,
    /// Maps that were made anew from what nodes have on record.
    pub maps_rebuilt: u64,
    /// Times that a controller of several began to lead.
    pub takeovers: u64,
    /// Times that one heard that it leads no more.
    pub deposed: u64,
    /// Orders that members refused, as they had heard a newer leader.
    pub unheeded: u64,
    /// Other faults: pauses, slow processes, partitions, clogged links.
    pub disturbances: u64,
    /// Nodes that ran out of room.
    pub filled: u64,
    /// Writes that were refused for that.
    pub refused: usize,
    /// Interventions of operators.
    pub interventions: u64,
    /// Reads that copies of hot keys answered.
    pub spread: u64,
    /// Reads that caches answered.
    pub cached: u64,
    /// Replies to requests that went to the content addresses of their keys.
    pub by_address: u64,
    /// Writes of hot keys that were answered under delegations.
    pub delegated: u64,
    /// Delegations that controllers began.
    pub delegations_begun: u64,
    /// Those that controllers ended.
    pub delegations_ended: u64,
    /// Tails that were chosen anew because of the load.
    pub turns: u64,
    /// Replicas that moved because of it.
    pub moves: u64,
    /// Partitions that were to be split.
    pub splits: u64,
    /// Pairs that were to be merged.
    pub merges: u64,
    /// Keyspaces that were to have more replicas, or fewer.
    pub alterations: u64,
    /// Changes of chains: epochs given out beyond the first of each partition.
    pub epochs: u64,
    /// From the end of all faults to full replication, the longest of all runs.
    pub healed_within: Duration,
    /// Virtual time that passed.
    pub elapsed: Duration,
    /// What was attacked, where the network is not to be trusted.
    pub attacks: Attacks,
}

impl Stats {
    /// Both runs together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            events: self.events + other.events,
            done: self.done + other.done,
            unknown: self.unknown + other.unknown,
            operations: self.operations + other.operations,
            unchecked: self.unchecked + other.unchecked,
            crashes: self.crashes + other.crashes,
            crashes_under_delegations: std::array::from_fn(|role| {
                let of =
                    |it: &Self| it.crashes_under_delegations.get(role).copied().unwrap_or_default();
                of(self) + of(other)
            }),
            disks_lost: self.disks_lost + other.disks_lost,
            disks_aged: self.disks_aged + other.disks_aged,
            rotten: self.rotten + other.rotten,
            maps_aged: self.maps_aged + other.maps_aged,
            maps_rebuilt: self.maps_rebuilt + other.maps_rebuilt,
            takeovers: self.takeovers + other.takeovers,
            deposed: self.deposed + other.deposed,
            unheeded: self.unheeded + other.unheeded,
            disturbances: self.disturbances + other.disturbances,
            filled: self.filled + other.filled,
            refused: self.refused + other.refused,
            interventions: self.interventions + other.interventions,
            spread: self.spread + other.spread,
            cached: self.cached + other.cached,
            by_address: self.by_address + other.by_address,
            delegated: self.delegated + other.delegated,
            delegations_begun: self.delegations_begun + other.delegations_begun,
            delegations_ended: self.delegations_ended + other.delegations_ended,
            turns: self.turns + other.turns,
            moves: self.moves + other.moves,
            splits: self.splits + other.splits,
            merges: self.merges + other.merges,
            alterations: self.alterations + other.alterations,
            epochs: self.epochs + other.epochs,
            healed_within: self.healed_within.max(other.healed_within),
            elapsed: self.elapsed + other.elapsed,
            attacks: self.attacks.plus(&other.attacks),
        }
    }
}
