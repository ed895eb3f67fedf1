//! Which clients a member remembers, and what a head says to one that it may have forgotten
//! (section 4 of `spec/protocol.md`, *Forgetting*).
//!
//! Room for sessions is bounded, and anybody can draw a client id, so that those heard longest ago
//! go when room is needed. What is left of them is one version: outcomes of writes up to it may be
//! forgotten. A write is taken only if an outcome of it would be known. Whoever was told a version
//! and then sent a write can prove that: its outcome is above it.

use crate::engine::Engine;
use crate::replica::notes::{FORGOTTEN_NAME, ended_name, session_name};
use crate::replica::pending::PendingWrites;
use crate::replica::sessions::ended::ENDED_PER_SESSION_MAX;
use crate::replica::sessions::outcome::Outcome;
use crate::replica::sessions::table::{Sessions, Standing};
use crate::shard::context::Context;
use crate::shard::reply::{refuse, refuse_session};
use cluster::{MaybeMutant, Mutant, PartitionId};
use wire::{Code, CopyEndBody, CopyEndedBody, Header, Op, SinceBody, Version};

/// What a member knows of the writes of its partition besides what became of them.
#[derive(Clone, Copy)]
pub(crate) struct Writes<'a> {
    pub(crate) id: PartitionId,
    pub(crate) pending: &'a PendingWrites,
    /// Every version up to this one is committed on every member.
    pub(crate) stable: Version,
    /// The newest version that it has seen.
    pub(crate) last_version: Version,
}

