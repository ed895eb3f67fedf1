//! When values go away: EXPIRE and its kin, TTL and its kin, PERSIST, and times in arguments.

use super::Store;
use super::access::Change;
use super::errors::{Answer, shown};
use super::times::{When, own_ms};
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;
use client::{Expiry, Value};
use wire::expiry::{TIME_MAX, is_span};

/// The milliseconds that a value has left at that time; `None` for ever.
fn left_ms(expiry_ms: u64, now_ms: i64) -> Option<i64> {
    let ms = i64::try_from(expiry_ms & TIME_MAX).unwrap_or(i64::MAX);
    match expiry_ms {
        0 => None,
        // What a transaction is about to write.
        _ if is_span(expiry_ms) => Some(ms),
        _ => Some(ms.saturating_sub(now_ms)),
    }
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

    /// Whether they hold for a value that has so many milliseconds left (`None`: it stays, which
    /// counts as later than any), and would have `next` instead.
    fn hold(&self, left: Option<i64>, next: i64) -> bool {
        let stays = left.is_none();
        !(self.none && !stays
            || self.some && stays
            || self.later && left.is_none_or(|left| next <= left)
            || self.earlier && left.is_some_and(|left| next >= left))
    }
}

impl Store {
    /// What time it is in the cluster, as far as this or an earlier answer said.
    pub(super) fn now_ms(&self, found: &Value) -> Option<i64> {
        self.clock.hear(found.now_ms);
        let said = i64::try_from(found.now_ms).ok().filter(|now| *now > 0);
        said.or_else(|| self.clock.now_ms())
    }

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
        let ms = when.ms(command, time)?;
        self.update_unread(key, |found| {
            let Some(found) = found else { return Ok((Change::None, Reply::Integer(0))) };
            let known = if when.from_now { Some(0) } else { self.now_ms(found) };
            let now_ms = self.now_ms(found).unwrap_or_else(own_ms);
            let next = if when.from_now { ms } else { ms.saturating_sub(now_ms) };
            if !demands.hold(left_ms(found.expiry_ms, now_ms), next) {
                return Ok((Change::None, Reply::Integer(0)));
            }
            // Of a time that may be over, the cluster decides.
            let is_over = known.is_some_and(|now_ms| ms <= now_ms);
            let change = match u64::try_from(ms) {
                Ok(ms) if !is_over => Change::Expire(when.expiry(ms)),
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
        Ok(self.show_time_left(self.look_at(key).await?.as_ref(), shown_as))
    }

    /// What they reply of what was found.
    pub(super) fn show_time_left(&self, found: Option<&Value>, shown_as: When) -> Reply {
        let Some(found) = found else { return Reply::Integer(-2) };
        let now_ms = self.now_ms(found).unwrap_or_else(own_ms);
        let Some(left) = left_ms(found.expiry_ms, now_ms) else { return Reply::Integer(-1) };
        // Still there, though its time has come: the cluster will say so in a moment.
        let ms = if shown_as.from_now { left.max(0) } else { left.saturating_add(now_ms) };
        Reply::Integer(if shown_as.seconds { ms.saturating_add(500) / 1000 } else { ms })
    }
}
