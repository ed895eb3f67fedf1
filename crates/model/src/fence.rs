//! An exhaustive model of fences: how a node or a switch is left behind while its lease runs.
//!
//! These are the rules of `spec/protocol.md`, section 7, "Fences":
//!
//! - The controller goes on without a node when the map *fences* it, and each switch is severed
//!   from it; or when its lease is over. That it is severed is not enough without the fence: the
//!   switch that serves next would send it requests.
//! - A switch is severed from a node when either lease is over; when the node follows a map that
//!   names another switch; or when the switch has confirmed tables, newer than all that had it
//!   serve this node, in which it does not.
//! - A switch begins to serve when the other one is severed from every node, readers of copies too.
//! - A fenced node is let in again when all its shards follow a map at least as new as the one that
//!   went on without it. To have heard of the fence is not enough: MGET names no epoch, and hints
//!   may be wrong.
//! - A takeover waits for the end of the node's right to answer direct requests, whatever is
//!   fenced.
//! - An order names the incarnation of the switch that it is for, as far as its leader has put that
//!   on record: a switch that starts anew forgets whom it has seen deposed, and a leader that was
//!   deposed can put nothing on record.
//! - A key's replies may cease to raise its floor when no switch sends reads to its copies.
//!
//! One key, a chain of two nodes and a third that holds a copy of it, two switches. Members have
//! long leases. The controller goes on without a node, or with another switch, once each pair of a
//! switch and a node that could still serve together is *severed* (`Rules::severed`). The
//! replication of the chain is as simple as it can be, for [the other model](crate) has all of it:
//! versions come in order, and a closed chain commits what it has.
//!
//! # What is promised
//!
//! A read shows at least what any client had seen when the read passed its switch, or, with
//! DIRECT, when it was sent. Since versions of one key are ordered, that is linearizability of
//! reads and writes together.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - Orders of any earlier map may reach any member at any time, or never. They bring no lease: a
//!   lease counts from the report that it answers, so a late one is over.
//! - A member's lease may end at any time. That it ends before the controller counts on it is the
//!   business of `cluster::Lease`.
//! - A reply passes the switch in the step in which it is sent. If it passes later, less was shown
//!   meanwhile, and the floor that it raises is raised in the same step as it is seen.
//! - The controller knows what members have installed as soon as they have. Reports that are late
//!   only delay it.

mod bug;
mod controller;
mod member;
mod network;
mod scope;
mod serve;
mod steps;

pub use bug::Bug;
pub use controller::{Decision, Hot, Map};
pub use member::{Node, Switch};
pub use network::{Packet, Question};
pub use scope::{Rules, Scope};
pub use steps::{Action, Left, State};

/// Switches in the model.
pub const SWITCHES: usize = 2;
/// Nodes in the model: the head and the tail of the first chain, and one that holds a copy.
pub const NODES: usize = 3;
/// The node that holds a copy of the key.
pub const READER: u8 = 2;
