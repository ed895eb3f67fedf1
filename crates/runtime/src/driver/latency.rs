//! How long packets are at a shard, by operation.

use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Op;

/// Powers of two that bound the classes, in microseconds: from 1 µs, below which no shard deals
/// with a packet, to 17 s, by when whatever asked has been given up.
const BOUNDS: u32 = 25;

/// Packets of a turn are at the shard until its end, when all that they led to is durable and sent.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// What the turn deals with, and how long each of them had waited when it began.
    turn: Vec<(Op, Duration)>,
    counted: BTreeMap<Op, Latency>,
}

/// How long packets of one operation took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// How many took at most 2^n µs and more than half of that, for each n; then those beyond.
    classes: [u64; BOUNDS as usize + 1],
    micros: u64,
}

impl Latencies {
    /// The turn deals with one that came at the first instant, and is dealt with at the second.
    pub(super) fn take(&mut self, op: Op, came: Instant, now: Instant) {
        self.turn.push((op, now.since(came)));
    }

    /// The turn is over, and took so long.
    pub(super) fn end_turn(&mut self, took: Duration) {
        for (op, waited) in self.turn.drain(..) {
            self.counted.entry(op).or_default().add(waited + took);
        }
    }

    /// Those of all operations that came.
    pub(super) fn counted(&self) -> BTreeMap<Op, Latency> {
        self.counted.clone()
    }
}

impl Latency {
    fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX);
        let class = micros.max(1).next_power_of_two().trailing_zeros().min(BOUNDS);
        let count = self.classes.get_mut(class as usize).expect("there is a class for the rest");
        *count += 1;
        self.micros = self.micros.saturating_add(micros);
    }

    /// Both.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.classes.iter_mut().zip(other.classes) {
            *count += more;
        }
        self.micros = self.micros.saturating_add(other.micros);
    }

    /// Upper bounds in seconds, the last of which is infinite, with how many lie below each and
    /// above the one before.
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = (0..BOUNDS).map(|power| f64::from(1_u32 << power) / 1e6);
        bounds.chain([f64::INFINITY]).zip(self.classes).collect()
    }

    /// The sum of all, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "a metric of 53 bits is exact enough")]
    pub(crate) fn seconds(&self) -> f64 {
        self.micros as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_count_by_their_wait_and_the_turn_that_dealt_with_them() {
        let mut latencies = Latencies::default();
        let came = Instant::from_unix_ms(1_000_000);
        latencies.take(Op::Get, came, came);
        latencies.take(Op::Get, came, came + Duration::from_millis(3));
        latencies.take(Op::Put, came, came + Duration::from_secs(60));
        assert!(latencies.counted().is_empty(), "their turn is not over");
        latencies.end_turn(Duration::from_micros(16));
        latencies.end_turn(Duration::from_secs(1));
        let counted = latencies.counted();
        assert_eq!(counted.keys().copied().collect::<Vec<_>>(), [Op::Get, Op::Put]);
        let count = |op: Op, bound: f64| {
            let buckets = counted[&op].buckets();
            buckets.iter().find(|(it, _)| *it == bound).unwrap().1
        };
        assert_eq!([count(Op::Get, 16e-6), count(Op::Get, 4096e-6)], [1, 1]);
        assert_eq!(count(Op::Put, f64::INFINITY), 1, "beyond the last bound");
        assert!((counted[&Op::Get].seconds() - 3032e-6).abs() < 1e-9);
        let mut both = counted[&Op::Get].clone();
        both.merge(&counted[&Op::Put]);
        assert_eq!(both.buckets().iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
