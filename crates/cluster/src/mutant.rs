//! Deliberate bugs, to know that the simulator would see them.
//!
//! They are names, unless the feature `mutants` is on: without it no machine breaks a rule, and the
//! compiler leaves the branches out in which one would.

use serde::{Deserialize, Serialize};

/// A rule of the protocol that a machine can be told to break. Only tests and the simulator do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// Node: a retry is applied again, under a new version.
    ForgetRequests,
    /// Switch and node: a retry of a write goes to another member than the first copy did, and that
    /// one orders it too.
    RetryElsewhere,
    /// Node: a read-modify-write is taken although what it was computed from has not arrived.
    IgnoreBase,
    /// Node: the head answers a write as soon as it has ordered it.
    AnswerAtHead,
    /// Node: answers leave before what they rest on is durable.
    AnswerUnsynced,
    /// Node: what goes on before it is on disk does not say so.
    HideUnsynced,
    /// Node: the head of a closed chain settles before the others have offered what they have.
    SettleAlone,
    /// Node: requests and chain messages of any epoch are taken.
    IgnoreEpoch,
    /// Node: serves on after its lease has ended.
    IgnoreLease,
    /// Node: requests that pass no switch are served without the lease that they take.
    TakeUnleased,
    /// Node: whatever comes to the address of a key is for this node, though it is not the head or
    /// the tail.
    TrustRoutes,
    /// Node: a write of what is lent is committed before the cache has it.
    CommitBeforeCache,
    /// Node: what a cache may show already is read at the tail as it was before.
    ShowHeldBack,
    /// Node: caches are told of a batch what each of its keys becomes, before it is committed.
    UpdateBatches,
    /// Node: a lease that a cache has let lapse is renewed with all loans, also those that were
    /// void.
    RenewVoidLoans,
    /// Node: a key is registered while a cache may show it.
    RegisterLent,
    /// Node: a key is lent that is registered.
    LendRegistered,
    /// Node: a partition changes its epoch while keys of it are lent.
    SettleLent,
    /// Node: it lends as long as it likes, whatever right it has.
    LendUnleased,
    /// Controller: a node is believed in another incarnation while what an earlier one has lent may
    /// still be shown.
    ForgetLent,
    /// Cache: answers after its lease has ended.
    AnswerUnleased,
    /// Cache: shows a value after its end.
    ShowEnded,
    /// Cache: counts a lease from when it was granted, not from when it asked.
    CountFromGrant,
    /// Cache: installs what it has said not to hold.
    InstallLate,
    /// Cache: believes that whatever it is sent and does not hold is not there.
    BelieveRules,
    /// Node: a compare-and-set deletes whatever is there.
    DeleteAnyway,
    /// Node: reads are answered with the newest pending value.
    ReadPending,
    /// Node: of the keys of a batch only the first is written.
    SplitBatch,
    /// Node: what a write or a batch depends on is looked for in what is committed at the head.
    CheckCommitted,
    /// Node: a write overtakes a batch that it comes after.
    OvertakeBatch,
    /// Node: a batch is committed before the switch knows of it.
    ShowBatchUnpublished,
    /// Node: pending writes are dropped when the chain changes.
    DropPending,
    /// Node: clients are forgotten to make room, and it is not kept in mind that some were.
    ForgetUnrecorded,
    /// Node: clients are forgotten to make room as soon as they were answered.
    ForgetYoung,
    /// Node: of a client that says goodbye nothing is kept, not even that its requests have ended.
    GoodbyeForgetsFloor,
    /// Node: numbers of other members are taken as they come.
    BelieveNumbers,
    /// Node: sessions are not copied to a learner.
    DropSessions,
    /// Node: a copied record replaces a newer one.
    CopyOverwrites,
    /// Node: tombstones are collected at once, also by a learner that is still being copied to.
    CollectAtOnce,
    /// Node: a copy is said to have caught up before it is.
    CaughtUpTooSoon,
    /// Node: a newer commit of a key drops older pending writes of it, with their request ids.
    ForgetSuperseded,
    /// Node: members that have deleted a key are not compared with those that hold it.
    VerifyIgnoresDeletes,
    /// Node: of members that hold different things most are made to hold what few do.
    VerifyMendsMinority,
    /// Node: what an earlier stay in the chain left behind is kept when it joins again.
    KeepLeftovers,
    /// Node: a reader answers with any copy, however old.
    AnswerBelowFloor,
    /// Node: an MGET or RANGE shows a version of a hot key that the switch does not know of.
    ShowUnpublished,
    /// Node: a tail proves its newest version of a key that is not registered.
    ProveUnregistered,
    /// Node: what publishes a key does not vouch for it.
    PublishUnproven,
    /// Node: a tail sends no copies again, however often a key is read at home.
    NeverRemind,
    /// Node: registrations of hot keys are not copied to a learner.
    DropRegistrations,
    /// Node: delegations are not copied to a learner.
    DropDelegationsFromCopies,
    /// Node: keys that came grouped by hints are taken for its own: what it lacks is missing.
    TrustHints,
    /// Switch: a reply is believed whoever sends it.
    BelieveStrangers,
    /// Switch: what was sent to a node counts until the node answers.
    CountUntilAnswered,
    /// Switch: a reply is taken for proof whatever generation it was stamped in.
    BelieveAnyProof,
    /// Switch: only replies to reads raise a hot key's floor.
    FloorFromReads,
    /// Switch: only replies to writes raise a hot key's floor.
    FloorFromWrites,
    /// Switch: reads go to copies by a floor that is not proven yet.
    TrustUnproven,
    /// Switch: the directory is kept though the lease has ended or it stood by.
    KeepDirectory,
    /// Switch: a key that has the keyhash of a hot one is taken for it.
    TrustKeyhashes,
    /// Switch: a retry of a delegated write is given a new grant.
    ForgetGrants,
    /// Switch: whoever writes a delegated key has room among the grants: another client goes.
    EvictGrants,
    /// Switch: of a client that says goodbye nothing is kept, not even that it has ended.
    GoodbyeForgetsGrants,
    /// Switch: a goodbye ends another client than the one that says it.
    GoodbyeEndsAnother,
    /// Switch: a write is given a grant though it may have been applied before.
    GrantUnborn,
    /// Switch: a holder of a delegated key is taken at its word: what it is asked carries
    /// no floor.
    TrustHolders,
    /// Node: the first of the chain of a delegated write takes it for committed.
    CopyUncommitted,
    /// Node: writes of a delegation that is over are taken.
    KeepDelegations,
    /// Node: a key returns with what the first node to answer has found.
    RecallEarly,
    /// Node: the last of a delegated write's chain answers it before all others have it on disk.
    AnswerUntold,
    /// Node: of a delegation that is over it tells only what it knows to be committed.
    FetchCommittedOnly,
    /// Node: versions of a delegation are given once more at home.
    ResetVersions,
    /// Node: a key's home takes writes while it asks what became of the delegation.
    ServeBeforeRecall,
    /// Node: a key returns without regard to what younger stores cannot know.
    TrustTheYoung,
    /// Node: a key returns without regard to what the disks of restarted nodes may have lost.
    TrustTheRestarted,
    /// Node: a write that was stamped under a delegation is taken for new at home.
    RunAgain,
    /// Node: whatever a write that comes home was stamped with or when, it is taken for new.
    TakeLatecomers,
    /// Node: the tail of a key that is delegated says that what it has is the newest.
    ProveDelegated,
    /// Node: a manifest is taken whether or not its parts are there.
    SealUnchecked,
    /// Node: a batch makes values of parts whether or not they are there.
    SealBatchUnchecked,
    /// Node: an upload is given up though it is a value.
    AbandonSealed,
    /// Node: parts that belong to nothing stay.
    KeepParts,
    /// Node: that an upload was given up is not kept on record.
    AbandonUnrecorded,
    /// Node: a scan that passes parts by passes whatever has their match value by.
    SkipBehindParts,
    /// Node: a key that is deleted goes on being counted.
    MiscountKeys,
    /// Node: a member without room refuses what comes down the chain.
    MembersRefuse,
    /// Node: that there was no room is answered, and not kept on record.
    FullUnrecorded,
    /// Node: there is no reserve: one that is full refuses deletes, too.
    NoReserve,
    /// Node: values go by its own clock, whatever it was told.
    OwnClock,
    /// Node: a retransmission of a write makes its span a time anew.
    ExtendSpans,
    /// Switch and node: orders of a leader are obeyed though a newer one has been heard.
    ObeyOldTerm,
    /// Switch and node: an order for another incarnation is obeyed.
    ObeyUnregistered,
    /// Controller: what is decided is ordered before it is saved.
    OrderUnsaved,
    /// Controller: it leads on when nothing has renewed its lease of the store.
    LeadOn,
    /// Controller: it takes the leader's key from one that renews its lease, and does not count on
    /// what that one may still give.
    TakeOverEarly,
    /// Controller: it writes the map whether it leads or not.
    SaveAnyway,
    /// Controller: it takes its own clock for the cluster's.
    TimeByController,
    /// Controller: nodes are told of hot keys before the active switch has them.
    NodesBeforeSwitch,
    /// Controller: a delegation goes on though a candidate has gone or begun another
    /// incarnation.
    KeepDelegationAfterLoss,
    /// Controller and switch: a key has the same generation each time it comes in.
    RepeatGenerations,
    /// Controller: a chain is opened before its members have settled.
    OpenUnsettled,
    /// Controller: a member is left behind though its lease runs and switches may reach it.
    ImpatientController,
    /// Controller: a node is left behind when it is fenced, whether or not switches know.
    FenceUnconfirmed,
    /// Controller: a node that had left a chain for a while is not compared with the others.
    BelieveAway,
    /// Controller: a switch is to serve before the one before it reaches nobody any more.
    HandOverEarly,
    /// Controller: a switch is told that nobody has had a delegation since the newest order of the
    /// one before, whatever that says.
    ForgetDelegations,
    /// Controller: orders of hot keys do not say since which map their switch serves.
    UndatedOrders,
    /// Controller: a node without its memory goes on in its chains as if it had it.
    TrustTheForgetful,
    /// Controller: members that came back are not compared with the others.
    OpenUncompared,
    /// Controller: a member that came back and was not compared goes on as soon as leases allow.
    GoOnUncompared,
    /// Controller: a store that lacks the incarnation that its node was known by passes for the
    /// newest.
    BelieveAnyPast,
    /// Controller: a member whose newest version is the last that there can be passes for the
    /// newest, and nobody can write any more.
    BelieveLastVersion,
    /// Controller: of members that all came back the newest is right, however many writes each has
    /// committed.
    UncountedWrites,
    /// Controller: decides by a map although nodes have followed a newer one.
    BelieveAnyMap,
    /// Controller: a map that is made anew from records has open chains, whose members nobody has
    /// compared.
    RebuildOpen,
    /// Node: of the partitions that one is split into, the sessions go to the first.
    SessionsToOneChild,
    /// Node: a partition that was made of others begins with version 1.
    SplitCountAnew,
    /// Node: what was held of a partition that others were made of is forgotten, as if it had left.
    ForgetOrigin,
    /// Controller: a partition is split when it is open.
    SplitOpen,
    /// Controller: a chain that has too many members is shortened when it is open.
    ShortenOpen,
    /// Controller: a replica moves back to a node that it has just left.
    MoveBack,
    /// Controller: a partition is not left alone after a change because of its load.
    NeverRest,
    /// Controller: what a part of a partition is asked for is taken to be known at once.
    InheritCounts,
    /// Controller: what nodes have to do leaves out what is under way.
    IgnoreUnderWay,
    /// Controller: load is evened out however little there is.
    NoFloor,
    /// Client: a write that is told to ask again is given up as refused.
    StaleIsFinal,
    /// Client: hints go with what is asked for again.
    RepeatHints,
    /// Client: a multiget counts the entries it is sent, and takes keys without one for missing.
    CompleteByCount,
    /// Client: it makes a time of a span, by its own clock.
    SpanByClient,
    /// Switch, node and cache: whoever sends an envelope is believed, though its edge tag is wrong
    /// or it comes from an address that it cannot come from.
    BelieveAnybody,
    /// Switch, node and cache: clients are answered that have not shown that they receive.
    AnswerAnybody,
    /// Switch, node and cache: clients of every class may do everything.
    AnyRight,
    /// Switch, node and cache: envelopes of a period that is over are opened.
    OldPeriods,
}

