//! The highest rate that a rack still answers in time, by trials.

use crate::site::{Site, SiteLoad, Window};
use crate::trial::{SiteTrial, TrialPlan};
use console::exit::Failure;
use console::note;
use std::time::Duration;
use workload::Distribution;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    /// What the nodes can serve.
    pub(crate) cap: f64,
    /// The highest rate that is tried.
    pub(crate) most: f64,
    /// What the 99th percentile may be, in microseconds.
    pub(crate) p99_us_max: u64,
    /// How long each trial is looked at.
    pub(crate) time: Duration,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The trial at the highest rate that holds.
    pub(crate) best: Option<SiteTrial>,
    /// Whether it was this program that could not ask for more.
    pub(crate) by_program: bool,
}

/// Upwards in these steps from a rate that holds, downwards from one that does not.
const UP: f64 = 1.15;
const DOWN: f64 = 0.8;

/// The rate is known well enough when one that holds and one that does not are so near.
const NEAR: f64 = 1.03;

/// Nothing is looked for below this share of the highest rate.
const LEAST: f64 = 0.01;

/// How often a trial is tried that this program was too slow for.
const ATTEMPTS: u64 = 3;

/// How often one is tried that was a little too much. What else the machine does makes a trial
/// worse and none better, and after one that fails for that nothing higher would be tried.
const CLOSE_ATTEMPTS: u64 = 2;

impl Site {
    /// Looks for it, beginning at a rate that may be near.
    pub(crate) fn highest(&self, load: &SiteLoad, aim: &Aim, guess: f64) -> Result<Found, Failure> {
        let mut search = Search::new(guess, aim.most);
        let (mut best, mut by_program) = (None, false);
        while let Some(rate) = search.next() {
            let trial = self.tell_trial(load, rate, aim)?;
            let holds = trial.holds(aim.p99_us_max);
            search.note(holds);
            if holds {
                best = Some(trial);
            } else {
                by_program = trial.is_spoilt(aim.p99_us_max);
                self.settle(load, aim)?;
            }
        }
        Ok(Found { best, by_program })
    }

    /// A trial that is told of, and tried again if this program was too slow for it, or if it was
    /// close.
    pub(crate) fn tell_trial(
        &self,
        load: &SiteLoad,
        rate: f64,
        aim: &Aim,
    ) -> Result<SiteTrial, Failure> {
        let mut seed = 0;
        loop {
            seed += 1;
            let trial = self.trial(load, rate, TrialPlan { time: aim.time, seed })?;
            let (holds, spoilt) = (trial.holds(aim.p99_us_max), trial.is_spoilt(aim.p99_us_max));
            let (judged, attempts) = match (holds, spoilt) {
                (true, _) => ("", 1),
                (false, true) => (": no good, and this program was late itself", ATTEMPTS),
                (false, false) if trial.is_close(aim.p99_us_max) => (": too much", CLOSE_ATTEMPTS),
                (false, false) => (": far too much", 1),
            };
            note!("  {trial}{judged}");
            if seed >= attempts {
                return Ok(trial);
            }
            self.settle(load, aim)?;
        }
    }

    /// Waits until a rack that had too much to do has got over it: until a light load is answered
    /// as fast as it should be.
    fn settle(&self, load: &SiteLoad, aim: &Aim) -> Result<(), Failure> {
        let light = SiteLoad { distribution: Distribution::Uniform, shift: None, ..load.clone() };
        for seed in 1..=RESTS_MAX {
            let window = Window { time: REST, piece: REST, seed };
            let measured = self.run(&light, aim.cap * REST_SHARE, window)?;
            if measured.summary.all.latency.p99_us <= aim.p99_us_max / 2 {
                return Ok(());
            }
        }
        note!("  (the rack has not settled: the next trial may be worse for it)");
        Ok(())
    }
}

/// A light load, and how long it lasts at a time.
const REST_SHARE: f64 = 0.05;
const REST: Duration = Duration::from_millis(500);

/// So many are tried: far longer than queues and timeouts last.
const RESTS_MAX: u64 = 10;

/// Which rate is tried next.
#[derive(Clone, Copy, Debug)]
struct Search {
    rate: f64,
    most: f64,
    /// The highest that holds, and the lowest that does not.
    holds: Option<f64>,
    fails: Option<f64>,
}

impl Search {
    fn new(guess: f64, most: f64) -> Self {
        Self { rate: guess.clamp(most * LEAST, most), most, holds: None, fails: None }
    }

    /// `None`: it is known.
    fn next(&mut self) -> Option<f64> {
        let next = match (self.holds, self.fails) {
            (None, None) => Some(self.rate),
            (Some(holds), None) => (holds < self.most).then(|| (holds * UP).min(self.most)),
            (None, Some(fails)) => Some(fails * DOWN).filter(|rate| *rate >= self.most * LEAST),
            (Some(holds), Some(fails)) => {
                (fails > holds * NEAR).then(|| f64::midpoint(holds, fails))
            }
        };
        self.rate = next?;
        next
    }

    fn note(&mut self, holds: bool) {
        *(if holds { &mut self.holds } else { &mut self.fails }) = Some(self.rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(guess: f64, truth: f64) -> (Option<f64>, u32) {
        let mut search = Search::new(guess, 1_000.0);
        let mut trials = 0;
        while let Some(rate) = search.next() {
            trials += 1;
            search.note(rate <= truth);
        }
        (search.holds, trials)
    }

    #[test]
    fn the_rate_is_found_from_wherever_it_is_looked_for() {
        for guess in [1.0, 100.0, 700.0, 5_000.0] {
            for truth in [20.0, 130.0, 640.0, 1_000.0] {
                let (rate, _) = found(guess, truth);
                let rate = rate.unwrap();
                assert!(rate <= truth && rate * NEAR >= truth, "{rate} for {truth}");
            }
        }
    }

    #[test]
    fn a_good_guess_takes_few_trials_and_nothing_is_found_where_nothing_holds() {
        assert!(found(700.0, 720.0).1 <= 5);
        let (rate, trials) = found(700.0, 0.0);
        assert!(rate.is_none() && trials < 30, "{trials}");
    }
}
