//! Times in arguments, and what time it is in the cluster.

use super::errors::{Answer, NOT_AN_INTEGER, expire_time};
use super::integers::integer;
use crate::command::Keyed;
use client::Expiry;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// How an argument says a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// In seconds rather than milliseconds.
    pub(super) seconds: bool,
    /// Counted from now rather than from 1970.
    pub(super) from_now: bool,
}

/// Later than any present: a span up to the end of 64 bits less this is one that Redis takes, too.
const NOW_MAX: i64 = 1 << 43;

impl When {
    pub(super) const EX: Self = Self { seconds: true, from_now: true };
    pub(super) const PX: Self = Self { seconds: false, from_now: true };
    pub(super) const EXAT: Self = Self { seconds: true, from_now: false };
    pub(super) const PXAT: Self = Self { seconds: false, from_now: false };

    /// The milliseconds that it says, from now or from 1970; they may be negative.
    pub(super) fn ms(self, command: Keyed, argument: &[u8]) -> Answer<i64> {
        let number = integer(argument).ok_or(NOT_AN_INTEGER)?;
        let ms = if self.seconds { number.checked_mul(1000) } else { Some(number) };
        let most = if self.from_now { i64::MAX - NOW_MAX } else { i64::MAX };
        ms.filter(|ms| *ms <= most).ok_or_else(|| expire_time(command))
    }

    /// The expiry that SET and the like give a value: after 1970, or after now.
    pub(super) fn of_value(self, command: Keyed, argument: &[u8]) -> Answer<Expiry> {
        let ms = self.ms(command, argument)?;
        let ms = u64::try_from(ms).ok().filter(|ms| *ms > 0);
        ms.map(|ms| self.expiry(ms)).ok_or_else(|| expire_time(command))
    }

    pub(super) fn expiry(self, ms: u64) -> Expiry {
        if self.from_now { Expiry::In(Duration::from_millis(ms)) } else { Expiry::AtMs(ms) }
    }
}

/// What is known of the cluster's clock. The gateway's own is only a way to go on from there.
#[derive(Debug, Default)]
pub(super) struct ClusterClock {
    /// Milliseconds by which the cluster's is ahead; meaningless until it is known.
    ahead_ms: AtomicI64,
    is_known: AtomicBool,
}

/// Milliseconds by which clocks may differ before that is worth a warning.
const OFF_MAX_MS: u64 = 10_000;

impl ClusterClock {
    /// A node has said what time it is; 0 if none has.
    pub(super) fn hear(&self, now_ms: u64) {
        let Ok(now_ms @ 1..) = i64::try_from(now_ms) else { return };
        let ahead_ms = now_ms.saturating_sub(own_ms());
        let before_ms = self.ahead_ms.swap(ahead_ms, Ordering::Relaxed);
        let known = self.is_known.swap(true, Ordering::Relaxed);
        let is_news = !known || ahead_ms.abs_diff(before_ms) > OFF_MAX_MS;
        if is_news && ahead_ms.unsigned_abs() > OFF_MAX_MS {
            let (own_ahead_s, unset) = (ahead_ms.saturating_neg() / 1000, "EXAT, PXAT, EXPIREAT");
            tracing::warn!(
                own_ahead_s,
                "the clock of this machine is off the cluster's: times from now on are right, and \
                 the absolute ones of {unset} and PEXPIREAT count by the cluster's clock"
            );
        }
    }

    /// What time it is; `None` as long as no node has said so.
    pub(super) fn now_ms(&self) -> Option<i64> {
        let known = self.is_known.load(Ordering::Relaxed);
        known.then(|| own_ms().saturating_add(self.ahead_ms.load(Ordering::Relaxed)))
    }
}

/// This machine's wall clock in Unix milliseconds.
pub(super) fn own_ms() -> i64 {
    i64::try_from(own_time().as_millis()).unwrap_or(i64::MAX)
}

/// The same, as the time since 1970.
#[expect(clippy::disallowed_methods, reason = "the gateway is at the rim, and counts on from it")]
pub(super) fn own_time() -> Duration {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default()
}