impl Mutant {
    /// Every mutant.
    pub const ALL: [Self; 133] = [
        Self::ForgetRequests,
        Self::RetryElsewhere,
        Self::IgnoreBase,
        Self::AnswerAtHead,
        Self::AnswerUnsynced,
        Self::HideUnsynced,
        Self::SettleAlone,
        Self::IgnoreEpoch,
        Self::IgnoreLease,
        Self::TakeUnleased,
        Self::TrustRoutes,
        Self::DeleteAnyway,
        Self::ReadPending,
        Self::SplitBatch,
        Self::CheckCommitted,
        Self::OvertakeBatch,
        Self::ShowBatchUnpublished,
        Self::DropPending,
        Self::ForgetUnrecorded,
        Self::ForgetYoung,
        Self::GoodbyeForgetsFloor,
        Self::BelieveNumbers,
        Self::DropSessions,
        Self::CopyOverwrites,
        Self::CollectAtOnce,
        Self::CaughtUpTooSoon,
        Self::ForgetSuperseded,
        Self::VerifyIgnoresDeletes,
        Self::VerifyMendsMinority,
        Self::KeepLeftovers,
        Self::AnswerBelowFloor,
        Self::ShowUnpublished,
        Self::ProveUnregistered,
        Self::PublishUnproven,
        Self::NeverRemind,
        Self::DropRegistrations,
        Self::DropDelegationsFromCopies,
        Self::TrustHints,
        Self::BelieveStrangers,
        Self::CountUntilAnswered,
        Self::BelieveAnyProof,
        Self::FloorFromReads,
        Self::FloorFromWrites,
        Self::TrustUnproven,
        Self::KeepDirectory,
        Self::TrustKeyhashes,
        Self::ForgetGrants,
        Self::EvictGrants,
        Self::GoodbyeForgetsGrants,
        Self::GoodbyeEndsAnother,
        Self::GrantUnborn,
        Self::TrustHolders,
        Self::CopyUncommitted,
        Self::KeepDelegations,
        Self::RecallEarly,
        Self::AnswerUntold,
        Self::FetchCommittedOnly,
        Self::ResetVersions,
        Self::ServeBeforeRecall,
        Self::TrustTheYoung,
        Self::TrustTheRestarted,
        Self::RunAgain,
        Self::TakeLatecomers,
        Self::ProveDelegated,
        Self::SealUnchecked,
        Self::SealBatchUnchecked,
        Self::AbandonSealed,
        Self::KeepParts,
        Self::AbandonUnrecorded,
        Self::SkipBehindParts,
        Self::MiscountKeys,
        Self::MembersRefuse,
        Self::FullUnrecorded,
        Self::NoReserve,
        Self::OwnClock,
        Self::ExtendSpans,
        Self::ObeyOldTerm,
        Self::ObeyUnregistered,
        Self::OrderUnsaved,
        Self::LeadOn,
        Self::TakeOverEarly,
        Self::SaveAnyway,
        Self::TimeByController,
        Self::NodesBeforeSwitch,
        Self::KeepDelegationAfterLoss,
        Self::RepeatGenerations,
        Self::OpenUnsettled,
        Self::ImpatientController,
        Self::FenceUnconfirmed,
        Self::BelieveAway,
        Self::HandOverEarly,
        Self::ForgetDelegations,
        Self::UndatedOrders,
        Self::TrustTheForgetful,
        Self::OpenUncompared,
        Self::GoOnUncompared,
        Self::BelieveAnyPast,
        Self::BelieveLastVersion,
        Self::UncountedWrites,
        Self::BelieveAnyMap,
        Self::RebuildOpen,
        Self::SessionsToOneChild,
        Self::SplitCountAnew,
        Self::ForgetOrigin,
        Self::SplitOpen,
        Self::ShortenOpen,
        Self::CommitBeforeCache,
        Self::ShowHeldBack,
        Self::UpdateBatches,
        Self::RenewVoidLoans,
        Self::RegisterLent,
        Self::LendRegistered,
        Self::SettleLent,
        Self::LendUnleased,
        Self::ForgetLent,
        Self::AnswerUnleased,
        Self::ShowEnded,
        Self::CountFromGrant,
        Self::InstallLate,
        Self::BelieveRules,
        Self::MoveBack,
        Self::NeverRest,
        Self::InheritCounts,
        Self::IgnoreUnderWay,
        Self::NoFloor,
        Self::StaleIsFinal,
        Self::RepeatHints,
        Self::CompleteByCount,
        Self::SpanByClient,
        Self::BelieveAnybody,
        Self::AnswerAnybody,
        Self::AnyRight,
        Self::OldPeriods,
    ];
}

