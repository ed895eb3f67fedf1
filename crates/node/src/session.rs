//! Sessions: what became of each client's writes, so that a retry is answered and never applied.
//!
//! A session holds the outcomes of a client's committed writes at or above its low-water mark,
//! within one partition. Outcomes are kept as notes of the engine as well. Each note carries the
//! mark that was known when it was written, and a client's newest note is never older than its
//! mark, so a node that restarts knows the mark again.

use machine::Instant;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;
use wire::{Code, Op};

/// How a write ended, and what the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The client's operation.
    pub(crate) origin: Op,
    pub(crate) code: Code,
    /// What `object_version` of the reply says.
    pub(crate) version: u64,
    /// The sum of an INCR; the step at which a batch failed.
    pub(crate) result: u64,
}

/// What the head knows of a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Never seen, as far as can be told: apply it.
    New,
    /// Committed: this is the answer.
    Known(Outcome),
    /// Below the low-water mark: it ended long ago.
    Ended,
}

#[derive(Debug, Default)]
struct Session {
    /// The low-water mark: requests below it have ended.
    floor: u64,
    outcomes: BTreeMap<u64, Outcome>,
    heard_at: Instant,
}

/// The sessions of one partition.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    clients: BTreeMap<u64, Session>,
}

impl Sessions {
    pub(crate) fn standing(&self, client: u64, seq: u64) -> Standing {
        let Some(session) = self.clients.get(&client) else { return Standing::New };
        match session.outcomes.get(&seq) {
            Some(outcome) => Standing::Known(*outcome),
            None if seq < session.floor => Standing::Ended,
            None => Standing::New,
        }
    }

    /// Whether an outcome is on record, or was.
    pub(crate) fn knows(&self, client: u64, seq: u64) -> bool {
        self.standing(client, seq) != Standing::New
    }

    /// The outcomes that come after this request id, in order: client, sequence number, low-water
    /// mark, outcome.
    pub(crate) fn after(
        &self,
        (client, seq): (u64, u64),
    ) -> impl Iterator<Item = (u64, u64, u64, Outcome)> {
        let sessions = self.clients.range(client..);
        sessions.flat_map(move |(id, session)| {
            let from = if *id == client { Bound::Excluded(seq) } else { Bound::Unbounded };
            let outcomes = session.outcomes.range((from, Bound::Unbounded));
            outcomes.map(|(seq, outcome)| (*id, *seq, session.floor, *outcome))
        })
    }

    /// Whether there is room for one more client, or this one is known.
    pub(crate) fn has_room(&self, client: u64) -> bool {
        self.clients.len() < SESSIONS_MAX || self.clients.contains_key(&client)
    }

    /// Notes an outcome. Gives back the sequence numbers whose outcomes the low-water mark ended.
    pub(crate) fn record(
        &mut self,
        now: Instant,
        client: u64,
        seq: u64,
        floor: u64,
        outcome: Outcome,
    ) -> Vec<u64> {
        let session = self.clients.entry(client).or_default();
        session.heard_at = session.heard_at.max(now);
        session.floor = session.floor.max(floor);
        session.outcomes.insert(seq, outcome);
        // The newest outcome stays even below the mark: its note is what remembers the mark.
        let keep_from = session.floor.min(seq);
        let kept = session.outcomes.split_off(&keep_from);
        let ended = std::mem::replace(&mut session.outcomes, kept);
        ended.into_keys().collect()
    }

    /// Raises the low-water mark of a client that has a write pending.
    pub(crate) fn raise_floor(&mut self, now: Instant, client: u64, floor: u64) {
        let session = self.clients.entry(client).or_default();
        session.heard_at = session.heard_at.max(now);
        session.floor = session.floor.max(floor);
    }

    /// Ends the sessions of clients that have been silent for [`IDLE_MAX`]. Gives back the request
    /// ids whose outcomes are gone.
    pub(crate) fn end_idle(&mut self, now: Instant) -> Vec<(u64, u64)> {
        let silent = |session: &Session| now.since(session.heard_at) >= IDLE_MAX;
        let ended = self.clients.extract_if(.., |_, session| silent(session));
        ended
            .flat_map(|(client, session)| {
                session.outcomes.into_keys().map(move |seq| (client, seq))
            })
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }
}

impl Outcome {
    /// The note of this outcome, with the mark known at the time.
    pub(crate) fn to_note(self, floor: u64) -> [u8; NOTE_LEN] {
        let mut note = [0; NOTE_LEN];
        let (codes, numbers) = note.split_at_mut(2);
        codes.copy_from_slice(&[self.origin as u8, self.code as u8]);
        let words = [self.version, self.result, floor];
        for (to, word) in numbers.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        note
    }

    /// Outcome and mark of a note; `None` if it is none.
    pub(crate) fn from_note(note: &[u8]) -> Option<(Self, u64)> {
        let note: &[u8; NOTE_LEN] = note.try_into().ok()?;
        let ([origin, code], numbers) = note.split_first_chunk::<2>()?;
        let (words, _) = numbers.as_chunks::<8>();
        let [version, result, floor] = words else { return None };
        let outcome = Self {
            origin: Op::from_wire(*origin)?,
            code: Code::from_wire(*code)?,
            version: u64::from_be_bytes(*version),
            result: u64::from_be_bytes(*result),
        };
        Some((outcome, u64::from_be_bytes(*floor)))
    }
}

const NOTE_LEN: usize = 2 + 3 * 8;

/// Clients per partition. At about 200 bytes each this is 3 MiB of a partition's memory; a client
/// beyond it is told *overloaded* until an idle one is forgotten.
pub(crate) const SESSIONS_MAX: usize = 16_384;

/// How long a silent client is remembered.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(wire::SESSION_IDLE_SECS as u64);

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Outcome = Outcome { origin: Op::Put, code: Code::Ok, version: 9, result: 0 };

    #[test]
    fn an_outcome_lasts_until_the_low_water_mark_passes_it() {
        let mut sessions = Sessions::default();
        let now = Instant(0);
        assert_eq!(sessions.standing(7, 1), Standing::New);
        assert!(sessions.record(now, 7, 1, 1, DONE).is_empty());
        assert!(sessions.record(now, 7, 2, 1, DONE).is_empty());
        assert_eq!(sessions.standing(7, 1), Standing::Known(DONE));
        assert_eq!(sessions.record(now, 7, 5, 3, DONE), [1, 2]);
        assert_eq!(sessions.standing(7, 2), Standing::Ended);
        assert_eq!(sessions.standing(7, 4), Standing::New);
    }

    #[test]
    fn a_silent_client_is_forgotten_in_the_end() {
        let mut sessions = Sessions::default();
        sessions.record(Instant(0), 7, 1, 1, DONE);
        assert!(sessions.end_idle(Instant(0) + IDLE_MAX / 2).is_empty());
        assert_eq!(sessions.end_idle(Instant(0) + IDLE_MAX), [(7, 1)]);
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn notes_round_trip_and_others_are_refused() {
        let note = DONE.to_note(4);
        assert_eq!(Outcome::from_note(&note), Some((DONE, 4)));
        assert_eq!(Outcome::from_note(&note[1..]), None);
    }
}
