//! The learner: takes what the tail copies to it (`copy`).

use crate::engine::{Engine, Record};
use crate::hot::delegation::records::Delegations;
use crate::replica::Replica;
use crate::replica::member::place;
use crate::replica::sessions::outcome::Outcome;
use crate::shard::context::Context;
use cluster::{Match, Mutant};
use wire::{CopyEntries, CopyEntry, CopySessionBody, DropReason, Header, Op, RunPart, Version};

impl Replica {
    /// The learner takes a piece.
    pub(crate) fn handle_copy<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        entries: &CopyEntries<'_>,
    ) -> Result<(), DropReason> {
        if !self.caught_up && ctx.refuses_copies() {
            return Err(DropReason::NoRoom);
        }
        if !self.caught_up {
            for entry in entries.iter() {
                self.take_copied(ctx, &entry)?;
            }
            self.note_counters(ctx.engine);
            if ctx.mutant.is(Mutant::CaughtUpTooSoon) {
                self.caught_up = true;
            }
        }
        let Some(tail) = self.member.predecessor() else { return Err(DropReason::NotFromMember) };
        let Some(to) = ctx.directory.endpoint(tail, self.member.id()) else { return Ok(()) };
        let place = self.member.position() - 1;
        let mut kept = self.member.message_header(ctx, place, Op::ChainCopied);
        RunPart::of(header).put(&mut kept);
        ctx.out.push(to, |out| {
            wire::emit(out, &kept, &[]);
        });
        Ok(())
    }

    fn take_copied<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        entry: &CopyEntry<'_>,
    ) -> Result<(), DropReason> {
        match *entry {
            CopyEntry::Record { key, version, expiry_ms, tombstone, value } => {
                let record = Record { version, expiry_ms, tombstone, value };
                self.take_record(ctx, key, &record)?;
            }
            CopyEntry::Session(session) => {
                let outcome = Outcome::from_copy(&session).ok_or(DropReason::BadBody)?;
                let CopySessionBody { client, seq, floor, .. } = session;
                if !self.sessions.knows(client, seq) {
                    let (sessions, writes) = self.sessions();
                    sessions.keep_outcome(
                        ctx,
                        &writes,
                        (client, seq),
                        floor,
                        outcome.version,
                        outcome,
                    );
                }
            }
            CopyEntry::Ended(ended) => {
                let (sessions, writes) = self.sessions();
                sessions.take_ended(ctx, &writes, &ended);
            }
            CopyEntry::Registration { key, generation } => {
                let at = self.place_copied(ctx, key)?;
                self.take_registration(ctx, &at, key, generation);
            }
            CopyEntry::Delegations { key, delegations } => {
                self.place_copied(ctx, key)?;
                let delegations = Delegations::from_bytes(Version::NONE, delegations)
                    .ok_or(DropReason::BadBody)?;
                self.take_delegations(ctx, key, delegations);
            }
            CopyEntry::End(end) => {
                self.last_version = self.last_version.max(end.last_version);
                self.collected = self.collected.max(end.collected);
                self.raise_stable(end.stable);
                let (sessions, writes) = self.sessions();
                sessions.take_forgotten(ctx, &writes, &end);
                (self.caught_up, self.base) = (true, None);
                // The head says what the history of a member is.
                self.settled = false;
            }
        }
        Ok(())
    }

    fn take_record<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        record: &Record<'_>,
    ) -> Result<(), DropReason> {
        let at = self.place_copied(ctx, key)?;
        let at = self.member.key_ref(&at, key);
        let have = ctx.engine.version_written(&at);
        let overwrites = ctx.mutant.is(Mutant::CopyOverwrites);
        if overwrites || have.is_none_or(|have| have < record.version) {
            self.write_state(ctx, &at, record);
            if !record.tombstone {
                self.see_copied_part(ctx, &at, record);
            }
        }
        Ok(())
    }

    /// Match value and keyhash of a key that was copied, if it belongs here.
    fn place_copied<E>(&self, ctx: &Context<'_, E>, key: &[u8]) -> Result<Header, DropReason> {
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let keyspace = keyspace.ok_or(DropReason::NoKeyspace)?;
        let at = place(keyspace, key);
        self.member.partition.holds(Match(at.match_value)).then_some(at).ok_or(DropReason::BadBody)
    }
}
