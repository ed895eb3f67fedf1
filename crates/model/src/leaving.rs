//! Members that leave for a while: nodes that are asked to end, are away, and come back.
//!
//! These are the rules E1 to E5, E7, E8 and E11 of `spec/protocol.md`, section 7, "Members that
//! leave for a while", for the nodes of one chain and the switch before it:
//!
//! - E1. A node that is asked to end leaves, until its process has ended.
//! - E2. Its chain is closed if another member serves that does not leave, and opens without it
//!   when all have settled, the node too.
//! - E3. The map notes it as away: it keeps what it holds, and serves none of it.
//! - E4, F8. When it is in no chain it is fenced, for as long as it leaves.
//! - E5. It may end when it is in no chain that others can go on with, and, unless it is alone in
//!   one, is fenced and severed from the switch.
//! - E7. When it is back it is taken into the closed chain that has settled without it, and by
//!   itself it is never believed.
//! - E8. It is compared like others. Who is behind is sent what it lacks.
//! - E11. It may end at any time, as if it crashed. One that crashes while it leaves is away, too.
//!
//! Meanwhile others crash and start anew, or are given up, before, while and after the chain is
//! handed on. Any member may be asked to end; the head and the tail change places at any opening.
//!
//! # What is promised
//!
//! - *What is acknowledged is shown*: every node that would answer a read has committed all that
//!   was acknowledged so far. As a tail acknowledges what it commits, reads and writes are
//!   linearizable.
//! - *Nobody waits for a node that ended when it might*: a switch sends such a node nothing, and
//!   the map has it in no chain. A node that was alone in a chain when it was told is not meant:
//!   nobody could go on without it.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - Orders come late or never, but only the newest one is on its way: an older one that comes late
//!   is one that came in time to a node that did nothing since.
//! - A node is taken out of a chain only when it does not run. That it may run on, and that nobody
//!   reaches it then, is the business of [`fence`](crate::fence).
//! - A crashed node keeps its disk. Older copies of it are the business of
//!   [`Returning`](crate::Returning), whose stores and comparison these are.
//! - Who is behind is sent all that it lacks in the step in which the chain opens. How that goes on
//!   beside writes is the business of [the first model](crate).
//! - `stable` rises when a chain has settled and at no other time: a lower one only has more sent.
//!
//! # What is not in it
//!
//! Chains whose members do not unite what is pending (`sends_early`, section 6), as those of mixed
//! versions do. There a member that ended before it had settled, and is taken back as the last of
//! the closed chain, commits what it has pending by itself: see [`Bug::CommitForBeingLast`].
//!
//! Whether others are copied what an absent node holds (E6), for how long it is waited for (E9),
//! the switch that leaves (E10), and delegated writes that others may ask for (E5).

mod controller;
mod rules;
mod scope;
mod state;

pub use rules::Action;
pub use scope::{Bug, Rules, Scope};
pub use state::{End, Map, NODES_MAX, Node, World};
