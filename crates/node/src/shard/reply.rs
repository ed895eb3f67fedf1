//! How the node answers.

use crate::engine::Engine;
use crate::replica::sessions::outcome::Outcome;
use crate::shard::cluster_view::ClusterView;
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::{KeyspaceId, Match};
use wire::{
    BatchReplyBody, Code, ContentClass, DelegatedReply, DelegationId, DropReason, Endpoint, Header,
    HotAnswer, HotGet, IncrReplyBody, KeyReply, NoSession, NodeReply, Op, RangeInterval, Version,
    flag, hop_flag,
};

/// The header of an answer to `request`: what the protocol says is echoed, and the load report.
pub(crate) fn reply_header<E>(
    ctx: &Context<'_, E>,
    request: &Header,
    op: Op,
    code: Code,
) -> Header {
    let mut header = Header {
        // That this is the newest, only the tail of a registered key says.
        hop_flags: request.hop_flags & !hop_flag::NEWEST,
        partition: request.partition,
        epoch: request.epoch,
        node: ctx.directory.me.0,
        load: ctx.load,
        reply_addr: request.reply_addr,
        reply_port: request.reply_port,
        match_value: request.match_value,
        keyhash: request.keyhash,
        op: op.reply() as u8,
        flags: said_in_address(op, request),
        keyspace: request.keyspace,
        client: request.client,
        seq: request.seq,
        code: code as u8,
        ..Header::default()
    };
    NodeReply { rate: ctx.rate }.put(&mut header);
    if op == Op::Get && request.hop_flags & hop_flag::HOT != 0 {
        let HotGet { generation, .. } = HotGet::of(request);
        HotAnswer { version: Version::NONE, generation }.put(&mut header);
    }
    header
}

/// Where this node's replies to a request go: the switch, unless there is none on the way.
pub(crate) fn reply_endpoint(header: &Header, directory: &ClusterView) -> Endpoint {
    if header.hop_flags & hop_flag::DIRECT == 0 {
        directory.switch
    } else {
        Endpoint { addr: header.reply_addr, port: header.reply_port }
    }
}

/// The flags of a request that came to a content address which say to which.
fn said_in_address(op: Op, request: &Header) -> u8 {
    let says = op == Op::Get && came_by_address(op, request);
    if says { request.flags & flag::AT_HOME } else { 0 }
}

/// Whether a request came to the content address of its key, stamped by nobody; or a reply is to
/// one.
pub(crate) fn came_by_address(op: Op, header: &Header) -> bool {
    ContentClass::of_header(op, header).is_some()
}

/// Where this node's reply comes from, if not from the node's own address: from where the request
/// went to, so that it passes whoever lets only answers pass.
pub(crate) fn reply_source(reply: &Header, directory: &ClusterView) -> Option<Endpoint> {
    let class = ContentClass::of_header(Op::from_wire(reply.op)?, reply)?;
    let keyspace = directory.keyspace(KeyspaceId(reply.keyspace))?;
    keyspace.content_address(class, Match(reply.match_value))
}

/// Sends an answer.
pub(crate) fn send<E: Engine>(ctx: &mut Context<'_, E>, header: &Header, parts: &[&[u8]]) {
    send_when(ctx, header, parts, Waits::Turn);
}

/// Sends an answer, which waits or does not.
pub(crate) fn send_when<E: Engine>(
    ctx: &mut Context<'_, E>,
    header: &Header,
    parts: &[&[u8]],
    waits: Waits,
) {
    if !ctx.leased {
        return;
    }
    if let Some(code) = Code::from_wire(header.code) {
        ctx.counters.count_reply(code);
    }
    let to = reply_endpoint(header, ctx.directory);
    let from = reply_source(header, ctx.directory);
    if to.is_set() {
        ctx.outbox(waits).push_from(from, to, |out| {
            wire::emit(out, header, parts);
        });
    } else {
        ctx.counters.count_drop(DropReason::BadReplyAddress);
    }
}

/// Answers that nothing was decided, or that it never will be. Who says goodbye is not answered.
pub(crate) fn refuse<E: Engine>(ctx: &mut Context<'_, E>, request: &Header, op: Op, code: Code) {
    assert!(!code.is_decided(), "an outcome has a body");
    if !op.is_answered() {
        ctx.counters.count_drop(DropReason::NoPartition);
        return;
    }
    let mut header = Header {
        bitmap: if op == Op::Mget { request.bitmap } else { 0 },
        ..reply_header(ctx, request, op, code)
    };
    if op == Op::Range {
        RangeInterval::of(request).put(&mut header);
    }
    send(ctx, &header, &[]);
}

/// Answers a write of a client that may have been forgotten: which version it is to name, once it
/// knows that the write was not applied.
pub(crate) fn refuse_session<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    op: Op,
    since: Version,
) {
    let mut header = reply_header(ctx, request, op, Code::NoSession);
    NoSession { since }.put(&mut header);
    send(ctx, &header, &[]);
}

/// Answers a write of a delegated key: of which delegation, and from
/// which version on, if the switch may rely on it; else 0.
pub(crate) fn refuse_delegated<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    op: Op,
    (delegation, delegated_at): (DelegationId, Version),
) {
    let mut header = reply_header(ctx, request, op, Code::Delegated);
    DelegatedReply { delegated_at, delegation }.put(&mut header);
    send(ctx, &header, &[]);
}

/// Answers a write with its outcome. `request` is any header that carries its request id.
pub(crate) fn answer_write<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    outcome: &Outcome,
) {
    answer_write_when(ctx, request, outcome, Waits::Turn);
}

/// The same, with an answer that waits or does not.
pub(crate) fn answer_write_when<E: Engine>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    outcome: &Outcome,
    waits: Waits,
) {
    let mut header = reply_header(ctx, request, outcome.origin, outcome.code);
    KeyReply { version: outcome.version }.put(&mut header);
    let sum = IncrReplyBody { result: outcome.result.sum().cast_unsigned() }.to_bytes();
    let step = BatchReplyBody { step: outcome.result.step() }.to_bytes();
    let parts: &[&[u8]] = match outcome.origin {
        Op::Incr => &[&sum],
        Op::Batch => &[&step],
        _ => &[],
    };
    send_when(ctx, &header, parts, waits);
}
