//! CLIENT PAUSE: for how long which commands wait.

use crate::command::{Access, Spec};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The pause that is on, if one is.
#[derive(Debug, Default)]
pub(crate) struct Pause(Mutex<Option<Paused>>);

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
        let mut paused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let other = paused.map_or(Paused { until, all }, |other| Paused {
            until: other.until.max(until),
            all: other.all || all,
        });
        *paused = Some(other);
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Until when a command has to wait, if it has to. What ends a pause never does.
    pub(crate) fn holds(&self, spec: &Spec, now: Duration) -> Option<Duration> {
        let mut paused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Paused { until, all } = (*paused)?;
        if until <= now {
            *paused = None;
            return None;
        }
        let waits = all || spec.access == Access::Write;
        (waits && !spec.name.starts_with("client|")).then_some(until)
    }
}
