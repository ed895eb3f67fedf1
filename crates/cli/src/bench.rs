//! Load on a cluster, for `keyway bench` and `keyway demo`.
//!
//! Each thread drives a client machine of its own on a socket of its own, in batches: no lock, no
//! channel and no other thread stands between a request and its recorded latency.

mod link;
mod plan;
mod report;
mod run;
mod worker;

use crate::exit::Failure;
use client::RetransmitBounds;
use cluster::Keyspace;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use plan::{Multigets, Pace, Plan};
pub(crate) use report::{Progress, latency_rows, table_of};
pub(crate) use run::{Measured, load, measure};

/// How often people are told how a run goes.
pub(crate) const PIECE: Duration = Duration::from_secs(1);

/// Asks what a keyspace is.
pub(crate) fn describe(
    services: &[SocketAddr],
    name: &str,
    deadline: Duration,
) -> Result<Arc<Keyspace>, Failure> {
    link::Link::open(services, deadline, RetransmitBounds::default(), 1)?.describe(name)
}
