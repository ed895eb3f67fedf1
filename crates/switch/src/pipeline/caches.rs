//! What passes between the switch and caches: reads of the keys that they hold, and the rules that
//! say which keys those are.

use super::Pipeline;
use crate::CoherenceDirectory as _;
use crate::either::Coherence;
use crate::pass::Pass;
use cluster::{CacheShard, KeyspaceId};
use machine::{Instant, Outbox};
use wire::{Body, CacheMessage, DropReason, Endpoint, Header, Op, Packet};

impl Pass<'_> {
    /// Where a read goes whose key is cached. It is stamped for its tail already, to which a cache
    /// that does not hold the key sends it on.
    #[inline]
    pub(crate) fn cache_of(
        &mut self,
        directory: Coherence<'_>,
        (keyspace, keyhash): (KeyspaceId, u64),
        at_home: bool,
    ) -> Option<Endpoint> {
        let rules = directory.cache_rules();
        let cache = rules.find(self.now, keyspace, keyhash).filter(|_| !at_home)?;
        let to = self.tables.cache(cache)?;
        self.counters.count_cached();
        Some(to)
    }
}

impl Pipeline {
    /// A cache changes its rules.
    pub(super) fn take_rules(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: &[u8],
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        // Nobody else tells a switch anything.
        let tables = self.tables.as_deref();
        let spec = tables.and_then(|tables| tables.cache_at(from)).ok_or(DropReason::BadOp)?;
        let shard = spec.shard_at(from).ok_or(DropReason::BadOp)?;
        let by = CacheShard { cache: spec.id, shard };
        let packet = Packet::parse(datagram)?;
        let Header { node, client, seq, .. } = Header::read(packet.header());
        let Body::Cache(CacheMessage::Rules(changes)) = packet.body()? else {
            return Err(DropReason::BadBody);
        };
        if node != by.cache.0 {
            return Err(DropReason::NotFromMember);
        }
        let next = self.directory().cache_rules().change(now, by, (client, seq), &changes);
        let seq = next.ok_or(DropReason::StaleRequest)?;
        let answer = Header { op: Op::CacheRuled as u8, client, seq, ..Header::default() };
        out.push(from, |out| {
            wire::emit(out, &answer, &[]);
        });
        self.counters.count_emitted();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{
        CacheId, CacheSpec, ClusterId, Incarnation, Lease, Match, NodeId, NodeSpec, Partition,
        PartitionId, SwitchControl as _, SwitchTables,
    };
    use std::net::SocketAddr;
    use wire::{CacheRule, CacheRules, Revision, flag};

    const INCARNATION: Incarnation = Incarnation(5);
    const NOW: Instant = Instant::from_unix_ms(1_000);
    const KEYHASH: u64 = 77;

    fn at(host: u8) -> Endpoint {
        SocketAddr::from(([10, 0, 0, host], 9000)).into()
    }

    const NODE: u8 = 1;
    const CACHE: u8 = 2;
    const CLIENT: u8 = 3;

    fn pipeline() -> Pipeline {
        let whole = Partition {
            id: PartitionId(1),
            last: Match::MAX,
            chain: [NodeId(1)].into_iter().collect(),
            open: true,
            ..Partition::default()
        };
        let tables = SwitchTables {
            revision: Revision::new(1),
            active: true,
            nodes: vec![NodeSpec { id: NodeId(1), endpoint: at(NODE), shards: 1 }],
            caches: vec![CacheSpec { id: CacheId(4), endpoint: at(CACHE), shards: 1 }],
            partitions: vec![whole],
            ..SwitchTables::default()
        };
        let mut pipeline = Pipeline::new(INCARNATION);
        pipeline.install(&tables).expect("sound tables");
        let lease = Lease {
            cluster: ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: NOW,
            duration_ms: 1_000_000,
        };
        pipeline.renew(NOW, &lease);
        pipeline
    }

    /// What becomes of a datagram: where it goes, and what is in it.
    fn pass(
        pipeline: &mut Pipeline,
        from: u8,
        header: &Header,
        payload: &[u8],
    ) -> Result<(Endpoint, Header), DropReason> {
        let (mut datagram, mut out) = (Vec::new(), Outbox::default());
        wire::emit(&mut datagram, header, &[payload]);
        pipeline.process(NOW, at(from), &mut datagram, &mut out)?;
        let sent = out.pop().expect("it is sent");
        Ok((sent.to, Header::read(sent.payload.first_chunk().expect("it has a header"))))
    }

    fn rule(pipeline: &mut Pipeline, from: u8, node: u16, adds: u8) -> Result<u64, DropReason> {
        let mut payload = Vec::new();
        let change = CacheRule { adds: adds == 1, keyspace: 0, keyhash: KEYHASH, match_bits: None };
        CacheRules::push(&mut payload, &change);
        let op = Op::CacheRules as u8;
        let header = Header { op, node, client: 9, seq: (1 - adds).into(), ..Header::default() };
        pass(pipeline, from, &header, &payload).map(|(to, answer)| {
            assert_eq!((to, answer.op), (at(from), Op::CacheRuled as u8));
            answer.seq
        })
    }

    fn read(pipeline: &mut Pipeline, flags: u8) -> (Endpoint, Header) {
        let header = Header {
            op: Op::Get as u8,
            flags,
            keyhash: KEYHASH,
            key_len: 1,
            client: 7,
            seq: 1,
            ..Header::default()
        };
        pass(pipeline, CLIENT, &header, b"k").expect("it is sent on")
    }

    #[test]
    fn reads_of_a_cached_key_go_to_its_cache_stamped_for_the_tail() {
        let mut pipeline = pipeline();
        assert_eq!(read(&mut pipeline, 0).0, at(NODE));
        assert_eq!(rule(&mut pipeline, CACHE, 4, 1), Ok(1));
        let (to, header) = read(&mut pipeline, 0);
        assert_eq!((to, header.partition, header.chain_len), (at(CACHE), 1, 1));
        assert_eq!((header.reply_addr, header.reply_port), (at(CLIENT).addr, 9000));
        assert_eq!(read(&mut pipeline, flag::AT_HOME).0, at(NODE));
        assert_eq!(pipeline.counters_ref().cached(), 1);
        assert_eq!(rule(&mut pipeline, CACHE, 4, 0), Ok(2));
        assert_eq!(read(&mut pipeline, 0).0, at(NODE));
    }

    #[test]
    fn only_caches_change_rules_each_its_own() {
        let mut pipeline = pipeline();
        for from in [NODE, CLIENT] {
            assert_eq!(rule(&mut pipeline, from, 4, 1), Err(DropReason::BadOp));
        }
        assert_eq!(rule(&mut pipeline, CACHE, 5, 1), Err(DropReason::NotFromMember));
        assert_eq!(read(&mut pipeline, 0).0, at(NODE));
    }

    #[test]
    fn answers_of_a_cache_go_to_clients_and_nobody_speaks_for_it() {
        let mut pipeline = pipeline();
        let answer = Header {
            op: Op::GetReply as u8,
            node: 4,
            reply_addr: at(CLIENT).addr,
            reply_port: 9000,
            ..Header::default()
        };
        let (to, _) = pass(&mut pipeline, CACHE, &answer, &[0; 16]).expect("it is sent on");
        assert_eq!(to, at(CLIENT));
        let other = Header { node: 1, ..answer };
        let refused = Err(DropReason::ReplyNotFromNode);
        assert_eq!(pass(&mut pipeline, CACHE, &other, &[0; 16]), refused);
        assert_eq!(pass(&mut pipeline, CLIENT, &answer, &[0; 16]), refused);
        let written = Header { op: Op::PutReply as u8, ..answer };
        assert_eq!(pass(&mut pipeline, CACHE, &written, &[]), refused, "it answers reads alone");
        let asked = Header { op: Op::Get as u8, key_len: 1, ..Header::default() };
        let loop_ = Err(DropReason::RequestFromNode);
        assert_eq!(pass(&mut pipeline, CACHE, &asked, b"k"), loop_);
    }
}
