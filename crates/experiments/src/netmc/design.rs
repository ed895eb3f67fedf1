//! What an experiment is: points, and what holds for all of them.

use crate::netmc::arm::Splitter;
use crate::netmc::stage::Sizes;
use lab::plane::Plane;
use std::num::NonZero;
use std::time::Duration;
use workload::{Distribution, Mix};

/// What one figure shows.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) title: &'static str,
    /// What differs between points.
    pub(crate) across: &'static str,
    /// What the groups of points are called that are plotted apart; at least one.
    pub(crate) groups: Vec<&'static str>,
    pub(crate) shows: Shows,
    /// Whether there is a Redis behind each node.
    pub(crate) redis: bool,
    /// Those with as many nodes follow each other, and so do those of a group.
    pub(crate) points: Vec<Point>,
}

/// What is measured at each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Throughput, with as many requests in flight as are allowed.
    Throughput,
    /// That, and the tail of all arms at the same rate.
    Tails,
    /// That, and latencies at many rates.
    Latencies,
}

/// A rack and a load.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// As tables call it.
    pub(crate) name: String,
    /// Of which group it is.
    pub(crate) group: usize,
    pub(crate) nodes: u16,
    pub(crate) sizes: Sizes,
    /// Keys of a multiget, on average.
    pub(crate) keys: f64,
    /// Share of writes, in percent; the rest are multigets.
    pub(crate) writes: u8,
    pub(crate) distribution: Distribution,
}

/// What holds for all points.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) lab: String,
    pub(crate) plane: Plane,
    pub(crate) node_rate: Option<NonZero<u32>>,
    pub(crate) arms: Vec<Splitter>,
    /// Keys of each keyspace.
    pub(crate) keys: u64,
    /// Requests in flight in a closed loop, of all clients.
    pub(crate) in_flight: usize,
    /// How long each trial is looked at.
    pub(crate) time: Duration,
    pub(crate) rounds: u32,
}

impl Point {
    pub(crate) fn mix(&self) -> Mix {
        let writes = f64::from(self.writes) / 100.0;
        // A mean of one key leaves nothing to be drawn.
        let keys = if self.keys > 1.0 { format!("~{}", self.keys) } else { "1".to_owned() };
        let text = match self.writes {
            0 => format!("mget:{keys}=1"),
            100 => "put=1".to_owned(),
            _ => format!("mget:{keys}={},put={writes}", 1.0 - writes),
        };
        text.parse().expect("the shares add up")
    }
}
