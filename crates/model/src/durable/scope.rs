//! Bounds, and the rules that may be broken.

use crate::check::{self, Bounds};

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Nodes there are.
    pub nodes: u8,
    /// Those of the first chain: the first ones.
    pub members: u8,
    /// Requests, any copy of which may reach a head at any time.
    pub writes: u8,
    /// Whether each write depends on the newest that its head knows.
    pub ordered: bool,
    /// How often power goes, at any nodes at once.
    pub cuts: u8,
    /// How many nodes go for good.
    pub losses: u8,
    /// How often a node is taken in.
    pub joins: u8,
    /// Whether the members of a chain that opens may stand in another order.
    pub reorders: bool,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Whoever is last when an epoch begins commits what it has pending.
    CommitForBeingLast,
    /// The last commits what its own disk does not have yet.
    LastUnsynced,
    /// A sole member does.
    SoleUnsynced,
    /// Members say that a write is on their disks as soon as they have recorded it.
    TellRecorded,
    /// Who has said that a version is on its disk has said so of all lower ones.
    Watermark,
    /// What was said in an earlier epoch counts in the next, for whoever has that place.
    KeepTold,
    /// A member that restarts goes on in the epoch that is.
    RestartGoesOn,
    /// A closed head does not wait for what others have pending.
    SettleAlone,
    /// It says how far all is stable before it knows what others have pending.
    StableAlone,
    /// Members say that they have settled before the disk has what was committed for that.
    SettledUnsynced,
    /// The last commits a write before the one that it was computed from.
    BaseLater,
    /// A closed head takes what it is offered before the write that it was computed from.
    OfferWithoutBase,
}

const TWO: Scope = Scope {
    name: "two members",
    nodes: 2,
    members: 2,
    writes: 2,
    ordered: false,
    cuts: 1,
    losses: 0,
    joins: 0,
    reorders: false,
};

const ORDERED: Scope = Scope { name: "writes that depend on others", ordered: true, ..TWO };

const LOSS: Scope =
    Scope { name: "a power cut, and a node goes", losses: 1, reorders: true, ..TWO };

const THREE: Scope =
    Scope { name: "three members", nodes: 3, members: 3, writes: 1, losses: 2, ..TWO };

const POWER: Scope = Scope { name: "three members that all stay", losses: 0, ..THREE };

const JOIN: Scope =
    Scope { name: "a node is taken in", members: 1, writes: 1, losses: 1, joins: 1, ..TWO };

const TWICE: Scope = Scope { name: "power goes twice", writes: 1, cuts: 2, ..TWO };

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![TWO, ORDERED, LOSS, THREE, POWER, JOIN, TWICE]
    }

    fn long() -> Vec<Self> {
        let behind_two = Self { name: "a node is taken in behind two", ..JOIN };
        vec![
            Self { nodes: 3, members: 2, ..behind_two },
            Self { name: "two members, power goes twice", cuts: 2, ..TWO },
            Self { name: "writes that depend on others, power goes twice", cuts: 2, ..ORDERED },
            Self { name: "two writes at three members", writes: 2, losses: 1, ..THREE },
            Self { name: "a node is taken in beside two writes", writes: 2, cuts: 2, ..JOIN },
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::CommitForBeingLast | Bug::LastUnsynced | Bug::TellRecorded => LOSS,
            Bug::SoleUnsynced => Scope { members: 1, losses: 0, ..LOSS },
            Bug::Watermark | Bug::StableAlone => LOSS,
            Bug::RestartGoesOn | Bug::SettleAlone => TWO,
            Bug::KeepTold => THREE,
            Bug::SettledUnsynced => LOSS,
            Bug::BaseLater => Scope { cuts: 0, ..ORDERED },
            Bug::OfferWithoutBase => ORDERED,
        }
    }
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::CommitForBeingLast,
        Self::LastUnsynced,
        Self::SoleUnsynced,
        Self::TellRecorded,
        Self::Watermark,
        Self::KeepTold,
        Self::RestartGoesOn,
        Self::SettleAlone,
        Self::StableAlone,
        Self::SettledUnsynced,
        Self::BaseLater,
        Self::OfferWithoutBase,
    ];
}
