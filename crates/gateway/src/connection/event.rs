//! What a connection can wait for.

/// What a connection waits for.
pub(super) enum Event {
    /// Commands are done, and their replies wait to be written.
    Ended,
    Read,
    Wrote,
    Resumed,
    /// The gateway ends.
    Drain,
    /// Nothing more can be done for this client.
    Over,
    /// It holds too much.
    Evicted,
}
