//! What every client request must pass before its replica serves it.

use crate::engine::Engine;
use crate::heat::Use;
use crate::replica::{Cost, Replica};
use crate::shard::context::Context;
use crate::shard::reply::{came_by_address, refuse, reply_header, send};
use cluster::{ContentRouting, Keyspace, KeyspaceKind, Match, MaybeMutant, Mutant};
use wire::{
    Body, Change, Code, ContentRoutingBody, DescribeReplyBody, DropReason, Header, Op, Packet,
    RangeInterval, hop_flag,
};

impl Replica {
    /// Whether this replica may serve a request at all: the epoch, and its role.
    fn admit(&self, mutant: MaybeMutant, op: Op, header: &Header) -> Result<(), Code> {
        let trusted = mutant.is(Mutant::TrustRoutes) && came_by_address(op, header);
        let anybody = op.is_write() && mutant.is(Mutant::RetryElsewhere) || trusted;
        let role =
            anybody || if op.is_for_head() { self.member.is_head() } else { self.member.is_tail() };
        if header.epoch != self.member.epoch().0 && !mutant.is(Mutant::IgnoreEpoch) {
            return Err(Code::StaleEpoch);
        }
        if !self.member.partition.open {
            return Err(Code::Closed);
        }
        if !role || header.chain_len == 0 {
            return Err(Code::NotOwner);
        }
        Ok(())
    }

    /// Whether the stamped chain is what the switch grants in this epoch.
    fn stamped_rightly(&self, op: Op, header: &Header) -> bool {
        let stamped = || wire::chain_of(header.chain, header.chain_len);
        if op.is_for_head() {
            stamped().eq(self.member.partition.chain.iter().map(|id| id.0))
        } else {
            stamped().eq(self.member.partition.tail().map(|id| id.0))
        }
    }

    /// A client has said goodbye to the head, which says so to the others. That all of its requests
    /// have ended was true when it was said and stays so, whatever comes before or after: it needs
    /// no place in the order of writes, and who does not hear it keeps a session for some time.
    pub(crate) fn hear_goodbye<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) {
        if !self.end_client(ctx, client) || !ctx.leased {
            return;
        }
        for (place, member) in self.member.partition.chain.iter().enumerate().skip(1) {
            let Some(to) = ctx.directory.endpoint(*member, self.member.id()) else { continue };
            let header = self.member.message_header(ctx, place, Op::ChainGoodbye);
            ctx.out.push(to, |out| {
                wire::emit(out, &Header { client, ..header }, &[]);
            });
        }
    }

    /// The head has been told goodbye.
    pub(crate) fn take_goodbye<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        client: u64,
    ) -> Result<(), DropReason> {
        self.end_client(ctx, client);
        Ok(())
    }

    /// Keeps of a client's session only that it has ended; says whether there was one.
    fn end_client<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) -> bool {
        let (sessions, writes) = self.sessions();
        sessions.end_client(ctx, &writes, client)
    }
}

/// Hands a request for one partition to its replica, if that may serve it as it is stamped.
pub(crate) fn serve<E: Engine>(
    replica: &mut Replica,
    ctx: &mut Context<'_, E>,
    keyspace: &Keyspace,
    packet: &Packet<'_>,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), DropReason> {
    let op = packet.op();
    if op == Op::Goodbye {
        return part(replica, ctx, op, header);
    }
    if let Err(code) = replica.admit(ctx.mutant, op, header) {
        let epoch = replica.member.epoch().0;
        refuse(ctx, &Header { epoch, ..*header }, op, code);
        return Ok(());
    }
    let right = replica.stamped_rightly(op, header) || ctx.mutant.is(Mutant::IgnoreEpoch);
    if !right {
        return Err(DropReason::BadChain);
    }
    if let Err(code) = looks_right(keyspace, replica, header, body) {
        refuse(ctx, header, op, code);
        return Ok(());
    }
    let since = wire::since_of(packet.header(), packet.payload());
    let (sessions, writes) = replica.sessions();
    if op.is_write() && !sessions.admits(ctx, &writes, op, header, since) {
        return Ok(());
    }
    let served = serve_known(replica, ctx, keyspace, packet, header, body);
    let (sessions, writes) = replica.sessions();
    sessions.note_since(&writes, header, since);
    served
}

/// Hears that a client has ended. Nobody is answered: it has gone.
fn part<E: Engine>(
    replica: &mut Replica,
    ctx: &mut Context<'_, E>,
    op: Op,
    header: &Header,
) -> Result<(), DropReason> {
    let partition = &replica.member.partition;
    let ours = partition.keyspace.0 == header.keyspace;
    if !ours || !partition.holds(Match(header.match_value)) {
        return Err(DropReason::NoPartition);
    }
    replica.admit(ctx.mutant, op, header).map_err(|_| DropReason::StaleEpoch)?;
    if !replica.stamped_rightly(op, header) {
        return Err(DropReason::BadChain);
    }
    if header.client != 0 {
        replica.hear_goodbye(ctx, header.client);
    }
    Ok(())
}

