//! The control plane as a machine: who belongs to the cluster, which chain of nodes serves which
//! partition, and the orders that bring switches and nodes up to date.
//!
//! A [`Controller`] decides and remembers; it neither sends nor stores. Its driver
//!
//! 1. makes what [`Controller::poll_save`] gives durable, then calls [`Controller::handle_saved`];
//! 2. delivers each order of [`Controller::poll_order`] and answers it with exactly one
//!    [`Controller::handle_report`] or [`Controller::handle_silence`];
//! 3. drains both after every call, then waits for an answer or for
//!    [`Controller::poll_timeout`].
//!
//! No order leaves before the decision that it carries is durable, so a controller that comes back
//! never contradicts what a member has heard. A driver whose store refuses a save must end: what
//! the store then holds is unknown.
//!
//! Deliberately absent so far: repair of chains, rebalancing, and leases. The map changes when a
//! keyspace is created, a node is taken in or the configuration changes, by nothing else.

mod config;
mod controller;
mod decisions;
mod keyspace;
mod peer;
mod saved;
mod status;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, ControllerConfig, SWITCHES_MAX};
pub use controller::Controller;
pub use decisions::{DECISIONS_MAX, Decision};
pub use keyspace::{CreateError, KeyspaceSpec};
pub use saved::{FORMAT, Saved};
pub use status::{KeyspaceStatus, MemberState, MemberStatus, NodeLoad, PartitionStatus, Status};
