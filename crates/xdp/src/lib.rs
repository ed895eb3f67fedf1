//! The switch in the kernel: loads `bpf/`, attaches it to interfaces, and keeps its maps in step
//! with the tables.
//!
//! The program is a fast path beside the user-space switch, not instead of it: both get the same
//! tables and leases, and what the program leaves to the kernel (an address to which no way is
//! known yet, IPv6, fragments, IP options) reaches the socket on the service address.
//!
//! `compile` makes values of maps from the controller's tables, `plane` keeps them in the kernel,
//! `link` attaches, `counters` adds up what each processor has counted. `layout` is generated and
//! says what the records are that both sides know.

mod bytes;
mod compile;
mod counters;
pub mod faults;
pub mod layout;
mod link;
mod maps;
mod plane;
mod program;

pub use plane::{Mode, Plane, Port};
pub use program::{Error, Program, Verdict};
