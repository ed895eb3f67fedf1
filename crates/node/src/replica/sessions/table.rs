//! Sessions: what became of each client's writes, so that a retry is answered and never applied.
//!
//! A session holds the outcomes of a client's committed writes at or above its low-water mark,
//! within one partition. Outcomes are kept as notes of the engine as well. Each note carries the
//! mark that was known when it was written, and a client's newest note is never older than its
//! mark, so a node that restarts knows the mark again.

use crate::replica::pending::PENDING_MAX;
use crate::replica::sessions::ended::Ended;
use crate::replica::sessions::outcome::Outcome;
use crate::replica::shares::Shares;
use cluster::{CLOCK_RATE_MAX_PERCENT, MaybeMutant, Mutant};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use wire::Version;

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

#[derive(Clone, Debug)]
struct Session {
    /// The low-water mark: requests below it have ended.
    floor: u64,
    /// By sequence number, ascending. Most clients have one: a queue takes no more room than that.
    outcomes: VecDeque<(u64, Outcome)>,
    /// When it was heard, to within [`HEARD_STEP`].
    heard_at: Instant,
    /// No outcome from this number on was ever forgotten.
    from: u64,
    /// The newest version of a write with an outcome here, or one above it.
    newest: Version,
}

/// The sessions of one partition.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    clients: BTreeMap<u64, Session>,
    /// The same clients, by when they were heard.
    by_heard: BTreeSet<(Instant, u64)>,
    /// How many of them are whose.
    shares: Shares,
    /// Outcomes of all of them.
    outcomes: usize,
    /// How many of those are whose.
    outcome_shares: Shares,
    /// No write above this version had an outcome that was forgotten to make room.
    forgotten: Version,
    /// Clients that have said goodbye. None of them is among the others.
    pub(crate) ended: Ended,
}

impl Sessions {
    pub(crate) fn standing(&self, client: u64, seq: u64) -> Standing {
        let Some(session) = self.clients.get(&client) else {
            return if self.ended.holds(client) { Standing::Ended } else { Standing::New };
        };
        match session.outcome(seq) {
            Some(outcome) => Standing::Known(outcome),
            None if seq < session.floor => Standing::Ended,
            None => Standing::New,
        }
    }

    /// Whether an outcome is on record, or was.
    pub(crate) fn knows(&self, client: u64, seq: u64) -> bool {
        self.standing(client, seq) != Standing::New
    }

    /// Whether an outcome of this request, if there ever was one, would still be known.
    pub(crate) fn remembers(&self, client: u64, seq: u64) -> bool {
        let from = self.clients.get(&client).map(|session| session.from);
        self.forgotten.is_none() || from.is_some_and(|from| from <= seq)
    }

    /// No write of this client from `next` on was sent before the version was known up to which
    /// outcomes may have been forgotten.
    pub(crate) fn knows_from(&mut self, client: u64, next: u64) {
        if let Some(session) = self.clients.get_mut(&client) {
            session.from = session.from.min(next);
        }
    }

    /// The newest version of an outcome that was forgotten to make room, or one above it; 0 if none
    /// ever was.
    pub(crate) fn forgotten(&self) -> Version {
        self.forgotten
    }

    /// Takes in that outcomes up to this version were forgotten, here in an earlier incarnation or
    /// by the member that the sessions come from.
    pub(crate) fn lacks_up_to(&mut self, forgotten: Version) {
        if !forgotten.is_none() {
            self.forgotten = self.forgotten.max(forgotten);
            self.clients.values_mut().for_each(|session| session.from = u64::MAX);
        }
    }

