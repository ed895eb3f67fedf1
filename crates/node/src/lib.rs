//! The storage node as a machine: chains, versions, sessions, expiry; and the engines below it.
//!
//! A [`Node`] serves the partitions of one shard. It owns its engine alone, so that cores share
//! nothing. Whatever it answers waits until [`Node::flush`] has made durable what it rests on.
//!
//! A packet's way: [`Node::handle_packet`] checks what every request needs and finds the replica;
//! `read` answers reads; `write` orders writes at the head; `chain` passes them on, commits them
//! at the end and takes the commits back up; `expiry` does the housekeeping. What the controller
//! orders comes in by [`Node::install`] (`assign`); `change` settles a chain that changes and
//! `copy` makes a joiner whole. `heat` knows which keys are asked for most, and `hot` what has been
//! ordered of those: copies on other nodes that answer reads, and trips on which their writes go
//! anywhere.

mod announce;
mod assign;
mod away;
mod batch;
mod big;
mod chain;
mod change;
mod clients;
mod copies;
mod copy;
mod counters;
mod cover;
mod digest;
mod directory;
mod duty;
mod ended;
pub mod engine;
mod expiry;
mod gauges;
mod heat;
mod history;
mod homecoming;
mod hot;
mod marks;
mod node;
mod notes;
mod numbers;
mod piece;
mod read;
mod replica;
mod reply;
mod report;
mod roam;
mod room;
mod seats;
mod serve;
mod session;
mod spread;
#[cfg(test)]
mod tests;
mod tidy;
mod timers;
mod totals;
mod trips;
mod turn;
mod verify;
mod withheld;
mod write;

pub use big::PartTimes;
pub use counters::Counters;
pub use heat::{ALERT_REST, HOT_MAX};
pub use node::{Node, NodeConfig};
pub use room::MemoryLimit;
pub use seats::on_record;
