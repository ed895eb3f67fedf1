//! A deterministic world: clients, switch, nodes and controller run together on virtual time, over
//! a network that loses, doubles and reorders, and crash and come back; what the clients saw is
//! checked against what they were promised.
//!
//! The machines are the real ones; only sockets, clocks and disks are simulated. One seed is one
//! run, event for event.

mod actor;
mod disk;
mod history;
pub mod lincheck;
mod net;
mod options;
mod world;

pub use options::Options;
pub use world::{Outcome, Stats, run};
