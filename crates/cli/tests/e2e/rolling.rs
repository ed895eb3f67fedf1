//! A rolling restart under load: each process is asked to end and started again, one at a time, as
//! `docs/operating/upgrade.md` has it, and no client notices more than a little delay.
//!
//! The usual run is a small cluster. `ROLLING_FULL=1 cargo test -p keyway --test e2e rolling` has
//! five nodes and 2,000 requests a second.

use crate::config::Cluster;
use crate::processes::{Processes, node};
use client::blocking::{Client, Space};
use client::{IncrReply, Options, Outcome};
use machine::Instant;
use runtime::clock::Clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::free_addresses;
use testkit::server::Server;
use testkit::skip;

const CONTROLLERS: [&str; 3] = ["first", "second", "third"];
const GATEWAYS: [&str; 2] = ["left", "right"];

/// How much of everything.
#[derive(Clone, Copy, Debug)]
struct Size {
    nodes: u16,
    /// Threads that ask, each of counters of its own.
    askers: u32,
    /// Requests of each in a second.
    rate: u32,
    /// Time between two restarts.
    between: Duration,
}

const SMALL: Size = Size { nodes: 3, askers: 4, rate: 50, between: Duration::from_millis(300) };
const FULL: Size = Size { nodes: 5, askers: 20, rate: 100, between: Duration::from_secs(3) };

/// Counters of each asker.
const KEYS: u64 = 16;

/// The longest that a request may take: a chain changes within some hundredths of a second, and
/// clients find another switch within a few tenths. This machine is busy with other tests.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// How long it may take until one more may be restarted.
const SAFE_WAIT_MAX: Duration = Duration::from_secs(30);

/// What an asker saw.
#[derive(Debug, Default)]
struct Seen {
    asked: u64,
    failed: Vec<String>,
    longest: Duration,
}

/// Counts up some counters and reads them, until told to stop. Nobody else writes them, so each
/// answer is known beforehand: an increment that was lost, or applied twice, shows.
fn ask(space: &Space, asker: u32, rate: u32, stop: &AtomicBool) -> Seen {
    let (mut seen, mut clock) = (Seen::default(), Clock::new());
    let mut sums = [0_i64; KEYS as usize];
    let pace = Duration::from_secs(1) / rate;
    let mut due = clock.now();
    while !stop.load(Ordering::Relaxed) {
        let at = usize::try_from(seen.asked / 2 % KEYS).expect("few");
        let key = format!("asker-{asker}/counter-{at}").into_bytes();
        let (called, sum) = (clock.now(), sums[at]);
        let wrong = if seen.asked.is_multiple_of(2) {
            sums[at] += 1;
            match space.incr(&key, 1) {
                Outcome::Done(IncrReply::Sum { sum: found, .. }) if found == sum + 1 => None,
                other => Some(format!("{other:?} instead of {}", sum + 1)),
            }
        } else {
            match space.get(&key) {
                Outcome::Done(Some(found)) if found.value == sum.to_string().as_bytes() => None,
                other => Some(format!("{other:?} instead of {sum}")),
            }
        };
        let took = clock.now().since(called);
        seen.failed.extend(wrong.map(|what| format!("asker {asker}, counter {at}: {what}")));
        seen.longest = seen.longest.max(took);
        seen.asked += 1;
        due = (due + pace).max(called);
        wait_until(&mut clock, due);
    }
    seen
}

fn wait_until(clock: &mut Clock, at: Instant) {
    std::thread::park_timeout(at.since(clock.now()));
}

struct Rolling {
    processes: Processes,
    gateways: Vec<std::net::SocketAddr>,
    between: Duration,
}

impl Rolling {
    fn start(etcd: &Server, size: Size) -> Self {
        let cluster = Cluster::to_last(&etcd.url(), size.nodes, CONTROLLERS.len());
        let mut processes = Processes::new(cluster);
        for id in 1..=size.nodes {
            processes.run(&node(id));
        }
        for index in 0..2 {
            processes.run(&format!("switch --index {index}"));
        }
        for name in CONTROLLERS {
            processes.run_as(name, "controller");
        }
        processes.wait_replicated();
        let mut rolling = Self { processes, gateways: free_addresses(2), between: size.between };
        for index in 0..GATEWAYS.len() {
            rolling.start_gateway(index);
        }
        rolling
    }

    fn start_gateway(&mut self, index: usize) {
        let arguments = format!("gateway --listen {}", self.gateways[index]);
        self.processes.run_client(GATEWAYS[index], &arguments);
    }

