//! Making a learner caught_up: the tail sends what it holds, piece by piece, while writes go on.
//!
//! ```text
//!   tail ── CHAIN_COPY 1..n: records, sessions, registrations ──▶ learner  (a window of pieces)
//!   tail ◀──────────── CHAIN_COPIED: kept ───────────── learner
//!   tail ── CHAIN_COPY n+1: the end ──▶ learner                    (once all others are kept)
//! ```
//!
//! What is written meanwhile reaches the learner down the chain, so a piece may be older than what
//! the learner has, and then changes nothing.

use crate::engine::{Engine, Record};
use crate::replica::Replica;
use crate::shard::context::Context;
use cluster::{CopyProgress, Epoch, MaybeMutant, Mutant};
use machine::{Instant, RttEstimator};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::{CopyEndBody, CopyEndedBody, CopyEntry, Header, Op, RunPart};

/// A copy that this node, the tail, gives to the learner behind it.
#[derive(Debug)]
pub(crate) struct Copy<C> {
    epoch: Epoch,
    /// Tells the pieces of this run from those of an earlier one of the same epoch.
    run: u64,
    stage: Stage<C>,
    pieces: u64,
    in_flight: BTreeMap<u64, Piece>,
    rtt: RttEstimator,
    bytes: u64,
    wake: Option<Instant>,
}

/// What comes next.
#[derive(Debug)]
enum Stage<C> {
    Records(C),
    /// After this request id.
    Sessions((u64, u64)),
    /// After this one of those that have said goodbye.
    Ended(u64),
    /// After this key.
    Registrations(Option<Box<[u8]>>),
    /// After the delegations of this key.
    Delegations(Option<Box<[u8]>>),
    /// The end, once everything else is kept.
    End,
    Done,
}

#[derive(Debug)]
struct Piece {
    payload: Vec<u8>,
    sent_at: Instant,
    due: Instant,
    resends: u32,
}

/// How much may be copied: a token bucket, in bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) bytes_per_s: u64,
    tokens: u64,
    filled_at: Instant,
}

impl Budget {
    pub(crate) fn new(now: Instant) -> Self {
        Self { bytes_per_s: 0, tokens: 0, filled_at: now }
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.since(self.filled_at).min(BURST);
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let earned = u128::from(self.bytes_per_s) * u128::from(nanos) / 1_000_000_000;
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        if earned > 0 {
            let most = (self.bytes_per_s / 1_000 * BURST_MS).max(PIECE_BYTES);
            self.tokens = self.tokens.saturating_add(earned).min(most);
            self.filled_at = now;
        }
    }

    fn take(&mut self, bytes: u64) {
        self.tokens = self.tokens.saturating_sub(bytes);
    }
}

impl<C> Copy<C> {
    pub(crate) fn new(epoch: Epoch, now: Instant, cursor: C) -> Self {
        Self {
            epoch,
            run: now.0,
            stage: Stage::Records(cursor),
            pieces: 0,
            in_flight: BTreeMap::new(),
            rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            bytes: 0,
            wake: Some(now),
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// When [`go_on`](Self::go_on) is to be called next, if no answer comes first.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.wake
    }

    /// The rate has changed: a paused copy may go on.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.wake = Some(now);
    }

