//! Datagrams in batches: many to a system call, in buffers that are allocated once.

mod batch;
mod inbound;
mod outbound;
mod overflow;
mod socket;
#[cfg(test)]
mod tests;

pub use inbound::{Inbound, Received};
pub use outbound::Outbound;
pub use overflow::Overflow;
pub use socket::{Family, Socket};

/// Datagrams of one system call at most. Larger batches gain little per datagram, and a batch is
/// also how long a new command can wait.
pub const BATCH_MAX: usize = 64;

/// Bytes of one buffer: more than `wire::DATAGRAM_MAX`, so that a datagram over the limit shows as
/// one, and a multiple of the cache line.
const BUFFER_SIZE: usize = 1536;
const _: () = assert!(BUFFER_SIZE > wire::DATAGRAM_MAX);
