//! Rules that the model can be told to break.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A tail commits at once, whatever is lent.
    NoWait,
    /// A tail shows the old version after it has told a cache of the new one.
    ShowsOld,
    /// A tail shows a version that it has committed, though it has told a cache of a newer one.
    ShowsBetween,
    /// A tail tells the others of its chain that a write is committed, which it still withholds.
    CommitsUpstream,
    /// The next tail does not wait until the last one may lend no more.
    OutlivesRight,
    /// A tail that starts anew serves at once.
    RestartServes,
    /// A lease is longer than the tail's right to lend.
    BeyondRight,
    /// A tail says that it has settled though something is lent.
    SettlesLent,
    /// A tail lends after it has said that it has settled.
    LendsSettled,
    /// A key that is lent to the same cache again has the number that it had.
    SameNumber,
    /// A tail that serves again in the same incarnation counts its loans anew.
    CountsAnew,
    /// A cache installs a loan after it has denied it.
    KeepsFetch,
    /// A cache installs a loan whose own lease is over.
    LateLoan,
    /// A cache takes the answer to an earlier request for that to its last.
    AnyNonce,
    /// A cache goes on with an earlier loan of a key after it has denied a later one.
    KeepsLower,
    /// A cache installs an update that is older than what it holds.
    OldUpdate,
    /// An answer for one version is taken for one for any.
    OldAnswer,
    /// A loan that is evicted late ends the next one.
    LateEvict,
    /// A renewal revives what the tail has given up.
    NoFloor,
    /// A loan of one key revives what the tail has given up of another.
    LoanWithoutFloor,
    /// A cache counts a lease from when it came.
    FromReceipt,
    /// A tail does not allow for a cache's clock that is slower than its own.
    NoBound,
    /// A key that is lent is lent to another cache.
    TwoHolders,
    /// A key is lent while a write of it is held back.
    LendsHeldBack,
    /// A key is lent while a write of it is under way, again and again.
    LendsUnderWay,
    /// Leases are renewed while an update is not answered.
    RenewsOwed,
    /// A cache answers though its lease is over.
    AnswersAfterLease,
    /// A cache shows a value after its end.
    IgnoresEnd,
    /// A cache takes the time that it is told for that when it came.
    TimeFromReceipt,
    /// A cache does not allow for its clock being slower than that of the cluster.
    TimeWithoutBound,
    /// What one incarnation of a cache does not hold, another does not hold either.
    AnyIncarnation,
    /// A cache takes loans and grants for another incarnation of it.
    AnyReceiver,
    /// Caches are sent the values of a batch, one by one.
    BatchUpdates,
    /// Caches are sent the value of a write before a batch that comes before it is committed.
    TellsPastBatch,
    /// A key that is lent is registered at once.
    RegistersLent,
    /// A key is registered when its holder has a newer version, and goes on to hold it.
    RegistersTold,
    /// A key that is registered is lent.
    LendsRegistered,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 37] = [
        Self::NoWait,
        Self::ShowsOld,
        Self::ShowsBetween,
        Self::CommitsUpstream,
        Self::OutlivesRight,
        Self::RestartServes,
        Self::BeyondRight,
        Self::SettlesLent,
        Self::LendsSettled,
        Self::CountsAnew,
        Self::SameNumber,
        Self::KeepsFetch,
        Self::LateLoan,
        Self::AnyNonce,
        Self::KeepsLower,
        Self::OldUpdate,
        Self::OldAnswer,
        Self::LateEvict,
        Self::NoFloor,
        Self::LoanWithoutFloor,
        Self::FromReceipt,
        Self::NoBound,
        Self::TwoHolders,
        Self::LendsHeldBack,
        Self::LendsUnderWay,
        Self::RenewsOwed,
        Self::AnswersAfterLease,
        Self::IgnoresEnd,
        Self::TimeFromReceipt,
        Self::TimeWithoutBound,
        Self::AnyIncarnation,
        Self::AnyReceiver,
        Self::BatchUpdates,
        Self::TellsPastBatch,
        Self::RegistersLent,
        Self::RegistersTold,
        Self::LendsRegistered,
    ];

    /// Whether writes have to wait for too long, and nothing worse.
    #[must_use]
    pub fn delays(self) -> bool {
        matches!(self, Self::RenewsOwed | Self::LendsUnderWay)
    }
}
