//! A deterministic world: clients, switches, nodes and controllers run together on virtual time,
//! over a network that loses, doubles, delays and reorders, and crash and come back, stop and go
//! on, forget, and are replaced; what the clients saw is checked against what they were promised.
//!
//! The machines are the real ones; only sockets, clocks and disks are simulated. One seed is one
//! run, event for event.
//!
//! [`Options::draw`] says what a world is like, [`run`] lets it happen: `world` is who is there
//! and what happens next, `net` and `queue` carry it, `actor` is a client's user, and
//! [`check`] judges.

mod actor;
pub mod check;
mod clock;
mod disk;
mod many;
mod mutants;
mod net;
mod options;
mod outcome;
mod profile;
mod queue;
mod role;
mod routes;
mod twins;
mod world;

pub use many::{in_parallel, run_many};
pub use mutants::{Catch, HUNT_SEEDS, hunt, mutant_name, mutant_named, with_mutant};
pub use options::{Faults, Hostility, Links, Load, Options};
pub use outcome::{Outcome, Stats};
pub use profile::Profile;
pub use world::{Attack, Attacks, Failure, Outages, measure_outages, overhear, run};
