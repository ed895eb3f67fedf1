//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nodes, all of them in the first chain.
    pub nodes: u8,
    /// Writes.
    pub writes: u8,
    /// How often a node is asked to end.
    pub leaves: u8,
    /// How often a node crashes, also one that leaves.
    pub crashes: u8,
    /// How often a node starts again.
    pub starts: u8,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A node is told that it may end before its chain was handed on.
    EndInChain,
    /// A node is told that it may end before it is fenced.
    EndUnfenced,
    /// A node is told that it may end before the switch knows that it is fenced.
    EndUnsevered,
    /// The fence of a node is lifted while it leaves.
    LiftWhileLeaving,
    /// A node is taken back while it leaves.
    TakeBackLeaving,
    /// A chain opens without the node that leaves before that has settled.
    HandOnUnsettled,
    /// A node serves what it is away from.
    ServeAway,
    /// A node that is away forgets what it holds, and is taken for one that holds it still.
    ForgetAway,
    /// A node that is back is a member without being compared.
    BelieveTheAbsent,
    /// A node that is back counts as one that has been there all the time.
    TakeForStayed,
    /// A node that is back counts as one that remembers.
    TakeForRemembering,
    /// A node that left without having settled keeps what it has pending, though others went on.
    KeepPending,
    /// The last of a closed chain commits what it has pending for being the last.
    CommitForBeingLast,
}

const ONE: Scope =
    Scope { name: "a node leaves", nodes: 2, writes: 2, leaves: 1, crashes: 0, starts: 1 };

/// One that leaves may crash, too, before it has handed on what only it has.
const CRASH: Scope = Scope { name: "nodes crash meanwhile", crashes: 1, starts: 2, ..ONE };

const BOTH: Scope =
    Scope { name: "one leaves after the other", writes: 1, leaves: 2, starts: 2, ..ONE };

const THREE: Scope = Scope { name: "a node of three leaves", nodes: 3, ..ONE };

const THREE_CRASH: Scope =
    Scope { name: "nodes of three crash meanwhile", writes: 1, crashes: 1, ..THREE };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![ONE, CRASH, BOTH, THREE, THREE_CRASH]
    }

    fn long() -> Vec<Self> {
        vec![
            Self { name: "two writes, and one leaves after the other", writes: 2, ..BOTH },
            Self { name: "nodes of three crash, and start twice", starts: 2, ..THREE_CRASH },
            Self { name: "two of three leave", nodes: 3, ..BOTH },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::EndInChain | Bug::EndUnfenced | Bug::EndUnsevered => ONE,
            Bug::LiftWhileLeaving | Bug::TakeBackLeaving | Bug::HandOnUnsettled => ONE,
            Bug::ServeAway | Bug::BelieveTheAbsent | Bug::ForgetAway => ONE,
            Bug::TakeForStayed | Bug::TakeForRemembering => CRASH,
            Bug::KeepPending | Bug::CommitForBeingLast => CRASH,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::EndInChain,
        Self::EndUnfenced,
        Self::EndUnsevered,
        Self::LiftWhileLeaving,
        Self::TakeBackLeaving,
        Self::HandOnUnsettled,
        Self::ServeAway,
        Self::ForgetAway,
        Self::BelieveTheAbsent,
        Self::TakeForStayed,
        Self::TakeForRemembering,
        Self::KeepPending,
        Self::CommitForBeingLast,
    ];
}