    /// Takes in those of a partition that this one is made of. What is known of a client in either
    /// is known; where one has forgotten some, it may have forgotten outcomes of any client that it
    /// does not know.
    pub(crate) fn unite(&mut self, other: &Self) {
        let (lacks, theirs_lack) = (!self.forgotten.is_none(), !other.forgotten.is_none());
        for (client, session) in &mut self.clients {
            if theirs_lack && !other.clients.contains_key(client) {
                session.from = u64::MAX;
            }
        }
        for (client, theirs) in &other.clients {
            if self.ended.holds(*client) {
                continue;
            }
            let mut session = theirs.clone();
            if let Some(known) = self.take_out(*client) {
                session.unite(known);
            } else if lacks {
                session.from = u64::MAX;
            }
            self.by_heard.insert((session.heard_at, *client));
            self.shares.add(*client, 1);
            self.have_outcomes(*client, 0, session.outcomes.len());
            self.clients.insert(*client, session);
        }
        for client in self.ended.unite(&other.ended) {
            self.remove(client, &mut Vec::new());
        }
        self.forgotten = self.forgotten.max(other.forgotten);
    }

    /// Takes it that the writes of all outcomes are at most this new: copies do not say.
    pub(crate) fn are_up_to(&mut self, version: Version) {
        for session in self.clients.values_mut() {
            session.newest = session.newest.max(version);
        }
        self.ended.are_up_to(version);
    }

    /// The outcomes that come after this request id, in order: client, sequence number, low-water
    /// mark, outcome.
    pub(crate) fn after(
        &self,
        (client, seq): (u64, u64),
    ) -> impl Iterator<Item = (u64, u64, u64, Outcome)> {
        let sessions = self.clients.range(client..);
        sessions.flat_map(move |(id, session)| {
            let later = move |(at, _): &&(u64, Outcome)| *id != client || *at > seq;
            let outcomes = session.outcomes.iter().filter(later);
            outcomes.map(|(seq, outcome)| (*id, *seq, session.floor, *outcome))
        })
    }

    /// Whether there is room for one more outcome of this client, among at most `clients_max`, and
    /// it may have that.
    pub(crate) fn has_room(&self, client: u64, clients_max: usize) -> bool {
        let (clients, outcomes) = self.free(clients_max);
        let room = match self.clients.get(&client) {
            Some(session) => session.outcomes.len() < OUTCOMES_MAX,
            None => self.shares.may_grow(client, clients),
        };
        room && self.outcome_shares.may_grow(client, outcomes)
    }

    /// Whether there is room, but not for this client, which has what it may have: nobody else is
    /// forgotten for it.
    pub(crate) fn is_laden(&self, client: u64, clients_max: usize) -> bool {
        let (clients, outcomes) = self.free(clients_max);
        match self.clients.get(&client) {
            Some(session) => session.outcomes.len() >= OUTCOMES_MAX || outcomes > 0,
            None => clients > 0 && outcomes > 0,
        }
    }

    /// How many more clients, and outcomes, there is room for.
    fn free(&self, clients_max: usize) -> (u64, u64) {
        let clients = clients_max.saturating_sub(self.clients.len());
        (clients as u64, OUTCOMES_ALL_MAX.saturating_sub(self.outcomes) as u64)
    }

    /// A client that had so many outcomes has so many now.
    fn have_outcomes(&mut self, client: u64, before: usize, after: usize) {
        self.outcomes = (self.outcomes + after).saturating_sub(before);
        self.outcome_shares.add(client, after.saturating_sub(before) as u64);
        self.outcome_shares.take(client, before.saturating_sub(after) as u64);
    }

    fn take_out(&mut self, client: u64) -> Option<Session> {
        let session = self.clients.remove(&client)?;
        self.by_heard.remove(&(session.heard_at, client));
        self.shares.take(client, 1);
        self.have_outcomes(client, session.outcomes.len(), 0);
        Some(session)
    }

    /// Notes the outcome of the write of this version. Gives back the sequence numbers whose
    /// outcomes the low-water mark ended.
    pub(crate) fn record(
        &mut self,
        now: Instant,
        (client, seq): (u64, u64),
        floor: u64,
        version: Version,
        outcome: Outcome,
    ) -> Vec<u64> {
        if self.ended.holds(client) {
            self.ended.note(now, client, version);
            return vec![seq];
        }
        let session = self.hear(now, client, floor);
        session.newest = session.newest.max(version);
        let before = session.outcomes.len();
        match session.outcomes.binary_search_by_key(&seq, |(seq, _)| *seq) {
            Ok(at) => {
                if let Some(place) = session.outcomes.get_mut(at) {
                    *place = (seq, outcome);
                }
            }
            Err(at) => {
                if session.outcomes.is_empty() {
                    session.outcomes.reserve_exact(1);
                }
                session.outcomes.insert(at, (seq, outcome));
            }
        }
        // The newest outcome stays even below the mark: its note is what remembers the mark.
        let keep_from = session.floor.min(seq);
        let ends = session.outcomes.partition_point(|(seq, _)| *seq < keep_from);
        let ended = session.outcomes.drain(..ends).map(|(seq, _)| seq).collect();
        let after = session.outcomes.len();
        self.have_outcomes(client, before, after);
        ended
    }

