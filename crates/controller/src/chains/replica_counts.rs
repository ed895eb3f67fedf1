//! Who has how many replicas in the chains, and which roles and copies.

use cluster::{NodeId, Partition, PartitionId};
use std::collections::BTreeMap;

/// Copies that a node gives, and that it takes, at a time. One: several would share what the node
/// can send or store, and the first to end would end later.
pub(crate) const COPIES_PER_NODE_MAX: usize = 1;

/// A copy that is to begin when its partition opens, or that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    /// The tail, or who is to be.
    pub(crate) giver: NodeId,
    /// The learner, or who is to be.
    pub(crate) taker: NodeId,
}

/// Copies that are to begin, by partition. They are not durable: whoever has lost them picks anew.
pub(crate) type Intents = BTreeMap<PartitionId, Intent>;

/// What falls to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Places in chains, as a learner too.
    pub(crate) replicas_held: usize,
    heads: usize,
    tails: usize,
    giving: usize,
    taking: usize,
}

impl Share {
    /// In how many of its replicas it is the head, with one more. Not how often it is: a node
    /// that gets replica after replica would be the head in all of them until it had as many as
    /// others.
    pub(crate) fn head_permille(self) -> usize {
        self.heads * 1_000 / (self.replicas_held + 1)
    }

    /// In how many of its replicas it is the tail, likewise.
    pub(crate) fn tail_permille(self) -> usize {
        self.tails * 1_000 / (self.replicas_held + 1)
    }

    /// Whether it may begin to give a copy.
    pub(crate) fn can_give(self) -> bool {
        self.giving < COPIES_PER_NODE_MAX
    }

    /// Whether it may begin to take a copy.
    pub(crate) fn can_take(self) -> bool {
        self.taking < COPIES_PER_NODE_MAX
    }
}

/// The shares of all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    shares: BTreeMap<NodeId, Share>,
}

impl Tally {
    pub(crate) fn of(&self, node: NodeId) -> Share {
        self.shares.get(&node).copied().unwrap_or_default()
    }

    /// Counts a partition, and the copy that runs in it or is to begin.
    pub(crate) fn add(&mut self, partition: &Partition, copy: Option<Intent>) {
        self.count(partition, copy, |n| *n += 1);
    }

    /// Takes back what was added.
    pub(crate) fn remove(&mut self, partition: &Partition, copy: Option<Intent>) {
        self.count(partition, copy, |n| {
            *n = n.checked_sub(1).expect("only what was added is removed");
        });
    }

    /// Moves a replica from one node to another, as a copy that is to begin will.
    pub(crate) fn move_replica(&mut self, from: NodeId, copy: Intent) {
        let old = &mut self.share(from).replicas_held;
        *old = old.saturating_sub(1);
        self.share(copy.taker).replicas_held += 1;
        self.share(copy.taker).taking += 1;
        self.share(copy.giver).giving += 1;
    }

    fn share(&mut self, node: NodeId) -> &mut Share {
        self.shares.entry(node).or_default()
    }

    fn count(&mut self, partition: &Partition, copy: Option<Intent>, change: impl Fn(&mut usize)) {
        for node in &partition.chain {
            change(&mut self.share(*node).replicas_held);
        }
        if let Some(head) = partition.head() {
            change(&mut self.share(head).heads);
        }
        if let Some(tail) = partition.tail() {
            change(&mut self.share(tail).tails);
        }
        if let Some(Intent { giver, taker }) = copy {
            change(&mut self.share(giver).giving);
            change(&mut self.share(taker).taking);
        }
    }
}
