//! Who sends the packets that are measured. The build says it to `bpf/bench.bpf.c`, as constants.

use std::net::Ipv4Addr;

/// Who asks.
pub(crate) const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 1, 0, 1), 40_000);
/// Nodes that replies come from: a power of two.
pub(crate) const NODES: u16 = 16;
/// The network in which all nodes are, each at its id.
pub(crate) const NODES_NET: [u8; 2] = [10, 2];
pub(crate) const NODES_PORT: u16 = 9000;
