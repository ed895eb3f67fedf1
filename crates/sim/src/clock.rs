//! Clocks that disagree: each role's runs now fast, now slow, and is never far from the world's,
//! unless somebody has set it.

use machine::{Instant, Rng};
use std::time::Duration;

/// The clock of one machine. It is ahead of the world's time by nothing up to `ahead_max`, and gets
/// there and back at the two ends of the allowed rates: while a fast one counts `rate_max_percent`
/// nanoseconds, a slow one counts 100.
///
/// All clocks being ahead loses nothing, since only differences of clocks matter to anybody.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    ahead_max: u64,
    /// Nanoseconds by which somebody has set it, forward or back.
    set: i64,
    /// How much a fast clock gains, and a slow one loses, in so many nanoseconds of the world.
    gain: u64,
    per: u64,
    /// The present stretch: since when, how far ahead it was then, which way, until when.
    since: Instant,
    ahead: u64,
    fast: bool,
    until: Instant,
}

impl Clock {
    /// A clock that starts anywhere within its bounds, in either direction. With a rate bound of
    /// 100 % it keeps its distance for ever.
    pub(crate) fn draw(
        rng: &mut Rng,
        now: Instant,
        ahead_max: Duration,
        rate_max_percent: u64,
    ) -> Self {
        let ahead_max = nanos(ahead_max);
        let mut clock = Self {
            ahead_max,
            set: 0,
            // Where there is no way to go, there is no drift.
            gain: if ahead_max == 0 { 0 } else { rate_max_percent - 100 },
            per: rate_max_percent + 100,
            since: now,
            ahead: rng.below(ahead_max + 1),
            fast: rng.chance(1, 2),
            until: now,
        };
        clock.until = clock.turn();
        clock
    }

    /// Somebody sets it so far ahead of the others, or behind them if negative. A process that runs
    /// does not follow that: to be done before one starts.
    pub(crate) fn set(&mut self, ahead_ms: i64) {
        self.set = ahead_ms.saturating_mul(1_000_000);
    }

    /// What it shows at `now`, which never goes back.
    pub(crate) fn read(&mut self, now: Instant) -> Instant {
        while now >= self.until {
            self.ahead = if self.fast { self.ahead_max } else { 0 };
            self.fast = !self.fast;
            self.since = self.until;
            self.until = self.turn();
        }
        let drift = self.drift(nanos(now.since(self.since)));
        let ahead = if self.fast { self.ahead + drift } else { self.ahead.saturating_sub(drift) };
        Instant((now + Duration::from_nanos(ahead)).0.saturating_add_signed(self.set))
    }

    /// When it will show `local`, or earlier: it is worth looking again then.
    pub(crate) fn when(&self, local: Instant) -> Instant {
        let local = Instant(local.0.saturating_sub_signed(self.set));
        let shown = self.since + Duration::from_nanos(self.ahead);
        let wait = u128::from(nanos(local.since(shown)));
        let (gain, per) = (u128::from(self.gain), u128::from(self.per));
        let pace = if self.fast { per + gain } else { per - gain };
        let wait = (wait * per).div_ceil(pace);
        let at = self.since + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        at.min(self.until)
    }

    /// When it will have reached the end of its way.
    fn turn(&self) -> Instant {
        let way = if self.fast { self.ahead_max - self.ahead } else { self.ahead };
        if self.gain == 0 {
            return Instant(u64::MAX);
        }
        // At least a moment, so that turning at once ends.
        let wait = (u128::from(way) * u128::from(self.per)).div_ceil(u128::from(self.gain)).max(1);
        self.since + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    fn drift(&self, elapsed: u64) -> u64 {
        let drift = u128::from(elapsed) * u128::from(self.gain) / u128::from(self.per);
        u64::try_from(drift).expect("less than what has elapsed")
    }
}

/// Nanoseconds; durations of the world are far below 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_unix_ms(1_000_000);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn clocks_stay_within_their_bounds_and_reach_them() {
        let mut rng = Rng::new(1);
        let (mut least, mut most) = (u64::MAX, 0);
        let mut clock = Clock::draw(&mut rng, START, 10 * MS, 102);
        let mut before = Instant(0);
        for step in 0..10_000 {
            let now = START + MS * step;
            let shown = clock.read(now);
            let ahead = nanos(shown.since(now));
            assert!(shown >= now && ahead <= 10_000_000 && shown > before);
            (least, most, before) = (least.min(ahead), most.max(ahead), shown);
        }
        assert!(least < 100_000 && most > 9_900_000, "{least} {most}");
    }

    #[test]
    fn the_fastest_counts_two_percent_more_than_the_slowest() {
        let clock = |fast| Clock {
            ahead_max: 1_000_000_000,
            set: 0,
            gain: 2,
            per: 202,
            since: START,
            ahead: 500_000_000,
            fast,
            until: START + MS * 10_000,
        };
        let counts = |mut clock: Clock| {
            let begin = clock.read(START);
            clock.read(START + MS * 1_010).since(begin)
        };
        assert_eq!(counts(clock(true)), MS * 1_020);
        assert_eq!(counts(clock(false)), MS * 1_000);
    }

    #[test]
    fn looking_when_told_is_in_time() {
        let mut rng = Rng::new(2);
        for _ in 0..100 {
            let mut clock = Clock::draw(&mut rng, START, 20 * MS, 102);
            let mut now = START;
            let local = clock.read(now) + MS * u32::try_from(rng.below(5_000)).unwrap();
            while clock.read(now) < local {
                let at = clock.when(local);
                assert!(at > now, "time goes forward");
                now = at;
            }
            assert!(clock.read(now).since(local) < MS / 1_000, "not much too late");
        }
    }

    #[test]
    fn a_clock_without_drift_keeps_its_distance() {
        let mut clock = Clock::draw(&mut Rng::new(3), START, 10 * MS, 100);
        let ahead = clock.read(START).since(START);
        assert_eq!(clock.read(START + MS * 100_000).since(START + MS * 100_000), ahead);
        assert_eq!(clock.when(START + ahead + MS), START + MS);
    }
}
