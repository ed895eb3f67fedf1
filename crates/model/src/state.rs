//! What a state of the model consists of: nodes, the controller's map, the network, the clients.
//!
//! Everything is as small as the bounds allow, for millions of these are held apart by their hash.

use crate::history::Possible;
use arrayvec::ArrayVec;
use std::fmt;

/// Nodes in the model.
pub const NODES: usize = 3;
/// Writes that clients make in one scope at most. All orders of three are 16, which
/// [`Possible`] has room for.
pub const REQUESTS_MAX: usize = 3;
/// Versions in one scope at most: they are kept in [`Bits`].
pub const VERSIONS_MAX: u8 = 7;

/// A small set of nodes, requests or versions.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(pub u8);

impl Bits {
    /// The set of this one.
    #[must_use]
    pub fn of(item: u8) -> Self {
        Self(1 << item)
    }

    /// Whether `item` is in it.
    #[must_use]
    pub fn has(self, item: u8) -> bool {
        self.0 & (1 << item) != 0
    }

    /// Puts `item` in.
    pub fn insert(&mut self, item: u8) {
        self.0 |= 1 << item;
    }

    /// What is in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The items, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..8).filter(move |item| self.has(*item))
    }
}

impl FromIterator<u8> for Bits {
    fn from_iter<I: IntoIterator<Item = u8>>(items: I) -> Self {
        items.into_iter().fold(Self::default(), |set, item| set.or(Self::of(item)))
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A value of the key: the requests that made it, oldest first, as digits to the base 4. 0: none.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u8);

/// What a write does to the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Nothing: its condition did not hold.
    None,
    /// It leaves this value.
    Put(Value),
    /// It leaves a tombstone.
    Delete,
}

/// What a client is told of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// The version that it was given.
    pub version: u8,
    /// What it found or computed.
    pub result: u8,
}

/// What a node has committed of the key. Version 0: it knows nothing of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Of the write that made it.
    pub version: u8,
    /// [`Value::default`] makes it a tombstone.
    pub value: Value,
}

/// An ordered write, as it lies pending and travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// Its place in the order.
    pub version: u8,
    /// Whose it is.
    pub request: u8,
    /// The version of the state that it was computed from, if it depends on one.
    pub base: Option<u8>,
    /// What it does.
    pub effect: Effect,
    /// What the client will be told.
    pub result: u8,
    /// The requests of this client below its low-water mark.
    pub ended: Bits,
}

impl Write {
    /// What the client is told once it is committed.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome { version: self.version, result: self.result }
    }
}

/// A place in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    /// Who sits there.
    pub node: u8,
    /// The epoch that took it in.
    pub since: u8,
    /// The memory that it was taken in with.
    pub store: u8,
}

/// A chain as the controller decided it, in one epoch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// Which.
    pub epoch: u8,
    /// Whether clients are served.
    pub open: bool,
    /// Whether the last of the replicas is a learner's.
    pub has_learner: bool,
    /// Head first.
    pub replicas: ArrayVec<Replica, NODES>,
}

impl Chain {
    /// The nodes of the chain, head first.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = u8> {
        self.replicas.iter().map(|replica| replica.node)
    }

    /// The replicas of the full members: all but the learner's.
    #[must_use]
    pub fn members(&self) -> &[Replica] {
        let count = self.replicas.len() - usize::from(self.has_learner);
        self.replicas.get(..count).unwrap_or_default()
    }

    /// Who orders writes.
    #[must_use]
    pub fn head(&self) -> Option<u8> {
        self.nodes().next()
    }

    /// Who answers clients.
    #[must_use]
    pub fn tail(&self) -> Option<u8> {
        self.members().last().map(|replica| replica.node)
    }

    /// Who commits first: the tail, or the learner behind it.
    #[must_use]
    pub fn last(&self) -> Option<u8> {
        self.nodes().next_back()
    }

    /// Who is being taken in.
    #[must_use]
    pub fn learner(&self) -> Option<u8> {
        self.last().filter(|_| self.has_learner)
    }

    /// The replica of this node.
    #[must_use]
    pub fn replica(&self, node: u8) -> Option<Replica> {
        self.replicas.iter().copied().find(|replica| replica.node == node)
    }

    /// Who comes after this node.
    #[must_use]
    pub fn successor(&self, node: u8) -> Option<u8> {
        self.nodes().skip_while(|other| *other != node).nth(1)
    }

    /// Who comes before this node.
    #[must_use]
    pub fn predecessor(&self, node: u8) -> Option<u8> {
        self.nodes().rev().skip_while(|other| *other != node).nth(1)
    }
}

