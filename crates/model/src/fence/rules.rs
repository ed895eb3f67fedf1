//! Rules that the model can be told to break.

use super::scope::Scope;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A node that does not answer is taken to be gone though its lease runs.
    NoFence,
    /// A node that is severed from all switches is gone, though the map does not fence it: the
    /// switch that serves next sends it requests.
    SeveredIsEnough,
    /// Pairs are judged by the named switch alone: a node that is fenced there is gone, and does
    /// not keep the other switch from being out.
    ForgetOtherSwitch,
    /// The other switch counts as severed from all when it is from the members of the chain:
    /// a node that reads for it is forgotten.
    ForgetReaders,
    /// A switch that stands by counts as severed although the order to serve is on its way.
    StandbyIsNoDanger,
    /// A switch says that it has tables when the first of its pipelines has.
    ConfirmEarly,
    /// A node is let in again when one of its shards has heard of the fence.
    LetInByOneShard,
    /// A node is let in again when it has heard of the fence, and not that the chain went on.
    LetInAfterFence,
    /// A takeover does not wait until a node may answer no direct requests.
    DirectOutlastsFence,
    /// A leader that was deposed gives leases.
    DeposedGrants,
    /// A switch takes the tables of an older leader than the one that it has heard.
    ObeyOldTerm,
    /// A switch obeys whoever speaks, for whatever incarnation: also a leader that was deposed, and
    /// does not know it, and that it has forgotten to have seen deposed.
    ObeyUnregistered,
    /// A node takes requests from any switch.
    AnySwitch,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::NoFence,
        Self::SeveredIsEnough,
        Self::ForgetOtherSwitch,
        Self::ForgetReaders,
        Self::StandbyIsNoDanger,
        Self::ConfirmEarly,
        Self::LetInByOneShard,
        Self::LetInAfterFence,
        Self::DirectOutlastsFence,
        Self::DeposedGrants,
        Self::ObeyOldTerm,
        Self::ObeyUnregistered,
        Self::AnySwitch,
    ];

    /// The bounds in which clients see what it does.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Self::NoFence | Self::ConfirmEarly => Scope::a_node_is_fenced(),
            Self::ForgetOtherSwitch | Self::SeveredIsEnough => Scope::both_change(),
            Self::ForgetReaders => Scope::copies_are_left(),
            Self::StandbyIsNoDanger => Scope::both_change(),
            Self::LetInByOneShard | Self::LetInAfterFence => Scope::a_node_is_let_in(),
            Self::DirectOutlastsFence => Scope::direct_requests(),
            Self::DeposedGrants | Self::ObeyOldTerm | Self::ObeyUnregistered => {
                Scope::a_leader_is_deposed()
            }
            Self::AnySwitch => Scope::the_switch_changes(),
        }
    }
}

/// The model within these bounds, perhaps with a bug.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The bounds.
    pub scope: Scope,
    /// The bug.
    pub bug: Option<Bug>,
}

impl Rules {
    /// Whether it has this bug.
    #[must_use]
    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}
