//! The chain: writes travel down, the last member commits, commits travel back up.
//!
//! ```text
//!   client ── write ──▶ head ── CHAIN_WRITE ──▶ middle ── CHAIN_WRITE ──▶ tail ── reply ──▶ client
//!                       head ◀── CHAIN_ACK ──── middle ◀── CHAIN_COMMIT ── tail
//!                       head ◀── CHAIN_COMMIT ─ middle
//! ```
//!
//! Every hop may be lost, doubled or reordered. A member sends a write again until its successor
//! has recorded it, and then, more slowly, until the successor says that it is committed.

use crate::engine::{Engine, KeyRef, Record};
use crate::replica::Replica;
use crate::replica::write::{Write, changes_registration};
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::{Match, Mutant, NodeId};
use machine::Instant;
use std::collections::BTreeSet;
use wire::{
    Body, ChainAnswer, ChainStable, DropReason, Effect, Endpoint, Header, Op, PartKey, Version,
};

impl Replica {
    /// Takes a message of another member. The caller has found the replica by the partition id.
    pub(crate) fn handle_chain<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        from: Endpoint,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        if header.epoch != self.member.epoch().0 && !ctx.mutant.is(Mutant::IgnoreEpoch) {
            return Err(DropReason::StaleEpoch);
        }
        let sender = self.sender_of(header, body);
        let sender = sender.and_then(|id| ctx.directory.endpoint(id, self.member.id()));
        if sender != Some(from) {
            return Err(DropReason::NotFromMember);
        }
        if self.is_forgetting() {
            return Err(DropReason::NotServing);
        }
        if !ctx.mutant.is(Mutant::BelieveNumbers) {
            self.check_numbers(ctx.now, header, body)?;
        }
        match *body {
            Body::ChainWrite { fixed, key, value } => {
                let write = Write { header: *header, fixed, key, value };
                self.handle_chain_write(ctx, &write)
            }
            Body::ChainAck => {
                let ChainAnswer { version, room } = ChainAnswer::of(header);
                self.behind.hear(ctx.now, room);
                self.handle_ack(ctx, version);
                Ok(())
            }
            Body::ChainCommit if self.is_from_uniting_head(header) => {
                self.commit_line(ctx, ChainAnswer::of(header).version);
                self.settle(ctx);
                self.say_offered(ctx);
                Ok(())
            }
            Body::ChainCommit => {
                let ChainAnswer { version, room } = ChainAnswer::of(header);
                self.behind.hear(ctx.now, room);
                self.handle_commit(ctx, version);
                Ok(())
            }
            Body::ChainDurable(ref versions) => self.handle_durable(ctx, header, versions),
            Body::ChainOffer { fixed, key, value } => {
                self.handle_offer(ctx, &Write { header: *header, fixed, key, value })
            }
            Body::ChainOffered => {
                self.handle_offered(ctx, header);
                Ok(())
            }
            Body::ChainExpire { key } => {
                self.handle_expire(ctx, header, key);
                Ok(())
            }
            Body::ChainVerify { ref fixed, key } => self.handle_verify(ctx, header, fixed, key),
            // The node that compares goes on with it.
            Body::ChainVerified { .. } => Ok(()),
            Body::ChainMend { ref fixed, key, value } => self.handle_mend(ctx, fixed, key, value),
            Body::ChainGoodbye => self.take_goodbye(ctx, header.client),
            Body::ChainCopied => Ok(()), // The node that gives the copy goes on with it.
            Body::ChainCopy(entries) => self.handle_copy(ctx, header, &entries),
            Body::ChainStable { history } => {
                let ChainStable { version, writes } = ChainStable::of(header);
                self.handle_stable(ctx, version, (history, writes))
            }
            _ => Err(DropReason::NotFromMember),
        }
    }

    /// The member that a message like this one comes from.
    fn sender_of(&self, header: &Header, body: &Body<'_>) -> Option<NodeId> {
        match body {
            Body::ChainWrite { .. } => self.member.predecessor(),
            Body::ChainCopy(_) if self.member.is_learner() => self.member.partition.tail(),
            Body::ChainCommit if self.is_from_uniting_head(header) => self.member.partition.head(),
            Body::ChainDurable(_) if self.member.is_last() => self.node_named(header.node),
            Body::ChainOffer { .. } | Body::ChainOffered if self.member.is_head() => {
                self.node_named(header.node)
            }
            Body::ChainAck | Body::ChainCommit | Body::ChainCopied => {
                self.member.successor().map(|(_, id)| id)
            }
            Body::ChainVerify { .. } => self.member.partition.tail(),
            Body::ChainVerified { .. } if self.member.is_tail() => {
                self.member.member_named(header.node)
            }
            Body::ChainMend { .. } => self.member.member_named(header.node),
            Body::ChainStable { .. } | Body::ChainGoodbye if !self.member.is_head() => {
                self.member.partition.head()
            }
            Body::ChainExpire { key } if self.member.is_head() && PartKey::parse(key).is_some() => {
                self.node_named(header.node)
            }
            Body::ChainExpire { .. } if self.member.is_head() => self.member.partition.tail(),
            _ => None,
        }
    }

    /// Somebody of the chain.
    fn node_named(&self, id: u16) -> Option<NodeId> {
        self.place_of_node(id).map(|_| NodeId(id))
    }

    /// Whether a message is from the head, to which this member offers what is pending here.
    fn is_from_uniting_head(&self, header: &Header) -> bool {
        let head = self.member.partition.head();
        self.unites() && !self.member.is_head() && head == Some(NodeId(header.node))
    }

    fn handle_chain_write<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
    ) -> Result<(), DropReason> {
        let stamped = (0..self.member.partition.chain.len()).map(|i| chain_id(&write.header, i));
        let mine = usize::from(write.header.chain_len) == self.member.partition.chain.len()
            && usize::from(write.header.chain_pos) == self.member.position()
            && stamped.eq(self.member.partition.chain.iter().copied());
        if !mine && !ctx.mutant.is(Mutant::IgnoreEpoch) {
            return Err(DropReason::BadChain);
        }
        if !write.makes_sense() {
            return Err(DropReason::BadBody);
        }
        let version = write.version();
        if self.is_committed(version) {
            self.tell_predecessor(ctx, Op::ChainCommit, write.version());
            return Ok(());
        }
        self.raise_stable(write.fixed.stable);
        let mine = self.own_bit();
        if let Some(pending) = self.pending.get_mut(version) {
            pending.see_synced(!(write.unsynced() | mine));
            self.tell_predecessor(ctx, Op::ChainAck, version);
            if self.see_come_down(ctx, version) {
                self.send_on(ctx, version);
            }
            self.commit_if_durable(ctx, version);
            return Ok(());
        }
        // Who came back may lack them for good: it is compared with the others before they open.
        // A learner may for as long as the chain is closed: it is copied everything once it opens.
        let may_lack_them = self.base.is_some() || !self.caught_up;
        let lacks_them = self.unites() && may_lack_them && write.is_based();
        if !lacks_them && !self.knows_bases(ctx, write) {
            return Err(DropReason::OutOfOrder);
        }
        if ctx.refuses_writes() {
            return Err(DropReason::NoRoom);
        }
        let unsynced = write.unsynced() & !self.told.take(version);
        // A write of a line waits for its base, which commits with it.
        let waits =
            unsynced != 0 || self.pending.has_base_of(write) || self.touches_loan(ctx, write);
        if self.member.is_last() && !waits {
            self.commit(ctx, write, Waits::Turn);
            return Ok(());
        }
        self.pend(ctx, write);
        if let Some(pending) = self.pending.get_mut(version) {
            pending.set_unsynced(unsynced);
        }
        self.tell_predecessor(ctx, Op::ChainAck, version);
        self.send_on(ctx, version);
        self.commit_if_durable(ctx, version);
        Ok(())
    }

    /// Whether the writes that this one was computed from have arrived here. After a restart the
    /// versions above `stable` that were committed are known by their records only.
    pub(crate) fn knows_bases<E: Engine>(&self, ctx: &Context<'_, E>, write: &Write<'_>) -> bool {
        let on_record = |key: &[u8], base: Version| {
            let Some(at) = self.member.place_of(ctx, key) else { return false };
            ctx.engine.version_written(&self.member.key_ref(&at, key)) == Some(base)
        };
        let ignores = ctx.mutant.is(Mutant::IgnoreBase);
        let mut of_keys = write.keys().zip(write.bases());
        ignores || of_keys.all(|(key, base)| self.knows(base) || on_record(key, base))
    }

    fn handle_ack<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let id = self.member.id();
        let known = self.pending.get_mut(version).map(|pending| {
            let before = std::mem::replace(&mut pending.acknowledged, true);
            pending.asked_too_soon |= before;
            before
        });
        if known != Some(false) {
            self.note_second_answer(version);
            return;
        }
        self.note_first_answer(ctx.now, version);
        let Some(pending) = self.pending.get_mut(version) else { return };
        ctx.timers.remove(&(pending.due, id, version));
        pending.due = ctx.now + self.commit_rtt.timeout(pending.resends);
        ctx.timers.insert((pending.due, id, version));
        let dependents = self.pending.held_up_by(version);
        self.send_held_up(ctx, dependents);
    }

    /// The successor has answered a write for the first time. If only one copy was sent (Karn's
    /// rule), that says how long it takes.
    fn note_first_answer(&mut self, now: Instant, version: Version) {
        let Some(pending) = self.pending.get(version) else { return };
        let took = now.since(pending.sent_at);
        if pending.resends == 0 {
            self.acknowledge_rtt.sample(took, self.pending.len());
        } else {
            self.twice.end(version.get(), took, pending.resends);
        }
    }

    /// It has answered another copy: none was lost, so the first answer was one to the first copy.
    /// Without this a successor that is slow for a moment would be asked so often by members that
    /// learn nothing from its answers that it stays slow.
    fn note_second_answer(&mut self, version: Version) {
        if let Some(took) = self.twice.answered(version.get()) {
            self.acknowledge_rtt.sample(took, self.pending.len());
        }
    }

    /// Sends at once what was computed from a write that the successor now has. It dropped the
    /// copies that came before their base; left to their own timers, a line of such writes would
    /// get through one by one.
    fn send_held_up<E: Engine>(&mut self, ctx: &mut Context<'_, E>, dependents: Vec<Version>) {
        for version in dependents {
            if let Some(pending) = self.pending.get_mut(version) {
                // The way is open: what it was backed off for is over.
                pending.resends = 1;
                self.send_again(ctx, version);
            }
        }
    }

    /// The successor has committed a write, and so whatever that was computed from. Commits
    /// overtake each other on the way: the bases come first here too, or the tail in front of a
    /// learner would answer from a state that it does not show yet.
    fn handle_commit<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let Some(pending) = self.pending.get(version) else {
            self.note_second_answer(version);
            return;
        };
        let took = ctx.now.since(pending.sent_at);
        if pending.resends == 0 || pending.asked_too_soon {
            self.commit_rtt.sample(took, self.pending.len());
        }
        // The last member says only this.
        if !pending.acknowledged {
            self.note_first_answer(ctx.now, version);
        }
        let dependents = self.pending.held_up_by(version);
        self.commit_line(ctx, version);
        self.send_held_up(ctx, dependents);
        self.settle(ctx);
    }

    /// Commits a pending write, and before it whatever it was computed from.
    pub(crate) fn commit_line<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let ignores = ctx.mutant.is(Mutant::IgnoreBase);
        let line = if ignores { BTreeSet::from([version]) } else { self.pending.line_of(version) };
        for next in line {
            self.commit_pending(ctx, next);
        }
    }

    /// Everybody behind this member has committed a write that is pending here.
    pub(crate) fn commit_pending<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        if let Some(pending) = self.unpend(ctx, version) {
            // After a crash it is pending on the disks of all, and is committed again.
            self.commit(ctx, &pending.write(), Waits::unless(pending.on_disk));
        }
    }

    /// Makes a write the committed state of its key, unless a newer one is, and its request id a
    /// session; then says so: the tail to the client, which may have to wait, and everyone to the
    /// predecessor, once that is durable.
    pub(crate) fn commit<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        waits: Waits,
    ) {
        let version = write.version();
        self.asked.see(ctx.now, Match(write.header.match_value));
        let backed = waits == Waits::No;
        let agrees = write.effect().is_some_and(changes_registration);
        if agrees && !backed {
            ctx.agreed_at_risk.see();
        }
        match write.effect() {
            Some(Effect::Put | Effect::Delete) => self.commit_state(ctx, write, backed),
            Some(Effect::Register | Effect::Unregister) => self.commit_registration(ctx, write),
            Some(Effect::Delegate) => self.commit_delegate(ctx, write),
            Some(Effect::Recall) => self.commit_recall(ctx, write),
            Some(Effect::Batch) => self.commit_batch(ctx, write, backed),
            Some(Effect::Abandon) => self.commit_abandon(ctx, write),
            Some(Effect::None) | None => {}
        }
        self.note_committed(ctx, version);
        self.note_counters(ctx.engine);
        if let Some(outcome) = write.outcome().filter(|_| write.header.client != 0) {
            let Header { client, seq, .. } = write.header;
            let (sessions, writes) = self.sessions();
            sessions.keep_outcome(ctx, &writes, (client, seq), write.floor(), version, outcome);
            if self.member.is_tail() {
                let (propagations, tail) = self.as_tail();
                propagations.answer_or_hold(ctx, &tail, write, &outcome, waits);
            }
        }
        // Heads wait for these before they go on with a hot key.
        let late = backed && self.goes_early() && !agrees;
        let waits = if late { Waits::Late } else { Waits::Turn };
        self.tell_predecessor_when(ctx, Op::ChainCommit, write.version(), waits);
    }

    /// Makes what a write leaves of its key the committed state, which comes back after a crash if
    /// the write is on record as pending.
    pub(crate) fn commit_state<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        write: &Write<'_>,
        backed: bool,
    ) {
        let at = self.member.key_ref(&write.header, write.key);
        let version = write.version();
        if self.is_superseded(ctx, &at, version) {
            ctx.counters.superseded += 1;
            self.pass_over(ctx, write);
            return;
        }
        let tombstone = write.effect() == Some(Effect::Delete);
        let value = if tombstone { &[] } else { write.value };
        let record = Record { version, expiry_ms: write.fixed.expiry_ms, tombstone, value };
        self.write_state(ctx, &at, &record);
        if backed {
            ctx.engine.see_backed(&at);
        }
        if tombstone && ctx.mutant.is(Mutant::CollectAtOnce) {
            ctx.engine.remove(&at);
        } else {
            self.see_part(ctx, &at, &record);
        }
        let (propagations, tail) = self.as_tail();
        propagations.propagate_state(ctx, &tail, write.key, version);
        if ctx.mutant.is(Mutant::ForgetSuperseded) {
            let older: Vec<Version> = self.pending.versions_of(write.key).to_vec();
            for version in older.into_iter().filter(|it| *it < version) {
                self.unpend(ctx, version);
            }
        }
    }

    pub(crate) fn is_superseded<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &KeyRef<'_>,
        version: Version,
    ) -> bool {
        ctx.engine.version_written(at).unwrap_or(self.collected) >= version
    }

    fn tell_predecessor<E: Engine>(&self, ctx: &mut Context<'_, E>, op: Op, version: Version) {
        self.tell_predecessor_when(ctx, op, version, Waits::Turn);
    }

    fn tell_predecessor_when<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        op: Op,
        version: Version,
        waits: Waits,
    ) {
        let Some(to) = self.member.predecessor() else { return };
        let place = self.member.position() - 1;
        let mut header = self.member.message_header(ctx, place, op);
        ChainAnswer { version, room: self.room(ctx) as u8 }.put(&mut header);
        self.send_to_when(ctx, to, (&header, &[]), waits);
    }

    /// Sends a message to a member, if this one has a lease.
    pub(crate) fn send_to<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        member: NodeId,
        header: &Header,
        payload: &[u8],
    ) {
        self.send_to_when(ctx, member, (header, payload), Waits::Turn);
    }

    /// The same, with one that waits or does not.
    pub(crate) fn send_to_when<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        member: NodeId,
        (header, payload): (&Header, &[u8]),
        waits: Waits,
    ) {
        let to = ctx.directory.endpoint(member, self.member.id()).filter(|_| ctx.leased);
        let Some(to) = to else { return };
        ctx.outbox(waits).push(to, |out| {
            wire::emit(out, header, &[payload]);
        });
    }

    /// The successor has not acknowledged a write, or not committed it, in time.
    pub(crate) fn handle_overdue<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let Some(pending) = self.pending.get_mut(version) else { return };
        pending.resends += 1;
        self.send_again(ctx, version);
    }

    fn send_again<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let id = self.member.id();
        let Some(pending) = self.pending.get_mut(version) else { return };
        let rtt = if pending.acknowledged { &self.commit_rtt } else { &self.acknowledge_rtt };
        ctx.timers.remove(&(pending.due, id, version));
        pending.due = ctx.now + rtt.timeout(pending.resends);
        ctx.timers.insert((pending.due, id, version));
        ctx.counters.resends += 1;
        if pending.went_early && pending.on_disk {
            self.tell_last(ctx, &[version]);
        }
        self.send_on(ctx, version);
    }
}

fn chain_id(header: &Header, index: usize) -> NodeId {
    let (ids, _) = header.chain.as_chunks::<2>();
    NodeId(ids.get(index).map_or(u16::MAX, |id| u16::from_be_bytes(*id)))
}
