//! For how long the keys of a chain are out of reach when one of its nodes is killed.

use crate::folder::Folder;
use crate::probes::{Asked, NODES, PROBERS, is_read, percentile, while_asked};
use crate::run::COMPLETE_WAIT_MAX;
use lab::redundant::{Controllers, Role};
use machine::Instant;
use std::fmt;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Nobody gives up: when an answer comes is what is asked.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it took until a key answered again, once for each kill and key.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    reads: Vec<Duration>,
    writes: Vec<Duration>,
}

/// Kills nodes one after the other, each out of complete chains, and measures. Each chain loses its
/// head, a middle or its tail in turn.
pub(crate) fn measure(kills: u8, folder: Folder) -> Outages {
    let mut outages = Outages::default();
    while_asked(Controllers::Pair, folder, PATIENCE, |cluster, requests| {
        for kill in 0..kills {
            let complete = cluster.wait_until_complete(COMPLETE_WAIT_MAX);
            complete.unwrap_or_else(|why| panic!("before kill {kill}: {why}"));
            let victim = Role::Node(1 + kill % NODES);
            let killed = cluster.watch.now();
            cluster.kill(victim);
            outages.take(killed, requests);
            cluster.revive(victim);
        }
    });
    outages
}

impl Outages {
    /// Waits until everybody has been answered a request made after the kill.
    fn take(&mut self, killed: Instant, requests: &Receiver<Asked>) {
        let mut waiting: Vec<usize> = (0..PROBERS).collect();
        while !waiting.is_empty() {
            let asked = requests.recv_timeout(PATIENCE).expect("keys answer again");
            let Some(place) = waiting.iter().position(|it| *it == asked.prober) else {
                continue;
            };
            if asked.called >= killed && asked.failure.is_none() {
                waiting.swap_remove(place);
                let times = if is_read(asked.prober) { &mut self.reads } else { &mut self.writes };
                times.push(asked.returned.since(killed));
            }
        }
    }

    /// The time within which 99 of 100 keys answered again.
    pub(crate) fn p99(&self) -> Duration {
        percentile(&self.all(), 99)
    }

    fn all(&self) -> Vec<Duration> {
        self.reads.iter().chain(&self.writes).copied().collect()
    }
}

impl fmt::Display for Outages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in
            [("reads", &self.reads), ("writes", &self.writes), ("all", &self.all())]
        {
            let ms = |percent| percentile(times, percent).as_millis();
            let (p50, p99, max) = (ms(50), ms(99), ms(100));
            writeln!(f, "{what:<7} p50 {p50:>5} ms  p99 {p99:>5} ms  max {max:>5} ms")?;
        }
        Ok(())
    }
}
