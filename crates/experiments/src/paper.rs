//! The experiments of the papers that Keyway unifies, run with Keyway's own machines in virtual
//! time: what a rack of 32, 128 or 512 slow nodes does, on one laptop and always the same.
//!
//! [`Rack`] is the place, [`Load`] what is asked of it, [`highest`] looks for the rate that it
//! serves in time, an [`Arm`] is one of the ways to spread load that are compared, a
//! [`Finder`] one of those to find nodes, and [`pegasus`],
//! [`switchkv`] and [`turbokv`] make figures of it all.

mod arm;
mod figure;
mod load;
mod netcache;
pub mod pegasus;
mod plot;
mod points;
mod rack;
mod search;
pub mod switchkv;
pub mod turbokv;

pub use arm::Arm;
pub use figure::{Cell, Column, Figure, Table};
pub use load::{Load, Scans, Skew};
pub use plot::{Curve, Panel};
pub use rack::{
    Bounds, CACHED_TIMES_MAX, Caches, CloseLook, Finder, Finding, Learning, Lookup, Losses, Order,
    Pace, Rack, RackSpec, STARTS_FOR, Starts, Store, Trial,
};
pub use search::{Best, IDLE_SHARE, OBJECTIVE_TIMES, highest, objective};
