//! Work that nobody waits for: parts of big values that go, and what an earlier incarnation has
//! left.

use crate::engine::Engine;
use crate::node::Node;
use machine::Instant;
use std::ops::Bound;
use std::time::Duration;

impl<E: Engine> Node<E> {
    /// Does some of it, of all replicas in their turn, a bounded number of records each time.
    pub(crate) fn tidy_up(&mut self, now: Instant) {
        let Some(directory) = &self.directory else { return };
        let mut ctx = self.shard.context(directory, now, 0);
        self.next_tidy = now + TIDY_EVERY;
        if !ctx.leased {
            return;
        }
        let mut left = TIDY_RECORDS;
        let after = (Bound::Excluded(self.tidied), Bound::Unbounded);
        let mut ids: Vec<_> = self.replicas.range(after).map(|(id, _)| *id).collect();
        ids.extend(self.replicas.range(..=self.tidied).map(|(id, _)| *id));
        for id in ids {
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            replica.look_after_parts(&mut ctx, &mut left);
            if E::OWNS {
                replica.survey(&mut ctx, &mut left);
            }
            if left == 0 {
                (self.tidied, self.next_tidy) = (id, now + TIDY_SOON);
                return;
            }
        }
    }
}

/// How often to look whether there is something to do.
const TIDY_EVERY: Duration = Duration::from_millis(100);

/// When there is more: with the durable engine more than half of the time is left for all else.
const TIDY_SOON: Duration = Duration::from_millis(10);

/// Parts dropped, or records gone through, at once: 100,000 a second. That is 130 MB of parts, more
/// than clients send to a shard, and ten million records of an earlier incarnation in 100 seconds.
const TIDY_RECORDS: usize = 1_024;
