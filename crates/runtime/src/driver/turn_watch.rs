//! How long the turns of a shard take: counted when it is too long, and said, but not each time.

use cluster::NodeId;
use machine::Instant;
use std::time::Duration;

/// Watches the turns of one shard.
#[derive(Debug)]
pub(super) struct TurnWatch {
    node: NodeId,
    shard: u16,
    long: u64,
    /// Of the long ones since the last line in the log.
    unsaid: u64,
    longest: Duration,
    say_at: Instant,
}

/// A turn should not take longer than this. It is a fifth of the shortest lease that is sensible
/// (500 ms), of which orders may take two: a shard that is asked for a report within a turn like
/// this still answers in time.
const TURN_MAX: Duration = Duration::from_millis(100);

/// From one line in the log to the next.
const SAID_EVERY: Duration = Duration::from_secs(10);

impl TurnWatch {
    pub(super) fn new(node: NodeId, shard: u16) -> Self {
        let (long, unsaid) = (0, 0);
        Self { node, shard, long, unsaid, longest: Duration::ZERO, say_at: Instant::default() }
    }

    /// Turns that took too long.
    pub(super) fn long(&self) -> u64 {
        self.long
    }

    /// A turn that began then took so long, of which `worked` went before it was flushed. Says
    /// whether that is in the log.
    pub(super) fn see(&mut self, began: Instant, worked: Duration, took: Duration) -> bool {
        if took <= TURN_MAX {
            return false;
        }
        (self.long, self.unsaid) = (self.long + 1, self.unsaid + 1);
        self.longest = self.longest.max(took);
        if began < self.say_at {
            return false;
        }
        let disk_ms = took.saturating_sub(worked).as_millis();
        tracing::warn!(
            node = %self.node,
            shard = self.shard,
            turns = self.unsaid,
            longest_ms = self.longest.as_millis(),
            last_ms = took.as_millis(),
            last_disk_ms = disk_ms,
            "a shard took longer over a batch than it should, and served nobody else meanwhile"
        );
        (self.unsaid, self.longest, self.say_at) = (0, Duration::ZERO, began + SAID_EVERY);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_turns_are_counted_each_and_said_now_and_then() {
        let mut watch = TurnWatch::new(NodeId(1), 0);
        let ms = Duration::from_millis;
        let mut said = 0;
        for n in 0..25_000 / 250 {
            let began = Instant::from_unix_ms(1_000_000 + n * 250);
            assert!(!watch.see(began, ms(90), ms(100)), "not too long");
            said += u32::from(watch.see(began, ms(20), ms(101)));
        }
        assert_eq!((watch.long(), said), (100, 3), "25 seconds of long turns");
    }
}
