//! When to send: retransmission timeouts, the budget of retries, and holding back when a node says
//! that it is overloaded.

use crate::config::ClientConfig;
use machine::{Instant, Rng, RttEstimator};
use std::time::Duration;

/// Decides when and whether to send. It sends nothing itself.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    rng: Rng,
    reads: Times,
    writes: Times,
    backoff_max: Duration,
    budget: Budget,
    /// How long to hold back after the next answer that says overloaded.
    hold: Duration,
    hold_until: Instant,
}

/// Which path a request takes: writes pass a chain and a disk, so that their times say nothing
/// about reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Read,
    Write,
}

/// What the time of a request depends on, as far as its author can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) path: Path,
    pub(crate) region: Option<Region>,
}

/// A part of the match space. Which node has which part is the switch's business; but one that is
/// slow for a moment is so for some parts, and not for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region(u8);

impl Region {
    /// Where a match value lies.
    pub(crate) fn of(match_value: u128) -> Self {
        let [first, ..] = match_value.to_be_bytes();
        Self(first)
    }
}

/// First wait after an ask-again answer: a reconfiguration takes about as long as a few messages.
const AGAIN_WAIT_MIN: Duration = Duration::from_millis(1);
/// Doubling stops here: a repaired chain is noticed within this time.
const AGAIN_WAIT_MAX: Duration = Duration::from_millis(100);
/// First hold after an overloaded answer.
const HOLD_MIN: Duration = Duration::from_millis(1);
/// Doubling stops here: the client probes at least this often.
const HOLD_MAX: Duration = Duration::from_millis(250);

impl Pacer {
    pub(crate) fn new(config: &ClientConfig, rng: Rng) -> Self {
        let bounds = config.retransmit;
        let rtt = RttEstimator::new(bounds.min, bounds.first, bounds.max);
        Self {
            rng,
            reads: Times::new(&rtt),
            writes: Times::new(&rtt),
            backoff_max: bounds.backoff_max,
            budget: Budget::default(),
            hold: Duration::ZERO,
            hold_until: Instant::default(),
        }
    }

    /// How long to wait for the answer to a copy before the next; `backoff` counts the waits that
    /// were in vain. Up to a quarter longer than the estimate, so that the retries of requests that
    /// were lost together come apart.
    pub(crate) fn timeout(&mut self, now: Instant, way: Way, backoff: u32) -> Duration {
        let Way { path, region } = way;
        let times = match path {
            Path::Read => &self.reads,
            Path::Write => &self.writes,
        };
        let usual = times.timeout(now, region, 0);
        let timeout = times.timeout(now, region, backoff).min(self.backoff_max).max(usual);
        timeout + self.up_to(timeout / 4)
    }

    /// Takes the time between the only copy and its answer, while so many waited for one.
    pub(crate) fn sample(&mut self, now: Instant, way: Way, rtt: Duration, under_way: usize) {
        match way.path {
            Path::Read => self.reads.sample(now, way.region, rtt, under_way),
            Path::Write => self.writes.sample(now, way.region, rtt, under_way),
        }
    }

    /// A copy was sent in vain: another, answered so long after the first was sent, was not lost.
    ///
    /// Without this a server that is slow for a moment stays slow. Its answers come after the
    /// timeout, which only the answers of the others shape, since theirs are to requests that were
    /// sent once; so each request is sent to it several times, and a tenth of the requests to all
    /// servers, which the budget allows, is more than one of many can serve.
    pub(crate) fn in_vain(&mut self, now: Instant, way: Way, took: Duration, under_way: usize) {
        self.sample(now, way, took, under_way);
        self.budget.fine();
    }

    /// A request is started: when its first copy may leave, and a share of a retry is earned.
    pub(crate) fn start(&mut self, now: Instant) -> Instant {
        self.budget.earn();
        if now >= self.hold_until {
            return now;
        }
        self.hold_until + self.up_to(self.hold)
    }

    /// Whether one more copy may leave now.
    pub(crate) fn take_retry(&mut self, now: Instant) -> bool {
        self.budget.take(now)
    }

    /// When to ask again after an answer that said so, the one after `agains` others in a row.
    pub(crate) fn again_at(&mut self, now: Instant, agains: u32, overloaded: bool) -> Instant {
        if overloaded { self.overloaded(now, agains) } else { self.ask_again(now, agains) }
    }

    /// Soon, for the answer came from a node that lives and a configuration that changes.
    fn ask_again(&mut self, now: Instant, agains: u32) -> Instant {
        let wait = AGAIN_WAIT_MIN.saturating_mul(1 << agains.min(16)).min(AGAIN_WAIT_MAX);
        now + wait / 2 + self.up_to(wait)
    }

