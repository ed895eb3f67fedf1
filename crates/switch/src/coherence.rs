//! What a pipeline asks of a coherence directory and its table of grants, wherever they are.

use crate::pass::Pass;
use crate::{ClockReading, RuleTable};
use cluster::{KeyspaceId, Match, NodeId};
use std::fmt::Debug;
use wire::{DropReason, Endpoint, Generation, HEADER_LEN, Op, Version};

/// The coherence directory of a switch, with the grants of delegated writes: either the one that
/// its pipelines share, or that of a switch in the kernel, which leaves some packets to them. Each
/// counts what it does with hot keys, in the pipeline's counters or in its own.
pub trait CoherenceDirectory: Debug + Send + Sync {
    /// The clock of the switch (section 9 of `spec/protocol.md`).
    fn clock(&self) -> ClockReading;

    /// Takes note of what a reply of this operation, from this node, says of a key (rules H4 to H9,
    /// D11 and D12), before it is sent on.
    ///
    /// # Errors
    ///
    /// The reason for which it may not be sent on.
    fn note(
        &self,
        pass: &mut Pass<'_>,
        from: (Op, NodeId),
        header: &[u8; HEADER_LEN],
    ) -> Result<(), DropReason>;

    /// How a read of this key, which lies there, is to be stamped, if it is hot (rules H1 to H3).
    /// `at_home`: its client asks for the tail.
    fn select_replica(
        &self,
        pass: &mut Pass<'_>,
        key: (KeyspaceId, u64),
        at: Match,
        at_home: bool,
    ) -> Option<HotRead>;

    /// A write passes, of a key that may be hot, or a goodbye: all requests of its client have
    /// ended (D1).
    fn count_write(&self, pass: &mut Pass<'_>, header: &[u8; HEADER_LEN]);

    /// Whether writes that may be delegated have to be looked at: a key may be delegated, or was.
    /// Must be asked after the clock was read.
    fn delegates(&self) -> bool;

    /// What becomes of a write that may be delegated, whose header still says when it was first
    /// sent. If it is delegated, it is stamped with all but the partition. `home` is where it goes
    /// otherwise, if its head is known.
    ///
    /// # Errors
    ///
    /// The reason for which it is to be dropped.
    fn delegate(
        &self,
        pass: &mut Pass<'_>,
        header: &mut [u8; HEADER_LEN],
        home: Option<Endpoint>,
    ) -> Result<WriteRoute, DropReason>;

    /// Which keys caches hold (section 12 of `spec/protocol.md`).
    fn cache_rules(&self) -> &RuleTable;
}

/// How a read of a hot key is stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotRead {
    /// Number of the key's generation.
    pub generation: Generation,
    /// No answer may be older than this version; `None`: only the tail may answer.
    pub floor: Option<Version>,
    /// Who is to be asked, if not the tail.
    pub reader: Option<NodeId>,
}

