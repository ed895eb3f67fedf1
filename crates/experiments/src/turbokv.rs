//! The experiments of TurboKV (section 8) with real packets, in a lab: who finds the node that a
//! request is for, and what that costs.
//!
//! Each node has a network namespace of its own and a coordinator beside it, and all share one
//! machine. So what counts is processor time: that of all, and that of the node that has most to
//! do, which bounds a rack whose nodes have processors of their own.

mod latency;
mod stage;
mod throughput;

use crate::paper::Figure;
use crate::paper::turbokv::{Exhibit, TurboKvSettings};
use console::exit::Failure;
use lab::plane::Plane;
use lab::rack::NODES_MAX;
use stage::Stand;

/// What an experiment in a lab takes besides what it takes in virtual time.
#[derive(Clone, Debug)]
pub(crate) struct RealTerms {
    /// Name of the lab.
    pub(crate) lab: String,
    pub(crate) plane: Plane,
    /// Requests that wait at any time in a closed loop.
    pub(crate) in_flight: usize,
    /// How often each trial is done.
    pub(crate) rounds: u64,
}

/// Makes a figure or a table.
///
/// # Errors
///
/// If it takes virtual time, or there are more nodes than a lab has, or the rack fails.
pub(crate) fn make(
    exhibit: Exhibit,
    settings: &TurboKvSettings,
    terms: &RealTerms,
) -> Result<Figure, Failure> {
    if settings.nodes > NODES_MAX {
        return Err(Failure::usage(format!("--nodes: at most {NODES_MAX} with --real")));
    }
    let skew = exhibit.skew();
    match exhibit {
        Exhibit::Figure(13) => {
            Stand::with(settings, terms, |stand| throughput::figure(settings, stand))
        }
        Exhibit::Figure(14 | 15) | Exhibit::Table(1 | 2) => {
            Stand::with(settings, terms, |stand| latency::figure(exhibit, skew, settings, stand))
        }
        Exhibit::Figure(_) | Exhibit::Table(_) | Exhibit::Migration | Exhibit::Filling => {
            Err(Failure::usage(format!("{exhibit} is made in virtual time: leave out --real")))
        }
    }
}
