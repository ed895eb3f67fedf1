//! What a replica does when its chain changes: resend, settle, and say so.
//!
//! Every change is close, settle, open (protocol.md section 6), and each step a new epoch. Whatever
//! was pending goes down the chain of the new epoch; in a closed one nothing is added, so that in
//! the end all members hold the same.

use crate::engine::Engine;
use crate::notes::session_name;
use crate::replica::{Context, Replica};
use cluster::{Partition, Plant};
use wire::{DropReason, Op};

impl Replica {
    /// Takes its place in another epoch.
    pub(crate) fn adopt<E: Engine>(&mut self, ctx: &mut Context<'_, E>, partition: Partition) {
        if partition.epoch == self.epoch() {
            return;
        }
        self.take_place(partition, ctx.directory.me);
        self.enter(ctx);
    }

    /// Begins an epoch: everything pending is news to the successor, and committed if there is
    /// none.
    pub(crate) fn enter<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        self.settled = false;
        if !self.is_joiner() {
            self.whole = true;
        }
        self.enter_spreads(ctx);
        self.homecomings.clear();
        self.kept_back.clear();
        let versions: Vec<u64> = self.pending.keys().copied().collect();
        for version in versions {
            if self.is_last() && self.is_head() && ctx.plant != Some(Plant::DropPending) {
                self.commit_ready(ctx);
                break;
            }
            if ctx.plant == Some(Plant::DropPending) {
                self.unpend(ctx, version);
            } else if self.is_last() {
                self.commit_pending(ctx, version);
            } else {
                self.resend_from_start(ctx, version);
            }
        }
        self.settle_stable();
        self.announcements_left = ANNOUNCEMENTS;
        self.settle(ctx);
    }

    fn resend_from_start<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: u64) {
        let (id, due) = (self.id(), ctx.now + self.acknowledge_rtt.timeout(0));
        let Some(pending) = self.pending.get_mut(&version) else { return };
        ctx.timers.remove(&(pending.due, id, version));
        ctx.timers.insert((due, id, version));
        (pending.acknowledged, pending.asked_too_soon, pending.resends) = (false, false, 0);
        (pending.sent_at, pending.due) = (ctx.now, due);
        self.send_on(ctx, version);
    }

    /// A closed head with nothing pending has settled, and so has, once it hears that, everybody.
    pub(crate) fn settle<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if self.is_head() && !self.partition.open && self.pending.is_empty() {
            self.settled = true;
            self.announce(ctx);
        }
    }

    /// The head says how far the partition is stable.
    pub(crate) fn handle_stable<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        stable: u64,
    ) -> Result<(), DropReason> {
        // More than it has seen is for the copy to tell a joiner.
        let believes = ctx.plant == Some(Plant::BelieveNumbers);
        self.raise_stable(if believes { stable } else { stable.min(self.last_version) });
        self.note_counters(ctx.engine);
        if !self.partition.open && self.pending.is_empty() {
            self.settled = true;
        }
        Ok(())
    }

    /// Time has passed: says again what nobody acknowledges, and ends idle sessions.
    pub(crate) fn handle_quiet<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        if self.is_head() && self.partition.open && self.pending.is_empty() {
            if self.announcements_left > 0 {
                self.announcements_left -= 1;
                self.announce(ctx);
            }
        } else {
            self.settle(ctx);
        }
        for (client, seq) in self.sessions.end_idle(ctx.now) {
            ctx.engine.note(self.id(), &session_name(client, seq), None);
        }
        self.forget_unmarked(ctx);
        self.forget_trips(ctx);
        self.tell_ends(ctx);
    }

    fn announce<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        self.note_counters(ctx.engine);
        let members = self.partition.chain.clone();
        for (place, member) in members.iter().enumerate().skip(1) {
            self.tell(ctx, *member, place, Op::ChainStable, self.stable);
        }
    }
}

/// CHAIN_STABLE is not acknowledged: while the partition is open it is said a few times, and the
/// next write says it again.
pub(crate) const ANNOUNCEMENTS: u8 = 3;
