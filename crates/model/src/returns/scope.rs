//! What is in the model, how often what may happen, and which rule may be broken.

use crate::check::{self, Bounds};
use cluster::Mutant;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnBug {
    /// One that the machines can be told to break as well.
    Mutant(Mutant),
    /// Who comes back from before the last open epoch keeps what it has pending.
    KeepOldPending,
    /// Who is behind is sent what is above the newest version that it has.
    ResumeAboveNewest,
    /// Of members that all came back the first is right.
    FirstIsRight,
}

/// What is in the model, and how often what may happen.
#[derive(Clone, Copy, Debug)]
pub struct ReturnScope {
    /// Its name.
    pub name: &'static str,
    /// Nodes, all in the first chain.
    pub nodes: u8,
    /// Writes.
    pub writes: u8,
    /// How often nodes stop.
    pub stops: u8,
    /// How often a node's store is put back.
    pub restores: u8,
    /// Whether the controller's is.
    pub old_map: bool,
    /// Whether silent members are taken out of the chain. A store of the incarnation that was the
    /// last is then not put back: there may be no other member.
    pub drops: bool,
    /// Whether nobody hears while the chain is open what is committed everywhere.
    pub late: bool,
}

impl From<Mutant> for ReturnBug {
    fn from(mutant: Mutant) -> Self {
        Self::Mutant(mutant)
    }
}

/// The rules within these bounds, perhaps with one broken.
pub type Returning = check::Rules<ReturnScope>;

const DISK: ReturnScope = ReturnScope {
    name: "a disk put back",
    nodes: 2,
    writes: 2,
    stops: 2,
    restores: 1,
    old_map: false,
    drops: false,
    late: false,
};

const TWICE: ReturnScope = ReturnScope { name: "one disk put back twice", restores: 2, ..DISK };

const LATE: ReturnScope =
    ReturnScope { name: "a disk put back, and nobody knows what is certain", late: true, ..DISK };

const ALONE: ReturnScope =
    ReturnScope { name: "a member alone put back", stops: 3, writes: 1, drops: true, ..DISK };

const MAP: ReturnScope = ReturnScope {
    name: "a map put back",
    writes: 1,
    restores: 0,
    old_map: true,
    drops: true,
    ..DISK
};

impl Bounds for ReturnScope {
    type Bug = ReturnBug;

    const BUGS: &'static [ReturnBug] = &ReturnBug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![
            DISK,
            Self { name: "one disk of three put back", nodes: 3, writes: 1, ..DISK },
            TWICE,
            LATE,
            ALONE,
            MAP,
        ]
    }

    fn of(bug: ReturnBug) -> Self {
        match bug {
            ReturnBug::Mutant(Mutant::BelieveAnyMap) => MAP,
            ReturnBug::Mutant(Mutant::BelieveAnyPast) => ALONE,
            ReturnBug::Mutant(Mutant::UncountedWrites) => LATE,
            ReturnBug::Mutant(_) | ReturnBug::ResumeAboveNewest | ReturnBug::FirstIsRight => DISK,
            ReturnBug::KeepOldPending => TWICE,
        }
    }
}

impl ReturnBug {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Mutant(Mutant::OpenUncompared),
        Self::Mutant(Mutant::BelieveAnyPast),
        Self::Mutant(Mutant::BelieveAnyMap),
        Self::Mutant(Mutant::UncountedWrites),
        Self::KeepOldPending,
        Self::ResumeAboveNewest,
        Self::FirstIsRight,
    ];
}