    /// Later, and everything of this client holds back, twice as long each time.
    fn overloaded(&mut self, now: Instant, agains: u32) -> Instant {
        // Answers to copies that left before the last hold say nothing new.
        if now >= self.hold_until {
            self.hold = (self.hold * 2).clamp(HOLD_MIN, HOLD_MAX);
            self.hold_until = now + self.hold;
        }
        let wait = self.hold.max(HOLD_MIN.saturating_mul(2 << agains.min(16)).min(HOLD_MAX));
        now + wait + self.up_to(wait)
    }

    /// A request was decided: hold back a little less next time.
    pub(crate) fn decided(&mut self) {
        self.hold = self.hold * 7 / 8;
        if self.hold < HOLD_MIN {
            self.hold = Duration::ZERO;
        }
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.below(nanos))
    }
}

/// How long answers take.
///
/// The times of all requests say how long those take that nothing keeps waiting. Where a node is
/// behind, its own say how far: if it were asked again as soon as the others, it would be asked for
/// more than it can serve, and its queue would never be empty again. They make a timeout longer and
/// never shorter, for what is lost in an idle place is not noticed sooner than that.
#[derive(Clone, Debug)]
struct Times {
    all: RttEstimator,
    /// By region: its own, and when it was last told something.
    regions: Vec<(Instant, RttEstimator)>,
    /// One that knows nothing.
    fresh: RttEstimator,
}

/// What a region was like so long ago is forgotten.
const REGION_MEMORY: Duration = Duration::from_secs(5);

impl Times {
    fn new(fresh: &RttEstimator) -> Self {
        let regions = vec![(Instant::default(), fresh.clone()); usize::from(u8::MAX) + 1];
        Self { all: fresh.clone(), regions, fresh: fresh.clone() }
    }

    fn timeout(&self, now: Instant, region: Option<Region>, attempt: u32) -> Duration {
        let own = region.and_then(|Region(it)| self.regions.get(usize::from(it)));
        let own = own.filter(|(told, it)| it.smoothed().is_some() && now < *told + REGION_MEMORY);
        let own = own.map_or(Duration::ZERO, |(_, it)| it.timeout(attempt));
        self.all.timeout(attempt).max(own)
    }

    fn sample(&mut self, now: Instant, region: Option<Region>, rtt: Duration, under_way: usize) {
        self.all.sample(rtt, under_way);
        let regions = self.regions.len();
        let own = region.and_then(|Region(it)| self.regions.get_mut(usize::from(it)));
        let Some((told, own)) = own else { return };
        if now >= *told + REGION_MEMORY {
            *own = self.fresh.clone();
        }
        *told = now;
        own.sample(rtt, under_way / regions);
    }
}

/// A token bucket of retries: in an outage the load stays near that of the requests themselves,
/// instead of growing with every timeout.
#[derive(Clone, Debug)]
struct Budget {
    /// Below zero after fines.
    millitokens: i64,
    filled_at: Instant,
}

/// One retry.
const RETRY: i64 = 1000;
/// Earned by each request: retries stay at a tenth of them.
const EARNED: i64 = RETRY / 10;
/// Earned by each millisecond: 100 retries a second, whatever a client does. With what is saved up
/// that is enough for 16 requests at once through an outage of two seconds: each is asked for 5
/// times until doubling has stopped, and 9 times a second from then on.
const EARNED_PER_MS: i64 = 100;
/// What a retry that was not needed costs on top. If all of them are so, they stay at a hundredth
/// of the requests and 9 a second.
const FINE: i64 = 10 * RETRY;
/// Fines are owed up to here: half a second of a quiet client. What fails then is asked for again
/// by the retries that every request is granted.
const OWED_MAX: i64 = 50 * RETRY;
/// What can be saved up: a burst of loss on a quiet path is healed at once.
const SAVED_MAX: i64 = 200 * RETRY;

impl Default for Budget {
    fn default() -> Self {
        Self { millitokens: SAVED_MAX, filled_at: Instant::default() }
    }
}

impl Budget {
    fn earn(&mut self) {
        self.millitokens = (self.millitokens + EARNED).min(SAVED_MAX);
    }

    /// A retry was not needed.
    fn fine(&mut self) {
        self.millitokens = (self.millitokens - FINE).max(-OWED_MAX);
    }

