//! What was pending at a member that came back to find that its chain had been open without it.
//!
//! The versions of such writes may have been given to others since. So they are set aside: neither
//! pending nor forgotten, until the chain opens. Whoever is in it then holds the same, so none of
//! those versions was given to a write that counts. The head goes on with what it has set aside,
//! and the others forget theirs. If it is alone, it commits that at once: whoever is copied to is
//! sent the outcome.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::notes::{aside_name, pending_name};
use crate::shard::context::Context;

impl Replica {
    /// Sets aside all that is pending.
    pub(crate) fn set_aside<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        for version in self.pending.versions() {
            let Some(pending) = self.unpend(ctx, version) else { continue };
            let mut note = Vec::new();
            pending.write().emit(&mut note);
            ctx.engine.note(self.member.id(), &aside_name(version), Some(&note));
            self.aside.insert(version, note.into());
        }
    }

    /// Ends that as the chain opens, before the new epoch begins.
    pub(crate) fn settle_aside<E: Engine>(&mut self, ctx: &mut Context<'_, E>) {
        let aside = std::mem::take(&mut self.aside);
        if aside.is_empty() {
            return;
        }
        let (id, goes_on) = (self.member.id(), self.member.is_head());
        for (version, note) in aside {
            ctx.engine.note(id, &aside_name(version), None);
            let is_taken = goes_on && !self.knows(version);
            if is_taken && self.remember_pending(ctx.now, &note, ctx.timers).is_some() {
                ctx.engine.note(id, &pending_name(version), Some(&note));
            }
        }
        // Reads wait for nobody who is only copied to.
        if goes_on && self.member.is_tail() {
            for version in self.pending.versions() {
                self.commit_pending(ctx, version);
            }
        }
    }
}
