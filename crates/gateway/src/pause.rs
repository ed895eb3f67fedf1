//! CLIENT PAUSE: for how long which commands wait.

use crate::command::{Access, Spec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The pause that is on, if one is.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    paused: Mutex<Option<Paused>>,
    /// Whether one may be on, for those many who ask.
    maybe_on: AtomicBool,
}

#[derive(Clone, Copy, Debug)]
struct Paused {
    /// Since the gateway's start.
    until: Duration,
    /// Whether reads wait as well.
    all: bool,
}

impl Pause {
    /// Begins one. As in Redis, the longer and the stricter of two holds.
    pub(crate) fn begin(&self, until: Duration, all: bool) {
        let mut paused = self.lock();
        let other = paused.map_or(Paused { until, all }, |other| Paused {
            until: other.until.max(until),
            all: other.all || all,
        });
        *paused = Some(other);
        self.maybe_on.store(true, Ordering::Relaxed);
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Paused>> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when a command has to wait, if it has to. What ends a pause never does.
    pub(crate) fn holds(&self, spec: &Spec, now: Duration) -> Option<Duration> {
        if !self.maybe_on.load(Ordering::Relaxed) {
            return None;
        }
        let mut paused = self.lock();
        let Some(Paused { until, all }) = *paused else {
            self.maybe_on.store(false, Ordering::Relaxed);
            return None;
        };
        if until <= now {
            *paused = None;
            return None;
        }
        let waits = all || spec.access == Access::Write;
        (waits && !spec.name.starts_with("client|")).then_some(until)
    }
}
