//! A server that is slow for a moment, one of many: it must not stay slow because its requests are
//! sent to it again and again.

use crate::{SERVICE, not_found};
use client::{Client, ClientConfig, Request, Ticket};
use cluster::{HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use machine::{Instant, Rng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wire::{Fields as _, Packet};

const MS: Duration = Duration::from_millis(1);

/// Servers, and parts of the hash space of which each has several.
const SERVERS: usize = 32;
const PARTITIONS: u128 = 128;
/// A server's time for a request: 400 a second.
const SERVICE_TIME: Duration = Duration::from_micros(2_500);
/// Requests that may wait at a server.
const QUEUE: usize = 192;
/// Between two requests of the client: 9,600 a second, three quarters of what servers can do.
const GAP: Duration = Duration::from_nanos(104_167);
/// When the one server stops, and for how long.
const STOP: Duration = Duration::from_secs(4);
const STOPPED: Duration = Duration::from_millis(400);

/// One client and its servers, each with a queue, in virtual time.
struct World {
    client: Client,
    keyspace: Arc<Keyspace>,
    rng: Rng,
    queues: Vec<VecDeque<Vec<u8>>>,
    /// When a server has served the first of its queue.
    due: BTreeSet<(Instant, usize)>,
    begun: BTreeMap<Ticket, Instant>,
    /// When each request began, and how long it took.
    took: Vec<(Instant, Duration)>,
}

impl World {
    fn new() -> Self {
        let (id, kind, hot) = (KeyspaceId(1), KeyspaceKind::Hash, HotPolicy::Off);
        let keyspace =
            Keyspace { id, name: "k".into(), kind, seed: 7, replicas: 1, hot, content: None };
        Self {
            client: Client::new(ClientConfig::new(SERVICE, 77), Rng::new(1)),
            keyspace: Arc::new(keyspace),
            rng: Rng::new(2),
            queues: (0..SERVERS).map(|_| VecDeque::new()).collect(),
            due: BTreeSet::new(),
            begun: BTreeMap::new(),
            took: Vec::new(),
        }
    }

    /// Runs until then; the first server stops on the way.
    fn run(&mut self, begin: Instant, end: Instant) {
        let (mut next, mut stops) = (begin, false);
        loop {
            let timer = self.client.poll_timeout().unwrap_or(end);
            let served = self.due.first().map_or(end, |(at, _)| *at);
            let now = next.min(timer).min(served);
            if now >= end {
                return;
            }
            if !stops && now >= begin + STOP {
                stops = true;
                self.stop(now);
                continue;
            }
            if now == served {
                self.serve(now);
            } else if now == timer {
                self.client.handle_timeout(now);
            } else {
                let key = self.rng.below(100_000).to_le_bytes();
                let request = Request::Get { key: &key };
                let ticket = self.client.start(now, &self.keyspace, request).expect("room");
                self.begun.insert(ticket, now);
                next = next + GAP;
            }
            self.deliver(now);
        }
    }

    /// The first server does nothing for a while.
    fn stop(&mut self, now: Instant) {
        self.due.retain(|(_, server)| *server != 0);
        self.due.insert((now + STOPPED, 0));
        // What it is at, if it is at nothing.
        let queue = self.queue(0);
        if queue.is_empty() {
            queue.push_back(Vec::new());
        }
    }

    fn queue(&mut self, server: usize) -> &mut VecDeque<Vec<u8>> {
        self.queues.get_mut(server).expect("one for each server")
    }

    fn serve(&mut self, now: Instant) {
        let (_, server) = self.due.pop_first().expect("somebody is to serve");
        let queue = self.queue(server);
        let request = queue.pop_front().expect("what it serves waits");
        if !queue.is_empty() {
            self.due.insert((now + SERVICE_TIME, server));
        }
        if request.is_empty() {
            return;
        }
        self.client.handle_packet(now, SERVICE, &not_found(&request));
    }

    fn deliver(&mut self, now: Instant) {
        while let Some((ticket, _)) = self.client.poll_outcome() {
            let begun = self.begun.remove(&ticket).expect("each ends once");
            self.took.push((begun, now.since(begun)));
        }
        while let Some(datagram) = self.client.poll_transmit() {
            let packet = Packet::parse(datagram.payload).expect("sound");
            let partition = packet.header().match_value() / (u128::MAX / PARTITIONS + 1);
            let server = usize::try_from(partition).expect("few") % SERVERS;
            let queue = self.queues.get_mut(server).expect("one for each server");
            if queue.is_empty() {
                self.due.insert((now + SERVICE_TIME, server));
            }
            if queue.len() < QUEUE {
                queue.push_back(datagram.payload.to_vec());
            }
        }
    }

    /// The 99th percentile of those that began in this interval, so long after the beginning.
    fn p99(&self, begin: Instant, from: Duration, to: Duration) -> Duration {
        let within = |it: &&(Instant, Duration)| (begin + from..begin + to).contains(&it.0);
        let mut took: Vec<Duration> = self.took.iter().filter(within).map(|it| it.1).collect();
        took.sort_unstable();
        *took.get(took.len() * 99 / 100).expect("some began then")
    }
}

#[test]
fn a_server_that_stopped_for_a_moment_recovers_while_its_requests_go_on() {
    let begin = Instant(1_000_000_000_000);
    let mut world = World::new();
    world.run(begin, begin + Duration::from_secs(14));
    let p99 = |from, to| world.p99(begin, Duration::from_secs(from), Duration::from_secs(to));
    // Chance alone makes a queue long at times, at three quarters of what servers can do.
    assert!(p99(2, 4) < 60 * MS, "before: {:?}", p99(2, 4));
    assert!(p99(4, 6) > 200 * MS, "it shows: {:?}", p99(4, 6));
    assert!(p99(9, 13) < 60 * MS, "five seconds after: {:?}", p99(9, 13));
    let counters = world.client.counters();
    assert!(counters.retransmits < counters.started / 50, "{counters:?}");
}
