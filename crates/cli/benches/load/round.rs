//! What happens in one round, and what it costs.

use super::closed_loop::now;
use super::cores::{cpu_time_by_thread, own_cpu_time};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What happened in one round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) answered: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies_ns: Histogram<u64>,
    pub(crate) client_cpu: Duration,
    server_cpu: BTreeMap<String, Duration>,
    /// Requests sent again.
    pub(crate) resent: u64,
    /// Answers to nothing that waited: to requests sent twice.
    pub(crate) strays: u64,
}

impl Round {
    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the server's threads whose name begins so.
    pub(crate) fn server_cpu(&self, prefix: &str) -> Duration {
        let threads = self.server_cpu.iter().filter(|(name, _)| name.starts_with(prefix));
        threads.map(|(_, time)| *time).sum()
    }

    /// Notes how long something took to be answered.
    pub(crate) fn note_latency(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latencies_ns.record(nanos).expect("it grows");
    }
}

/// A round under way.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) round: Round,
    started: Instant,
    client_before: Duration,
    server_before: BTreeMap<String, Duration>,
}

impl Meter {
    /// Begins a round against these processes.
    pub(crate) fn start(servers: &[u32]) -> Self {
        let round = Round {
            answered: 0,
            elapsed: Duration::ZERO,
            latencies_ns: Histogram::new(3).expect("sound bounds"),
            client_cpu: Duration::ZERO,
            server_cpu: BTreeMap::new(),
            resent: 0,
            strays: 0,
        };
        let server_before = cpu_time_by_thread(servers);
        Self { round, client_before: own_cpu_time(), server_before, started: now() }
    }

    /// Ends it.
    pub(crate) fn stop(self, servers: &[u32]) -> Round {
        let Self { mut round, started, client_before, server_before } = self;
        round.elapsed = started.elapsed();
        round.client_cpu = own_cpu_time().saturating_sub(client_before);
        round.server_cpu = cpu_time_by_thread(servers);
        for (name, time) in &mut round.server_cpu {
            *time = time.saturating_sub(server_before.get(name).copied().unwrap_or_default());
        }
        round
    }
}
