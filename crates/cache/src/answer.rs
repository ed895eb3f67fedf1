//! How a cache answers a read: as a tail would.

use crate::slots::Value;
use cluster::CacheId;
use machine::Outbox;
use wire::{Code, Endpoint, GetReplyBody, Header, KeyReply, Op, Version};

/// The header of this cache's answer to a read.
pub(crate) fn answer_to(request: &Header, id: CacheId, code: Code) -> Header {
    Header {
        hop_flags: request.hop_flags,
        partition: request.partition,
        epoch: request.epoch,
        node: id.0,
        reply_addr: request.reply_addr,
        reply_port: request.reply_port,
        match_value: request.match_value,
        keyhash: request.keyhash,
        op: Op::GetReply as u8,
        keyspace: request.keyspace,
        client: request.client,
        seq: request.seq,
        code: code as u8,
        ..Header::default()
    }
}

/// Sends an answer that shows this value, with what time it is.
pub(crate) fn send_answer(
    out: &mut Outbox,
    (from, to): (Option<Endpoint>, Endpoint),
    header: Header,
    version: Version,
    (value, now_ms): (&Value, u64),
) {
    let mut header = header;
    KeyReply { version }.put(&mut header);
    let fixed = GetReplyBody { expiry_ms: value.expiry_ms, now_ms }.to_bytes();
    out.push_from(from, to, |out| {
        wire::emit(out, &header, &[&fixed, &value.bytes]);
    });
}
