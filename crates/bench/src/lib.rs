//! Load on a cluster, for `keyway bench` and `keyway demo`.
//!
//! Each thread drives a client machine of its own on a socket of its own, in batches: no lock, no
//! channel and no other thread stands between a request and its recorded latency.
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![expect(missing_docs, reason = "fields and variants say by their names what they are")]

mod coordinator;
mod directory;
mod link;
mod plan;
mod processor;
mod report;
mod run;
mod worker;

use client::RetransmitBounds;
use cluster::Keyspace;
use console::exit::Failure;
use envelope::Passes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use coordinator::{Coordinators, coordinate};
pub use directory::Directory;
pub use plan::{Coordination, Pace, Plan};
pub use processor::ProcessorTime;
pub use report::{Progress, latency_rows, table_of};
pub use run::{Measured, load, measure};

/// How often people are told how a run goes.
pub const PIECE: Duration = Duration::from_secs(1);

/// Asks what a keyspace is.
pub fn describe(
    services: &[SocketAddr],
    name: &str,
    deadline: Duration,
    passes: Option<&Passes>,
) -> Result<Arc<Keyspace>, Failure> {
    let retransmit = RetransmitBounds::default();
    link::Link::open(services, deadline, retransmit, 1, passes)?.describe(name)
}
