//! Whether what a shard says waits for its disk.

/// Whether a message waits until what the turn has done is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It may rest on that.
    Turn,
    /// It shows nothing of it.
    No,
    /// It may rest on that, and nobody is in a hurry: it goes when another turn is made durable.
    Late,
}

impl Waits {
    /// Of an answer that shows what is durable, or not.
    pub(crate) fn unless(durable: bool) -> Self {
        if durable { Self::No } else { Self::Turn }
    }
}
