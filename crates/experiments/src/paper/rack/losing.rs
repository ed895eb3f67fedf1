//! Clients that ask as much as a rack can bear: they ask more as long as hardly anything is lost,
//! and less when too much is (SwitchKV section 4.1).

use super::Rack;
use super::agenda::Event;
use super::user::User;
use machine::Instant;
use std::time::Duration;

/// The share of requests that are to be lost because a queue is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// With less, clients ask more.
    pub least: f64,
    /// With more, they ask less.
    pub most: f64,
}

impl Losses {
    /// Those of SwitchKV's evaluation.
    pub const SWITCHKV: Self = Self { least: 0.005, most: 0.01 };
}

/// How often clients change their rate, as SwitchKV's do. In racks that are slower than usual it is
/// later that queues are full, and so it is less often.
const CHANGE_EVERY: Duration = Duration::from_millis(10);

/// What the rate grows by at first when it grows.
const GROWTH_MIN: f64 = 0.0025;

/// What it grows by at most: who has asked far too little is soon near the truth.
const GROWTH_MAX: f64 = 0.25;

/// After so many changes growth doubles each time: a fifth of a second, in which a queue shows that
/// there is a little too much.
const GROWS_FASTER_AFTER: u32 = 20;

/// Nobody asks less than this often in a second.
const RATE_MIN: f64 = 100.0;

/// The rate of all clients together, and what it goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateControl {
    losses: Losses,
    rate: f64,
    growth: f64,
    /// How often it has grown since it did not.
    grown: u32,
    /// Requests started and lost up to the last change.
    started: u64,
    lost: u64,
    /// When the next change is due, as was planned last.
    due: Instant,
}

impl RateControl {
    pub(super) fn new(losses: Losses, rate: f64) -> Self {
        Self { losses, rate, growth: GROWTH_MIN, grown: 0, started: 0, lost: 0, due: Instant(0) }
    }

    /// The next rate, when so many requests were started and so many lost since the last change. If
    /// too many were, it is what was served: the queues before it are full then.
    fn next(&mut self, started: u64, lost: u64) -> f64 {
        let share = lost as f64 / started.max(1) as f64;
        if share < self.losses.least {
            self.grown += 1;
            if self.grown > GROWS_FASTER_AFTER {
                self.growth = (self.growth * 2.0).min(GROWTH_MAX);
            }
            self.rate *= 1.0 + self.growth;
        } else {
            (self.grown, self.growth) = (0, GROWTH_MIN);
        }
        if share > self.losses.most {
            self.rate *= 1.0 - share.min(0.5);
        }
        self.rate = self.rate.max(RATE_MIN);
        self.rate
    }
}

impl Rack {
    /// Begins to look at what is lost, if clients go by that.
    pub(super) fn watch_losses(&mut self) {
        let (started, lost, due) = (self.started(), self.net.lost(), self.next_change());
        if let Some(control) = &mut self.control {
            (control.started, control.lost, control.due) = (started, lost, due);
            self.net.agenda.plan(due, Event::Change);
        }
    }

    /// Clients change their rate, unless the change was planned in an earlier trial.
    pub(super) fn change_rate(&mut self) {
        let (now, started, lost) = (self.now, self.started(), self.net.lost());
        let Some(control) = self.control.as_mut().filter(|control| control.due == now) else {
            return;
        };
        let rate = control.next(started - control.started, lost - control.lost);
        let share = rate / self.users.len() as f64;
        for user in &mut self.users {
            user.ask_at(now, share, &mut self.net.agenda);
        }
        self.watch_losses();
    }

    fn next_change(&self) -> Instant {
        self.now + CHANGE_EVERY * self.spec.pace.times_usual()
    }

    fn started(&self) -> u64 {
        self.users.iter().map(User::started).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::rack::RackSpec;
    use crate::paper::{Load, Skew};

    #[test]
    fn the_rate_comes_to_what_is_served_from_above_and_from_below() {
        for first in [1_000.0, 100_000.0, 5_000_000.0] {
            let mut control = RateControl::new(Losses::SWITCHKV, first);
            let served = 100_000.0;
            let mut rate = first;
            let mut rates = Vec::new();
            for _ in 0..300 {
                let lost = (rate - served).max(0.0);
                rate = control.next(rate as u64, lost as u64);
                rates.push(rate);
            }
            let late = rates.split_off(200);
            let mean = late.iter().sum::<f64>() / late.len() as f64;
            assert!((0.97..1.03).contains(&(mean / served)), "{mean} from {first}");
        }
    }

    #[test]
    fn clients_change_their_rate_as_often_in_a_later_trial() {
        let mut rack = Rack::new(RackSpec { once: true, ..RackSpec::new(2, 100, 1) });
        let load = Load::only_reads(Skew::Uniform);
        let times = (Duration::ZERO, CHANGE_EVERY * 5);
        for _ in 0..3 {
            rack.run_losing(&load, (Losses::SWITCHKV, 1_000.0), times, None);
        }
        let next = || rack.net.agenda.next(Instant(u64::MAX));
        let planned = std::iter::from_fn(next).filter(|(_, event)| *event == Event::Change);
        assert_eq!(planned.count(), 1, "one change follows another");
    }
}
