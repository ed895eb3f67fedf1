//! One trial: a load at a rate, on a rack that has got used to it, and what became of it.

use crate::median::measured_median;
use crate::served::Served;
use crate::site::{Site, SiteLoad, Window};
use bench::Measured;
use console::exit::Failure;
use runtime::clock::Clock;
use std::fmt;
use std::time::Duration;
use workload::Latency;

/// How a trial went.
#[derive(Clone, Debug)]
pub(crate) struct SiteTrial {
    /// Requests per second that were asked for.
    pub(crate) rate: f64,
    /// Those that were answered.
    pub(crate) answered: f64,
    /// Median of the 99th percentiles of the trial's pieces, in microseconds: what the machine does
    /// otherwise for a moment counts in one piece.
    pub(crate) p99_us: u64,
    /// The same of the 99.9th.
    pub(crate) p999_us: u64,
    /// 99th percentile of how late this program was to ask.
    pub(crate) late_p99_us: u64,
    /// Share of the datagrams that were sent again.
    pub(crate) again: f64,
    /// What each node served, as a share of what it can.
    pub(crate) busy: Vec<f64>,
    /// Datagrams that found a queue full.
    pub(crate) dropped: u64,
}

/// How long a trial is looked at, and in which pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialPlan {
    pub(crate) time: Duration,
    pub(crate) seed: u64,
}

/// So many pieces has a trial: a median of them stands against two that are disturbed.
const PIECES: u32 = 6;

/// A rack is led to a rate in two steps: at half of it hot keys are found and copied.
const WARM: [(f64, Duration); 2] =
    [(0.5, Duration::from_millis(1_000)), (1.0, Duration::from_millis(1_000))];

impl Site {
    /// Lets the rack get used to a load, then looks at it.
    pub(crate) fn trial(
        &self,
        load: &SiteLoad,
        rate: f64,
        look: TrialPlan,
    ) -> Result<SiteTrial, Failure> {
        let TrialPlan { time, seed } = look;
        for (step, (share, time)) in (1..).zip(WARM) {
            let window = Window { time, piece: time, seed: seed ^ (step << 32) };
            self.run(load, rate * share, window)?;
        }
        let mut clock = Clock::new();
        let before = self.served()?;
        let began = clock.now();
        let window = Window { time, piece: time / PIECES, seed };
        let measured = self.run(load, rate, window)?;
        // When there was too much to do, it goes on beyond the window.
        let took = clock.now().since(began);
        let after = self.served()?;
        let served: Vec<Served> =
            after.iter().zip(&before).map(|(after, before)| after.since(*before)).collect();
        let can_serve = self.rates().map(|rate| rate * took.as_secs_f64());
        let busy = served.iter().zip(can_serve).map(|(it, most)| it.work as f64 / most);
        let dropped = served.iter().map(|it| it.dropped).sum();
        Ok(SiteTrial { busy: busy.collect(), dropped, ..SiteTrial::new(rate, window, &measured) })
    }
}

impl SiteTrial {
    /// As its client saw it.
    fn new(rate: f64, window: Window, measured: &Measured) -> Self {
        let pieces = measured.summary.intervals.iter().take(PIECES as usize);
        let done: u64 = pieces.clone().map(|piece| piece.endings.done).sum();
        let tail = |of: fn(&Latency) -> u64| {
            let mut tails: Vec<u64> = pieces.clone().map(|piece| of(&piece.latency)).collect();
            measured_median(&mut tails).unwrap_or(u64::MAX)
        };
        Self {
            rate,
            answered: done as f64 / window.time.as_secs_f64(),
            p99_us: tail(|it| it.p99_us),
            p999_us: tail(|it| it.p999_us),
            late_p99_us: measured.late_p99_us,
            again: measured.retransmits as f64 / measured.datagrams.max(1) as f64,
            busy: Vec::new(),
            dropped: 0,
        }
    }

    /// The busiest node over the mean, each as a share of what it can serve.
    pub(crate) fn imbalance(&self) -> f64 {
        let (_, most) = self.busiest();
        let mean = self.busy.iter().sum::<f64>() / self.busy.len().max(1) as f64;
        most / mean.max(f64::MIN_POSITIVE)
    }

    /// Which node is busiest, by its id, and how busy.
    pub(crate) fn busiest(&self) -> (usize, f64) {
        let nodes = (1..).zip(self.busy.iter().copied());
        nodes.fold((0, 0.0), |most, it| if it.1 > most.1 { it } else { most })
    }

    /// Whether what was asked for was answered, and that in time.
    pub(crate) fn holds(&self, p99_us_max: u64) -> bool {
        self.p99_us <= p99_us_max && self.answered >= ANSWERED_MIN * self.rate
    }

    /// Whether a trial that does not hold may have been disturbed: what is truly too much for a
    /// rack makes its queues as long as the trial lasts.
    pub(crate) fn is_close(&self, p99_us_max: u64) -> bool {
        self.p99_us <= 3 * p99_us_max
    }

    /// Whether this program was too slow to tell.
    pub(crate) fn is_spoilt(&self, p99_us_max: u64) -> bool {
        self.late_p99_us > p99_us_max / LATE_PART
    }
}

/// Share of what was asked for that has to be answered within the trial: some come at its end.
const ANSWERED_MIN: f64 = 0.97;

/// How late the program itself may be, as a part of the objective.
const LATE_PART: u64 = 4;

impl fmt::Display for SiteTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, answered, p99_us, late_p99_us, again, dropped, .. } = self;
        let (busiest, most) = self.busiest();
        let mean = self.busy.iter().sum::<f64>() / self.busy.len().max(1) as f64;
        write!(
            f,
            "{rate:.0}/s: {answered:.0}/s answered, p99 {:.1} ms (late {:.1} ms), sent again \
             {:.1} %, {dropped} dropped; busy: node {busiest} {most:.2}, mean {mean:.2}",
            *p99_us as f64 / 1e3,
            *late_p99_us as f64 / 1e3,
            again * 100.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> SiteTrial {
        SiteTrial {
            rate: 100.0,
            answered: 98.0,
            p99_us: 900,
            p999_us: 1_800,
            late_p99_us: 100,
            again: 0.0,
            busy: vec![0.5, 0.6, 0.4],
            dropped: 0,
        }
    }

    #[test]
    fn a_trial_holds_if_all_is_answered_in_time() {
        assert!(trial().holds(900));
        assert!(!trial().holds(899));
        assert!(!SiteTrial { answered: 96.0, ..trial() }.holds(900));
    }

    #[test]
    fn a_program_that_asks_late_spoils_the_trial() {
        assert!(!trial().is_spoilt(400));
        assert!(trial().is_spoilt(399));
    }

    #[test]
    fn the_busiest_node_is_set_against_the_mean() {
        assert_eq!(trial().busiest(), (2, 0.6));
        assert!((trial().imbalance() - 1.2).abs() < 1e-9);
    }
}
