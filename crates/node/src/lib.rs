//! The storage node as a machine: chains, versions, sessions, expiry; and the engines below it.
//!
//! A [`Node`] serves the partitions of one shard. It owns its engine alone, so that cores share
//! nothing. Whatever it answers waits until [`Node::flush`] has made durable what it rests on.
//!
//! A packet's way: [`Node::handle_packet`] checks what every packet needs and finds the replica;
//! `replica::read` answers reads; `replica::head` orders writes at the head; `replica::chain`
//! passes them on, commits them at the end and takes the commits back up; `replica::expiry` does
//! the housekeeping. What the controller orders comes in by [`Node::install`] (`node::assign`);
//! `replica::change` settles a chain that changes and `replica::copy` makes a learner whole. `heat`
//! knows which keys are asked for most, and `hot` what has been ordered of those: copies on other
//! nodes that answer reads, and delegations under which their writes go anywhere. `lending` is what
//! tails lend to caches, and for what writes wait because of it.

pub mod engine;
mod heat;
mod hot;
mod lending;
mod node;
mod replica;
mod shard;
#[cfg(test)]
mod tests;
mod verify;

pub use heat::{ALERT_REST, Frequencies, HOT_MAX, Recent, Seen, Use};
pub use lending::tracker::{InstantReports, PeriodicReports, TrackerConfig};
pub use node::{Node, NodeConfig};
pub use replica::big::parts::PartTimes;
pub use shard::counters::Counters;
pub use shard::replica_records::on_record;
pub use shard::room::MemoryLimit;
