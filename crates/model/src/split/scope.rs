//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nodes, of which the first two are the chain at the beginning.
    pub nodes: u8,
    /// Requests: every other one is about the first key, the others about the second.
    pub requests: u8,
    /// Whether there are two partitions at the beginning.
    pub two: bool,
    /// How often one may be split.
    pub splits: u8,
    /// How often two may become one.
    pub merges: u8,
    /// How often a node of a chain may be replaced.
    pub moves: u8,
    /// How often power may go, at one node each time.
    pub cuts: u8,
    /// Maps that the controller may make, with the first.
    pub maps: u8,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// What becomes of a partition has no sessions.
    SessionsGone,
    /// Sessions go to the first half alone.
    SessionsToOne,
    /// The halves give versions from the first on.
    CountAnew,
    /// Nodes go on with a partition that the map does not have any more.
    ServeParent,
    /// A node that follows the map makes the halves anew from what it has kept of the whole.
    MakeAgain,
    /// Whoever forgets the whole forgets the records of its halves.
    ForgetArea,
    /// What two become goes on with the versions of the second.
    CountOfOne,
    /// It has the sessions of the first.
    SessionsOfOne,
    /// Two become one though they are at different nodes.
    MergeApart,
    /// A node that forgets does so after it was copied to.
    ForgetLate,
}

const SPLIT: Scope = Scope {
    name: "one is split",
    nodes: 2,
    requests: 2,
    two: false,
    splits: 1,
    merges: 0,
    moves: 0,
    cuts: 1,
    maps: 4,
};

const MERGE: Scope =
    Scope { name: "two become one", two: true, splits: 0, merges: 1, cuts: 0, maps: 4, ..SPLIT };

const MOVED: Scope =
    Scope { name: "one of two moves", nodes: 3, two: true, splits: 0, moves: 1, cuts: 0, ..SPLIT };

const APART: Scope = Scope { requests: 1, merges: 1, maps: 5, ..MOVED };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![SPLIT, MERGE, MOVED]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "one is split, and becomes one again", merges: 1, maps: 6, ..SPLIT },
            Self { name: "three requests, one is split", requests: 3, ..SPLIT },
            Self { name: "power goes while half of it moves", cuts: 1, ..MOVED },
            Self { name: "power goes while two become one", cuts: 1, maps: 5, ..MERGE },
            Self {
                name: "one is split and half of it moves",
                requests: 1,
                maps: 6,
                moves: 1,
                ..SPLIT
            },
            Self { name: "two become one after a move", maps: 7, ..APART },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::SessionsGone | Bug::SessionsToOne => SPLIT,
            Bug::CountAnew => Scope { requests: 3, ..SPLIT },
            Bug::ServeParent | Bug::MakeAgain | Bug::ForgetArea => SPLIT,
            Bug::CountOfOne => Scope { requests: 3, ..MERGE },
            Bug::SessionsOfOne => MERGE,
            Bug::MergeApart => APART,
            Bug::ForgetLate => MOVED,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SessionsGone,
        Self::SessionsToOne,
        Self::CountAnew,
        Self::ServeParent,
        Self::MakeAgain,
        Self::ForgetArea,
        Self::CountOfOne,
        Self::SessionsOfOne,
        Self::MergeApart,
        Self::ForgetLate,
    ];
}
