//! Whatever is not a plain datagram for the service passes: nothing changed, nothing counted.

use crate::stand::{GATEWAY, OWN, Outcome, SERVICE, XDP_PASS, ready};
use cluster::{Epoch, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables};
use std::net::{Ipv4Addr, SocketAddr};
use testkit::frame::{self, Addresses, HEADERS};
use wire::{Endpoint, Header, MgetKey, Op, Revision};

pub(crate) const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 1, 0, 1), 40_000);

/// One partition on one node.
pub(crate) fn tables(node: SocketAddr) -> SwitchTables {
    let partition = Partition {
        id: PartitionId(1),
        keyspace: KeyspaceId(1),
        first: Match(0),
        last: Match(u128::MAX),
        epoch: Epoch(1),
        chain: [NodeId(1)].into_iter().collect(),
        open: true,
        ..Partition::default()
    };
    let node = NodeSpec { id: NodeId(1), endpoint: Endpoint::from(node), shards: 1 };
    SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(1),
        active: true,
        nodes: vec![node],
        partitions: vec![partition],
    }
}

/// A frame with a GET that the switch forwards.
pub(crate) fn get() -> Vec<u8> {
    let header = Header { op: Op::Get as u8, keyspace: 1, key_len: 3, ..Header::default() };
    let mut datagram = Vec::new();
    wire::emit(&mut datagram, &header, &[b"key"]);
    framed(&datagram)
}

/// A frame with an MGET that the switch splits.
fn mget() -> Vec<u8> {
    let header = Header { op: Op::Mget as u8, keyspace: 1, bitmap: 0b111, ..Header::default() };
    let keys = (1..=3).map(|at| MgetKey { match_value: at, keyhash: 0, key: b"key" });
    let mut datagram = Vec::new();
    wire::emit_mget(&mut datagram, &header, keys);
    framed(&datagram)
}

fn framed(datagram: &[u8]) -> Vec<u8> {
    let to = (*SERVICE.ip(), SERVICE.port());
    frame::build(&Addresses { dmac: OWN, smac: GATEWAY, from: CLIENT, to }, datagram)
}

/// The frame with other bytes at some places.
fn with(frame: &[u8], changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    for (at, bytes) in changes {
        frame[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    frame
}

const TYPE_AT: usize = 12;
const IP_AT: usize = 14;
const PROTOCOL_AT: usize = IP_AT + 9;
const UDP_AT: usize = IP_AT + 20;

/// Frames made of one that is for the switch.
fn strangers(ours: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let ip_len = ours.len() - IP_AT;
    let len = |len: usize| u16::try_from(len).unwrap().to_be_bytes();
    let mut options = with(ours, &[(IP_AT, &[0x46]), (IP_AT + 2, &len(ip_len + 4))]);
    options.splice(UDP_AT..UDP_AT, [1, 1, 1, 1]);
    let mut vlan = ours.to_vec();
    vlan.splice(TYPE_AT..TYPE_AT, [0x81, 0, 0, 7]);
    vec![
        ("ARP", with(ours, &[(TYPE_AT, &[0x08, 0x06])])),
        ("IPv6", with(ours, &[(TYPE_AT, &[0x86, 0xdd]), (IP_AT, &[0x60])])),
        ("VLAN", vlan),
        ("IP version", with(ours, &[(IP_AT, &[0x55])])),
        ("IP options", options),
        ("ICMP", with(ours, &[(PROTOCOL_AT, &[1])])),
        ("TCP to the service", with(ours, &[(PROTOCOL_AT, &[6])])),
        ("another UDP port", with(ours, &[(UDP_AT + 2, &len(7701))])),
        ("another address", with(ours, &[(IP_AT + 16, &[10, 9, 9, 8])])),
        ("first fragment", with(ours, &[(IP_AT + 6, &[0x20, 0])])),
        ("later fragment", with(ours, &[(IP_AT + 6, &[0, 9])])),
        ("last hop", with(ours, &[(IP_AT + 8, &[1])])),
        ("IP says too little", with(ours, &[(IP_AT + 2, &len(ip_len - 1))])),
        ("IP says too much", with(ours, &[(IP_AT + 2, &len(ip_len + 1))])),
        ("UDP says too little", with(ours, &[(UDP_AT + 4, &len(ip_len - 21))])),
        ("UDP says too much", with(ours, &[(UDP_AT + 4, &len(ip_len - 19))])),
        ("UDP says nothing", with(ours, &[(UDP_AT + 4, &[0, 0])])),
    ]
}

#[test]
fn strangers_pass_untouched() {
    let Some((stand, program)) = ready("strangers pass untouched") else { return };
    let mut switch = stand.switch(program, true);
    switch.install(&tables(SocketAddr::from(([10, 2, 0, 1], 9000))));
    let mut passed = 0;
    for ours in [get(), mget()] {
        for (what, frame) in strangers(&ours) {
            // `hand` compares what comes out with what went in.
            assert_eq!(switch.hand(&frame), Outcome::Left, "{what}");
            passed += 1;
        }
        // Cut anywhere: the headers then say more than there is.
        for len in IP_AT..UDP_AT {
            let cut = &ours[..len];
            // The kernel does not hand these to tc in a test.
            let one = switch.plane.program().run("keyway_one", cut, stand.ifindex, 1).unwrap();
            assert_eq!((one.action, &one.frame[..]), (XDP_PASS, cut), "cut to {len} bytes");
            passed += 1;
        }
        for len in UDP_AT..ours.len() {
            assert_eq!(switch.hand(&ours[..len]), Outcome::Left, "cut to {len} bytes");
            passed += 1;
        }
        assert_eq!(switch.counts(), Default::default(), "what passes is not counted");
        assert!(ours.len() > HEADERS);
    }
    // Had they all passed because nothing works, these would too.
    for ours in [get(), mget()] {
        assert!(matches!(switch.hand(&ours), Outcome::Dealt(sent) if sent.len() == 1));
    }
    println!("{passed} frames passed");
}
