//! Who sends the packets that are measured, and for which keys. The build says it to
//! `bpf/bench.bpf.c`, as constants.

use std::net::Ipv4Addr;

/// Who asks.
pub(crate) const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 1, 0, 1), 40_000);
/// Nodes that replies come from: a power of two.
pub(crate) const NODES: u16 = 16;
/// The network in which all nodes are, each at its id.
pub(crate) const NODES_NET: [u8; 2] = [10, 2];
pub(crate) const NODES_PORT: u16 = 9000;
/// Keys that are hot, if any are: a power of two.
pub(crate) const HOT_KEYS: u16 = 1_024;
/// How far their hashes lie apart, from 0 on.
pub(crate) const APART: u32 = 0x9e37_79b1;
/// Keys that a cache holds, if there is one: a power of two, and as many as rules have room.
pub(crate) const CACHED_KEYS: u32 = 65_536;
/// What makes hashes of their numbers, which are spread as those of keys are: each time multiplied,
/// and mixed with its upper half.
pub(crate) const SCATTER: u64 = 0xd6e8_feb8_6659_fd93;
/// Length of the keys.
pub(crate) const KEY_LEN: usize = 16;
/// Where the value lies in the body of a PUT.
pub(crate) const VALUE_AT: u32 = 8 + KEY_LEN as u32;
