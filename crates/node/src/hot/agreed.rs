//! What members of a chain agree on about hot keys, as it is committed: registrations, delegations.

use crate::engine::{Engine, Record};
use crate::hot::delegation::records::{Delegations, span_left};
use crate::hot::propagation::{Propagations, Tail};
use crate::replica::Replica;
use crate::replica::write::Write;
use crate::shard::context::Context;
use wire::{DelegateBody, Generation, Header, RecallBody, Version};

impl Replica {
    /// Whether the key is registered, or about to be as far as the head knows.
    pub(crate) fn is_hot(&self, key: &[u8]) -> bool {
        self.registrations.get(key).is_some() || self.pending.registration(key).is_some()
    }

    /// What is said to be the version of a key without a record.
    pub(crate) fn absent_version(&self, key: &[u8]) -> Version {
        self.tail().absent_version(key)
    }

    fn tail(&self) -> Tail<'_> {
        let Self { member, registrations, delegations, collected, .. } = self;
        Tail { member, registrations, delegations, collected: *collected }
    }

    /// What it does as the tail of hot keys, and what it goes by.
    pub(crate) fn as_tail(&mut self) -> (&mut Propagations, Tail<'_>) {
        let Self { member, registrations, delegations, collected, propagations, .. } = self;
        (propagations, Tail { member, registrations, delegations, collected: *collected })
    }

    fn propagate_or_stop<E: Engine>(&mut self, ctx: &mut Context<'_, E>, key: &[u8]) {
        let (propagations, tail) = self.as_tail();
        propagations.propagate_or_stop(ctx, &tail, key);
    }

    pub(crate) fn commit_registration<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
    ) {
        if self.registrations.commit(ctx, self.member.id(), write) {
            self.propagate_or_stop(ctx, write.key);
        }
    }

    /// The key has left: its home leaves a span of versions to the delegation.
    pub(crate) fn commit_delegate<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
    ) {
        let Some(body) = DelegateBody::split(write.value) else { return };
        self.last_version =
            self.last_version.max(write.version().saturating_add(span_left(ctx.mutant)));
        if self.delegations.commit_delegate(ctx, self.member.id(), write, body) {
            self.propagate_or_stop(ctx, write.key);
        }
    }

    /// The key is home again: what was newest under the delegation is its state, under the version
    /// that it was given there.
    pub(crate) fn commit_recall<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let Some((fixed, value)) = RecallBody::split(write.value) else { return };
        let newest = fixed.newest;
        if !self.delegations.commit_recall(ctx, self.member.id(), write, fixed) {
            return;
        }
        // Not `is_superseded`: the floor of collected tombstones says nothing of these versions.
        let at = self.member.key_ref(&write.header, write.key);
        let known = ctx.engine.read(&at, |record| record.map_or(Version::NONE, |r| r.version));
        if known < newest {
            let record = Record { version: newest, expiry_ms: 0, tombstone: false, value };
            self.write_state(ctx, &at, &record);
        }
        self.propagate_or_stop(ctx, write.key);
    }

    /// A learner is copied a registration.
    pub(crate) fn take_registration<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        generation: Generation,
    ) {
        if self.registrations.take_copied(ctx, self.member.id(), (at, key), generation) {
            self.propagate_or_stop(ctx, key);
        }
    }

    /// A learner is copied the delegations of a key.
    pub(crate) fn take_delegations<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        key: &[u8],
        delegations: Delegations,
    ) {
        self.delegations.take_copied(ctx, self.member.id(), key, delegations);
        self.propagate_or_stop(ctx, key);
    }

    /// Forgets what was agreed and is over. A learner that has not caught up may still be copied an
    /// older state of the same key.
    pub(crate) fn forget_agreed<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let (id, stable) = (self.member.id(), self.history.stable());
        if self.caught_up {
            self.registrations.end_unregistered(ctx, id, stable);
            self.delegations.end_over(ctx, id, stable);
        }
        self.recalls.tell_ends(ctx, &self.member, &self.delegations);
    }
}