    /// Raises the low-water mark of a client that has a write pending.
    pub(crate) fn raise_floor(&mut self, now: Instant, client: u64, floor: u64) {
        if !self.ended.holds(client) {
            self.hear(now, client, floor);
        }
    }

    /// The client has said goodbye: from now on all of its requests have ended, those that are
    /// still to come as well. Gives back its newest version, and the sequence numbers whose
    /// outcomes are gone; `None` if it has no session.
    pub(crate) fn end(
        &mut self,
        now: Instant,
        client: u64,
        mutant: MaybeMutant,
    ) -> Option<(Version, Vec<(u64, u64)>)> {
        let newest = self.clients.get(&client)?.newest;
        let mut gone = Vec::new();
        self.remove(client, &mut gone);
        if !mutant.is(Mutant::GoodbyeForgetsFloor) {
            self.ended.note(now, client, newest);
        }
        Some((newest, gone))
    }

    /// Forgets who said goodbye first, unless something of it is on its way, as in
    /// [`forget`](Self::forget). Gives back who that was.
    pub(crate) fn forget_ended(
        &mut self,
        stable: Version,
        busy: impl Fn(u64) -> bool,
        mutant: MaybeMutant,
    ) -> Option<u64> {
        let (_, client, newest) = self.ended.first()?;
        if newest > stable || busy(client) {
            return None;
        }
        self.ended.remove_first();
        if !mutant.is(Mutant::ForgetUnrecorded) {
            self.forgotten = self.forgotten.max(newest).max(Version::FIRST);
        }
        Some(client)
    }

    /// The next client that said goodbye [`IDLE_MAX`] ago, which is forgotten.
    pub(crate) fn end_ended(&mut self, now: Instant) -> Option<u64> {
        let (at, client, _) = self.ended.first()?;
        let over = now.since(at) >= IDLE_MAX;
        over.then(|| self.ended.remove_first())?;
        Some(client)
    }

    fn hear(&mut self, now: Instant, client: u64, floor: u64) -> &mut Session {
        let from = if self.forgotten.is_none() { 0 } else { u64::MAX };
        let (by_heard, shares) = (&mut self.by_heard, &mut self.shares);
        let session = self.clients.entry(client).or_insert_with(|| {
            by_heard.insert((now, client));
            shares.add(client, 1);
            Session { floor, outcomes: VecDeque::new(), heard_at: now, from, newest: Version::NONE }
        });
        if now.since(session.heard_at) >= HEARD_STEP {
            self.by_heard.remove(&(session.heard_at, client));
            self.by_heard.insert((now, client));
            session.heard_at = now;
        }
        session.floor = session.floor.max(floor);
        session
    }

    /// Ends the sessions of clients that have been silent for [`IDLE_MAX`]. Gives back the request
    /// ids whose outcomes are gone.
    pub(crate) fn end_idle(&mut self, now: Instant) -> Vec<(u64, u64)> {
        let mut gone = Vec::new();
        while let Some((heard_at, client)) = self.by_heard.first().copied() {
            if now.since(heard_at) < IDLE_MAX + HEARD_STEP {
                break;
            }
            self.remove(client, &mut gone);
        }
        gone
    }

