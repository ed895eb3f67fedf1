//! For how long keys are out of reach when nodes of their chains, or the active switch, are killed.

use crate::cluster::{Cluster, Size};
use crate::folder::Folder;
use crate::probes::{Asked, NODES, SMALL, Setting, is_read, percentile, while_asked};
use cluster::{Match, NodeId};
use controller::Status;
use lab::redundant::Role;
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
    /// For each kill, the longest time in which nobody was answered anything.
    silences: Vec<Duration>,
    /// Keys, once for each kill, of which every member was killed.
    gone: usize,
}

/// Kills nodes one after the other, each out of complete chains, and measures. Each chain loses its
/// head, a middle or its tail in turn.
pub(crate) fn measure(kills: u8, folder: Folder) -> Outages {
    kill_one_by_one(kills, folder, |_, kill| Role::Node(1 + kill % NODES))
}

/// Kills the switch that is active, again and again, and measures; the other one stands by.
pub(crate) fn measure_switches(kills: u8, folder: Folder) -> Outages {
    kill_one_by_one(kills, folder, |cluster, _| cluster.active_switch())
}

/// Kills whoever is named for each kill, and measures until all keys answer. Then it comes back.
fn kill_one_by_one(
    kills: u8,
    folder: Folder,
    victim: impl Fn(&mut Cluster, u8) -> Role,
) -> Outages {
    let mut outages = Outages::default();
    while_asked(&SMALL, folder, PATIENCE, |cluster, requests| {
        for kill in 0..kills {
            cluster.become_complete(format_args!("before kill {kill}"));
            let victim = victim(cluster, kill);
            let killed = cluster.watch.now();
            cluster.kill(victim);
            outages.take(killed, (0..SMALL.probers()).collect(), requests);
            cluster.revive(victim);
        }
    });
    outages
}

/// Sixteen nodes, chains of three, and keys in order, so that it is seen which chain is whose.
const LARGE: Setting = Setting {
    size: Size::new(16, 2),
    keyspace: "[[keyspace]]\nname = \"default\"\nkind = \"range\"\npartitions = 16\n\
               replicas = 3\n",
    keys: 16,
    rest: Duration::from_millis(20),
};

/// Kills so many of sixteen nodes at once, others each time, and measures until all keys answer of
/// whose chain somebody is left. Then the nodes come back.
pub(crate) fn measure_many(killed_at_once: u8, times: u8, folder: Folder) -> Outages {
    let mut outages = Outages::default();
    while_asked(&LARGE, folder, PATIENCE, |cluster, requests| {
        for time in 0..times {
            cluster.become_complete(format_args!("before time {time}"));
            let nodes = LARGE.size.nodes;
            // Seven and sixteen have no divisor in common: all nodes have their turn.
            let victims: Vec<u8> =
                (0..killed_at_once).map(|n| 1 + (time * 5 + n * 7) % nodes).collect();
            let status = cluster.status().unwrap_or_else(|why| panic!("before {time}: {why}"));
            let has_somebody = |prober: &usize| {
                let chain = chain_of(&status, &LARGE.key(*prober));
                chain.iter().any(|id| !victims.iter().any(|it| NodeId((*it).into()) == *id))
            };
            let (waiting, gone): (Vec<_>, Vec<_>) = (0..LARGE.probers()).partition(has_somebody);
            outages.gone += gone.len() / 2;
            let killed = cluster.watch.now();
            victims.iter().for_each(|node| cluster.kill(Role::Node(*node)));
            outages.take(killed, waiting, requests);
            victims.iter().for_each(|node| cluster.revive(Role::Node(*node)));
        }
    });
    outages
}

/// The nodes that hold a key of a keyspace in order.
fn chain_of(status: &Status, key: &[u8]) -> Vec<NodeId> {
    let mut first = [0; 16];
    let len = key.len().min(first.len());
    first[..len].copy_from_slice(&key[..len]);
    let at = Match(u128::from_be_bytes(first));
    let mut partitions = status.keyspaces.iter().flat_map(|it| &it.partitions);
    let holds = partitions.find(|it| (it.first..=it.last).contains(&at));
    holds.expect("every key has a partition").chain.clone()
}

impl Outages {
    /// Waits until all of these have been answered a request made after the kill.
    fn take(&mut self, killed: Instant, mut waiting: Vec<usize>, requests: &Receiver<Asked>) {
        let (mut answered, mut silence) = (killed, Duration::ZERO);
        while !waiting.is_empty() {
            let asked = requests.recv_timeout(PATIENCE).expect("keys answer again");
            if asked.returned < killed || asked.failure.is_some() {
                continue;
            }
            // Threads tell of their answers in any order.
            silence = silence.max(asked.returned.since(answered.min(asked.returned)));
            answered = answered.max(asked.returned);
            let Some(place) = waiting.iter().position(|it| *it == asked.prober) else {
                continue;
            };
            if asked.called >= killed {
                waiting.swap_remove(place);
                let times = if is_read(asked.prober) { &mut self.reads } else { &mut self.writes };
                times.push(asked.returned.since(killed));
            }
        }
        self.silences.push(silence);
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
        let longest = self.silences.iter().max().copied().unwrap_or_default().as_millis();
        write!(
            f,
            "longest time without any answer {longest} ms; {} keys had nobody left",
            self.gone
        )
    }
}