/// Which way a write goes that may be delegated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteRoute {
    /// Home, with the version that it was stamped with, or 0.
    Home {
        /// That version.
        version: Version,
        /// Its key is delegated, and there is no room to remember a grant for it. That is counted.
        crowded: bool,
    },
    /// On the delegation that its header names.
    Delegated,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipeline;
    use cluster::{
        Incarnation, Lease, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchControl as _,
        SwitchTables,
    };
    use machine::{Instant, Outbox};
    use std::net::SocketAddr;
    use std::sync::Arc;
    use wire::{
        ClientReply, ClientWrite, DelegationId, DirectoryClock, DropReason, Endpoint, Fields as _,
        GrantedPut, Header, HomeWrite, HotGet, HotMget, KeyReply, Op, Revision, hop_flag,
    };

    const NOW: Instant = Instant::from_unix_ms(1_000);

    /// Lets through what shows no version above this.
    #[derive(Debug)]
    struct UpTo(u64, RuleTable);

    impl CoherenceDirectory for UpTo {
        fn note(
            &self,
            _: &mut Pass<'_>,
            _: (Op, NodeId),
            header: &[u8; HEADER_LEN],
        ) -> Result<(), DropReason> {
            let may = KeyReply::read(header).version <= Version::new(self.0);
            if may { Ok(()) } else { Err(DropReason::Contended) }
        }

        fn clock(&self) -> ClockReading {
            ClockReading { present: DirectoryClock::new(7), beginning: DirectoryClock::new(5) }
        }

        /// Key 1 is hot.
        fn select_replica(
            &self,
            _: &mut Pass<'_>,
            (_, keyhash): (KeyspaceId, u64),
            _: Match,
            at_home: bool,
        ) -> Option<HotRead> {
            let reader = (!at_home).then_some(NodeId(2));
            (keyhash == 1).then_some(HotRead {
                generation: Generation::new(3),
                floor: reader.map(|_| 9).map(Version::new),
                reader,
            })
        }

        fn count_write(&self, _: &mut Pass<'_>, _: &[u8; HEADER_LEN]) {}

        fn delegates(&self) -> bool {
            true
        }

        /// Request 1 is on delegation 3, request 2 was, request 3 has ended, request 4 finds no
        /// room.
        fn delegate(
            &self,
            _: &mut Pass<'_>,
            header: &mut [u8; HEADER_LEN],
            _: Option<Endpoint>,
        ) -> Result<WriteRoute, DropReason> {
            match header.seq() {
                1 => {
                    assert_eq!(
                        ClientWrite::read(header).first_sent,
                        DirectoryClock::new(6),
                        "when it was first sent"
                    );
                    let granted = GrantedPut {
                        delegation: DelegationId::new(3 << 32),
                        ..GrantedPut::default()
                    };
                    granted.write(header);
                    let (chain, len) = wire::chain_bytes([1]);
                    header.set_chain(chain);
                    header.set_chain_len(len);
                    Ok(WriteRoute::Delegated)
                }
                2 => Ok(WriteRoute::Home { version: Version::new(9), crowded: false }),
                3 => Err(DropReason::StaleRequest),
                4 => Ok(WriteRoute::Home { version: Version::NONE, crowded: true }),
                _ => Ok(WriteRoute::Home { version: Version::NONE, crowded: false }),
            }
        }

        fn cache_rules(&self) -> &RuleTable {
            &self.1
        }
    }

    fn at(port: u16) -> Endpoint {
        SocketAddr::from(([10, 0, 0, 1], port)).into()
    }

    /// A pipeline at work behind another directory, with one partition on the first of two nodes.
    fn behind() -> Pipeline {
        let mut pipeline =
            Pipeline::behind(Incarnation(1), Arc::new(UpTo(5, RuleTable::default())));
        let lease = Lease {
            cluster: cluster::ClusterId(0),
            incarnation: Incarnation(1),
            revision: Revision::NONE,
            from: NOW,
            duration_ms: 1,
        };
        pipeline.renew(NOW, &lease);
        let node = |id, port| NodeSpec { id: NodeId(id), endpoint: at(port), shards: 1 };
        let nodes = vec![node(1, 9000), node(2, 9001)];
        let whole = Partition {
            id: PartitionId(1),
            last: Match(u128::MAX),
            chain: [NodeId(1)].into_iter().collect(),
            open: true,
            ..Partition::default()
        };
        let tables = SwitchTables {
            fenced: Vec::new(),
            caches: Vec::new(),
            cluster: cluster::ClusterId(0),
            revision: Revision::new(1),
            active: true,
            nodes,
            partitions: vec![whole],
        };
        pipeline.install(&tables).expect("sound tables");
        pipeline
    }

    /// What leaves for a datagram of this operation, with these bytes in the place of
    /// `directory_clock`.
    fn header_of(op: Op, from: Endpoint, first_sent: u64) -> [u8; HEADER_LEN] {
        let client = at(9);
        let mut header = [0; HEADER_LEN];
        let (reply_addr, reply_port) = (client.addr, client.port);
        Header { op: op as u8, reply_addr, reply_port, ..Header::default() }.write(&mut header);
        if op.is_reply() {
            header.set_node(1);
        } else {
            ClientWrite { first_sent: DirectoryClock::new(first_sent) }.write(&mut header);
        }
        let mut out = Outbox::default();
        behind().process(NOW, from, &mut header, &mut out).expect("nothing is dropped");
        *out.pop().and_then(|it| it.payload.first_chunk()).expect("a header")
    }

    #[test]
    fn the_clock_is_the_other_directorys() {
        assert_eq!(
            ClientReply::read(&header_of(Op::DelReply, at(9000), 0)).clock,
            DirectoryClock::new(7)
        );
        assert_eq!(
            ClientReply::read(&header_of(Op::HotPublish, at(9000), 0)).clock,
            DirectoryClock::NONE,
            "that is for a node"
        );
        for (first_sent, old) in [(0, true), (4, true), (5, false), (9, false)] {
            let header = header_of(Op::Put, at(7), first_sent);
            let flags = if old { hop_flag::OLD } else { 0 };
            assert_eq!(
                (HomeWrite::read(&header).clock, header.hop_flags()),
                (DirectoryClock::new(7), flags)
            );
        }
        assert!(
            !behind().counters().capabilities.delegates,
            "that is the other directory's to say"
        );
    }

    #[test]
    fn reads_of_hot_keys_are_stamped_by_the_other_directory() {
        let sent = |keyhash, flags| {
            let mut bytes = Vec::new();
            let header = Header { op: Op::Get as u8, keyhash, flags, ..Header::default() };
            wire::emit(&mut bytes, &header, &[]);
            let mut out = Outbox::default();
            behind().process(NOW, at(7), &mut bytes, &mut out).expect("it is sent");
            let sent = out.pop().expect("one");
            (sent.to, *sent.payload.first_chunk::<HEADER_LEN>().expect("a header"))
        };
        let (to, header) = sent(1, 0);
        assert_eq!((to, header.hop_flags()), (at(9001), hop_flag::HOT));
        let read = HotGet { floor: Version::new(9), generation: Generation::new(3) };
        assert_eq!(HotGet::read(&header), read);
        assert_eq!((header.chain_len(), header.chain()[..2] == [0, 2]), (1, true));
        let (to, header) = sent(1, wire::flag::AT_HOME);
        let read = HotGet { floor: Version::ABOVE_ALL, ..read };
        assert_eq!((to, HotGet::read(&header)), (at(9000), read));
        assert_eq!((sent(2, 0).0, sent(2, 0).1.hop_flags()), (at(9000), 0));
    }

    #[test]
    fn mgets_of_hot_keys_are_split_by_the_other_directory() {
        let key = |keyhash| wire::MgetKey { match_value: 5, keyhash, key: b"k" };
        let mut bytes = Vec::new();
        let header = Header { op: Op::Mget as u8, bitmap: 0b11, ..Header::default() };
        wire::emit_mget(&mut bytes, &header, [key(1), key(2)].into_iter());
        let mut out = Outbox::default();
        behind().process(NOW, at(7), &mut bytes, &mut out).expect("it is sent");
        let mut next = || {
            let sent = out.pop().expect("two");
            let header = sent.payload.first_chunk::<HEADER_LEN>().expect("a header");
            (sent.to, header.bitmap(), HotMget::read(header).hot)
        };
        assert_eq!([next(), next()], [(at(9001), 1, 1), (at(9000), 2, 0)]);
    }

    #[test]
    fn writes_that_may_be_delegated_are_stamped_by_the_other_directory() {
        let sent = |seq, keeps_expiry: bool| {
            let flags = if keeps_expiry { wire::flag::KEEP_EXPIRY } else { 0 };
            let header = Header { op: Op::Put as u8, flags, client: 8, seq, ..Header::default() };
            let mut bytes = Vec::new();
            wire::emit(&mut bytes, &header, &[&[0; 8]]);
            ClientWrite { first_sent: DirectoryClock::new(6) }
                .write(bytes.first_chunk_mut().expect("a header"));
            let mut out = Outbox::default();
            let done = behind().process(NOW, at(7), &mut bytes, &mut out);
            let header = |it: machine::Datagram<'_>| *it.payload.first_chunk().expect("a header");
            done.map(|()| out.pop().map(header).expect("it is sent"))
        };
        let delegated: [u8; HEADER_LEN] = sent(1, false).expect("it is sent");
        assert_eq!(
            (GrantedPut::read(&delegated).delegation, delegated.partition(), delegated.chain_len()),
            (DelegationId::new(3 << 32), 1, 1)
        );
        assert_eq!(delegated.hop_flags(), hop_flag::GRANTED);
        let home = sent(2, false).expect("it is sent");
        assert_eq!(
            (HomeWrite::read(&home), home.hop_flags()),
            (HomeWrite { granted: Version::new(9), clock: DirectoryClock::new(7) }, 0)
        );
        assert_eq!(sent(3, false), Err(DropReason::StaleRequest));
        assert_eq!(sent(4, false).expect("it is sent").hop_flags(), hop_flag::CROWDED);
        let other = sent(3, true).expect("it may not delegate");
        let stamped = HomeWrite { granted: Version::NONE, clock: DirectoryClock::new(7) };
        assert_eq!(HomeWrite::read(&other), stamped);
    }

    #[test]
    fn what_the_other_directory_cannot_note_is_not_sent_on() {
        let mut pipeline = behind();
        let mut passes = |op: Op, from, version| {
            let (addr, port) = (at(9).addr, 9);
            let mut header = Header {
                op: op as u8,
                node: 1,
                reply_addr: addr,
                reply_port: port,
                ..Header::default()
            };
            KeyReply { version }.put(&mut header);
            let (mut bytes, mut out) = (Vec::new(), Outbox::default());
            wire::emit(&mut bytes, &header, &[]);
            pipeline.process(NOW, from, &mut bytes, &mut out).map(|()| out.pop().map(|it| it.to))
        };
        assert_eq!(passes(Op::GetReply, at(9000), Version::new(5)), Ok(Some(at(9))));
        assert_eq!(passes(Op::HotPublish, at(9000), Version::new(6)), Err(DropReason::Contended));
        assert_eq!(
            passes(Op::MgetReply, at(9000), Version::new(6)),
            Ok(Some(at(9))),
            "it says nothing of one key"
        );
        assert_eq!(
            passes(Op::Get, at(7), Version::new(6)),
            Ok(Some(at(9000))),
            "nor does a request"
        );
        assert_eq!(passes(Op::GetReply, at(8), Version::new(6)), Err(DropReason::ReplyNotFromNode));
    }
}