    /// Sends again what was not answered in time, and as much more as window and budget allow.
    pub(crate) fn go_on<E: Engine<Cursor = C>>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
        budget: &mut Budget,
    ) {
        budget.fill(ctx.now);
        if budget.bytes_per_s == 0 {
            self.wake = None; // Until the assignment says otherwise.
            return;
        }
        if !ctx.leased {
            self.wake = Some(ctx.now + RESEND_FIRST);
            return;
        }
        self.resend(ctx, replica);
        self.send_more(ctx, replica, budget);
        let resend = self.in_flight.values().map(|piece| piece.due).min();
        let wants_more = match self.stage {
            Stage::Records(_)
            | Stage::Sessions(_)
            | Stage::Ended(_)
            | Stage::Registrations(_)
            | Stage::Delegations(_) => self.in_flight.len() < WINDOW,
            Stage::End => self.in_flight.is_empty(),
            Stage::Done => false,
        };
        let more = wants_more.then(|| ctx.now + PACE);
        self.wake = resend.into_iter().chain(more).min();
    }

    fn send_more<E: Engine<Cursor = C>>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
        budget: &mut Budget,
    ) {
        while self.in_flight.len() < WINDOW && budget.tokens >= PIECE_BYTES {
            // None, or none yet: then it goes on at the next turn.
            let Some(payload) = self.next_piece(ctx, replica) else { return };
            let bytes = payload.len() as u64;
            budget.take(bytes);
            self.bytes += bytes;
            self.pieces += 1;
            send_piece(ctx, replica, RunPart { run: self.run, number: self.pieces }, &payload);
            let (sent_at, due) = (ctx.now, ctx.now + self.rtt.timeout(0));
            self.in_flight.insert(self.pieces, Piece { payload, sent_at, due, resends: 0 });
        }
    }

    fn resend<E: Engine>(&mut self, ctx: &mut Context<'_, E>, replica: &Replica) {
        for (number, piece) in &mut self.in_flight {
            if piece.due <= ctx.now {
                piece.resends += 1;
                piece.due = ctx.now + self.rtt.timeout(piece.resends);
                ctx.counters.resends += 1;
                send_piece(
                    ctx,
                    replica,
                    RunPart { run: self.run, number: *number },
                    &piece.payload,
                );
            }
        }
    }

    /// The next piece; `None` if there is none, or none yet.
    fn next_piece<E: Engine<Cursor = C>>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica: &Replica,
    ) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        if let Stage::Records(cursor) = &mut self.stage {
            let (above, mut looked_at) = (replica.member.partition.resumes, 0);
            let walked = ctx.engine.walk_on(&replica.member.area(), cursor, |key, record| {
                let Record { version, expiry_ms, tombstone, value } = record;
                let known = above.is_some_and(|above| version <= above);
                if known || replica.is_part_that_goes(key) {
                    looked_at += 1;
                    let go_on = looked_at < LOOKED_AT_MAX;
                    return if go_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
                }
                let entry = CopyEntry::Record { key, version, expiry_ms, tombstone, value };
                if entry.push(&mut payload) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            if walked.is_continue() {
                self.stage = Stage::Sessions((0, 0));
            }
        }
        if let (Stage::Sessions(after), true) = (&mut self.stage, payload.is_empty())
            && push_sessions(ctx.mutant, replica, after, &mut payload)
        {
            self.stage = Stage::Ended(0);
        }
        if let (Stage::Ended(after), true) = (&mut self.stage, payload.is_empty())
            && push_ended(ctx.mutant, replica, after, &mut payload)
        {
            self.stage = Stage::Registrations(None);
        }
        if let (Stage::Registrations(after), true) = (&mut self.stage, payload.is_empty())
            && push_registrations(ctx.mutant, replica, after, &mut payload)
        {
            self.stage = Stage::Delegations(None);
        }
        if let (Stage::Delegations(after), true) = (&mut self.stage, payload.is_empty())
            && push_delegations(ctx.mutant, replica, after, &mut payload)
        {
            self.stage = Stage::End;
        }
        if matches!(self.stage, Stage::End) && payload.is_empty() && self.in_flight.is_empty() {
            let end = CopyEndBody {
                last_version: replica.last_version,
                stable: replica.history.stable(),
                collected: replica.collected,
                forgotten: replica.sessions.forgotten(),
                ..CopyEndBody::default()
            };
            assert!(CopyEntry::End(end).push(&mut payload), "an empty piece has room");
            self.stage = Stage::Done;
        }
        (!payload.is_empty()).then_some(payload)
    }

    /// The learner has kept a piece.
    pub(crate) fn handle_copied(&mut self, now: Instant, header: &Header) {
        let RunPart { run, number } = RunPart::of(header);
        if run != self.run {
            return;
        }
        if let Some(piece) = self.in_flight.remove(&number)
            && piece.resends == 0
        {
            self.rtt.sample(now.since(piece.sent_at), self.in_flight.len() + 1);
        }
    }

    pub(crate) fn progress<E: Engine<Cursor = C>>(
        &self,
        engine: &E,
        replica: &Replica,
    ) -> CopyProgress {
        let permille = match &self.stage {
            Stage::Records(cursor) => engine.walked(&replica.member.area(), cursor).min(999),
            Stage::Done if self.in_flight.is_empty() => 1_000,
            Stage::Sessions(_)
            | Stage::Ended(_)
            | Stage::Registrations(_)
            | Stage::Delegations(_)
            | Stage::End
            | Stage::Done => 999,
        };
        CopyProgress {
            partition: replica.member.id(),
            epoch: self.epoch,
            permille,
            bytes: self.bytes,
        }
    }
}

