//! The storage node as a machine: chains, versions, sessions, expiry; and the engines below it.
//!
//! A [`Node`] serves the partitions of one shard. It owns its engine alone, so that cores share
//! nothing. Whatever it answers waits until [`Node::flush`] has made durable what it rests on.
//!
//! A packet's way: [`Node::handle_packet`] checks what every request needs and finds the replica;
//! `read` answers reads; `write` orders writes at the head; `chain` passes them on, commits them at
//! the end and takes the commits back up; `expiry` does the housekeeping. What the controller
//! orders comes in by [`Node::install`] (`assign`); `change` settles a chain that changes and
//! `copy` makes a learner whole. `heat` knows which keys are asked for most, and `hot` what has
//! been ordered of those: copies on other nodes that answer reads, and delegations under which
//! their writes go anywhere.

mod announce;
mod assign;
mod batch;
mod big;
mod chain;
mod change;
mod clients;
mod copies;
mod copy;
mod counters;
mod deferred;
mod delegated_reads;
mod delegated_writes;
mod delegations;
mod digest;
mod directory;
mod ended;
pub mod engine;
mod expiry;
mod gauges;
mod heat;
mod history;
mod hot;
mod node;
mod notes;
mod numbers;
mod piece;
mod propagation;
mod publish;
mod read;
mod recall;
mod reconcile;
mod registrations;
mod replica;
mod replica_records;
mod reply;
mod report;
mod room;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod tidy;
mod timers;
mod totals;
mod turn;
mod verify;
mod write;

pub use big::PartTimes;
pub use counters::Counters;
pub use heat::{ALERT_REST, HOT_MAX};
pub use node::{Node, NodeConfig};
pub use replica_records::on_record;
pub use room::MemoryLimit;
