//! What clients ask for.

use bench::Pace;
use std::time::Duration;
use workload::{Distribution, Mix};

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct MultigetLoad {
    pub(crate) mix: Mix,
    pub(crate) distribution: Distribution,
    pub(crate) pace: Pace,
    pub(crate) time: Duration,
    /// How long its pieces are.
    pub(crate) piece: Duration,
    pub(crate) seed: u64,
}

/// Hosts of clients, each with a thread that is one.
pub(crate) const CLIENTS: u16 = 2;

impl MultigetLoad {
    /// What one request at a time asks for.
    pub(crate) fn light(mix: Mix) -> Self {
        let pace = Pace::Closed(usize::from(CLIENTS));
        let time = Duration::from_millis(100);
        Self { mix, distribution: Distribution::Uniform, pace, time, piece: time, seed: 1 }
    }
}