/// Whether machines of this build can be mutants.
pub const MUTANTS: bool = cfg!(feature = "mutants");

/// The rule that a machine breaks, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaybeMutant {
    #[cfg(feature = "mutants")]
    broken: Option<Mutant>,
}

#[cfg(feature = "mutants")]
impl MaybeMutant {
    /// A machine that breaks this rule.
    #[must_use]
    pub const fn of(mutant: Mutant) -> Self {
        Self { broken: Some(mutant) }
    }

    /// Whether it is this rule that is broken.
    #[must_use]
    pub fn is(self, mutant: Mutant) -> bool {
        self.broken == Some(mutant)
    }
}

#[cfg(not(feature = "mutants"))]
impl MaybeMutant {
    /// No machine of this build can be one.
    ///
    /// # Panics
    ///
    /// Always: who asks for a mutant looks at [`MUTANTS`] first.
    #[must_use]
    pub fn of(mutant: Mutant) -> Self {
        panic!("{mutant:?} in a build without the feature `mutants`")
    }

    /// No rule is broken.
    #[must_use]
    #[inline(always)]
    pub const fn is(self, _: Mutant) -> bool {
        false
    }
}

// What people run carries nothing of them.
#[cfg(not(feature = "mutants"))]
const _: () = assert!(size_of::<MaybeMutant>() == 0);
