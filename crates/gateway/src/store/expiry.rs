//! When values go away: EXPIRE and its kin, TTL and its kin, PERSIST, and times in arguments.

use super::Store;
use super::access::Change;
use super::errors::{Answer, NOT_AN_INTEGER, expire_time, shown};
use super::numbers::integer;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, Value};

/// How an argument says a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When {
    /// In seconds rather than milliseconds.
    pub(super) seconds: bool,
    /// Counted from now rather than from 1970.
    pub(super) from_now: bool,
}

impl When {
    pub(super) const EX: Self = Self { seconds: true, from_now: true };
    pub(super) const PX: Self = Self { seconds: false, from_now: true };
    pub(super) const EXAT: Self = Self { seconds: true, from_now: false };
    pub(super) const PXAT: Self = Self { seconds: false, from_now: false };

    /// The time in Unix milliseconds, which may be long ago.
    fn at(self, command: Keyed, argument: &[u8], now_ms: i64) -> Answer<i64> {
        let number = integer(argument).ok_or(NOT_AN_INTEGER)?;
        let ms = if self.seconds { number.checked_mul(1000) } else { Some(number) };
        let at = if self.from_now { ms.and_then(|ms| ms.checked_add(now_ms)) } else { ms };
        at.ok_or_else(|| expire_time(command))
    }

    /// The expiry that SET and the like give a value: after 1970, and from now on after now.
    pub(super) fn of_value(self, command: Keyed, argument: &[u8]) -> Answer<u64> {
        let at = self.at(command, argument, now_ms())?;
        let said = integer(argument).ok_or(NOT_AN_INTEGER)?;
        u64::try_from(at).ok().filter(|at| *at > 0 && said > 0).ok_or_else(|| expire_time(command))
    }
}

/// The wall clock in Unix milliseconds.
#[expect(clippy::disallowed_methods, reason = "the gateway is at the rim, and times are its own")]
pub(super) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What EXPIRE and its kin may demand of the expiry that is there.
#[derive(Debug, Default)]
struct Demands {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl Demands {
    fn parse(options: &[Bytes]) -> Answer<Self> {
        let mut demands = Self::default();
        for option in options {
            match option.to_ascii_lowercase().as_slice() {
                b"nx" => demands.none = true,
                b"xx" => demands.some = true,
                b"gt" => demands.later = true,
                b"lt" => demands.earlier = true,
                _ => {
                    let text = format!("ERR Unsupported option {}", shown(option, usize::MAX));
                    return Err(Reply::Error(text.into()));
                }
            }
        }
        let Self { none, some, later, earlier } = demands;
        if none && (some || later || earlier) {
            return Err(Reply::error(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if later && earlier {
            return Err(Reply::error("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(demands)
    }

    /// Whether they hold for a value with that expiry (0: none, which counts as later than any).
    fn hold(&self, expiry_ms: u64, at: i64) -> bool {
        let at = u64::try_from(at).unwrap_or(0);
        let never = expiry_ms == 0;
        !(self.none && !never
            || self.some && never
            || self.later && (never || at <= expiry_ms)
            || self.earlier && !never && at >= expiry_ms)
    }
}

impl Store {
    /// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
    pub(super) async fn expire(
        &self,
        command: Keyed,
        when: When,
        key: &[u8],
        time: &[u8],
        options: &[Bytes],
    ) -> Answer {
        let demands = Demands::parse(options)?;
        let now = now_ms();
        let at = when.at(command, time, now)?;
        self.update_unread(key, |found| {
            if !found.is_some_and(|found| demands.hold(found.expiry_ms, at)) {
                return Ok((Change::None, Reply::Integer(0)));
            }
            let change = match u64::try_from(at) {
                Ok(at_ms) if at > now => Change::Expire(Expiry::AtMs(at_ms)),
                Ok(_) | Err(_) => Change::Delete,
            };
            Ok((change, Reply::Integer(1)))
        })
        .await
    }

    /// PERSIST.
    pub(super) async fn persist(&self, key: &[u8]) -> Answer {
        self.update_unread(key, |found| {
            Ok(match found {
                Some(Value { expiry_ms: 1.., .. }) => {
                    (Change::Expire(Expiry::Never), Reply::Integer(1))
                }
                Some(Value { expiry_ms: 0, .. }) | None => (Change::None, Reply::Integer(0)),
            })
        })
        .await
    }

    /// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
    pub(super) async fn time_left(&self, key: &[u8], shown_as: When) -> Answer {
        let Some(found) = self.look(key).await? else { return Ok(Reply::Integer(-2)) };
        if found.expiry_ms() == 0 {
            return Ok(Reply::Integer(-1));
        }
        let at = i64::try_from(found.expiry_ms()).unwrap_or(i64::MAX);
        // Still there, though its time has come: the cluster will say so in a moment.
        let ms = if shown_as.from_now { at.saturating_sub(now_ms()).max(0) } else { at };
        Ok(Reply::Integer(if shown_as.seconds { ms.saturating_add(500) / 1000 } else { ms }))
    }
}
