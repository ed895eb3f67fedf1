//! The switch program as a pure pipeline: a datagram in, rewritten datagrams out.
//!
//! This is sections 3.1 to 3.9 of `spec/protocol.md` and the oracle for every other data plane.
//! It knows no socket, no clock and no thread: whoever runs it calls [`Pipeline::process`] with
//! each datagram that reaches the service address and sends what the outbox then holds. Work per
//! datagram is bounded by `MGET_KEYS_MAX` and `RANGE_PIECES_MAX`, and nothing is allocated once
//! the outbox has grown to its usual size.
//!
//! Modules in the order a packet meets them: `tables` is what it is matched against, `pipeline`
//! parses it and sends replies and single-key requests on, `split` makes many of one, `counters`
//! remembers what happened. `explain` answers people instead of packets.

mod counters;
mod explain;
mod pipeline;
mod split;
mod tables;

pub use counters::{Counters, Loads, PartitionLoad};
pub use explain::{Explanation, explain};
pub use pipeline::Pipeline;
pub use tables::Tables;
