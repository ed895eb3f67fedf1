//! Datagrams in batches: many to a system call, in buffers that are allocated once, and as bundles
//! where the kernel can. Whoever sends or receives datagrams does it with this.
//!
//! Most of what a datagram costs is its way through the kernel. So what is alike goes that way as
//! one message, is cut apart at its end, or not even there: a receiver gets the bundle as it is and
//! cuts it where it lies.

mod inbound;
mod outbound;
mod overflow;
mod row;
mod socket;
#[cfg(test)]
mod tests;

pub use inbound::{Inbound, Received};
pub use outbound::Outbound;
pub use overflow::Overflow;
pub use socket::{Family, Socket};

/// Datagrams that a receiver takes in one turn at most, and that are sent in one. What a switch
/// sends in one turn is shared by all its nodes, so that a batch makes as many shorter bundles; but
/// a batch is also how long a new command can wait.
pub const BATCH_MAX: usize = 256;
