//! On whose disks pending writes are: the last of a chain commits what all have there.
//!
//! While its engine syncs apart, a member sends a write on before its own disk has it, and says so
//! in the write: `unsynced` names the places that have done so. When the disk has it, the member
//! tells the last of the chain by CHAIN_DURABLE, which thereby waits for one sync, and not for one
//! after the other (`protocol.md` section 6, *Before the disk*).

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::places::{Places, place_bit};
use crate::replica::write::{Pending, Write};
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::NodeId;
use wire::{ChainWrite, DURABLE_MAX, DropReason, DurableVersions, Header, Op, Version};

impl Replica {
    pub(crate) fn own_bit(&self) -> Places {
        place_bit(self.member.position())
    }

    /// The place of a node in the chain.
    pub(crate) fn place_of_node(&self, id: u16) -> Option<usize> {
        self.member.partition.chain.iter().position(|node| *node == NodeId(id))
    }

    /// Whether writes of this epoch go on before they are on disk.
    pub(crate) fn goes_early(&self) -> bool {
        self.member.partition.open && self.member.partition.sends_early
    }

    /// The disk of this member has these pending writes.
    pub(crate) fn take_synced<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        versions: &[Version],
    ) {
        let mine = self.own_bit();
        let mut sent = Vec::new();
        for version in versions {
            let Some(pending) = self.pending.get_mut(*version) else { continue };
            pending.on_disk = true;
            if pending.is_unsynced_at(mine) {
                pending.see_synced(mine);
                sent.push(*version);
            }
            self.commit_if_durable(ctx, *version);
        }
        self.tell_last(ctx, &sent);
    }

    /// Tells the last of the chain that these writes are on this disk.
    pub(crate) fn tell_last<E: Engine>(&mut self, ctx: &mut Context<'_, E>, versions: &[Version]) {
        let place = self.member.partition.chain.len() - 1;
        let Some(last) = self.member.partition.chain.last().copied() else { return };
        for versions in versions.chunks(DURABLE_MAX) {
            let header = self.member.message_header(ctx, place, Op::ChainDurable);
            let mut payload = std::mem::take(ctx.scratch);
            payload.clear();
            versions.iter().for_each(|version| DurableVersions::push(&mut payload, *version));
            self.send_to_when(ctx, last, (&header, &payload), Waits::No);
            *ctx.scratch = payload;
        }
    }

    /// A member says what is on its disk.
    pub(crate) fn handle_durable<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        versions: &DurableVersions<'_>,
    ) -> Result<(), DropReason> {
        let place = self.place_of_node(header.node).ok_or(DropReason::NotFromMember)?;
        let place = place_bit(place);
        for version in versions.iter() {
            if let Some(pending) = self.pending.get_mut(version) {
                pending.see_synced(place);
                self.commit_if_durable(ctx, version);
            } else if !self.is_committed(version) {
                self.told.note(version, place);
            }
        }
        Ok(())
    }

    /// Commits a write at the last of the chain if it is on the disks of all, and with it what it
    /// was computed from, which came to every disk before it.
    pub(crate) fn commit_if_durable<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: Version,
    ) {
        if !self.member.is_last() || self.member.is_head() || self.union.is_to_offer(version) {
            return;
        }
        if !self.pending.get(version).is_some_and(|it| it.unsynced() == 0 && it.on_disk) {
            return;
        }
        if self.is_held_back(ctx, version) {
            return;
        }
        self.commit_line(ctx, version);
        self.settle(ctx);
    }
}

impl Pending {
    /// The members before this one that may not have it on disk, and this one if it sent it on
    /// before it had.
    pub(crate) fn unsynced(&self) -> Places {
        ChainWrite::of(&self.header).unsynced
    }

    fn is_unsynced_at(&self, places: Places) -> bool {
        self.unsynced() & places != 0
    }

    pub(crate) fn set_unsynced(&mut self, unsynced: Places) {
        let write = ChainWrite::of(&self.header);
        ChainWrite { unsynced, ..write }.put(&mut self.header);
    }

    /// Says whether what it was computed from is committed at a sender.
    pub(crate) fn set_based(&mut self, based: bool) {
        let write = ChainWrite::of(&self.header);
        ChainWrite { based: based.into(), ..write }.put(&mut self.header);
    }

    /// These have it on disk.
    pub(crate) fn see_synced(&mut self, places: Places) {
        self.set_unsynced(self.unsynced() & !places);
    }
}

impl Write<'_> {
    /// The members before this one that may not have it on disk.
    pub(crate) fn unsynced(&self) -> Places {
        ChainWrite::of(&self.header).unsynced
    }
}
