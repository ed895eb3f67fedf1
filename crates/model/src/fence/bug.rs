//! Rules that the model can be told to break.

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
}
