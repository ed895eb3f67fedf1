//! What one trial showed, and what several of the same show together.

use crate::cost::Cost;
use crate::median::Rounds;
use crate::netmc::load::{CLIENTS, MultigetLoad};
use crate::netmc::redis::Reads;
use bench::{Measured, Pace};
use std::fmt;

/// One trial.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// Requests per second that were asked for, in an open loop.
    pub(crate) asked: Option<f64>,
    /// Requests per second that were done.
    pub(crate) done: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Processor time of a request, in microseconds.
    pub(crate) cost_us: Cost,
    /// Datagrams that clients sent for a request, and requests that nodes served for it.
    pub(crate) sent: f64,
    pub(crate) parts: f64,
    /// MGETs that stores were sent for a request, and the keys in them; 0 without stores.
    pub(crate) mgets: f64,
    pub(crate) mget_keys: f64,
    /// Share of the clients' datagrams that were sent again.
    pub(crate) again: f64,
    /// 99th percentile of how late this program was to ask, in microseconds.
    pub(crate) late_p99_us: f64,
    /// Processors that did something else meanwhile.
    pub(crate) others: f64,
}

/// What a trial took.
#[derive(Clone, Debug)]
pub(crate) struct Spent {
    /// In seconds.
    pub(crate) cost: Cost,
    /// Processors that did something else.
    pub(crate) others: f64,
    /// Requests that nodes served.
    pub(crate) served: u64,
    /// What stores were asked for.
    pub(crate) reads: Reads,
}

impl Look {
    /// Of a load, what was measured under it, and what that took.
    pub(crate) fn new(load: &MultigetLoad, measured: &Measured, spent: &Spent) -> Self {
        let summary = &measured.summary;
        // What is answered after the end is no throughput, but was paid for.
        let within = |second: f64| second <= load.time.as_secs_f64() + 1e-3;
        let pieces = summary.intervals.iter().filter(|piece| within(piece.second));
        let done: u64 = pieces.map(|piece| piece.endings.done).sum();
        let all = summary.all.endings.total().max(1) as f64;
        Self {
            asked: match load.pace {
                Pace::Open(rate) => Some(rate),
                Pace::Closed(_) => None,
            },
            done: done as f64 / load.time.as_secs_f64(),
            p50_us: summary.all.latency.p50_us as f64,
            p99_us: summary.all.latency.p99_us as f64,
            cost_us: spent.cost.times(1e6 / all),
            sent: measured.datagrams as f64 / all,
            parts: spent.served as f64 / all,
            mgets: spent.reads.mgets as f64 / all,
            mget_keys: spent.reads.keys as f64 / all,
            again: measured.retransmits as f64 / measured.datagrams.max(1) as f64,
            late_p99_us: measured.late_p99_us as f64,
            others: spent.others,
        }
    }

    /// Requests per second that the rack would serve by these costs if each host had a processor
    /// of its own.
    pub(crate) fn apart(&self) -> f64 {
        1e6 / self.cost_us.busiest_host(CLIENTS)
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, done, p50_us, p99_us, cost_us, again, others, .. } = self;
        if let Some(asked) = asked {
            write!(f, "{asked:.0}/s asked, ")?;
        }
        write!(
            f,
            "{done:.0}/s, p50 {p50_us:.0} us, p99 {p99_us:.0} us, {:.1} us of processor each, \
             again {:.2} %, other work {others:.1}",
            cost_us.sum(),
            again * 100.0
        )
    }
}

/// Trials of the same, round by round.
pub(crate) type Looks = Rounds<Look>;

impl Looks {
    /// Half of the way from the least to the most throughput, as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        let most = self.0.iter().map(|it| it.done).fold(f64::MIN, f64::max);
        let least = self.0.iter().map(|it| it.done).fold(f64::MAX, f64::min);
        (most - least) / 2.0 / self.median(|it| it.done).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(done: &[f64]) -> Looks {
        let look = |done: &f64| Look {
            asked: None,
            done: *done,
            p50_us: 1.0,
            p99_us: 2.0,
            cost_us: Cost::default(),
            sent: 1.0,
            parts: 1.0,
            mgets: 0.0,
            mget_keys: 0.0,
            again: 0.0,
            late_p99_us: 0.0,
            others: 0.0,
        };
        Rounds(done.iter().map(look).collect())
    }

    #[test]
    fn rounds_are_compared_with_each_other_and_not_with_those_before() {
        // The machine was slower in each round, for both.
        let (one, other) = (looks(&[200.0, 100.0, 50.0]), looks(&[100.0, 50.0, 24.0]));
        assert!((one.over(&other, |it| it.done) - 2.0).abs() < 1e-9);
        assert!((one.median(|it| it.done) - 100.0).abs() < 1e-9);
        assert!((one.spread() - 0.75).abs() < 1e-9);
    }
}
