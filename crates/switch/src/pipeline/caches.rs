//! What passes between the switch and caches: reads of the keys that they hold, their answers, and
//! the rules that say which keys those are.

use super::Pipeline;
use crate::CoherenceDirectory;
use crate::pass::{Pass, split_header};
use cluster::KeyspaceId;
use machine::{Instant, Outbox};
use wire::{Body, CacheMessage, ClientReply, DropReason, Endpoint, Header, Op, Packet};

impl Pass<'_> {
    /// Where a read goes whose key is cached. It is stamped for its tail already, to which a cache
    /// that does not hold the key sends it on.
    #[inline]
    pub(crate) fn cache_of(
        &mut self,
        (keyspace, keyhash): (KeyspaceId, u64),
        at_home: bool,
    ) -> Option<Endpoint> {
        let cache = self.cached.find(self.now, keyspace, keyhash).filter(|_| !at_home)?;
        let to = self.tables.cache(cache)?;
        self.counters.count_cached();
        Some(to)
    }
}

impl Pipeline {
    /// A cache's answer to a read, on its way to the client.
    pub(super) fn forward_cached(
        &mut self,
        from: Endpoint,
        datagram: &mut [u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let cache = self.tables.as_deref().and_then(|tables| tables.cache_at(from)).map(|it| it.id);
        let clock = self.directory().clock().present;
        let (header, _) = split_header(datagram);
        let Header { node, reply_addr, reply_port, .. } = Header::read(header);
        let to = Endpoint { addr: reply_addr, port: reply_port };
        if !to.is_set() {
            return Err(DropReason::BadReplyAddress);
        }
        if cache.is_none_or(|cache| cache.0 != node) {
            return Err(DropReason::ReplyNotFromNode);
        }
        ClientReply { clock }.write(header);
        self.emit_reply(to, datagram, out);
        Ok(())
    }

    /// A cache changes its rules.
    pub(super) fn take_rules(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: &[u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        // A switch that keeps the directory looks at no rules.
        if self.behind.is_some() {
            return Err(DropReason::BadOp);
        }
        let tables = self.tables.as_deref().ok_or(DropReason::NotServing)?;
        let cache = tables.cache_at(from).ok_or(DropReason::NotFromMember)?.id;
        let packet = Packet::parse(datagram)?;
        let Header { node, client, seq, .. } = Header::read(packet.header());
        let Body::Cache(CacheMessage::Rules(changes)) = packet.body()? else {
            return Err(DropReason::BadBody);
        };
        if node != cache.0 {
            return Err(DropReason::NotFromMember);
        }
        let rules = self.hot.directory().cached();
        let next = rules.change(now, cache, (client, seq), &changes);
        let seq = next.ok_or(DropReason::StaleRequest)?;
        let answer = Header { op: Op::CacheRuled as u8, client, seq, ..Header::default() };
        out.push(from, |out| {
            wire::emit(out, &answer, &[]);
        });
        Ok(())
    }
}