    /// Everything is as it was before, and goes on so for a while.
    fn settle(&self) {
        self.processes.wait("all are back", |it| {
            it["ready"] == true && it["covered"] == true && it["replicated"] == true
        });
        let mut clock = Clock::new();
        let until = clock.now() + self.between;
        wait_until(&mut clock, until);
        let give_up = clock.now() + SAFE_WAIT_MAX;
        loop {
            let said = self.processes.ask("cluster upgrade-check");
            if said.code == Some(0) {
                return;
            }
            assert!(clock.now() < give_up, "it is never safe: {said:?}");
        }
    }

    fn restart(&mut self, name: &str, role: &str) -> String {
        self.settle();
        let log = self.processes.terminate(name);
        self.processes.run_as(name, role);
        log
    }

    fn restart_all(&mut self, nodes: u16) {
        for name in CONTROLLERS {
            self.restart(name, "controller");
        }
        for index in [1, 0] {
            let name = format!("switch --index {index}");
            let log = self.restart(&name, &name);
            assert!(log.contains("nobody waits for this switch any more"), "{log}");
        }
        for id in 1..=nodes {
            let log = self.restart(&node(id), &node(id));
            assert!(log.contains("others have taken over all partitions"), "{log}");
        }
        for (index, name) in GATEWAYS.into_iter().enumerate() {
            self.settle();
            self.processes.terminate(name);
            self.start_gateway(index);
        }
        self.settle();
    }
}

/// A Redis client that knows both gateways, and goes to the other one when a connection ends.
fn ask_gateways(at: &[std::net::SocketAddr], stop: &AtomicBool) -> Seen {
    let (mut seen, mut clock) = (Seen::default(), Clock::new());
    let clients: Vec<redis::Client> = at
        .iter()
        .map(|at| redis::Client::open(format!("redis://{at}")).expect("an address"))
        .collect();
    let mut connection = None;
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        let value = seen.asked.to_string();
        // So many that none is hot: who writes a hot key may not learn how that ended when a switch
        // hands over.
        let key = format!("through-{}", seen.asked % 500);
        let called = clock.now();
        let found: String = loop {
            let open = match connection.take() {
                Some(open) => Ok(open),
                None => clients[turn % clients.len()].get_connection(),
            };
            let asked = open.and_then(|mut open: redis::Connection| {
                redis::cmd("SET").arg(&key).arg(&value).query::<()>(&mut open)?;
                let found = redis::cmd("GET").arg(&key).query(&mut open)?;
                connection = Some(open);
                Ok(found)
            });
            match asked {
                Ok(found) => break found,
                // A connection that has ended is nobody's answer: another one is asked.
                Err(why) if why.is_io_error() && clock.now().since(called) < ANSWER_MAX => {
                    turn += 1;
                }
                Err(why) => break why.to_string(),
            }
        };
        if found != value {
            seen.failed.push(format!("through a gateway: {found} instead of {value}"));
        }
        seen.longest = seen.longest.max(clock.now().since(called));
        seen.asked += 1;
        let next = called + Duration::from_millis(20);
        wait_until(&mut clock, next);
    }
    seen
}

#[test]
fn every_process_is_restarted_in_turn_and_no_request_fails() {
    let Some(etcd) = Server::etcd(&[]) else {
        return skip::report("a rolling restart", "there is no etcd: apt-get install etcd-server");
    };
    let size = if std::env::var_os("ROLLING_FULL").is_some() { FULL } else { SMALL };
    let mut rolling = Rolling::start(&etcd, size);
    let services = rolling.processes.cluster.services.clone();
    let spaces: Vec<Space> = (0..size.askers)
        .map(|_| {
            let client = Client::connect(services.as_slice(), Options::default());
            client.expect("a socket").keyspace("default").expect("the cluster is up")
        })
        .collect();
    let gateways = rolling.gateways.clone();
    let stop = AtomicBool::new(false);
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let stop = &stop;
        let askers: Vec<_> = (0..)
            .zip(&spaces)
            .map(|(asker, space)| scope.spawn(move || ask(space, asker, size.rate, stop)))
            .collect();
        let redis = scope.spawn(|| ask_gateways(&gateways, stop));
        let restarts = scope.spawn(move || {
            // The others end also if this fails.
            let _stop = RaiseOnDrop(stop);
            rolling.restart_all(size.nodes);
            rolling
        });
        let rolling = restarts.join().expect("all restarts went well");
        drop(rolling);
        askers.into_iter().chain([redis]).map(|it| it.join().expect("it looked on")).collect()
    });
    let asked: u64 = seen.iter().map(|it| it.asked).sum();
    let longest = seen.iter().map(|it| it.longest).max().unwrap_or_default();
    println!("{asked} requests, the longest took {longest:?}");
    let failed: Vec<&String> = seen.iter().flat_map(|it| &it.failed).collect();
    assert!(
        failed.is_empty(),
        "{} of {asked}: {:#?}",
        failed.len(),
        &failed[..failed.len().min(9)]
    );
    assert!(longest < ANSWER_MAX, "{longest:?}");
}
