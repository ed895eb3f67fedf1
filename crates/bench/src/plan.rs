//! What is to be measured, in full: what a report repeats so that a run can be repeated.

use super::directory::Directory;
use client::RetransmitBounds;
use cluster::{Keyspace, Map};
use console::connect;
use envelope::Passes;
use machine::Rng;
use serde::Serialize;
use serde::ser::Serializer;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use workload::{KeyNames, MgetSizes, OpKind, Spec, Values};

/// Everything that a run depends on, but the cluster.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Service addresses.
    pub services: Vec<SocketAddr>,
    /// The pass of this process, where packets are in envelopes.
    pub passes: Option<Passes>,
    /// Who finds the nodes that requests are for.
    pub coordination: Coordination,
    /// Keyspace of all keys.
    pub keyspace: Arc<Keyspace>,
    /// Operations and keys.
    pub spec: Spec,
    /// What keys are called.
    pub names: KeyNames,
    /// What the counters of INCR are called.
    pub counters: KeyNames,
    /// What values hold.
    pub values: Values,
    /// Threads, each with a client of its own.
    pub threads: usize,
    /// Network namespaces of a lab that they run in by turns; empty for the caller's.
    pub hosts: Vec<String>,
    /// When requests start.
    pub pace: Pace,
    /// For how long; zero for as long as it takes.
    pub duration: Duration,
    /// How long the pieces are in which the run is reported as it goes.
    pub piece: Duration,
    /// How long an answer is waited for.
    pub deadline: Duration,
    /// When the clients send again.
    pub retransmit: RetransmitBounds,
    /// Seed of everything drawn.
    pub seed: u64,
}

/// Who finds the nodes that requests are for.
#[derive(Clone, Debug, Default)]
pub enum Coordination {
    /// The switch.
    #[default]
    Switch,
    /// The switch, with hints for multigets from the clients, which have this map.
    Assisted(Arc<Map>),
    /// The clients, by this map.
    Client(Arc<Directory>),
    /// Coordinators at these addresses, in turn.
    Coordinators(Vec<SocketAddr>),
}

impl Display for Coordination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch => f.write_str("switch"),
            Self::Assisted(_) => f.write_str("assisted"),
            Self::Client(_) => f.write_str("client"),
            Self::Coordinators(at) => match at.as_slice() {
                [at] => write!(f, "coordinator at {at}"),
                all => write!(f, "server: {} coordinators", all.len()),
            },
        }
    }
}

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// By a Poisson process of this many per second over all threads; latencies count from when
    /// they were meant to start.
    Open(f64),
    /// This many wait at any time over all threads; one that ends makes the next start.
    Closed(usize),
}

/// Most requests of one thread that wait at once in an open loop. Later ones start late, and their
/// latency shows it.
pub(crate) const OPEN_IN_FLIGHT_MAX: usize = 8192;

impl Plan {
    pub fn rng(&self) -> Rng {
        Rng::new(self.seed)
    }

    /// The parameters as a report shows them.
    pub fn parameters(&self) -> Parameters<'_> {
        let Spec { mix, distribution, keys, shift, .. } = &self.spec;
        Parameters {
            service: connect::list(&self.services),
            keyspace: &self.keyspace.name,
            mix: Text(mix),
            distribution: Text(distribution),
            shift: shift.as_ref().map(Text),
            keys: *keys,
            key_bytes: self.names.name(0).len(),
            value_bytes: Text(self.values.sizes()),
            mget_keys: (mix.share(OpKind::Mget) > 0.0).then_some(&mix.mget_keys),
            multigets: (mix.share(OpKind::Mget) > 0.0).then_some(Text(&self.coordination)),
            coordination: Text(&self.coordination),
            threads: self.threads,
            pace: self.pace,
            seconds: self.duration.as_secs_f64(),
            timeout_seconds: self.deadline.as_secs_f64(),
            seed: self.seed,
        }
    }
}

/// The parameters of a run.
#[derive(Debug, Serialize)]
pub struct Parameters<'a> {
    service: String,
    keyspace: &'a str,
    mix: Text<'a, workload::Mix>,
    distribution: Text<'a, workload::Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<Text<'a, workload::Shift>>,
    keys: u64,
    key_bytes: usize,
    value_bytes: Text<'a, workload::Sizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mget_keys: Option<&'a MgetSizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multigets: Option<Text<'a, Coordination>>,
    coordination: Text<'a, Coordination>,
    threads: usize,
    pace: Pace,
    seconds: f64,
    timeout_seconds: f64,
    seed: u64,
}

/// Something that is written as its text.
#[derive(Debug)]
struct Text<'a, T>(&'a T);

impl<T: Display> Serialize for Text<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl Parameters<'_> {
    /// For people, on a few lines.
    pub fn text(&self) -> String {
        let pace = match self.pace {
            Pace::Open(rate) => format!("open loop, Poisson, {rate} requests/s"),
            Pace::Closed(in_flight) => format!("closed loop, {in_flight} requests in flight"),
        };
        let mut text = format!("service       {} (keyspace {})\n", self.service, self.keyspace);
        text.push_str(&format!("mix           {}\n", self.mix.0));
        text.push_str(&format!("keys          {}, {}", self.keys, self.distribution.0));
        if let Some(Text(shift)) = &self.shift {
            text.push_str(&format!(", shifting {shift}"));
        }
        let sizes = format!("key {} bytes, value {} bytes", self.key_bytes, self.value_bytes.0);
        text.push_str(&format!("\nsizes         {sizes}\n"));
        text.push_str(&format!("coordination  by: {}\n", self.coordination.0));
        text.push_str(&format!("pace          {pace}, {} thread(s)\n", self.threads));
        let (seconds, timeout, seed) = (self.seconds, self.timeout_seconds, self.seed);
        text.push_str(&format!("run           {seconds} s, timeout {timeout} s, seed {seed}\n"));
        text
    }
}
