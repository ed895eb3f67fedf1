//! What a replica is made of when its partition is made of others: those had settled, so that all
//! members hold the same of them, and each makes what it needs of that by itself.
//!
//! The children of one partition share all that its clients may ask for again: a retry may come to
//! either. What belongs to a key goes with the key. Versions go on above those of all parents.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::notes::{
    FORGOTTEN_NAME, aside_name, delegations_name, ended_name, registration_name, replaced_name,
    session_name,
};
use crate::replica::write::Write;
use crate::shard::context::Context;
use cluster::{Keyspace, Match, Mutant, Partition};
use wire::{Body, Header, Packet, PartKey, Version};

impl Replica {
    /// The replica of a partition that was made of these.
    pub(crate) fn made_of<E: Engine>(
        ctx: &mut Context<'_, E>,
        partition: Partition,
        parents: &[&Self],
    ) -> Option<Self> {
        let keyspace = ctx.directory.keyspace(partition.keyspace)?;
        let mut made = Self::new(partition, ctx.directory.me, keyspace.is_ordered(), true);
        for parent in parents {
            made.inherit(ctx, keyspace, parent);
        }
        made.begin_survey();
        made.note_all(ctx);
        Some(made)
    }

    /// Takes what concerns it of a parent.
    fn inherit<E: Engine>(&mut self, ctx: &Context<'_, E>, keyspace: &Keyspace, parent: &Self) {
        let (first, last) = (self.member.partition.first, self.member.partition.last);
        let holds = |at: Match| first <= at && at <= last;
        let is_mine = |key: &[u8]| holds(keyspace.match_value(key));
        if !ctx.mutant.is(Mutant::SplitCountAnew) {
            self.last_version = self.last_version.max(parent.last_version);
            self.history.unite(&parent.history);
        }
        self.collected = self.collected.max(parent.collected);
        // Of both every version up to the lower one is here.
        self.base = [self.base, parent.base].into_iter().flatten().min();
        self.digest = None;
        let is_first = first == parent.member.partition.first;
        if is_first || !ctx.mutant.is(Mutant::SessionsToOneChild) {
            self.sessions.unite(&parent.sessions);
        }
        for (key, registration) in parent.registrations.all() {
            if holds(registration.match_value) {
                self.registrations.change(key, *registration);
            }
        }
        for (key, delegations) in parent.delegations.iter().filter(|(key, _)| is_mine(key)) {
            self.delegations.restore(key, delegations.clone());
        }
        for upload in parent.uploads.all_replaced() {
            if PartKey::parse(upload).is_some_and(|part| is_mine(part.key)) {
                self.uploads.go_on_dropping(upload);
            }
        }
        let pending = parent.pending.versions().into_iter().filter_map(|version| {
            let mut note = Vec::new();
            parent.pending.get(version)?.write().emit(&mut note);
            Some((version, note.into()))
        });
        let aside = parent.aside.iter().map(|(version, note)| (*version, note.clone()));
        self.aside.extend(aside.chain(pending).filter(|(_, note)| is_about(note, is_mine)));
    }

    /// Keeps all of it on record.
    fn note_all<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let id = self.member.id();
        let engine = &mut *ctx.engine;
        for (client, seq, floor, outcome) in self.sessions.after((0, 0)) {
            engine.note(id, &session_name(client, seq), Some(&outcome.to_note(floor)));
        }
        for (client, newest) in self.sessions.ended.after(0) {
            engine.note(id, &ended_name(client), Some(&newest.get().to_be_bytes()));
        }
        let forgotten = self.sessions.forgotten();
        if forgotten > Version::NONE {
            engine.note(id, FORGOTTEN_NAME, Some(&forgotten.get().to_be_bytes()));
        }
        for (key, registration) in self.registrations.all() {
            engine.note(id, &registration_name(key), Some(&registration.to_note()));
        }
        for (key, delegations) in self.delegations.iter() {
            engine.note(id, &delegations_name(key), Some(&delegations.to_note()));
        }
        for upload in self.uploads.all_replaced() {
            engine.note(id, &replaced_name(upload), Some(&[]));
        }
        for (version, note) in &self.aside {
            engine.note(id, &aside_name(*version), Some(note));
        }
        self.history.keep_all(engine, id);
        self.note_counters(engine);
    }
}

/// Whether a write, as it is on record, is about such keys alone.
fn is_about(note: &[u8], is_mine: impl Fn(&[u8]) -> bool) -> bool {
    let Ok(packet) = Packet::parse(note) else { return false };
    let Ok(Body::ChainWrite { fixed, key, value }) = packet.body() else { return false };
    let write = Write { header: Header::read(packet.header()), fixed, key, value };
    write.keys().all(is_mine)
}
