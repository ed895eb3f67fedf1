//! Who has how many seats in the chains, and which roles and copies.

use cluster::{Map, NodeId, Partition, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// Copies that a node gives, and that it takes, at a time. One: several would share what the node
/// can send or store, and the first to end would end later.
pub(crate) const COPIES_PER_NODE_MAX: usize = 1;

/// A copy that is to begin when its partition opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    /// The tail to be.
    pub(crate) giver: NodeId,
    /// The joiner to be.
    pub(crate) taker: NodeId,
}

/// Copies that are to begin, by partition. They are not durable: whoever has lost them picks anew.
pub(crate) type Intents = BTreeMap<PartitionId, Intent>;

/// What falls to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Places in chains, as a joiner too.
    pub(crate) seats: usize,
    /// Chains of which it is the head.
    pub(crate) heads: usize,
    /// Chains of which it is the tail.
    pub(crate) tails: usize,
    giving: usize,
    taking: usize,
}

impl Share {
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
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    shares: BTreeMap<NodeId, Share>,
    /// Who gives no copy, though the map has it so. If it were counted, a chain that has lost all
    /// its members would keep its joiner from everything else.
    gone: BTreeSet<NodeId>,
}

impl Tally {
    pub(crate) fn new(map: &Map, intents: &Intents, gone: BTreeSet<NodeId>) -> Self {
        let mut tally = Self { shares: BTreeMap::new(), gone };
        for partition in &map.partitions {
            tally.add(partition, intents.get(&partition.id));
        }
        tally
    }

    pub(crate) fn of(&self, node: NodeId) -> Share {
        self.shares.get(&node).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, partition: &Partition, intent: Option<&Intent>) {
        self.count(partition, intent, |n| *n += 1);
    }

    /// Takes back what was added.
    pub(crate) fn remove(&mut self, partition: &Partition, intent: Option<&Intent>) {
        self.count(partition, intent, |n| {
            *n = n.checked_sub(1).expect("only what was added is removed");
        });
    }

    /// Moves a seat from one node to another, as a copy that is to begin will.
    pub(crate) fn move_seat(&mut self, from: NodeId, intent: &Intent) {
        let old = &mut self.share(from).seats;
        *old = old.saturating_sub(1);
        self.share(intent.taker).seats += 1;
        self.share(intent.taker).taking += 1;
        self.share(intent.giver).giving += 1;
    }

    fn share(&mut self, node: NodeId) -> &mut Share {
        self.shares.entry(node).or_default()
    }

    fn count(
        &mut self,
        partition: &Partition,
        intent: Option<&Intent>,
        change: impl Fn(&mut usize),
    ) {
        for node in &partition.chain {
            change(&mut self.share(*node).seats);
        }
        let (head, tail) = (partition.head(), partition.tail());
        if let Some(head) = head {
            change(&mut self.share(head).heads);
        }
        if let Some(tail) = tail {
            change(&mut self.share(tail).tails);
        }
        let running = tail.zip(partition.joiner());
        let copy = running.or(intent.map(|it| (it.giver, it.taker)));
        if let Some((giver, taker)) = copy.filter(|(giver, _)| !self.gone.contains(giver)) {
            change(&mut self.share(giver).giving);
            change(&mut self.share(taker).taking);
        }
    }
}
