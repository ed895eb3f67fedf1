//! HOTKEYS START and STOP. Requests are counted all the time, for all gateways; what somebody who
//! has started to look is told besides is since when, how many keys, and what went through this
//! gateway meanwhile.

use crate::stats::Stats;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What somebody has asked to be told by HOTKEYS GET, if somebody has.
#[derive(Debug, Default)]
pub(crate) struct Tracking(Mutex<Option<Watch>>);

/// Since when, and how much. Times are since the gateway's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) began: Duration,
    /// Until when, if that is known.
    ends: Option<Duration>,
    /// Keys of each list at most.
    pub(crate) count: usize,
    /// What the gateway had done when it began.
    before: Work,
    /// What it has done since, if it has ended and somebody has looked.
    done: Option<Work>,
}

/// What a gateway has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Time that commands took.
    pub(crate) micros: u64,
    /// Bytes from and to clients.
    pub(crate) bytes: u64,
}

impl Work {
    fn until_now(stats: &Stats) -> Self {
        Self { micros: stats.micros(), bytes: stats.bytes() }
    }

    /// CONFIG RESETSTAT makes it begin anew.
    fn since(self, before: Self) -> Self {
        let left = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Self { micros: left(self.micros, before.micros), bytes: left(self.bytes, before.bytes) }
    }
}

impl Watch {
    pub(crate) fn is_active(&self, now: Duration) -> bool {
        self.ends.is_none_or(|end| now < end)
    }

    /// How long it has lasted.
    pub(crate) fn lasted(&self, now: Duration) -> Duration {
        self.ends.map_or(now, |end| end.min(now)).saturating_sub(self.began)
    }
}

impl Tracking {
    fn watch(&self) -> MutexGuard<'_, Option<Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to look, for so long if that is said; whether nobody does already.
    pub(crate) fn start(
        &self,
        now: Duration,
        stats: &Stats,
        count: usize,
        lasts: Option<Duration>,
    ) -> bool {
        let mut watch = self.watch();
        if watch.is_some_and(|it| it.is_active(now)) {
            return false;
        }
        let ends = lasts.map(|it| now.saturating_add(it));
        let before = Work::until_now(stats);
        *watch = Some(Watch { began: now, ends, count, before, done: None });
        true
    }

    /// Ends it; whether there was anything to end.
    pub(crate) fn stop(&self, now: Duration, stats: &Stats) -> bool {
        let mut watch = self.watch();
        let Some(watch) = watch.as_mut().filter(|it| it.is_active(now)) else { return false };
        watch.ends = Some(now);
        watch.done = Some(Work::until_now(stats).since(watch.before));
        true
    }

    /// Forgets what has ended; whether it had.
    pub(crate) fn reset(&self, now: Duration) -> bool {
        let mut watch = self.watch();
        let active = watch.is_some_and(|it| it.is_active(now));
        if !active {
            *watch = None;
        }
        !active
    }

    /// What is looked at, with what the gateway has done meanwhile. Without START that is
    /// everything, from the gateway's start on.
    pub(crate) fn look(&self, now: Duration, stats: &Stats) -> (Watch, Work) {
        let mut watch = self.watch();
        let Some(watch) = watch.as_mut() else {
            let (began, before) = (Duration::ZERO, Work::default());
            let all = Watch { began, ends: None, count: usize::MAX, before, done: None };
            return (all, Work::until_now(stats));
        };
        let work = watch.done.unwrap_or_else(|| Work::until_now(stats).since(watch.before));
        if !watch.is_active(now) {
            watch.done = Some(work);
        }
        (*watch, work)
    }
}
