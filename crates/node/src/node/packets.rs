//! What comes in: checks what every packet needs, and hands it to its replica.

use crate::engine::{Engine, Record};
use crate::hot::copies::{handle_hot_copy, is_for_reader, read_copy};
use crate::hot::delegation::disks::DelegatedPlaces;
use crate::hot::delegation::early::handle_durable;
use crate::hot::delegation::writes::{
    Delegated, handle_commit, handle_delegated, handle_end, handle_fetch, is_passed_on,
};
use crate::lending::look::parks;
use crate::node::Node;
use crate::replica::lookup::Lookup;
use crate::replica::read::handle_mget;
use crate::replica::serve::{describe, serve};
use crate::shard::context::Context;
use crate::shard::reply::{came_by_address, refuse};
use cluster::{KeyspaceId, NodeId, PartitionId};
use machine::Instant;
use wire::{Body, Code, DropReason, Endpoint, Header, HotCopy, Op, Packet, hop_flag};

impl<E: Engine> Node<E> {
    /// Takes one datagram. `waiting` is how many the driver found queued, for the load report.
    /// `now` must have been read after the datagram was received: the lease is held against it.
    pub fn handle_packet(&mut self, now: Instant, from: Endpoint, waiting: u16, datagram: &[u8]) {
        self.dirty = true;
        if let Err(reason) = self.try_packet(now, from, waiting, datagram) {
            self.shard.counters.count_drop(reason);
        }
        self.serve_parked(now);
    }

