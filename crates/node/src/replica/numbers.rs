//! Numbers of other members and of the store, before anything rests on them (section 4 of
//! `spec/protocol.md`, *Numbers*). What cannot be is dropped, and changes nothing.

use crate::hot::delegation::records::SPAN;
use crate::replica::Replica;
use crate::replica::history::History;
use crate::replica::pending::PENDING_MAX;
use crate::replica::write::Write;
use cluster::is_plausible_revision;
use machine::Instant;
use wire::{
    Body, ChainAnswer, ChainExpire, ChainStable, ChainWriteBody, CopyEndBody, CopyEntry,
    DropReason, Effect, Header, HotAnswer, HotCopied, RecallBody, Version,
};

impl Replica {
    /// Whether what a message of the chain, or about a hot key, says can be.
    pub(crate) fn check_numbers(
        &self,
        now: Instant,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let can_be = match body {
            Body::ChainWrite { fixed, key, value } | Body::ChainOffer { fixed, key, value } => {
                let write = Write { header: *header, fixed: *fixed, key, value };
                self.can_be_written(&write) && marks_can_be(now, fixed, value)
            }
            // A learner has not been sent the counters yet, and takes none from here; nor does one
            // that came back, perhaps with less than it had.
            Body::ChainStable { .. } => {
                self.may_lack_some() || ChainStable::of(header).version <= self.last_version
            }
            Body::ChainDurable(versions) => versions.iter().all(|it| it.is_plausible()),
            Body::ChainCopy(entries) => entries.iter().all(|entry| is_plausible(now, &entry)),
            Body::HotCopied => !self.caught_up || HotCopied::of(header).held <= self.last_version,
            Body::HotPublish => {
                !self.caught_up || HotAnswer::of(header).version <= self.last_version
            }
            Body::ChainAck | Body::ChainCommit => ChainAnswer::of(header).version.is_plausible(),
            Body::ChainExpire { .. } => ChainExpire::of(header).version.is_plausible(),
            _ => true,
        };
        if can_be { Ok(()) } else { Err(DropReason::Implausible) }
    }

    /// Whether others may rightly know of versions that this member cannot know of: a learner holds
    /// what its tail does, and that may have come back with less than it had.
    fn may_lack_some(&self) -> bool {
        !self.caught_up || self.base.is_some() || self.member.is_learner()
    }

    /// A version is not further ahead than all writes that may be pending could take it, and what
    /// it rests on is older. Everything is stable up to what this member knows at most.
    fn can_be_written(&self, write: &Write<'_>) -> bool {
        let (version, stable) = (write.version(), write.fixed.stable);
        // Who may lack some is told by the write how far the others are.
        let told = if self.may_lack_some() { stable } else { Version::NONE };
        let near = version <= self.last_version.max(told).saturating_add(AHEAD_MAX);
        let known = stable <= self.last_version.max(version);
        let older = write.fixed.base < version && write.bases().all(|base| base < version);
        !version.is_none() && version.is_plausible() && near && known && older
    }

    /// Whether the head can give out another version. It always can, unless its store was damaged.
    pub(crate) fn can_number(&self) -> bool {
        self.last_version.saturating_add(1).is_plausible()
    }

    /// Takes the counters of the store: of what cannot be, what can.
    pub(crate) fn restore_counters(
        &mut self,
        last: Version,
        (stable, sum): (Version, u64),
        collected: Version,
    ) {
        self.last_version = self.last_version.max(last.min(Version::MAX));
        // That everything is stable is never more than a help.
        let possible = stable <= self.last_version;
        self.history = if possible { History::up_to(stable, sum) } else { History::default() };
        self.collected = collected.min(self.last_version);
    }
}

/// What a change of a registration or of delegations says.
fn marks_can_be(now: Instant, fixed: &ChainWriteBody, value: &[u8]) -> bool {
    let delegation = is_plausible_revision(now, fixed.result.delegation().order());
    match Effect::from_wire(fixed.effect) {
        Some(Effect::Register) => is_plausible_revision(now, fixed.result.generation().order()),
        Some(Effect::Delegate) => delegation,
        Some(Effect::Recall) => {
            let Some((it, _)) = RecallBody::split(value) else { return false };
            let RecallBody { newest, ended, delegated_at, .. } = it;
            delegation
                && is_plausible_revision(now, ended)
                && can_be_of_delegation(delegated_at, newest)
        }
        // The result of an INCR is any number.
        Some(
            Effect::None
            | Effect::Put
            | Effect::Delete
            | Effect::Unregister
            | Effect::Batch
            | Effect::Abandon,
        )
        | None => true,
    }
}

/// Whether the newest write of a delegation, if there is one, has a version of it.
fn can_be_of_delegation(delegated_at: Version, newest: Version) -> bool {
    let after = newest.checked_since(delegated_at);
    delegated_at.is_plausible()
        && (newest.is_none() || after.is_some_and(|it| (1..=SPAN).contains(&it)))
}

fn is_plausible(now: Instant, entry: &CopyEntry<'_>) -> bool {
    match entry {
        CopyEntry::Record { version, .. } => version.is_plausible(),
        CopyEntry::Session(it) => it.version.is_plausible(),
        CopyEntry::Ended(it) => it.newest.is_plausible(),
        CopyEntry::Registration { generation, .. } => {
            is_plausible_revision(now, generation.order())
        }
        CopyEntry::Delegations { delegations, .. } => {
            crate::hot::delegation::records::Delegations::from_bytes(Version::NONE, delegations)
                .is_some_and(|it| it.are_plausible(now))
        }
        CopyEntry::End(CopyEndBody { last_version, stable, collected, forgotten, .. }) => {
            let newest = [stable, collected, forgotten].into_iter().max();
            last_version.is_plausible() && newest <= Some(last_version)
        }
    }
}

impl crate::hot::delegation::records::Delegations {
    /// Whether the orders that began and ended them can have been, and their versions.
    pub(crate) fn are_plausible(&self, now: Instant) -> bool {
        let over = self.over.iter().all(|it| {
            let orders = [it.number.order(), it.ended];
            let orders = orders.into_iter().all(|it| is_plausible_revision(now, it));
            orders && can_be_of_delegation(it.delegated_at, it.newest)
        });
        let present = self.present.as_ref();
        over && present.is_none_or(|it| {
            is_plausible_revision(now, it.number.order()) && it.delegated_at.is_plausible()
        })
    }
}

/// How far a write may be ahead of what a member has seen: as many as may be pending, if each gave
/// a delegation its versions.
const AHEAD_MAX: u64 = PENDING_MAX as u64 * (SPAN + 1);
