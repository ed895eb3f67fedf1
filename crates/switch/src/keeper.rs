//! Somebody else's directory.

use crate::Moment;
use std::fmt::Debug;
use wire::HEADER_LEN;

/// Who keeps the coherence directory in the place of a pipeline that deals with what is left to it,
/// as the switch in the kernel does for the sockets behind it.
///
/// Such a pipeline sends reads to their tails, without stamps. That is always right, and only the
/// keeper spreads them.
pub trait Keeper: Debug + Send + Sync {
    /// Takes note of what a reply from the node that its header names says of a key (rules 3 and 4
    /// of section 8), before it is sent on, and says whether it may be.
    fn note(&self, header: &[u8; HEADER_LEN]) -> bool;

    /// The moment of the switch (section 9).
    fn moment(&self) -> Moment;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pipeline;
    use cluster::{
        Lease, Life, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchControl as _,
        SwitchTables,
    };
    use machine::{Instant, Outbox};
    use std::net::SocketAddr;
    use std::sync::Arc;
    use wire::{DropReason, Endpoint, Fields as _, Header, Op, hop_flag};

    const NOW: Instant = Instant::from_unix_ms(1_000);

    /// Lets through what shows no version above this.
    #[derive(Debug)]
    struct UpTo(u64);

    impl Keeper for UpTo {
        fn note(&self, header: &[u8; HEADER_LEN]) -> bool {
            header.object_version() <= self.0
        }

        fn moment(&self) -> Moment {
            Moment { present: 7, beginning: 5 }
        }
    }

    fn at(port: u16) -> Endpoint {
        SocketAddr::from(([10, 0, 0, 1], port)).into()
    }

    /// A pipeline at work behind a keeper, with one node.
    fn behind() -> Pipeline {
        let mut pipeline = Pipeline::behind(Life(1), Arc::new(UpTo(5)));
        let lease = Lease { life: Life(1), revision: 0, from: NOW, duration_ms: 1 };
        pipeline.renew(NOW, &lease);
        let node = NodeSpec { id: NodeId(1), endpoint: at(9000), shards: 1 };
        let whole = Partition {
            id: PartitionId(1),
            last: Match(u128::MAX),
            chain: [NodeId(1)].into_iter().collect(),
            open: true,
            ..Partition::default()
        };
        let tables =
            SwitchTables { revision: 1, active: true, nodes: vec![node], partitions: vec![whole] };
        pipeline.install(&tables).expect("sound tables");
        pipeline
    }

    /// What leaves for a datagram of this operation, with these bytes in the place of `moment`.
    fn header_of(op: Op, from: Endpoint, first_sent: u64) -> [u8; HEADER_LEN] {
        let client = at(9);
        let mut header = [0; HEADER_LEN];
        let (reply_addr, reply_port) = (client.addr, client.port);
        Header { op: op as u8, reply_addr, reply_port, ..Header::default() }.write(&mut header);
        if op.is_reply() {
            header.set_node(1);
        } else {
            header.set_moment(first_sent);
        }
        let mut out = Outbox::default();
        behind().process(NOW, from, &mut header, &mut out).expect("nothing is dropped");
        *out.pop().and_then(|it| it.payload.first_chunk()).expect("a header")
    }

    #[test]
    fn the_moment_is_the_keepers() {
        assert_eq!(header_of(Op::DelReply, at(9000), 0).told(), 7);
        assert_eq!(header_of(Op::HotCover, at(9000), 0).told(), 0, "that is for a node");
        for (first_sent, old) in [(0, true), (4, true), (5, false), (9, false)] {
            let header = header_of(Op::Put, at(7), first_sent);
            let flags = if old { hop_flag::OLD } else { 0 };
            assert_eq!((header.moment(), header.hop_flags()), (7, flags));
        }
        assert!(!behind().counters().roams, "it would need a table of stamps");
    }

    #[test]
    fn what_the_keeper_cannot_note_is_not_sent_on() {
        let mut pipeline = behind();
        let mut passes = |op: Op, from, object_version| {
            let (addr, port) = (at(9).addr, 9);
            let header = Header {
                op: op as u8,
                node: 1,
                object_version,
                reply_addr: addr,
                reply_port: port,
                ..Header::default()
            };
            let (mut bytes, mut out) = (Vec::new(), Outbox::default());
            wire::emit(&mut bytes, &header, &[]);
            pipeline.process(NOW, from, &mut bytes, &mut out).map(|()| out.pop().map(|it| it.to))
        };
        assert_eq!(passes(Op::GetReply, at(9000), 5), Ok(Some(at(9))));
        assert_eq!(passes(Op::HotCover, at(9000), 6), Err(DropReason::Contended));
        assert_eq!(
            passes(Op::MgetReply, at(9000), 6),
            Ok(Some(at(9))),
            "it says nothing of one key"
        );
        assert_eq!(passes(Op::Get, at(7), 6), Ok(Some(at(9000))), "nor does a request");
        assert_eq!(passes(Op::GetReply, at(8), 6), Err(DropReason::ReplyNotFromNode));
    }
}
