//! Chains whose members send a write on before it is on their disks.
//!
//! A model of its own, because disks that lag behind what was said multiply the states. A member
//! records a write, sends it on at once, and tells the last of the chain when its disk has it; the
//! last commits what everybody has. Power goes at one node, at several or at all, and takes
//! whatever was not synced; nodes go for good; chains close, unite what is pending, settle and
//! open; nodes are copied to and become members. One message of each kind may arrive at any time
//! while its epoch lasts, again, or never.
//!
//! A disk takes all that a node holds in one step. That it took a part of it before power went is
//! another sync, of which nothing was said in time. Leases and fences are the business of
//! [`fence`](crate::fence), old copies of disks that of [`Returning`](crate::Returning): here a
//! member is left behind only when it does not run.

mod rules;
mod scope;
mod state;
mod steps;

pub use scope::{Bug, Rules, Scope};
pub use state::{Chain, Life, Message, NODES_MAX, Node, Store, VERSIONS_MAX, World};
pub use steps::Action;
