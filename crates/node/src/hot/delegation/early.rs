//! Delegated writes that went on before they were on disk: what disks have of them is told to the
//! last of their chains, which commits what all have.

use crate::engine::Engine;
use crate::hot::delegation::disks::{Recorded, Waiting};
use crate::hot::delegation::writes::{Delegated, commit, takes};
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::{KeyspaceId, NodeId, PartitionId, is_plausible_revision};
use wire::{
    DelegationDurable, DelegationDurableBody, DelegationId, DropReason, Header, Op, Version,
};

/// The disk of this node has these writes.
pub(crate) fn see_synced<E: Engine>(ctx: &mut Context<'_, E>, mut recorded: Vec<Recorded>) {
    // The newest of each key first: what is told of that, holds for the others.
    recorded.sort_unstable_by(|one, other| other.cmp(one));
    for it in &recorded {
        let at = (it.keyspace, &*it.key);
        let Some(on_disk) = ctx.hot.held.see_on_disk(it) else { continue };
        let Some(disks) = ctx.hot.held.disks(at, it.delegation) else { continue };
        for to in disks.take_to_tell(on_disk) {
            tell_last(ctx, to, at, (it.delegation, on_disk));
        }
        commit_ready(ctx, at, it.delegation);
    }
}

/// Tells the last of a chain up to which version of a delegation this disk has what was written.
fn tell_last<E>(
    ctx: &mut Context<'_, E>,
    (last, partition): (NodeId, PartitionId),
    (keyspace, key): (KeyspaceId, &[u8]),
    (delegation, version): (DelegationId, Version),
) {
    let to = ctx.directory.endpoint(last, partition).filter(|_| ctx.leased);
    let Some(to) = to else { return };
    let mut header = Header {
        op: Op::DelegationDurable as u8,
        partition: partition.0,
        node: ctx.directory.me.0,
        load: ctx.load,
        keyspace: keyspace.0,
        key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
        ..Header::default()
    };
    DelegationDurable { version }.put(&mut header);
    let body = DelegationDurableBody { delegation }.to_bytes();
    ctx.outbox(Waits::No).push(to, |out| {
        wire::emit(out, &header, &[&body, key]);
    });
}

/// A node before this one says what its disk has. It may say so before the write has come.
pub(crate) fn handle_durable<E: Engine>(
    ctx: &mut Context<'_, E>,
    header: &Header,
    (delegation, key): (DelegationId, &[u8]),
) -> Result<(), DropReason> {
    let DelegationDurable { version } = DelegationDurable::of(header);
    if !is_plausible_revision(ctx.now, delegation.order()) || !version.is_plausible() {
        return Err(DropReason::Implausible);
    }
    let at = (KeyspaceId(header.keyspace), key);
    // Of a delegation that is over nothing is committed here any more: that came home.
    if takes(ctx, at, delegation) {
        ctx.hot.held.disks_to_note(at, delegation).hear(NodeId(header.node), version);
        commit_ready(ctx, at, delegation);
    }
    Ok(())
}

/// Commits what all have on disk of the writes that wait here.
fn commit_ready<E: Engine>(
    ctx: &mut Context<'_, E>,
    at @ (keyspace, key): (KeyspaceId, &[u8]),
    delegation: DelegationId,
) {
    // An engine that does not sync apart has it at the end of the turn.
    let apart = ctx.noted.is_some();
    let waits = if apart { Waits::No } else { Waits::Turn };
    let held = ctx.hot.held.write(keyspace, key);
    let Some(held) = held.filter(|held| held.delegation == delegation) else { return };
    let up_to = if apart { held.on_disk } else { held.version };
    while let Some(disks) = ctx.hot.held.disks(at, delegation)
        && let Some(Waiting { header, value, .. }) = disks.take_ready(up_to)
    {
        commit(ctx, &Delegated { header: &header, key, value: &value }, waits);
    }
}
