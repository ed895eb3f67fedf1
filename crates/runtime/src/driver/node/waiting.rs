//! What a shard has others wait for: the ends of its syncs, and what it answers to orders.

use super::{Shard, ShardEngine, ShardSnapshot, Syncer};
use crate::mailbox::Reply;
use machine::Instant;
use mio::Waker;
use node::engine::EngineError;
use std::sync::Arc;
use std::time::Duration;

/// Where a shard's syncs are waited for, if the engine syncs apart.
#[derive(Debug)]
pub(super) struct Syncing {
    syncer: Option<Syncer>,
    /// When the one under way began.
    since: Option<Instant>,
}

/// Somebody who waits for a snapshot, and the turn that has to be durable before it is given.
#[derive(Debug)]
pub(super) struct Asked {
    turn: u64,
    answer: Reply<ShardSnapshot>,
}

/// Who only asks is told what was durable before, unless the sync under way is older than this: a
/// node whose disk hangs is to fall silent, so that others go on without it.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// The turn in which an incarnation begins. Nothing is said before that is durable.
const FIRST: u64 = 1;

impl Syncing {
    pub(super) fn new(syncer: Option<Syncer>, waker: Arc<Waker>) -> Self {
        if let Some(syncer) = &syncer {
            syncer.wakes(waker);
        }
        Self { syncer, since: None }
    }
}

impl<E: ShardEngine> Shard<E> {
    /// Takes it that somebody waits for a snapshot, who has had it changed something or only asks.
    pub(super) fn ask(&mut self, now: Instant, changes: bool, answer: Reply<ShardSnapshot>) {
        let hangs = self.syncing.since.is_some_and(|since| now.since(since) > HANGS_AFTER);
        let turn = if changes || hangs { self.node.turn() } else { FIRST };
        self.asked.push(Asked { turn, answer });
    }

    /// Answers those who need not wait any more.
    pub(super) fn answer_asked(&mut self, now: Instant) {
        // While the store refuses, what was so before is as true as ever.
        let durable = if self.refusing.is_some() { u64::MAX } else { self.node.durable_turn() };
        let asked: Vec<_> = self.asked.extract_if(.., |asked| asked.turn <= durable).collect();
        for Asked { answer, .. } in asked {
            if let Some(said) = self.say(now) {
                answer.send(said);
            }
        }
    }

    /// After a flush: has the sync waited for that it has begun.
    pub(super) fn begin_waiting(&mut self, now: Instant) {
        let job = self.node.engine_mut().sync_job();
        if let (Some(job), Some(syncer)) = (job, &self.syncing.syncer) {
            syncer.begin(job);
            self.syncing.since = Some(now);
        }
    }

    /// Looks whether a sync has ended.
    pub(super) fn take_ended_sync(&mut self, now: Instant) -> Result<bool, EngineError> {
        let Some(how) = self.syncing.syncer.as_ref().and_then(Syncer::ended) else {
            return Ok(false);
        };
        self.syncing.since = None;
        self.node.end_sync(now, how)?;
        Ok(true)
    }

    /// Waits until all that was done is durable.
    pub(super) fn wait_for_syncs(&mut self, now: Instant) -> Result<(), EngineError> {
        while let (Some(syncer), true) = (&self.syncing.syncer, self.node.is_syncing()) {
            let how = syncer.wait();
            self.syncing.since = None;
            self.node.end_sync(now, how)?;
            self.try_flush(now)?;
        }
        Ok(())
    }
}
