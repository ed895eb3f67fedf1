//! What a client has seen and done since it started.

use wire::DropReason;

/// Counts since the client started; they only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests taken.
    pub started: u64,
    /// Requests that are done.
    pub done: u64,
    /// Requests refused, by a node or by a limit of the client.
    pub refused: u64,
    /// Requests whose outcome is unknown.
    pub unknown: u64,
    /// Datagrams sent, copies included.
    pub datagrams: u64,
    /// Copies among them: sent again because no answer came, or one that said ask again.
    pub retransmits: u64,
    /// Copies that were sent in vain: answered after another copy was.
    pub in_vain: u64,
    /// Times that nothing was heard any more and the next service address was tried.
    pub moves: u64,
    /// Retries put off because the budget was empty.
    pub postponed: u64,
    /// Replies taken.
    pub replies: u64,
    /// Answers that said ask again, overloaded ones included.
    pub ask_again: u64,
    /// Answers that said overloaded.
    pub overloaded: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Datagrams dropped for this reason; `UnknownRequest` are late and doubled replies.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        let index = DropReason::ALL.iter().position(|it| *it == reason);
        index.and_then(|index| self.dropped.get(index)).copied().unwrap_or_default()
    }

    /// Every reason with its count.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.into_iter().zip(self.dropped)
    }

    pub(crate) fn drop_for(&mut self, reason: DropReason) {
        let index = DropReason::ALL.iter().position(|it| *it == reason);
        if let Some(count) = index.and_then(|index| self.dropped.get_mut(index)) {
            *count += 1;
        }
    }
}