/// Adds the sessions that come next to a piece; says whether they were the last.
fn push_sessions(
    mutant: MaybeMutant,
    replica: &Replica,
    after: &mut (u64, u64),
    payload: &mut Vec<u8>,
) -> bool {
    let drops = mutant.is(Mutant::DropSessions);
    let left = replica.sessions.after(*after).take_while(|_| !drops);
    for (client, seq, floor, outcome) in left {
        if !CopyEntry::Session(outcome.to_copy(client, seq, floor)).push(payload) {
            return false;
        }
        *after = (client, seq);
    }
    true
}

/// The same for clients that have said goodbye.
fn push_ended(
    mutant: MaybeMutant,
    replica: &Replica,
    after: &mut u64,
    payload: &mut Vec<u8>,
) -> bool {
    let drops = mutant.is(Mutant::DropSessions);
    for (client, newest) in replica.sessions.ended.after(*after).take_while(|_| !drops) {
        if !CopyEntry::Ended(CopyEndedBody { kind: 0, client, newest }).push(payload) {
            return false;
        }
        *after = client;
    }
    true
}

/// The same for registrations.
fn push_registrations(
    mutant: MaybeMutant,
    replica: &Replica,
    after: &mut Option<Box<[u8]>>,
    payload: &mut Vec<u8>,
) -> bool {
    let drops = mutant.is(Mutant::DropRegistrations);
    let from = after.take();
    for (key, registration) in replica.registrations.after(from.as_deref()).take_while(|_| !drops) {
        if !(CopyEntry::Registration { key, generation: registration.generation }).push(payload) {
            return false;
        }
        *after = Some(key.into());
    }
    true
}

/// The same for delegations.
fn push_delegations(
    mutant: MaybeMutant,
    replica: &Replica,
    after: &mut Option<Box<[u8]>>,
    payload: &mut Vec<u8>,
) -> bool {
    let drops = mutant.is(Mutant::DropDelegationsFromCopies);
    let from = after.take();
    for (key, delegations) in replica.delegations.after(from.as_deref()).take_while(|_| !drops) {
        if !(CopyEntry::Delegations { key, delegations: &delegations.to_bytes() }).push(payload) {
            return false;
        }
        *after = Some(key.into());
    }
    true
}

fn send_piece<E: Engine>(
    ctx: &mut Context<'_, E>,
    replica: &Replica,
    part: RunPart,
    payload: &[u8],
) {
    let Some((place, learner)) = replica.member.successor() else { return };
    let Some(to) = ctx.directory.endpoint(learner, replica.member.id()) else { return };
    let mut header = replica.member.message_header(ctx, place, Op::ChainCopy);
    part.put(&mut header);
    ctx.out.push(to, |out| {
        wire::emit(out, &header, &[payload]);
    });
}

impl Replica {
    /// Whether this node is to copy what it holds to a learner. One that came back may lack some
    /// of it for good, and a learner that caught up with it would lack that without knowing. So it
    /// waits until the chain opens with it, being found to hold what the others do.
    pub(crate) fn gives(&self) -> bool {
        self.member.is_tail() && self.member.partition.has_learner && self.base.is_none()
    }
}

/// Records looked at in one go that the learner has already: a fraction of a millisecond.
const LOOKED_AT_MAX: usize = 1_024;
/// Pieces in flight: with datagrams of 1,472 bytes 47 KB, which any receive buffer holds, and at a
/// round trip of 1 ms 47 MB/s.
const WINDOW: usize = 32;
/// A piece is sent when this much may be: the most that one takes.
const PIECE_BYTES: u64 = wire::PACKET_MAX as u64;
/// What is not used of the rate is kept for so long: timers are no finer.
const BURST_MS: u64 = 20;
const BURST: Duration = Duration::from_millis(BURST_MS);
/// How often to look whether the budget allows more.
const PACE: Duration = Duration::from_millis(1);
/// As for chain writes: below that a learner's group commit would be raced.
const RESEND_MIN: Duration = Duration::from_millis(5);
/// Before anything is known of the learner.
const RESEND_FIRST: Duration = Duration::from_millis(50);
/// A learner that is down is asked this often at least, until the controller gives it up.
const RESEND_MAX: Duration = Duration::from_secs(1);