    /// Forgets some of those that were heard longest ago, and at least [`KEPT`], of whom nothing is
    /// on its way: neither is the client `busy` nor a write of its above `stable`. Gives back the
    /// request ids whose outcomes are gone.
    pub(crate) fn forget(
        &mut self,
        now: Instant,
        stable: Version,
        busy: impl Fn(u64) -> bool,
        mutant: MaybeMutant,
    ) -> Vec<(u64, u64)> {
        let mut gone = Vec::new();
        let left = self.clients.len() - self.clients.len().div_ceil(8);
        for _ in 0..FORGET_AT_ONCE {
            if self.clients.len() < left {
                break;
            }
            let Some((heard_at, client)) = self.by_heard.first().copied() else { break };
            if now.since(heard_at) < KEPT + HEARD_STEP && !mutant.is(Mutant::ForgetYoung) {
                break;
            }
            let newest = self.clients.get(&client).map_or(Version::NONE, |session| session.newest);
            if newest > stable || busy(client) {
                self.hear(now.max(heard_at + HEARD_STEP), client, 0);
                continue;
            }
            self.remove(client, &mut gone);
            if !mutant.is(Mutant::ForgetUnrecorded) {
                // Also if it has no outcomes: its low-water mark goes.
                self.forgotten = self.forgotten.max(newest).max(Version::FIRST);
            }
        }
        gone
    }

    /// There was nobody to forget. New clients are told what to name while they are sure that they
    /// were not taken yet, so that they can come in later.
    pub(crate) fn expect_to_forget(&mut self) {
        self.forgotten = self.forgotten.max(Version::FIRST);
    }

    fn remove(&mut self, client: u64, gone: &mut Vec<(u64, u64)>) {
        let Some(session) = self.take_out(client) else { return };
        gone.extend(session.outcomes.into_iter().map(|(seq, _)| (client, seq)));
    }

    pub(crate) fn has(&self, client: u64) -> bool {
        self.clients.contains_key(&client)
    }

    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// What they take in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let sessions = self.clients.len() as u64 * SESSION_BYTES;
        sessions + self.outcomes as u64 * OUTCOME_BYTES + self.ended.bytes()
    }
}

impl Session {
    fn unite(&mut self, other: Self) {
        let all: BTreeMap<u64, Outcome> = self.outcomes.drain(..).chain(other.outcomes).collect();
        self.outcomes = all.into_iter().collect();
        self.floor = self.floor.max(other.floor);
        self.heard_at = self.heard_at.max(other.heard_at);
        self.from = self.from.max(other.from);
        self.newest = self.newest.max(other.newest);
    }

    fn outcome(&self, seq: u64) -> Option<Outcome> {
        let at = self.outcomes.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        self.outcomes.get(at).map(|(_, outcome)| *outcome)
    }
}

/// Clients per partition. Beyond it, whoever was heard longest ago is forgotten; only if all were
/// heard within [`KEPT`] a new one is told *overloaded*.
pub(crate) const SESSIONS_MAX: usize = 16_384;

/// Outcomes kept of one client: four times what may be pending at once, so that a client whose
/// oldest requests are late goes on for a while. A quarter of what a request can say of its
/// low-water mark.
pub(crate) const OUTCOMES_MAX: usize = 4 * PENDING_MAX;

/// What a session takes in memory without its outcomes: 64 bytes, its place in both orders, which
/// are on average two thirds full, and what the queue of its outcomes takes by itself.
const SESSION_BYTES: u64 = 160;

/// What an outcome takes.
const OUTCOME_BYTES: u64 = 40;

/// Outcomes of all clients of a partition, at 40 bytes each 5 MiB of memory.
pub(crate) const OUTCOMES_ALL_MAX: usize = 131_072;

/// Sessions forgotten in one go, or found to be in use: bounds the work for one request. At most an
/// eighth: whoever could stay should.
const FORGET_AT_ONCE: usize = 64;

/// How finely it is known when a client was heard, so that a busy one costs no more.
const HEARD_STEP: Duration = Duration::from_millis(100);

/// Who was heard within this time is not forgotten: `SESSION_KEPT_MS` of a client's clock.
pub(crate) const KEPT: Duration =
    Duration::from_millis(wire::SESSION_KEPT_MS as u64 * CLOCK_RATE_MAX_PERCENT as u64 / 100);

/// How long a silent client is remembered.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(wire::SESSION_IDLE_SECS as u64);

#[cfg(test)]
mod tests;