impl Sessions {
    /// Whether an outcome of this write, had it been taken before, would be known. If that is not
    /// certain the client is told what it can do, and this is `false`.
    pub(crate) fn admits<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        op: Op,
        request: &Header,
        since: Option<SinceBody>,
    ) -> bool {
        let Header { client, seq, .. } = *request;
        let known = self.standing(client, seq) != Standing::New
            || writes.pending.of_request(client, seq).is_some();
        if known || self.remembers(client, seq) || self.proves(writes, since) {
            return true;
        }
        if since.is_some() {
            refuse(ctx, request, op, Code::Uncertain);
        } else {
            // What was forgotten is committed everywhere: no later head begins below it.
            refuse_session(ctx, request, op, writes.stable.max(self.forgotten()));
        }
        false
    }

    /// Whether an outcome of a write that was first sent when its client knew of this version would
    /// still be known. A version that is not there yet proves nothing.
    fn proves(&self, writes: &Writes<'_>, since: Option<SinceBody>) -> bool {
        let since = since.map_or(Version::NONE, |it| it.since);
        (self.forgotten()..=writes.last_version).contains(&since)
    }

    /// A write has been dealt with that says which numbers its client had used when it was told.
    pub(crate) fn note_since(
        &mut self,
        writes: &Writes<'_>,
        request: &Header,
        since: Option<SinceBody>,
    ) {
        if let Some(since) = since.filter(|_| self.proves(writes, since)) {
            self.knows_from(request.client, since.next);
        }
    }

    /// Whether there is room for one more outcome of this client, after others were forgotten if
    /// need be.
    pub(crate) fn makes_room<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        client: u64,
    ) -> bool {
        if self.has_room(client, ctx.sessions_max) {
            return true;
        }
        if !self.is_laden(client, ctx.sessions_max) {
            self.forget_clients(ctx, writes);
        } else if !self.has(client) {
            self.expect_new_clients(ctx, writes);
        }
        self.has_room(client, ctx.sessions_max)
    }

    fn forget_clients<E: Engine>(&mut self, ctx: &mut Context<'_, E>, writes: &Writes<'_>) {
        let before = self.len();
        let pending = writes.pending;
        let busy = |client| pending.is_busy(client);
        let gone = self.forget(ctx.now, writes.stable, busy, ctx.mutant);
        let forgotten = before - self.len();
        if forgotten == 0 {
            return self.expect_new_clients(ctx, writes);
        }
        ctx.counters.sessions_forgotten += forgotten as u64;
        for (client, seq) in gone {
            ctx.engine.note(writes.id, &session_name(client, seq), None);
        }
        self.note_forgotten(ctx, writes);
    }

    /// Nobody goes for a client that is new: what it has to say when it comes again.
    fn expect_new_clients<E: Engine>(&mut self, ctx: &mut Context<'_, E>, writes: &Writes<'_>) {
        let marked = self.forgotten();
        if !ctx.mutant.is(Mutant::ForgetUnrecorded) {
            self.expect_to_forget();
        }
        if self.forgotten() != marked {
            self.note_forgotten(ctx, writes);
        }
    }

    fn note_forgotten<E: Engine>(&self, ctx: &mut Context<'_, E>, writes: &Writes<'_>) {
        if !ctx.mutant.is(Mutant::ForgetUnrecorded) {
            let note = self.forgotten().get().to_be_bytes();
            ctx.engine.note(writes.id, FORGOTTEN_NAME, Some(&note));
        }
    }

    /// Keeps the outcome of the write of this version, in memory and as a note.
    pub(crate) fn keep_outcome<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        request: (u64, u64),
        floor: u64,
        version: Version,
        outcome: Outcome,
    ) {
        let (client, seq) = request;
        if self.ended.holds(client) {
            // It was pending when its client said goodbye.
            self.note_ended(ctx, writes, client, version);
            return;
        }
        let ended = self.record(ctx.now, request, floor, version, outcome);
        let note = outcome.to_note(floor);
        ctx.engine.note(writes.id, &session_name(client, seq), Some(&note));
        for seq in ended {
            ctx.engine.note(writes.id, &session_name(client, seq), None);
        }
        // The head has made room, but each member forgets by itself.
        if self.len() > ctx.sessions_max {
            self.forget_clients(ctx, writes);
        }
    }

    /// Keeps of a client's session only that it has ended; says whether there was one.
    pub(crate) fn end_client<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        client: u64,
    ) -> bool {
        let ends = self.has(client);
        if ends && self.makes_room_for_ended(ctx, writes) {
            let ended = self.end(ctx.now, client, ctx.mutant);
            let (newest, gone) = ended.unwrap_or_default();
            for (client, seq) in gone {
                ctx.engine.note(writes.id, &session_name(client, seq), None);
            }
            if self.ended.holds(client) {
                self.note_ended(ctx, writes, client, newest);
            }
        }
        ends || self.ended.holds(client)
    }

    /// Whether there is room for one more client that has said goodbye. Who said it first is
    /// forgotten like any client.
    fn makes_room_for_ended<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
    ) -> bool {
        while self.ended.len() >= ENDED_PER_SESSION_MAX * ctx.sessions_max {
            let pending = writes.pending;
            let busy = |client| pending.is_busy(client);
            let stable = writes.stable;
            let Some(gone) = self.forget_ended(stable, busy, ctx.mutant) else {
                return false;
            };
            ctx.counters.sessions_forgotten += 1;
            ctx.engine.note(writes.id, &ended_name(gone), None);
            self.note_forgotten(ctx, writes);
        }
        true
    }

    /// Keeps on record that a client has said goodbye, and that it has a write of this version.
    fn note_ended<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        client: u64,
        version: Version,
    ) {
        let newest = self.ended.note(ctx.now, client, version);
        ctx.engine.note(writes.id, &ended_name(client), Some(&newest.get().to_be_bytes()));
    }

    /// A learner is sent a client that has said goodbye to the chain: as many as its tail holds.
    pub(crate) fn take_ended<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        ended: &CopyEndedBody,
    ) {
        let gone = self.end(ctx.now, ended.client, MaybeMutant::default());
        for (client, seq) in gone.map(|(_, gone)| gone).unwrap_or_default() {
            ctx.engine.note(writes.id, &session_name(client, seq), None);
        }
        self.note_ended(ctx, writes, ended.client, ended.newest);
    }

    /// Forgets what nobody asks about any more: nothing of it is on its way.
    pub(crate) fn end_silent<E: Engine>(&mut self, ctx: &mut Context<'_, E>, writes: &Writes<'_>) {
        for (client, seq) in self.end_idle(ctx.now) {
            ctx.engine.note(writes.id, &session_name(client, seq), None);
        }
        while let Some(client) = self.end_ended(ctx.now) {
            ctx.engine.note(writes.id, &ended_name(client), None);
        }
    }

    /// A learner has been sent everything: it lacks what the tail had forgotten.
    pub(crate) fn take_forgotten<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        writes: &Writes<'_>,
        end: &CopyEndBody,
    ) {
        self.are_up_to(end.last_version);
        self.lacks_up_to(end.forgotten);
        if end.forgotten > Version::NONE {
            self.note_forgotten(ctx, writes);
        }
    }
}
