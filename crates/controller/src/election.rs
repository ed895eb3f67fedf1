//! Who leads, where several controllers share a store: what a candidate and a leader make of what
//! the store says (`spec/protocol.md`, section 7, "Leaders"). Asking it is the driver's.
//!
//! A leader has a lease of etcd, which its key is bound to, and with each renewal it gives a
//! *sign*: it writes a key beside its own. Whoever stands by looks at that, and takes the leader's
//! key over when it has seen the same sign for `SILENCE_MAX`, on condition that it is still there.
//! A leader counts on itself for less than that after it *sent* what renewed its lease.
//!
//! The lease alone would take too long. etcd gives none below one and a half times the time in
//! which it elects its own leader, two seconds by default; it takes up to half a second more to
//! notice that one is over; and it begins all of them anew when its own leader is lost. So the
//! lease is gone by only where no sign can be given, because there is no room for it.

use cluster::CLOCK_RATE_MAX_PERCENT;
use machine::Instant;
use std::time::Duration;

/// For how long members of the store may be behind what others of them have said.
const BEHIND_MAX: Duration = Duration::from_secs(3);

/// Seconds that a leader's lease lasts, if etcd does not make more of it: what it does not go below
/// with its usual settings. A leader that is killed is replaced before that is over.
pub const LEASE_S: i64 = 2;

/// Seconds for which a leader may have renewed nothing before another one takes its key.
const SILENCE_MAX_S: i64 = 1;

/// The same, as a candidate measures it.
const SILENCE_MAX: Duration = Duration::from_secs(SILENCE_MAX_S.unsigned_abs());

/// For how long a leader counts on itself after it sent what renewed its lease: less than what
/// others wait for by the slowest clock that may be.
pub const LEAD_FOR: Duration = Duration::from_millis(980);

/// How often a leader renews its lease: three times before that is over.
pub const RENEW_EVERY: Duration = Duration::from_millis(300);

/// How long an answer to that is waited for before it is asked again, elsewhere.
pub const RENEW_PATIENCE: Duration = Duration::from_millis(400);

/// How long one that stands by waits for what a member of the store knows by itself, before it
/// looks elsewhere.
pub const LOOK_PATIENCE: Duration = Duration::from_millis(200);

/// How long it waits for what members of the store agree on before it takes the leader's key. What
/// was sent to one that leads no more is never answered, so that is tried again soon.
pub const TAKE_PATIENCE: Duration = Duration::from_millis(400);

/// How often one that stands by looks whether it can lead: a small part of a lease, so that members
/// are asked again before theirs end.
pub const STAND_EVERY: Duration = Duration::from_millis(50);

/// How often a store that does not answer is tried again.
pub const STAND_AGAIN: Duration = Duration::from_millis(100);

/// How long is waited before a write is tried again of which the store did not say what became.
pub const WRITE_AGAIN: Duration = Duration::from_millis(200);

/// How often a store without room is tried again.
pub const SAVE_AGAIN: Duration = Duration::from_millis(500);

/// How often a leader in doubt looks whether it leads.
pub const DOUBT_WAIT: Duration = Duration::from_millis(20);

/// How long a predecessor may take itself for the leader after this one has become it: what it may
/// have counted on when its key was taken, and what clocks may differ by. Leases that it gives
/// until then count.
#[must_use]
pub fn overlap() -> Duration {
    LEAD_FOR * CLOCK_RATE_MAX_PERCENT / 100
}

const _: () = assert!(LEAD_FOR.as_millis() * 102 / 100 <= SILENCE_MAX_S as u128 * 1_000);
const _: () = assert!(RENEW_EVERY.as_millis() * 3 < LEAD_FOR.as_millis());

/// Whether a leader has renewed its lease a moment ago. etcd says in whole seconds what is left of
/// it and how long it lasts.
#[must_use]
pub const fn is_kept(left_s: i64, granted_s: i64) -> bool {
    left_s > granted_s - SILENCE_MAX_S - 1 && left_s >= 0
}

/// What one that stands by has seen of the leader's signs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vigil {
    /// The last one, and when it was seen first.
    last: Option<(i64, Instant)>,
}

impl Vigil {
    /// Whether a leader has been silent for too long. Its last sign is from that revision of the
    /// store; this was known to some member of it a moment ago, and perhaps there is a newer one.
    /// So whoever takes the leader's key does so on condition that there is none.
    pub fn is_over(&mut self, now: Instant, sign: i64) -> bool {
        match self.last {
            Some((last, since)) if sign == last => now.since(since) >= SILENCE_MAX,
            // By a member that is behind; one that stays so has another past, from a backup.
            Some((last, since)) if sign < last && now.since(since) < BEHIND_MAX => false,
            _ => {
                self.last = Some((sign, now));
                false
            }
        }
    }
}

/// What the store has when a write of the map was refused.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The revision in which the leader's key was changed last.
    pub seat: Option<i64>,
    /// The map there: the seat of the leader that wrote it, and its name.
    pub map: Option<(i64, &'a str)>,
}

/// What such a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Somebody else leads.
    Deposed,
    /// This very map is there already: an attempt that was not answered came through.
    Saved,
    /// One that this leader wrote before is there, of which it did not know: it is to try again.
    Again,
    /// Somebody has written it who did not lead.
    Overwritten,
}

impl Refusal<'_> {
    /// What it means for a leader with this seat, which wrote a map of this name.
    #[must_use]
    pub fn meaning(&self, seat: i64, name: &str) -> Meaning {
        if self.seat != Some(seat) {
            return Meaning::Deposed;
        }
        match self.map {
            Some((by, is)) if by == seat && is == name => Meaning::Saved,
            Some((by, _)) if by == seat => Meaning::Again,
            Some(_) | None => Meaning::Overwritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_nobody_has_renewed_for_a_second_is_not_kept() {
        // Whole seconds: 1 is from 1.0 to 2.0.
        for (left, granted, kept) in
            [(2, 2, true), (1, 2, true), (0, 2, false), (-1, 2, false), (6, 8, false), (7, 8, true)]
        {
            assert_eq!(is_kept(left, granted), kept, "{left} of {granted}");
        }
    }

    #[test]
    fn a_leader_is_silent_when_its_last_sign_was_seen_long_ago() {
        let mut vigil = Vigil::default();
        let at = |ms: u64| Instant(0) + Duration::from_millis(ms);
        for (ms, sign, over) in [
            (0, 4, false),
            (500, 4, false),
            (900, 5, false),
            (1_500, 5, false),
            // A member of the store that is behind.
            (1_600, 4, false),
            (1_700, 5, false),
            (1_899, 5, false),
            (1_900, 5, true),
            (2_750, 6, false),
            // The store was put back.
            (5_800, 3, false),
            (6_800, 3, true),
        ] {
            assert_eq!(vigil.is_over(at(ms), sign), over, "{sign} at {ms}");
        }
    }

    #[test]
    fn a_refused_write_is_found_out_about() {
        let meaning = |seat, map| Refusal { seat, map }.meaning(7, "7-2");
        assert_eq!(meaning(None, None), Meaning::Deposed);
        assert_eq!(meaning(Some(8), Some((7, "7-2"))), Meaning::Deposed);
        assert_eq!(meaning(Some(7), Some((7, "7-2"))), Meaning::Saved);
        assert_eq!(meaning(Some(7), Some((7, "7-1"))), Meaning::Again);
        assert_eq!(meaning(Some(7), Some((5, "5-9"))), Meaning::Overwritten);
    }
}
