//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nodes that writes may go to.
    pub nodes: u8,
    /// How many of them are in the chain of a write.
    pub chain: u8,
    /// Versions of the first delegation.
    pub first: u8,
    /// Versions of the second; 0: there is none.
    pub second: u8,
    /// How often power may go, at one node each time.
    pub cuts: u8,
    /// How many nodes may go for good, or (if disks are torn) lose what their disks had said to
    /// have kept: less than are in a chain.
    pub losses: u8,
    /// Whether disks are torn. Home then waits for nodes that it has not heard, where others have
    /// started anew; else it has waited for long.
    pub torn: bool,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The last shows and answers what it was not told to be on the disks before it.
    LastUntold,
    /// The last shows and answers what its own disk does not have.
    LastUnsynced,
    /// Nodes send on what is not on their disks without saying so.
    HideUnsynced,
    /// They tell the last before their disks have it.
    TellRecorded,
    /// That an older write is on a disk counts for a newer one.
    OlderCounts,
    /// What was told of another delegation counts.
    OtherDelegation,
    /// What one node has told counts for all.
    AnyoneCounts,
    /// Home is told of nothing that the asked have not shown.
    FetchShownOnly,
    /// Who has started anew knows what it has taken before.
    TrustTheRestarted,
    /// Who has started anew since a delegation began takes writes of it.
    TakeAnew,
}

const TWO: Scope = Scope {
    name: "a chain of two among three",
    nodes: 3,
    chain: 2,
    first: 2,
    second: 0,
    cuts: 1,
    losses: 1,
    torn: false,
};

const TORN: Scope = Scope { name: "a disk that loses what it had", torn: true, ..TWO };

const THREE: Scope = Scope { name: "a chain of three", chain: 3, first: 1, losses: 2, ..TWO };

const AGAIN: Scope = Scope { name: "it leaves again", first: 1, second: 1, losses: 0, ..TWO };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![TWO, THREE, AGAIN, TORN]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "a chain of two, power goes twice", cuts: 2, ..TWO },
            Self { name: "two writes at a chain of three", first: 2, ..THREE },
            Self { name: "a disk of a chain of three loses what it had", torn: true, ..THREE },
            Self { name: "a disk loses what it had, power goes twice", cuts: 2, ..TORN },
            Self { name: "it leaves again, and a node goes", losses: 1, ..AGAIN },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::LastUntold | Bug::LastUnsynced | Bug::HideUnsynced | Bug::TellRecorded => TWO,
            Bug::OlderCounts | Bug::FetchShownOnly => TWO,
            Bug::TrustTheRestarted | Bug::TakeAnew => TORN,
            Bug::AnyoneCounts => THREE,
            Bug::OtherDelegation => AGAIN,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::LastUntold,
        Self::LastUnsynced,
        Self::HideUnsynced,
        Self::TellRecorded,
        Self::OlderCounts,
        Self::OtherDelegation,
        Self::AnyoneCounts,
        Self::FetchShownOnly,
        Self::TrustTheRestarted,
        Self::TakeAnew,
    ];
}