/// What a node keeps in its process only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Volatile {
    /// The chain as of the installed assignment.
    pub chain: Chain,
    /// Nothing is pending any more in this closed epoch, anywhere.
    pub settled: bool,
    /// Pieces of the copy sent, as the tail.
    pub sent: u8,
    /// Those of them that the learner has answered.
    pub copied: Bits,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Node {
    /// Whether its lease runs.
    pub lease: bool,
    /// Its part, once an assignment is installed.
    pub place: Option<Volatile>,
    /// Identity of its memory; all below is lost with it.
    pub store: u8,
    /// Copies begun in earlier incarnations: the number of a run is never used again.
    pub runs: u8,
    /// The epoch that took it in, as it has it on record.
    pub since: u8,
    /// Whether it holds everything since then.
    pub caught_up: bool,
    /// What is committed.
    pub record: Record,
    /// What is recorded and not committed, by version.
    pub pending: ArrayVec<Write, 7>,
    /// Versions above `stable` that are committed here. A restart forgets them.
    pub committed: Bits,
    /// Every version up to this one is committed everywhere.
    pub stable: u8,
    /// The newest version seen.
    pub newest: u8,
    /// The newest version of any tombstone collected here.
    pub collected: u8,
    /// Outcomes of committed requests.
    pub sessions: [Option<Outcome>; REQUESTS_MAX],
    /// Requests below the low-water mark of their client.
    pub ended: Bits,
}

/// From whom to whom, in which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    /// Of the sender's chain.
    pub epoch: u8,
    /// Sender.
    pub from: u8,
    /// Receiver.
    pub to: u8,
}

/// A message between nodes. What was sent stays in the network: it may arrive late, twice or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// CHAIN_WRITE, with the sender's `stable`.
    Write(Way, Write, u8),
    /// CHAIN_COMMIT of a version.
    Commit(Way, u8),
    /// CHAIN_STABLE.
    Stable(Way, u8),
    /// CHAIN_COPY, with the number of the run.
    Copy(Way, u8, Piece),
}

impl Message {
    /// From whom to whom.
    #[must_use]
    pub fn way(&self) -> Way {
        match self {
            Self::Write(way, ..)
            | Self::Commit(way, _)
            | Self::Stable(way, _)
            | Self::Copy(way, ..) => *way,
        }
    }
}

/// A piece of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// What was committed of the key.
    Record(Record),
    /// The sessions, and the requests that had ended.
    Sessions([Option<Outcome>; REQUESTS_MAX], Bits),
    /// The end: `newest`, `stable`, `collected` of the tail.
    End(u8, u8, u8),
}

/// How far a client is with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// No node has taken it yet. (To begin when the first node takes it is the hardest case: an
    /// earlier beginning allows more orders.)
    #[default]
    New,
    /// Taken, not answered.
    Open,
    /// Answered.
    Done(Outcome),
    /// Given up as refused; only a mutant client does that here.
    Refused,
}

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    /// What clients saw has no order.
    Order,
    /// Two answers to one request differ: it was applied twice.
    Twice,
    /// An acknowledged write is missing at a full member that has its memory, or no full member
    /// has its memory although fewer nodes have failed than there were members.
    Lost,
    /// A read returned what a full member that has its memory does not have.
    Dirty,
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A node is cut off until its lease has ended.
    pub cuts: u8,
    /// A node stops and comes back with its disk.
    pub restarts: u8,
    /// A node stops and comes back without its memory.
    pub losses: u8,
    /// The controller stops and comes back with its map and nothing else.
    pub takeovers: u8,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The nodes, by number.
    pub nodes: [Node; NODES],
    /// What the controller has decided last, and keeps.
    pub map: Chain,
    /// Earlier decisions that may still reach a node, where the scope lets orders be late.
    pub earlier: Vec<Chain>,
    /// Nodes that have reported to have settled in the present epoch.
    pub settled: Bits,
    /// Whether the learner has reported in the present epoch to have caught up.
    pub caught_up: bool,
    /// What was sent and could still be taken, in order.
    pub network: Vec<Message>,
    /// What may still go wrong.
    pub faults: Faults,
    /// The clients' requests, by number.
    pub clients: [Status; REQUESTS_MAX],
    /// Which orders of the requests agree with all that clients have seen.
    pub possible: Possible,
    /// The first promise broken.
    pub breach: Option<Breach>,
}

impl State {
    /// The node of this number.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn node(&self, node: u8) -> &Node {
        self.nodes.get(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// The node of this number, to change.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn node_mut(&mut self, node: u8) -> &mut Node {
        self.nodes.get_mut(usize::from(node)).expect("chains consist of nodes of the model")
    }

    /// How far a client is with a request.
    #[must_use]
    pub fn status(&self, request: u8) -> Status {
        self.clients.get(usize::from(request)).copied().unwrap_or_default()
    }

    /// Puts a message in the network.
    pub fn send(&mut self, message: Message) {
        if let Err(at) = self.network.binary_search(&message) {
            self.network.insert(at, message);
        }
    }

    /// Whether this node has the memory that it sits in the chain with.
    #[must_use]
    pub fn remembers(&self, replica: Replica) -> bool {
        self.node(replica.node).store == replica.store
    }
}