    /// Counts a datagram that the driver has dropped, so that all are counted in one place.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.shard.counters.count_drop(reason);
    }

    fn try_packet(
        &mut self,
        now: Instant,
        from: Endpoint,
        load: u16,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let packet = Packet::parse(datagram)?;
        let (op, header) = (packet.op(), Header::read(packet.header()));
        if op.is_reply() && !matches!(op, Op::HotCopied | Op::HotPublish) {
            return Err(DropReason::BadOp);
        }
        let (body, admits) = (packet.body(), self.shard.stock.admits(op));
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let direct = is_direct(op, &header);
        let mut ctx = self.shard.admit(directory, now, load, direct)?;
        let missed = header.hop_flags & hop_flag::MISSED != 0 && op == Op::Get;
        let straight = op.is_chain() || direct || is_passed_on(&packet, &header);
        let from_cache = missed && directory.cache_at(from).is_some();
        let header = if from_cache { header } else { answered_to(from, op, header) };
        if !straight && !from_cache && from != directory.switch {
            return Err(DropReason::NotFromSwitch);
        }
        ctx.counters.count_request(op);
        let body = match body {
            Err(DropReason::BadBody) if !op.is_chain() && !op.is_reply() => {
                refuse(&mut ctx, &header, op, Code::BadRequest);
                return Ok(());
            }
            body => body?,
        };
        if !admits {
            return self.turn_away(now, from, &header, (op, &body));
        }
        if let Body::Describe { name } = body {
            describe(&mut ctx, &header, name);
            return Ok(());
        }
        if let Some((write, unsynced)) = delegated(&header, &body) {
            return handle_delegated(&mut ctx, from, &packet, &write, unsynced);
        }
        if let Body::Cache(message) = body {
            let replica = self.replicas.get_mut(&PartitionId(header.partition));
            let replica = replica.ok_or(DropReason::NoPartition)?;
            return replica.handle_cache(&mut ctx, from, &header, &message);
        }
        if op.is_chain() || op.is_reply() {
            return self.handle_message(now, load, from, &header, &body);
        }
        let mut lookup = Lookup { replicas: &mut self.replicas, ranges: &self.ranges };
        let header = if came_by_address(op, &header) {
            ctx.counters.by_address += 1;
            lookup.stamp(op, &header)
        } else {
            header
        };
        if parks(&mut ctx, &mut lookup, (&header, &body)) {
            let kept = ctx.lending.parked.push(now, from, load, datagram);
            return if kept { Ok(()) } else { Err(DropReason::QueueFull) };
        }
        serve_request(&mut ctx, &mut lookup, &packet, &header, &body)
    }

    /// A message of another node: about a hot key, or of another member of a chain. What that does
    /// to the copy of the partition, if there is one, or to the record of what is held here, is the
    /// node's part.
    fn handle_message(
        &mut self,
        now: Instant,
        load: u16,
        from: Endpoint,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let mut ctx = self.shard.context(directory, now, load);
        if let Some(handled) = handle_hot_message(&mut ctx, from, header, body) {
            return handled;
        }
        let id = PartitionId(header.partition);
        let Some(replica) = self.replicas.get_mut(&id) else {
            // Whoever copies what it took under a delegation has no use for the answer.
            let copied = matches!(body, Body::HotCopied);
            return if copied { Ok(()) } else { Err(DropReason::NotFromMember) };
        };
        if matches!(body, Body::HotCopied | Body::HotPublish) {
            replica.check_numbers(now, header, body)?;
        }
        match body {
            Body::HotCopied => {
                let (propagations, tail) = replica.as_tail();
                propagations.handle_copied(&mut ctx, &tail, header);
            }
            Body::HotPublish => replica.handle_published(&mut ctx, header),
            Body::DelegationFound { delegation, found, key } => {
                replica.handle_found(&mut ctx, header, (*delegation, key), *found)?;
            }
            _ => replica.handle_chain(&mut ctx, from, header, body)?,
        }
        match body {
            Body::ChainCopied => {
                let copy = self.copies.get_mut(&id).filter(|c| c.epoch() == replica.member.epoch());
                if let Some(copy) = copy {
                    copy.handle_copied(now, header);
                    copy.go_on(&mut ctx, replica, &mut self.copy_budget);
                }
            }
            Body::ChainVerified { fixed, last } => self.take_verified(now, header, fixed, last)?,
            Body::ChainCopy(_) => {
                let (caught_up, base) = (replica.caught_up, replica.base);
                self.replica_records.note_caught_up(&mut self.shard.engine, id, caught_up, base);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A request of a client, for the replica that it is stamped for, or whoever holds its keys.
fn serve_request<E: Engine>(
    ctx: &mut Context<'_, E>,
    lookup: &mut Lookup<'_>,
    packet: &Packet<'_>,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), DropReason> {
    let directory = ctx.directory;
    let Some(keyspace) = directory.keyspace(KeyspaceId(header.keyspace)) else {
        // Not a refusal: the keyspace may be newer than this node's assignment.
        refuse(ctx, header, packet.op(), Code::NotOwner);
        return Ok(());
    };
    if let Body::Mget(keys) = body {
        handle_mget(ctx, lookup, header, keyspace, keys);
        return Ok(());
    }
    let replica = lookup.replicas.get_mut(&PartitionId(header.partition));
    if let Body::Get { key } = *body
        && is_for_reader(header, replica.as_deref())
    {
        read_copy(ctx, keyspace, header, key);
        return Ok(());
    }
    let Some(replica) = replica else {
        refuse(ctx, header, packet.op(), Code::NotOwner);
        return Ok(());
    };
    serve(replica, ctx, keyspace, packet, header, body)
}

/// The write that goes by its grant, if this is one, and the places that it says to lack it on
/// disk.
fn delegated<'a>(header: &'a Header, body: &Body<'a>) -> Option<(Delegated<'a>, DelegatedPlaces)> {
    let flags = hop_flag::GRANTED | hop_flag::DIRECT;
    match *body {
        Body::Put { key, value, .. } if header.hop_flags & flags == hop_flag::GRANTED => {
            Some((Delegated { header, key, value }, 0))
        }
        Body::DelegationWrite { unsynced, key, value } => {
            Some((Delegated { header, key, value }, unsynced))
        }
        _ => None,
    }
}

/// A message about a hot key that may come from any node, whatever partitions it has. Only one that
/// brings home what it holds of a delegation goes on to a replica: `None`.
fn handle_hot_message<E: Engine>(
    ctx: &mut Context<'_, E>,
    from: Endpoint,
    header: &Header,
    body: &Body<'_>,
) -> Option<Result<(), DropReason>> {
    let from_any_node = matches!(
        body,
        Body::HotCopy { .. }
            | Body::DelegationFetch { .. }
            | Body::DelegationFound { .. }
            | Body::DelegationEnd { .. }
            | Body::DelegationCommit { .. }
            | Body::DelegationDurable { .. }
    );
    if from_any_node && !ctx.directory.owns(NodeId(header.node), from) {
        return Some(Err(DropReason::NotFromMember));
    }
    Some(match *body {
        Body::HotCopy { absent, expiry_ms, key, value } => {
            let HotCopy { version } = HotCopy::of(header);
            let record = Record { version, expiry_ms, tombstone: absent, value };
            handle_hot_copy(ctx, from, header, key, &record)
        }
        Body::DelegationFetch { fixed, key } => {
            handle_fetch(ctx, from, header, fixed, key);
            Ok(())
        }
        Body::DelegationEnd { delegation, key } => handle_end(ctx, header, (delegation, key)),
        Body::DelegationCommit { delegation, key } => {
            handle_commit(ctx, from, header, (delegation, key));
            Ok(())
        }
        Body::DelegationDurable { delegation, key } => {
            handle_durable(ctx, header, (delegation, key))
        }
        // What this reader has said to the switch, as it came back.
        Body::Refusal(Code::NotHere) if header.op == Op::HotPublish as u8 => Ok(()),
        Body::Refusal(_) => Err(DropReason::BadBody),
        _ => return None,
    })
}

/// Whoever asks without a switch is answered where it asks from, whatever the packet says: else
/// anybody could be sent what he has not asked for.
fn answered_to(from: Endpoint, op: Op, header: Header) -> Header {
    if !is_direct(op, &header) {
        return header;
    }
    Header { reply_addr: from.addr, reply_port: from.port, ..header }
}

/// Whether a request comes straight from a client. (What goes down a chain only remembers that.)
fn is_direct(op: Op, header: &Header) -> bool {
    header.hop_flags & hop_flag::DIRECT != 0 && !op.is_chain() && !op.is_reply()
}
