//! Turns, and what rests on them: what a shard has done in a turn leaves it when that is durable.
//!
//! With an engine that syncs apart a shard goes on meanwhile. One sync is under way at a time; what
//! the turns have done that end before it does goes with the next. What a turn has to say waits for
//! the sync that has the turn, in order, but for answers to reads that show nothing of what a crash
//! could still take back.

use crate::engine::{Engine, EngineError};
use crate::hot::delegation::early::see_synced;
use crate::node::Node;
use crate::node::syncs::{Statement, UnderWay};
use crate::shard::noted::Noted;
use crate::shard::waits::AgreedAtRisk;
use cluster::Mutant;
use machine::Instant;
use std::time::Duration;
use wire::Version;

impl<E: Engine> Node<E> {
    /// Lets go what rests on nothing that the turn did, so that others work on it while this node
    /// writes to its disk. The next flush would, too.
    pub fn release(&mut self) {
        self.ready.append(&mut self.shard.free);
    }

    /// Ends a turn: begins to make durable whatever was handled in it, unless a sync is under way,
    /// and lets go what rests on nothing else.
    ///
    /// # Errors
    ///
    /// If the engine failed. The node must then stop: its answers stay unsent, and what it
    /// holds in memory may differ from what is on disk.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.shard.turn.end();
        self.release();
        if self.shard.stock.is_refused() {
            self.ready.append(&mut self.shard.held);
            return Ok(());
        }
        if std::mem::take(&mut self.dirty) {
            self.syncs.ended += 1;
            self.syncs.waits = true;
        }
        if self.syncs.waits && self.syncs.under_way.is_none() && self.is_sync_due() {
            self.begin_sync()?;
        }
        self.shard.rests_on_replicas = !self.syncs.has_replicas();
        Ok(())
    }

    /// Whether somebody waits for the turns that no sync has, or nobody has for long enough. An
    /// engine that does not sync apart does so in each turn.
    fn is_sync_due(&mut self) -> bool {
        let now = self.shard.now;
        let late_at = *self.syncs.late_at.get_or_insert(now + LATE);
        let waited_for = !self.shard.held.is_empty() || !self.shard.noted.is_empty();
        waited_for || self.syncs.replicas || late_at <= now || !self.shard.engine.syncs_apart()
    }

    fn begin_sync(&mut self) -> Result<(), EngineError> {
        let unsynced = self.shard.mutant.is(Mutant::AnswerUnsynced);
        let goes_on = !unsynced && self.shard.engine.begin_sync()?;
        if !goes_on {
            self.has_synced();
            self.ready.append(&mut self.shard.held);
            self.ready.append(&mut self.shard.late);
            return Ok(());
        }
        self.replica_records.synced();
        (self.syncs.waits, self.syncs.late_at) = (false, None);
        self.shard.agreed_at_risk.begin_sync();
        self.shard.held.append(&mut self.shard.late);
        self.syncs.under_way = Some(UnderWay {
            turn: self.syncs.ended,
            replicas: std::mem::take(&mut self.syncs.replicas),
            held: std::mem::take(&mut self.shard.held),
            noted: std::mem::take(&mut self.shard.noted),
            statement: self.states_anew().then(|| self.statement()),
        });
        Ok(())
    }

    /// Whether what the node says of itself is looked up with a sync: at once while a map or an
    /// order changes it, and else now and then, for it takes a look at each partition.
    fn states_anew(&mut self) -> bool {
        let Statement { revision, hot_revision, vacating, .. } = &self.syncs.said;
        let is_news = *revision != self.installed_revision()
            || *hot_revision != self.shard.hot.revision()
            || !vacating.is_empty()
            || self.replica_records.is_vacating();
        let now = self.shard.now;
        let anew = is_news || self.is_changing || self.syncs.stated_at + STATED_EVERY <= now;
        if anew {
            self.syncs.stated_at = now;
        }
        anew
    }

    /// The engine has made all turns that have ended durable.
    pub(crate) fn has_synced(&mut self) {
        self.replica_records.synced();
        (self.syncs.waits, self.syncs.replicas) = (false, false);
        self.shard.agreed_at_risk = AgreedAtRisk::default();
        self.syncs.late_at = None;
        self.syncs.durable = self.syncs.ended;
        self.shard.counters.syncs += 1;
    }

    /// The sync that went on apart has ended so: lets go what waited for it. The next one begins
    /// with the next flush.
    ///
    /// # Errors
    ///
    /// As for [`flush`](Self::flush).
    pub fn end_sync(
        &mut self,
        now: Instant,
        how: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        self.shard.now = now;
        self.shard.engine.end_sync(how)?;
        let Some(mut sync) = self.syncs.under_way.take() else { return Ok(()) };
        self.syncs.durable = sync.turn;
        self.shard.agreed_at_risk.end_sync();
        if let Some(statement) = sync.statement {
            self.syncs.said = statement;
        }
        self.shard.counters.syncs += 1;
        self.ready.append(&mut sync.held);
        self.shard.rests_on_replicas = !self.syncs.has_replicas();
        self.take_synced(now, sync.noted);
        Ok(())
    }

    /// These writes are on disk.
    fn take_synced(&mut self, now: Instant, noted: Noted) {
        let Some(directory) = &self.directory else { return };
        if noted.is_empty() {
            return;
        }
        self.dirty = true;
        let mut ctx = self.shard.context(directory, now, 0);
        let Noted { mut pending, delegated } = noted;
        see_synced(&mut ctx, delegated);
        pending.sort_unstable();
        for of_one in pending.chunk_by(|(one, _), (other, _)| one == other) {
            let id = of_one.first().map(|(id, _)| *id);
            let versions: Vec<Version> = of_one.iter().map(|(_, version)| *version).collect();
            if let Some(replica) = id.and_then(|id| self.replicas.get_mut(&id)) {
                replica.take_synced(&mut ctx, &versions);
            }
        }
    }

    /// Whether a sync goes on apart.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        self.syncs.under_way.is_some()
    }

    /// The turn that must be durable for all that was done so far to be.
    #[must_use]
    pub fn turn(&self) -> u64 {
        self.syncs.ended + u64::from(self.dirty)
    }

    /// The last turn that is durable, with all before it.
    #[must_use]
    pub fn durable_turn(&self) -> u64 {
        self.syncs.durable
    }

    /// What is durable of what the node says of itself.
    pub(crate) fn durable_statement(&self) -> Statement {
        let behind = self.dirty || !self.syncs.has_all();
        if behind && self.shard.engine.syncs_apart() {
            self.syncs.said.clone()
        } else {
            self.statement()
        }
    }
}

/// How long what nobody waits for may stay off the disk: others forget pending writes after it.
const LATE: Duration = Duration::from_millis(5);

/// How old what the node says of itself may be while it syncs all the time.
const STATED_EVERY: Duration = Duration::from_millis(5);