/// Serves a request that was certainly not served before, or is known.
fn serve_known<E: Engine>(
    replica: &mut Replica,
    ctx: &mut Context<'_, E>,
    keyspace: &Keyspace,
    packet: &Packet<'_>,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), DropReason> {
    let op = packet.op();
    if matches!(op, Op::Get | Op::Range) {
        replica.asked.see(ctx.now, Match(header.match_value));
    }
    see_uses(replica, ctx, keyspace, packet, header, body);
    let (written, scanned) = (ctx.written(), ctx.counters.scanned);
    let served = match *body {
        Body::Get { key } => {
            replica.handle_get(ctx, header, key);
            Ok(())
        }
        Body::Range { limit, start, end } => {
            replica.handle_range(ctx, header, keyspace, limit, (start, end));
            Ok(())
        }
        Body::Batch(ref steps) => replica.handle_batch(ctx, header, steps),
        _ => {
            let delegates = wire::may_be_delegated(packet.header(), packet.payload());
            replica.handle_write(ctx, op, header, body, delegates)
        }
    };
    let cost = Cost {
        bytes_in: packet.payload().len() as u64,
        bytes_out: if op.is_write() { 0 } else { ctx.written() - written },
        scanned: ctx.counters.scanned - scanned,
    };
    replica.count_cost(ctx.now, Match(header.match_value), cost);
    served
}

/// Counts the uses of all keys that a request names: some of them may be hot.
fn see_uses<E: Engine>(
    replica: &mut Replica,
    ctx: &mut Context<'_, E>,
    keyspace: &Keyspace,
    packet: &Packet<'_>,
    header: &Header,
    body: &Body<'_>,
) {
    let op = packet.op();
    if let Some(key) = key_of(body) {
        let of = match op {
            Op::Get => Use::Read,
            _ if wire::may_be_delegated(packet.header(), packet.payload()) => Use::Write,
            _ => Use::HomeOnlyWrite,
        };
        if op == Op::Get {
            replica.see_read(ctx, keyspace, header, key);
        }
        if op == Op::Get && header.hop_flags & hop_flag::HOT != 0 {
            ctx.heat.see_hot(keyspace.id, header.keyhash, key, of);
        } else {
            ctx.see_use(keyspace, header.keyhash, key, of);
        }
    }
    if let Body::Batch(steps) = body {
        for step in steps.iter().skip(1) {
            let keyhash = keyspace.keyhash(step.key);
            let writes = step.change != Change::None;
            let of =
                if writes && replica.is_hot(step.key) { Use::Step } else { Use::HomeOnlyWrite };
            ctx.see_use(keyspace, keyhash, step.key, of);
        }
    }
}

/// Whether match value and keyhash are those of the key, and belong here.
fn looks_right(
    keyspace: &Keyspace,
    replica: &Replica,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), Code> {
    let partition = &replica.member.partition;
    let at = Match(header.match_value);
    let Some(key) = key_of(body) else {
        let last = Match(RangeInterval::of(header).last);
        let inside = partition.holds(at) && partition.holds(last) && at <= last;
        return if inside { Ok(()) } else { Err(Code::NotOwner) };
    };
    if !matches_key(keyspace, header.match_value, header.keyhash, key) {
        return Err(Code::BadMatch);
    }
    if partition.keyspace != keyspace.id || !partition.holds(at) {
        return Err(Code::NotOwner);
    }
    Ok(())
}

/// Whether match value and keyhash are those of the key.
pub(crate) fn matches_key(keyspace: &Keyspace, at: u128, keyhash: u64, key: &[u8]) -> bool {
    keyspace.match_value(key).0 == at && keyspace.keyhash(key) == keyhash
}

/// The one key that a request is about; of a batch the first.
pub(crate) fn key_of<'a>(body: &Body<'a>) -> Option<&'a [u8]> {
    match *body {
        Body::Get { key }
        | Body::Put { key, .. }
        | Body::Del { key }
        | Body::Cas { key, .. }
        | Body::Incr { key, .. } => Some(key),
        Body::Batch(ref steps) => Some(steps.first_key()),
        _ => None,
    }
}

/// Answers what a keyspace name means.
pub(crate) fn describe<E: Engine>(ctx: &mut Context<'_, E>, request: &Header, name: &[u8]) {
    let Some(keyspace) = ctx.directory.keyspace_named(name) else {
        refuse(ctx, request, Op::Describe, Code::UnknownKeyspace);
        return;
    };
    let content = keyspace.content.map(|ContentRouting { prefix, port }| {
        ContentRoutingBody { prefix: prefix.bits(), port }.to_bytes()
    });
    let (kind, prefix) = match (&keyspace.kind, &content) {
        (KeyspaceKind::Hash, None) => (0, &[][..]),
        (KeyspaceKind::Range { prefix }, _) => (1, prefix.as_slice()),
        (KeyspaceKind::Hash, Some(content)) => (2, content.as_slice()),
    };
    let fixed = DescribeReplyBody { seed: keyspace.seed, id: keyspace.id.0, kind };
    let header = reply_header(ctx, request, Op::Describe, Code::Ok);
    send(ctx, &header, &[&fixed.to_bytes(), prefix]);
}
