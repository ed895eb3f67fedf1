//! A shard whose store refuses changes and is well otherwise, as a Redis whose memory is full.
//!
//! Nobody was told of what was to be changed, and nobody is until the store takes it: it is tried
//! again now and then. Meanwhile the node answers reads of all else, and tells clients that write
//! what the store said. The controller is told what was so before: that is as true as ever, and
//! what has come since is not durable.

use super::{Shard, ShardEngine, ShardSnapshot};
use machine::Instant;
use node::engine::EngineError;
use std::time::Duration;

/// What is known of a store that refuses.
#[derive(Debug)]
pub(super) struct Refusing {
    /// When it is tried again.
    pub(super) try_at: Instant,
    wait: Duration,
}

/// From a refusal to the first try, doubled with each that is in vain.
const WAIT: Duration = Duration::from_millis(250);

/// The longest wait: so long nobody who made room has to be patient.
const WAIT_MAX: Duration = Duration::from_secs(4);

impl<E: ShardEngine> Shard<E> {
    /// Ends a turn: what was changed is made durable, or put off if the store refuses it.
    pub(super) fn settle(&mut self, now: Instant) -> Result<(), EngineError> {
        if let Some(refusing) = &self.refusing {
            let wait = refusing.wait;
            if refusing.try_at > now {
                self.node.engine_mut().end_reads()?;
            } else if let Err(error) = self.node.engine_mut().sync() {
                self.put_off(now, error, (wait * 2).min(WAIT_MAX))?;
            } else {
                tracing::info!(shard = self.shard, "the store takes changes again");
                self.refusing = None;
                self.node.take_up();
            }
            return self.node.flush();
        }
        let Err(error) = self.node.flush() else { return Ok(()) };
        tracing::error!(shard = self.shard, %error, "the store takes no changes; reads go on");
        self.put_off(now, error, WAIT)
    }

    fn put_off(
        &mut self,
        now: Instant,
        error: EngineError,
        wait: Duration,
    ) -> Result<(), EngineError> {
        let Some(words) = self.node.engine().refusal().map(str::to_owned) else {
            return Err(error);
        };
        self.node.put_off(&words);
        self.refusing = Some(Refusing { try_at: now + wait, wait });
        Ok(())
    }

    /// What the shard says of itself; nothing while there is nothing that is certainly durable.
    pub(super) fn say(&mut self, now: Instant) -> Option<ShardSnapshot> {
        let present = self.snapshot(now);
        if self.refusing.is_none() {
            self.said = Some(present.clone());
            return Some(present);
        }
        let before = self.said.clone()?;
        let mut report = before.report;
        (report.waiting, report.busy_us) = (present.report.waiting, present.report.busy_us);
        report.resources = present.report.resources;
        Some(ShardSnapshot { report, ..present })
    }
}
