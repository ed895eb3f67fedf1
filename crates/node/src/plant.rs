//! Deliberate bugs, to know that the simulator would see them.

/// A rule of the protocol that a node can be told to break. Only the simulator ever does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// A retry is applied again, under a new version.
    ForgetRequests,
    /// A read-modify-write is taken although what it was computed from has not arrived.
    IgnoreBase,
    /// The head answers a write as soon as it has ordered it.
    AnswerAtHead,
    /// Answers leave before what they rest on is durable.
    AnswerUnsynced,
}

impl Plant {
    /// Every planted bug.
    pub const ALL: [Self; 4] =
        [Self::ForgetRequests, Self::IgnoreBase, Self::AnswerAtHead, Self::AnswerUnsynced];
}
