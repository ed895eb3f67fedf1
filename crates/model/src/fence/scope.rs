//! Bounds: what is in the model and how often what may happen.

use super::bug::Bug;
use super::controller::Decision::{self, *};
use crate::check::{self, Bounds};

/// The bounds of one run of the checker.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// What the controller may decide, each thing once.
    pub decisions: Vec<Decision>,
    /// Writes that clients make.
    pub writes: u8,
    /// Reads that clients make.
    pub reads: u8,
    /// Leases that end.
    pub expiries: u8,
    /// Switches that start anew, having forgotten everything.
    pub restarts: u8,
    /// Whether nodes answer direct requests.
    pub direct: bool,
    /// Whether a node holds a copy of the key that the switch may send reads to.
    pub hot: bool,
}

/// The rules within these bounds, perhaps with one broken.
pub type Rules = check::Rules<Scope>;

/// The tail of the first chain.
const TAIL: u8 = 1;

impl Bounds for Scope {
    type Bug = Bug;

    const BUGS: &'static [Bug] = &Bug::ALL;

    fn name(&self) -> &'static str {
        self.name
    }

    fn everyday() -> Vec<Self> {
        vec![
            Self::a_node_is_fenced(),
            Self::a_head_is_fenced(),
            Self::a_node_is_let_in(),
            Self::the_switch_changes(),
            Self::both_change(),
            Self::copies_are_left(),
            Self::direct_requests(),
            Self::a_leader_is_deposed(),
        ]
    }

    fn of(bug: Bug) -> Self {
        match bug {
            Bug::NoFence | Bug::ConfirmEarly => Scope::a_node_is_fenced(),
            Bug::ForgetOtherSwitch | Bug::SeveredIsEnough => Scope::both_change(),
            Bug::ForgetReaders => Scope::copies_are_left(),
            Bug::StandbyIsNoDanger => Scope::both_change(),
            Bug::LetInByOneShard | Bug::LetInAfterFence => Scope::a_node_is_let_in(),
            Bug::DirectOutlastsFence => Scope::direct_requests(),
            Bug::DeposedGrants | Bug::ObeyOldTerm | Bug::ObeyUnregistered => {
                Scope::a_leader_is_deposed()
            }
            Bug::AnySwitch => Scope::the_switch_changes(),
        }
    }
}

impl Scope {
    fn new(name: &'static str, decisions: &[Decision]) -> Self {
        let decisions = decisions.to_vec();
        let (writes, reads, expiries, restarts) = (1, 1, 0, 0);
        Self { name, decisions, writes, reads, expiries, restarts, direct: false, hot: false }
    }

    /// The switches that matter.
    pub(super) fn switches(&self) -> std::ops::Range<u8> {
        if self.decisions.contains(&NameOther) { 0..2 } else { 0..1 }
    }

    /// The nodes that matter.
    pub(super) fn nodes(&self) -> std::ops::Range<u8> {
        if self.hot { 0..3 } else { 0..2 }
    }

    /// The chain goes on without its tail.
    #[must_use]
    pub fn a_node_is_fenced() -> Self {
        let decisions = [Fence(TAIL), CloseWithout(TAIL), Open];
        Self { writes: 2, reads: 2, expiries: 1, ..Self::new("a node is fenced", &decisions) }
    }

    /// The chain goes on without its head.
    #[must_use]
    pub fn a_head_is_fenced() -> Self {
        let decisions = [Fence(0), CloseWithout(0), Open];
        Self { writes: 2, reads: 2, expiries: 1, ..Self::new("a head is fenced", &decisions) }
    }

    /// A node that was left behind is let in again.
    #[must_use]
    pub fn a_node_is_let_in() -> Self {
        let decisions = [Fence(TAIL), CloseWithout(TAIL), Open, LetIn(TAIL)];
        Self::new("a node is let in again", &decisions)
    }

    /// The other switch serves.
    #[must_use]
    pub fn the_switch_changes() -> Self {
        let scope = Self::new("the switch changes", &[NameOther, Activate]);
        Self { expiries: 1, hot: true, ..scope }
    }

    /// A switch and a node are left behind.
    #[must_use]
    pub fn both_change() -> Self {
        let decisions = [NameOther, Activate, Fence(TAIL), CloseWithout(TAIL), Open];
        Self::new("a switch and a node are left behind", &decisions)
    }

    /// The key cools down, while the switch changes.
    #[must_use]
    pub fn copies_are_left() -> Self {
        let decisions = [NameOther, Activate, CoolDown, Forget];
        Self { hot: true, ..Self::new("copies are left", &decisions) }
    }

    /// Nodes answer requests that pass no switch.
    #[must_use]
    pub fn direct_requests() -> Self {
        let decisions = [Fence(TAIL), CloseWithout(TAIL), Open];
        Self { direct: true, expiries: 1, ..Self::new("direct requests", &decisions) }
    }

    /// Another leader goes on, and a switch starts anew.
    #[must_use]
    pub fn a_leader_is_deposed() -> Self {
        let decisions = [Elect, Fence(TAIL), CloseWithout(TAIL), Register(0)];
        Self { expiries: 1, restarts: 1, ..Self::new("a leader is deposed", &decisions) }
    }
}
