//! How far the turns of a shard are durable, and what was so of the node then.

use crate::shard::noted::Noted;
use cluster::{Epoch, PartitionId, Settled, ShardRecord};
use machine::{Instant, Outbox};
use wire::Revision;

/// What a node says of itself that has to be durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Statement {
    pub(crate) revision: Revision,
    pub(crate) settled: Vec<Settled>,
    pub(crate) caught_up: Vec<(PartitionId, Epoch)>,
    pub(crate) vacating: Vec<PartitionId>,
    pub(crate) hot_revision: Revision,
    pub(crate) hot_known: Revision,
    pub(crate) recall: u64,
    pub(crate) on_record: ShardRecord,
}

/// How far what was done is durable.
#[derive(Debug, Default)]
pub(crate) struct Syncs {
    /// Turns that have ended.
    pub(super) ended: u64,
    /// All up to this one are durable.
    pub(super) durable: u64,
    /// Whether some have ended that no sync has begun to make durable.
    pub(super) waits: bool,
    /// When a sync begins for these at the latest, though nobody waits for it.
    pub(super) late_at: Option<Instant>,
    /// Whether replica records were given or taken in these, or in the present one.
    pub(super) replicas: bool,
    pub(super) under_way: Option<UnderWay>,
    /// What the node said of itself when turns that are durable had ended, and when that was looked
    /// up last.
    pub(crate) said: Statement,
    pub(super) stated_at: Instant,
}

/// A sync that goes on apart.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// The last turn that it has.
    pub(super) turn: u64,
    /// Whether replica records were given or taken in one of these.
    pub(super) replicas: bool,
    /// What waits for it.
    pub(super) held: Outbox,
    /// The writes that it has.
    pub(super) noted: Noted,
    /// What the node says of itself then; `None` if that was not looked up.
    pub(super) statement: Option<Statement>,
}

impl Syncs {
    /// Replica records are given or taken.
    pub(crate) fn see_replicas(&mut self) {
        self.replicas = true;
    }

    /// Whether it is durable which replicas there are.
    pub(crate) fn has_replicas(&self) -> bool {
        !self.replicas && !self.under_way.as_ref().is_some_and(|sync| sync.replicas)
    }

    /// When a sync is to begin that nobody waits for.
    pub(super) fn due(&self) -> Option<Instant> {
        self.late_at.filter(|_| self.under_way.is_none())
    }

    /// Whether all turns that have ended are durable.
    pub(super) fn has_all(&self) -> bool {
        !self.waits && self.under_way.is_none()
    }
}
