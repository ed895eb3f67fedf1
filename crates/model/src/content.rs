//! Content routing: requests that no switch has stamped, by routes that may lead anywhere.
//!
//! These are the rules of `spec/protocol.md`, section 13: a node that gets such a request looks
//! whether it is the head or the tail of the open partition at that moment, under a lease of its
//! own, and stamps it itself. [The model of chains](crate) has all of replication, and lets any
//! copy of any request reach any node at any time. This one adds what it leaves out: that a lease
//! ends before the controller goes on and not at once, that reads are under way for as long as they
//! like, and that outcomes are forgotten.
//!
//! - R1. A node serves a write if it is the head, and a read if it is the tail, by the assignment
//!   that it has installed, if the partition is open there.
//! - R2. It does so only while its lease runs. The controller goes on without a node only when that
//!   is over.
//! - R3. A chain opens when all of it have installed that it is closed, and have the same.
//! - R4. Every member keeps the outcome of every write, whoever was the head. Outcomes go only when
//!   no copy of the request can be on its way.
//!
//! # What is promised
//!
//! A read shows at least what any client had seen when it was sent. A write is applied once, and
//! all answers to it are the same.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - Any copy of a write that was sent may come to any node, at any time, and again, until none is
//!   left. A read comes once; it leads where its route does, which is anywhere.
//! - Versions come in order, and what a node has recorded is on its disk.
//! - Orders of any earlier map may come late. They bring no lease.

mod rules;
mod state;

pub use rules::{Action, Bug, Rules, Scope};
pub use state::{Decision, Map, Node, State};

/// Nodes in the model.
pub const NODES: usize = 3;
