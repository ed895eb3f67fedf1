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
//! What it decides by:
//!
//! - A member serves under a lease that rests on its last report. Only when every lease that it may
//!   have has certainly ended is it taken to be silent ([`LEASE`]).
//! - Every change of a chain is close, settle, open: two new epochs, each durable before anybody
//!   hears of it, and the second only when all nodes of the closed chain have settled.
//! - What a chain is to become is worked out from the map and from what members report, by nothing
//!   else. So a controller that comes back goes on where the last one ended.
//!
//! - Hot keys get copies, of which the active switch hears first, and nodes when it has them.
//!
//! - Where replicas lie and who answers reads follows the room that nodes have, then the load, and
//!   else the number of replicas.

mod absences;
mod capacity;
mod chains;
mod clock;
mod commands;
mod config;
mod controller;
mod decisions;
pub mod election;
mod fences;
mod holdings;
mod hot;
mod incarnations;
mod keyspace;
mod leading;
mod leases;
mod ledger;
mod members;
mod neighbours;
mod orders;
mod placement;
mod rebuild;
mod ring;
mod saved;
mod status;
mod takeover;
#[cfg(test)]
mod tests;
mod verify;

pub use absences::AWAY_MAX;
pub use commands::{CommandError, MoveError, PINS_MAX, RemakeError};
pub use config::{
    COPY_BYTES_PER_S, ConfigError, ControllerConfig, LEASE, LOAD_FLOOR, POLL_INTERVAL, SPLIT_BYTES,
    SWITCHES_MAX,
};
pub use controller::Controller;
pub use decisions::{DECISIONS_MAX, Decision};
pub use hot::{HOT_DECISIONS_MAX, HotAction, HotDecision, HotEffect, HotNews, WhyCopied};
pub use keyspace::{Alteration, CreateError, KeyspaceSpec, PARTITIONS};
pub use placement::{
    Change as PlacementChange, Cut, NodeBurden, PartitionRate, PlacementDecision, PlacementStatus,
    Purpose,
};
pub use rebuild::{Basis, NodePart, PartitionPart, RebuildError, Rebuilt, rebuild};
pub use saved::{FORMAT, Saved};
pub use status::{
    AwaitedStatus, CacheStatus, CopyStatus, DelegationStatus, GenerationStatus, HotStatus,
    KeyspaceStatus, MemberState, MemberStatus, NodeLoad, PartitionStatus, PartitionVerified,
    Protection, STATUS_SCHEMA, Status, StoreStatus, SwitchStatus, VerifyStatus,
};
