//! Passwords are not tried without end: wrong ones slow down the address that they come from.
//!
//! Each address may be wrong some times at once, and then a few times a second. Beyond that whoever
//! tries from there waits for its turn, with the right password as well: an answer that came at
//! once would tell which it is. Right ones take no turn from others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From one wrong password of an address to the next, in the long run: five a second.
const EVERY: Duration = Duration::from_millis(200);
/// Wrong passwords that are answered at once: of a service that was given the wrong one, and starts
/// some clients.
const AT_ONCE: u32 = 20;
/// The longest time that a client waits for its turn. Those for whom it would be longer are refused
/// without a look at what they say.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Addresses that are remembered. If there are more, those that are not share one place.
const ADDRESSES_MAX: usize = 4096;
/// From one line of the log to the next.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Who has been wrong lately.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    inner: Mutex<Inner>,
    wrong: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    /// Of each address the time by which all its turns that were taken are over.
    taken_until: BTreeMap<IpAddr, Duration>,
    of_others: Duration,
    logged: Option<Duration>,
    /// Wrong passwords since the last line of the log.
    since: u64,
}

/// It is too busy being tried from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Guesses {
    /// Takes a turn for an address: when it is, which may be now.
    pub(crate) fn take_turn(&self, now: Duration, from: IpAddr) -> Result<Duration, TooMany> {
        let mut inner = self.lock();
        let taken = inner.place(now, from);
        let turn = (*taken).max(now).saturating_sub(EVERY * AT_ONCE).max(now);
        if turn > now + WAIT_MAX {
            drop(inner);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TooMany);
        }
        *taken = (*taken).max(now) + EVERY;
        Ok(turn)
    }

    /// The password was right: its turn is given back.
    pub(crate) fn note_right(&self, now: Duration, from: IpAddr) {
        let mut inner = self.lock();
        let taken = inner.place(now, from);
        *taken = taken.saturating_sub(EVERY);
    }

    /// The password was wrong. Now and then a line of the log says so.
    pub(crate) fn note_wrong(&self, now: Duration, from: IpAddr, user: &[u8]) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.lock();
        inner.since += 1;
        if inner.logged.is_none_or(|logged| now >= logged + LOG_EVERY) {
            let (wrong, user) = (inner.since, user.get(..USER_SHOWN_MAX).unwrap_or(user));
            (inner.logged, inner.since) = (Some(now), 0);
            drop(inner);
            let user = user.escape_ascii();
            tracing::warn!(wrong, %from, %user, "wrong passwords, the last from there");
        }
    }

    /// Wrong passwords so far, and tries that were refused without a look.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.wrong.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of the name of a user that the log repeats.
const USER_SHOWN_MAX: usize = 64;

impl Inner {
    fn place(&mut self, now: Duration, from: IpAddr) -> &mut Duration {
        let from = network(from);
        if !self.taken_until.contains_key(&from) && self.taken_until.len() >= ADDRESSES_MAX {
            self.taken_until.retain(|_, taken| *taken > now);
            if self.taken_until.len() >= ADDRESSES_MAX {
                return &mut self.of_others;
            }
        }
        self.taken_until.entry(from).or_default()
    }
}

/// What one owner has: of IPv6 a network of 64 bits.
fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_address_that_is_wrong_all_the_time_gets_five_tries_a_second() {
        let (guesses, mut answered) = (Guesses::default(), 0);
        // A million tries in ten seconds, from as many connections as it takes.
        for try_number in 0..1_000_000_u64 {
            let now = Duration::from_micros(10 * try_number);
            if guesses.take_turn(now, FROM).is_ok_and(|turn| turn <= at(10_000)) {
                guesses.note_wrong(now, FROM, b"default");
                answered += 1;
            }
        }
        assert!((65..=75).contains(&answered), "{answered} were answered");
        let (_, refused) = guesses.counts();
        assert!(refused > 999_000, "{refused}");
        let elsewhere = "10.0.0.2".parse().unwrap();
        assert_eq!(guesses.take_turn(at(10_000), elsewhere), Ok(at(10_000)), "others do not wait");
    }

    #[test]
    fn right_passwords_never_wait_for_each_other() {
        let guesses = Guesses::default();
        for _ in 0..10_000 {
            assert_eq!(guesses.take_turn(at(1), FROM), Ok(at(1)));
            guesses.note_right(at(1), FROM);
        }
    }

    #[test]
    fn addresses_without_end_take_no_memory_without_end() {
        let guesses = Guesses::default();
        for address in 0..100_000_u32 {
            let _turn = guesses.take_turn(at(1), IpAddr::V4(address.into()));
        }
        assert_eq!(guesses.lock().taken_until.len(), ADDRESSES_MAX);
        let one = |last: u16| IpAddr::V6([0xfd00, 0, 0, 1, 0, 0, 0, last].into());
        assert_eq!(network(one(1)), network(one(2)), "one owner has many of these");
    }
}
