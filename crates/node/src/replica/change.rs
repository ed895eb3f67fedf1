//! What a replica does when its chain changes: resend, settle, and say so.
//!
//! Every change is close, settle, open (protocol.md section 6), and each step a new epoch. Whatever
//! was pending goes down the chain of the new epoch; in a closed one nothing is added, so that in
//! the end all members hold the same.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::history::History;
use crate::replica::notes::is_of_values;
use crate::shard::context::Context;
use crate::shard::replica_records::ReplicaRecord;
use crate::shard::room::Behind;
use cluster::{Mutant, Partition, Settled};
use std::ops::ControlFlow;
use wire::{ChainStable, ChainStableBody, DropReason, Op, Version};

impl Replica {
    /// Takes its place in another epoch.
    pub(crate) fn adopt<E: Engine>(&mut self, ctx: &mut Context<'_, E>, partition: Partition) {
        if partition.epoch == self.member.epoch() {
            return;
        }
        self.member.take_place(partition, ctx.directory.me);
        if self.caught_up && self.is_to_resume() {
            self.begin_again(ctx);
        }
        self.enter(ctx);
    }

    /// Takes its place for the first time in this incarnation, with what is on record of an earlier
    /// one.
    pub(crate) fn come_back<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        replica_record: &ReplicaRecord,
    ) {
        self.base = replica_record.base.or(self.caught_up.then(|| self.history.stable()));
        if !self.member.is_learner() {
            // It is a member, and the store is from when it was being copied to.
            self.base = self.base.or(Some(Version::NONE));
        }
        // Who had begun again may not have come to the end of forgetting.
        if self.is_to_resume() {
            self.begin_again(ctx);
        } else if replica_record.epoch < self.member.partition.opened {
            // It was open without this node.
            self.set_aside(ctx);
        }
    }

    /// Whether this member, having come back with less than the others hold, is to be copied what
    /// it lacks.
    fn is_to_resume(&self) -> bool {
        self.member.is_learner() && self.base.is_some() && self.member.partition.resumes.is_some()
    }

    /// Keeps the values that are here, with the parts that still go, and forgets everything else:
    /// it is copied again, and so are the versions above the base.
    fn begin_again<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for version in self.pending.versions() {
            self.unpend(ctx, version);
        }
        let Self { member, base, last_version, collected, digest, uploads, .. } = self;
        let partition = std::mem::take(&mut member.partition);
        let mut fresh = Self::new(partition, ctx.directory.me, member.ordered, false);
        // The end of the copy says what these were.
        fresh.history = History::up_to(base.unwrap_or(Version::NONE), 0);
        (fresh.last_version, fresh.collected) = (*last_version, *collected);
        (fresh.digest, fresh.base) = (*digest, *base);
        fresh.uploads = std::mem::take(uploads);
        fresh.begin_survey();
        fresh.stale_notes = Some(Vec::new());
        *self = fresh;
        self.note_counters(ctx.engine);
        self.forget_notes(ctx);
    }

    /// Whether notes are left of the time before it began again. Until they are gone it takes
    /// nothing from others, for what it would note of that might have the same name.
    pub(crate) fn is_forgetting(&self) -> bool {
        self.stale_notes.is_some()
    }

    /// Forgets a bounded number of those notes.
    pub(crate) fn forget_notes<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let Some(from) = self.stale_notes.take() else { return };
        let most = ctx.turn.most_for(FORGOTTEN_AT_ONCE);
        let mut seen: Vec<Vec<u8>> = Vec::new();
        ctx.engine.notes_from(self.member.id(), &from, |name, _| {
            seen.push(name.to_vec());
            if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        ctx.turn.spend(seen.len());
        for name in seen.iter().filter(|name| !is_of_values(name)) {
            ctx.engine.note(self.member.id(), name, None);
        }
        let next = seen.pop().map(|name| [&name[..], &[0]].concat());
        self.stale_notes = next.filter(|_| seen.len() + 1 >= most);
    }

    /// What it holds, once it has settled.
    pub(crate) fn as_settled(&self) -> Settled {
        Settled {
            partition: self.member.id(),
            epoch: self.member.epoch(),
            newest: self.last_version,
            history: self.history.sum(),
            digest: self.digest.map(|digest| digest.0),
            collected: self.collected,
            base: self.base,
            writes: self.history.writes(),
            delegated: self.delegations.any_present(),
        }
    }

    /// Begins an epoch: everything pending is news to the successor, and committed if there is
    /// none.
    pub(crate) fn enter<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        self.settled = false;
        self.behind = Behind::default();
        if !self.member.is_learner() {
            self.caught_up = true;
            // Only those that hold the same are in an open chain.
            self.base = self.base.filter(|_| !self.member.partition.open);
        }
        let (propagations, tail) = self.as_tail();
        propagations.enter(ctx, &tail);
        self.recalls.clear();
        self.loans.reset();
        if self.member.partition.open {
            if !self.member.is_learner() {
                self.history.begin_count(self.member.is_head());
            }
            self.settle_aside(ctx);
        }
        self.pending.let_all_go();
        self.told.clear();
        self.begin_union();
        for version in self.pending.versions() {
            if self.member.is_last() && self.member.is_head() && !ctx.mutant.is(Mutant::DropPending)
            {
                self.commit_ready(ctx);
                break;
            }
            if ctx.mutant.is(Mutant::DropPending) {
                self.unpend(ctx, version);
            } else if self.member.is_last() && !self.unites() {
                self.commit_pending(ctx, version);
            } else {
                self.resend_from_start(ctx, version);
            }
        }
        self.settle_stable(ctx);
        self.announcements_left = ANNOUNCEMENTS;
        self.settle(ctx);
        self.say_offered(ctx);
    }

    fn resend_from_start<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let (id, due) = (self.member.id(), ctx.now + self.acknowledge_rtt.timeout(0));
        let Some(pending) = self.pending.get_mut(version) else { return };
        ctx.timers.remove(&(pending.due, id, version));
        ctx.timers.insert((due, id, version));
        (pending.acknowledged, pending.asked_too_soon, pending.resends) = (false, false, 0);
        pending.went_early = false;
        pending.set_unsynced(0);
        (pending.sent_at, pending.due) = (ctx.now, due);
        self.send_on(ctx, version);
    }

    /// A closed head with nothing pending has settled once all others have nothing to offer, and so
    /// has, once it hears that, everybody.
    pub(crate) fn settle<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let closed_head = self.member.is_head() && !self.member.partition.open;
        if closed_head && self.pending.is_empty() && self.is_united(ctx) {
            self.settled = true;
            self.announce(ctx);
        }
    }

    /// The head says how far the partition is stable.
    pub(crate) fn handle_stable<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        stable: Version,
        (history, writes): (u64, u64),
    ) -> Result<(), DropReason> {
        // Who has never seen that version cannot tell which of those below it are here. It came
        // back with less than it had, and is compared with the others before the chain opens; or it
        // is a learner, and is told by the end of its copy; or somebody else has said this.
        if stable <= self.last_version || ctx.mutant.is(Mutant::BelieveNumbers) {
            self.raise_stable(stable);
        }
        if !self.member.partition.open && self.pending.is_empty() {
            self.settled = true;
            if self.member.is_learner() && self.caught_up && self.base.is_none() {
                // It has not seen all that was committed before it came. (One that came back since
                // may lack more than that.)
                self.history.adopt(stable, history);
            }
        }
        self.history.hear_count(stable, history, writes);
        self.note_counters(ctx.engine);
        Ok(())
    }

    /// Time has passed: says again what nobody acknowledges, and ends idle sessions.
    pub(crate) fn handle_quiet<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if self.member.is_head() && self.member.partition.open && self.pending.is_empty() {
            if self.announcements_left > 0 {
                self.announcements_left -= 1;
                self.announce(ctx);
            }
        } else {
            self.settle(ctx);
            // Its head tells that all has settled by the newest version. Another word for that was
            // somebody else's.
            if !self.settled || self.history.stable() < self.last_version {
                self.say_offered(ctx);
            }
        }
        let (sessions, writes) = self.sessions();
        sessions.end_silent(ctx, &writes);
        self.forget_agreed(ctx);
    }

    /// Notes that a version is committed here; at the head also how far that makes it stable.
    pub(crate) fn note_committed<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        self.history.commit(version);
        self.last_version = self.last_version.max(version);
        self.settle_stable(ctx);
        self.history.keep(ctx.engine, self.member.partition.id, version);
    }

    /// The head knows from its pending writes how far the partition is stable, unless others may
    /// have some that it does not know of.
    pub(crate) fn settle_stable<E>(&mut self, ctx: &Context<'_, E>) {
        if self.member.is_head() && self.is_united(ctx) {
            let oldest = self.pending.oldest();
            let stable = oldest.map_or(self.last_version, Version::before);
            self.raise_stable(stable);
        }
    }

    /// Every version up to `stable` is committed on every member. What is set aside here does not
    /// count.
    pub(crate) fn raise_stable(&mut self, stable: Version) {
        let aside = self.aside.keys().next().map(|first| first.before());
        let stable = aside.map_or(stable, |known| known.min(stable));
        if self.history.raise(stable) {
            self.announcements_left = ANNOUNCEMENTS;
        }
    }

    fn announce<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        self.note_counters(ctx.engine);
        let members = self.member.partition.chain.clone();
        let sum = ChainStableBody { history: self.history.sum() }.to_bytes();
        for (place, member) in members.iter().enumerate().skip(1) {
            let mut header = self.member.message_header(ctx, place, Op::ChainStable);
            let writes = self.history.summed_writes().unwrap_or_default();
            ChainStable { version: self.history.stable(), writes }.put(&mut header);
            self.send_to(ctx, *member, &header, &sum);
        }
    }
}

/// Notes forgotten at once: half a millisecond with the durable engine.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// CHAIN_STABLE is not acknowledged: while the partition is open it is said a few times, and the
/// next write says it again.
const ANNOUNCEMENTS: u8 = 3;