    fn take(&mut self, now: Instant) -> bool {
        let elapsed_ms = now.unix_ms().saturating_sub(self.filled_at.unix_ms());
        if elapsed_ms > 0 {
            self.filled_at = now;
            let elapsed_ms = i64::try_from(elapsed_ms).unwrap_or(i64::MAX);
            let earned = elapsed_ms.saturating_mul(EARNED_PER_MS);
            self.millitokens = self.millitokens.saturating_add(earned).min(SAVED_MAX);
        }
        let left = self.millitokens - RETRY;
        if left < 0 {
            return false;
        }
        self.millitokens = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const READ: Way = Way { path: Path::Read, region: Some(Region(7)) };
    const ELSEWHERE: Way = Way { path: Path::Read, region: Some(Region(8)) };

    fn pacer() -> Pacer {
        let service = wire::Endpoint { addr: [0; 16], port: 1 };
        Pacer::new(&ClientConfig::new(service, 1), Rng::new(1))
    }

    #[test]
    fn retries_stay_near_a_tenth_of_the_requests() {
        let mut pacer = pacer();
        let mut now = Instant::from_unix_ms(1);
        let mut taken = 0;
        for _ in 0..100_000 {
            now = now + MS / 100;
            pacer.start(now);
            taken += u32::from(pacer.take_retry(now));
        }
        // A tenth, 100 a second for one second, and what was saved up.
        assert!((10_000..=10_000 + 100 + 201).contains(&taken), "{taken}");
    }

    #[test]
    fn retries_that_are_all_in_vain_stay_near_a_hundredth_of_the_requests() {
        let mut pacer = pacer();
        let mut now = Instant::from_unix_ms(1);
        let mut taken = 0;
        for _ in 0..100_000 {
            now = now + MS / 100;
            pacer.start(now);
            if pacer.take_retry(now) {
                taken += 1;
                pacer.in_vain(now, READ, MS, 1);
            }
        }
        // A tenth and 100 for one second, over eleven; and what was saved up, over as many.
        assert!((900..=1_000).contains(&taken), "{taken}");
    }

    #[test]
    fn answers_that_come_after_the_timeout_make_it_longer() {
        let (mut pacer, now) = (pacer(), Instant::from_unix_ms(1));
        (0..100).for_each(|_| pacer.sample(now, READ, MS, 100));
        assert!(pacer.timeout(now, READ, 0) < 7 * MS);
        (0..10).for_each(|_| pacer.in_vain(now, READ, 20 * MS, 10));
        assert!(pacer.timeout(now, READ, 0) > 20 * MS);
    }

    #[test]
    fn where_a_node_is_behind_more_patience_is_needed_and_only_there_and_not_for_long() {
        let (mut pacer, now) = (pacer(), Instant::from_unix_ms(1));
        (0..1_000).for_each(|_| pacer.sample(now, ELSEWHERE, MS, 1_000));
        (0..10).for_each(|_| pacer.sample(now, READ, 400 * MS, 1_000));
        let nowhere = Way { region: None, ..READ };
        let write = Way { path: Path::Write, ..READ };
        let mut timeout = |after, way| pacer.timeout(now + after, way, 0);
        assert!(timeout(MS, READ) > 400 * MS);
        assert!(timeout(MS, ELSEWHERE) < 100 * MS, "{:?}", timeout(MS, ELSEWHERE));
        assert!(timeout(MS, nowhere) < 100 * MS);
        assert!((50 * MS..63 * MS).contains(&timeout(MS, write)), "no write was answered yet");
        assert!(timeout(REGION_MEMORY, READ) < 100 * MS, "that was long ago");
        let later = now + REGION_MEMORY;
        pacer.sample(later, READ, MS, 1_000);
        assert!(pacer.timeout(later, READ, 0) < 100 * MS, "and counts no more");
    }

    #[test]
    fn a_quiet_client_may_retry_a_hundred_times_a_second() {
        let mut pacer = pacer();
        let mut now = Instant::from_unix_ms(1);
        while pacer.take_retry(now) {}
        let mut taken = 0;
        for _ in 0..10_000 {
            now = now + MS;
            taken += u32::from(pacer.take_retry(now));
        }
        assert_eq!(taken, 1_000);
    }

    #[test]
    fn overload_doubles_the_hold_and_answers_shorten_it() {
        let mut pacer = pacer();
        let mut now = Instant::from_unix_ms(1);
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            pacer.overloaded(now, 0);
            let wait = pacer.start(now).since(now);
            assert!(wait > last / 4 && wait <= 2 * HOLD_MAX, "{wait:?} after {last:?}");
            last = wait;
            now = pacer.hold_until;
        }
        assert_eq!(pacer.hold, HOLD_MAX);
        for _ in 0..60 {
            pacer.decided();
        }
        assert_eq!(pacer.hold, Duration::ZERO);
        assert_eq!(pacer.start(now), now);
    }

    #[test]
    fn one_burst_of_overload_counts_once() {
        let mut pacer = pacer();
        let now = Instant::from_unix_ms(1);
        for _ in 0..100 {
            pacer.overloaded(now, 0);
        }
        assert_eq!(pacer.hold, HOLD_MIN);
    }
}
