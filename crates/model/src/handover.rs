//! Plain writes while one switch hands over to another: none is applied twice.
//!
//! These are the rules D1 to D11, D41 to D49, E10, F6, O11 and O12 of `spec/protocol.md`, sections
//! 7 and 9, for one plain write, the *request*, of one key. The key leaves home for a delegation
//! and comes home again, as orders say; two switches give requests versions of it. The map names
//! one of them, then the other one, and in the longest bounds the first one once more.
//!
//! - D1, D2. A switch keeps what it has granted, also when it forgets its order.
//! - D6, D11. It gives the request a version if that was first sent after the delegation began
//!   here, or by home's word that it was not applied and will not be.
//! - D9. Else it sends it home, with its clock, and as `OLD` if it was first sent before this
//!   directory began.
//! - D41 to D49. Home takes it only if it was certainly not delegated. Where that is not known, it
//!   answers `closed` if a copy that passes later can show it, else `uncertain`.
//! - E10. A switch leaves in order when it has said that it has an order without delegations, home
//!   and nodes have it too, and every recall is done. It may be lost at any other moment.
//! - O11. After a switch that left in order the directory of the next one begins with the first
//!   order that the one before said it has after its last one with a delegation. After one that
//!   was lost, or if the next one has crashed since, it begins with its own first order.
//! - F6, O12. A switch that served before stands by before it is named again, and takes no order
//!   that was given for the time before that.
//!
//! Besides, switches crash and are other incarnations then, and are without a lease, which makes
//! them forget their order.
//!
//! # What is promised
//!
//! *The request takes effect at most once*: at home, or under one delegation.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - The network is the set of what was ever sent. Any of it may arrive at any time, again, or
//!   never, as long as nodes take anything from its switch. Orders come in any order, and late.
//! - The client sends its request all the time, and by both switches. Its clock is that of either
//!   of them when it first did, or 0: it has heard from one, or from none.
//! - Others ask for the key all the time. So its switch is told at once that it is delegated, and
//!   the delegation begins there whenever it likes.
//! - The nodes of delegations are one. Which of them must answer, and what of their disks, is the
//!   business of [`delegated`](crate::delegated).
//! - Versions are left out: a delegation that has any write when it is over has the request if
//!   that was sent under it, or a newer one, which is as good.
//! - A lease that ends is a step in which the switch forgets its order. Nodes take requests from
//!   one switch, and from the other one later: that the first reaches nobody by then is the
//!   business of [`fence`](crate::fence).
//! - Room, marks (D4) and goodbyes only take grants away that nobody asks for.
//!
//! # What does no harm
//!
//! That what a switch has said is named after it was lost, too: O11 does not rest on that within
//! these bounds.

mod controller;
mod rules;
mod scope;
mod state;
mod switch;

pub use rules::Action;
pub use scope::{Bug, Rules, Scope};
pub use state::{
    Clock, Controller, Home, Left, Nodes, ORDERS_MAX, OVER_MAX, Order, Over, Packet, Process,
    SWITCHES, Switch, World,
};
