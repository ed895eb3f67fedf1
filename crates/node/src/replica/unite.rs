//! What is pending in a closed chain comes to its head, which sends it down.
//!
//! A member may have a write that its predecessors have lost in a crash, for it came to it before
//! it was on their disks. Nobody was told that it is done, but all of a closed chain are to have
//! it or none. So everybody offers the head what has not come down in this epoch, and says when
//! nothing is left. The head takes it over, and settles when all have said so.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::places::{Union, place_bit};
use crate::replica::write::{Pending, Write};
use crate::shard::context::Context;
use cluster::Mutant;
use wire::{ChainAnswer, ChainOffer, ChainWrite, DropReason, Header, Op, Version};

impl Replica {
    /// Whether the members unite what is pending.
    pub(crate) fn unites(&self) -> bool {
        !self.member.partition.open && self.member.partition.sends_early
    }

    /// Begins an epoch.
    pub(crate) fn begin_union(&mut self) {
        self.union = Union::default();
        if self.unites() && !self.member.is_head() {
            self.union.to_offer.extend(self.pending.versions());
        }
    }

    /// Whether the head of a closed chain knows of all that is pending in it.
    pub(crate) fn is_united<E>(&self, ctx: &Context<'_, E>) -> bool {
        let everybody = (1..self.member.partition.chain.len()).map(place_bit);
        let alone = ctx.mutant.is(Mutant::SettleAlone);
        !self.unites() || alone || everybody.fold(0, |all, place| all | place) == self.union.heard
    }

    /// Offers the head a pending write.
    pub(crate) fn offer<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        let Some(head) = self.member.partition.head() else { return };
        let Some(to) = ctx.directory.endpoint(head, self.member.id()) else { return };
        let Some(pending) = self.pending.get(version) else { return };
        let write = pending.write();
        let based = !self.pending.has_base_of(&write);
        let mut header = Header { op: Op::ChainOffer as u8, ..write.header };
        self.member.address(ctx, &mut header, 0);
        ChainWrite { version, unsynced: 0, based: 0 }.put(&mut header);
        ChainOffer { version, based: based.into() }.put(&mut header);
        let offer = Write { header, ..write };
        ctx.out.push(to, |out| offer.emit(out));
    }

    /// Whether a pending write is sent on as one whose bases are committed here, or at a member
    /// before: who came back without them is not to wait for them.
    pub(crate) fn is_sent_as_based(&self, version: Version) -> bool {
        let write = self.pending.get(version).filter(|_| self.unites()).map(Pending::write);
        write.is_some_and(|write| write.is_based() || !self.pending.has_base_of(&write))
    }

    /// A member has a write that this head may not have.
    pub(crate) fn handle_offer<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        offer: &Write<'_>,
    ) -> Result<(), DropReason> {
        if !self.unites() {
            return Err(DropReason::BadChain);
        }
        if !offer.makes_sense() {
            return Err(DropReason::BadBody);
        }
        let ChainOffer { version, based } = ChainOffer::of(&offer.header);
        if self.is_committed(version) {
            self.tell_committed(ctx, offer.header.node, version);
            return Ok(());
        }
        if self.pending.contains(version) {
            return Ok(());
        }
        // Who has committed what it was computed from is believed: this member may have lost it.
        if based == 0 && !self.knows_bases(ctx, offer) {
            return Err(DropReason::OutOfOrder);
        }
        let mut header = Header { op: Op::ChainWrite as u8, count: 0, ..offer.header };
        ChainWrite { version, unsynced: 0, based: 0 }.put(&mut header);
        self.pend(ctx, &Write { header, ..*offer });
        self.note_counters(ctx.engine);
        self.send_on(ctx, version);
        Ok(())
    }

    /// The head has committed what a member has offered.
    fn tell_committed<E: Engine>(&self, ctx: &mut Context<'_, E>, node: u16, version: Version) {
        let Some(place) = self.place_of_node(node) else { return };
        let Some(to) = self.member.partition.chain.get(place).copied() else { return };
        let mut header = self.member.message_header(ctx, place, Op::ChainCommit);
        ChainAnswer { version, room: self.room(ctx) as u8 }.put(&mut header);
        self.send_to(ctx, to, &header, &[]);
    }

    /// A write has come down in this epoch: it need not be offered. Says whether it had to be.
    pub(crate) fn see_come_down<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: Version,
    ) -> bool {
        let news = self.union.see(version);
        if news {
            self.say_offered(ctx);
        }
        news
    }

    /// Tells the head when nothing is left that it may not have.
    pub(crate) fn say_offered<E: Engine>(&self, ctx: &mut Context<'_, E>) {
        let done = self.unites() && !self.member.is_head() && self.union.to_offer.is_empty();
        if let Some(head) = self.member.partition.head().filter(|_| done) {
            let header = self.member.message_header(ctx, 0, Op::ChainOffered);
            self.send_to(ctx, head, &header, &[]);
        }
    }

    /// A member has nothing left to offer.
    pub(crate) fn handle_offered<E: Engine>(&mut self, ctx: &mut Context<'_, E>, header: &Header) {
        if let Some(place) = self.place_of_node(header.node) {
            self.union.heard |= place_bit(place);
        }
        self.settle_stable(ctx);
        self.settle(ctx);
    }
}
