//! Asking the kernel what it would do with a request, without sending one.

use crate::layout::{Node, Totals};
use crate::maps;
use crate::program::{Error, PASS, Program};
use cluster::{Epoch, KeyspaceId, Match, NodeId, PartitionId};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};
use wire::{CHAIN_MAX, DropReason, HEADER_LEN, Header, Op};

/// A program that works on the maps of an attached one and counts for itself: it sees what is in
/// them at that time, and nobody sees that it was asked.
#[derive(Debug)]
pub struct Shadow {
    program: Program,
    service: SocketAddrV4,
    nodes: MapHandle,
    totals: MapHandle,
}

/// What becomes of a request in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It is sent to a node.
    Sent {
        /// Where the node takes it.
        to: SocketAddrV4,
        /// Through which interface.
        port: String,
        /// What is stamped: the partition,
        partition: PartitionId,
        /// its configuration number,
        epoch: Epoch,
        /// and the nodes that it walks through.
        chain: Vec<NodeId>,
    },
    /// It is dropped.
    Dropped {
        /// The name of the [`DropReason`].
        reason: String,
    },
    /// It is left to the switch's own socket: the kernel knows no way to the node yet.
    Left,
    /// It would be sent through an interface that is not one of the switch's, and is lost.
    Lost,
}

/// Whose request it is that is tried out: an address that no machine has (RFC 5737), and the port
/// for "discard".
const ASKER: (Ipv4Addr, u16) = (Ipv4Addr::new(192, 0, 2, 1), 9);

/// Where things are in a frame without options.
const IP_AT: usize = 14;
const UDP_AT: usize = IP_AT + 20;
const DATAGRAM_AT: usize = UDP_AT + 8;
/// Where the addressee stands.
const TO_AT: usize = IP_AT + 16;
const TO_PORT_AT: usize = UDP_AT + 2;

const XDP_DROP: u32 = 1;
const XDP_REDIRECT: u32 = 4;

impl Shadow {
    pub(crate) fn new(program: Program, service: SocketAddrV4) -> Self {
        let (nodes, totals) = (program.map("nodes"), program.map("own"));
        Self { program, service, nodes, totals }
    }

    /// What the maps now say about a GET, PUT, DEL, CAS, INCR, BATCH or GOODBYE. (MGETs and RANGEs
    /// are cut up by the tc program, which would send the pieces.)
    ///
    /// # Errors
    ///
    /// If the kernel does not run the program.
    ///
    /// # Panics
    ///
    /// If it is for another operation.
    pub fn ask(&self, op: Op, keyspace: KeyspaceId, at: Match) -> Result<Fate, Error> {
        let single = op == Op::Get || op.is_for_head();
        assert!(single, "{op:?} is not for one key");
        maps::zero(&self.totals, 0)?;
        let frame = request(self.service, op, keyspace, at);
        let verdict = self.program.run("keyway_one", &frame, 0, 1)?;
        match verdict.action {
            PASS => Ok(Fate::Left),
            XDP_REDIRECT => self.sent(&verdict.frame),
            XDP_DROP => {
                let reason = self.reason()?;
                Ok(Fate::Dropped { reason: reason.map_or("unknown", DropReason::name).into() })
            }
            _ => Ok(Fate::Lost),
        }
    }

    /// Reads a frame that is to be sent.
    fn sent(&self, frame: &[u8]) -> Result<Fate, Error> {
        let whole = "the program sends no less than it was given";
        let addr: [u8; 4] = crate::bytes::get(frame, TO_AT).expect(whole);
        let to_port = u16::from_be_bytes(crate::bytes::get(frame, TO_PORT_AT).expect(whole));
        let header: [u8; HEADER_LEN] = crate::bytes::get(frame, DATAGRAM_AT).expect(whole);
        let header = Header::read(&header);
        let ids = header.chain.as_chunks::<2>().0.iter().map(|id| u16::from_be_bytes(*id));
        let len = usize::from(header.chain_len).min(CHAIN_MAX);
        let chain: Vec<NodeId> = ids.take(len).map(NodeId).collect();
        let port = self.out_of(chain.first().map_or(0, |id| id.0))?;
        Ok(Fate::Sent {
            to: SocketAddrV4::new(addr.into(), to_port),
            port,
            partition: PartitionId(header.partition),
            epoch: Epoch(header.epoch),
            chain,
        })
    }

    /// The name of the interface by which a node is reached.
    fn out_of(&self, node: u16) -> Result<String, Error> {
        let found = self.nodes.lookup(&u32::from(node).to_ne_bytes(), MapFlags::ANY);
        let what = || "reading the map nodes".to_owned();
        let found = found.map_err(|why| Error::Kernel { what: what(), why })?;
        let ifindex = found.and_then(|it| Node::from_bytes(&it)).map_or(0, |node| node.ifindex);
        let name = nix::net::if_::if_indextoname(ifindex);
        let unnamed = || format!("interface {ifindex}");
        Ok(name.map_or_else(|_| unnamed(), |name| name.to_string_lossy().into_owned()))
    }

    /// The reason that was counted since the counters were zero.
    fn reason(&self) -> Result<Option<DropReason>, Error> {
        let all = maps::per_processor(&self.totals, 0)?;
        let totals = all.iter().filter_map(|value| Totals::from_bytes(value));
        let counted = totals.filter_map(|it| it.dropped.iter().position(|count| *count > 0));
        let byte = counted.filter_map(|index| u8::try_from(index).ok()).next();
        Ok(byte.and_then(DropReason::from_wire))
    }
}

/// The frame of a request. Its checksums are nobody's business: it never leaves.
fn request(service: SocketAddrV4, op: Op, keyspace: KeyspaceId, at: Match) -> Vec<u8> {
    let header =
        Header { op: op as u8, keyspace: keyspace.0, match_value: at.0, ..Header::default() };
    let mut frame = vec![0; DATAGRAM_AT];
    let len = wire::emit(&mut frame, &header, &[]);
    let len = |before| u16::try_from(before + len).expect("headers are short").to_be_bytes();
    let fields: [(usize, &[u8]); 10] = [
        (IP_AT - 2, &[8, 0]),
        (IP_AT, &[0x45]),
        (IP_AT + 2, &len(28)),
        (IP_AT + 8, &[64, 17]),
        (IP_AT + 12, &ASKER.0.octets()),
        (TO_AT, &service.ip().octets()),
        (UDP_AT, &ASKER.1.to_be_bytes()),
        (TO_PORT_AT, &service.port().to_be_bytes()),
        (UDP_AT + 4, &len(8)),
        (UDP_AT + 6, &[0, 0]),
    ];
    for (at, bytes) in fields {
        crate::bytes::put(&mut frame, at, bytes);
    }
    frame
}
