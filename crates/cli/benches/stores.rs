//! Keyway's memory engine beside Redis and memcached: GETs and PUTs per second of one core, driven
//! the same way: `cargo bench -p keyway --bench stores [-- --json]`.
//!
//! Every server has one core, the same, and the client another; the rounds of all of them
//! alternate. Keyway is driven past its switch, one thread against one thread, and once more by way
//! of its switch, which then has the same core as the node. A server that is not
//! installed is named, with what installs it, and its rows say so.
//!
//! Tails are compared at equal load as well: in an open loop, at half of what the slowest reaches
//! with [`EQUAL_IN_FLIGHT`] requests in flight.

mod load;
mod local;
mod pipe;
mod stores {
    pub(crate) mod memcached;
    pub(crate) mod servers;
}

use clap::Parser as _;
use load::alternate::alternate;
use load::closed_loop::{BATCH, Client, Kind};
use load::contents::{Contents, KEY_LEN, KEYS};
use load::cores::Cores;
use load::figures::{Rounds, Spread};
use load::keyway::{Coordination, Keyway, PARTITIONS};
use load::options::Options;
use load::pace::{Pace, equal};
use local::Cluster;
use pipe::{Pipe, redis};
use serde_json::json;
use stores::memcached;
use stores::servers::{Server, Unavailable};

const IN_FLIGHT: [usize; 3] = [1, 32, 256];
const EQUAL_IN_FLIGHT: usize = 32;
const VALUE_LENS: [usize; 2] = [128, 1024];

/// A way to drive a server.
struct Arm {
    name: &'static str,
    /// Index of its server's contents.
    store: usize,
    /// `None` if there is no server.
    client: Option<Client>,
}

const KEYWAY: &str = "Keyway";
const KEYWAY_SWITCH: &str = "Keyway + switch";
const REDIS: &str = "Redis, TCP";
const MEMCACHED: &str = "memcached, TCP";
const MEMCACHED_UDP: &str = "memcached, UDP";

fn main() {
    let options = Options::parse();
    let cores = Cores::take();
    if !options.json {
        println!("{KEYS} keys of {KEY_LEN} B, chosen uniformly; one connection,");
        println!("up to {BATCH} requests in a system call of the client; {}", options.describe());
        println!("{}; one thread serves, but for", cores.describe());
        println!("{KEYWAY_SWITCH:?}: its switch and its node are two threads on that core");
        println!("{KEYWAY}: memory engine, {PARTITIONS} partitions, one replica\n");
        println!("k/s: median [its 95 % interval]; us: p50 / p99 / p99.9;");
        println!("CPU: us per request, client + server;");
        println!("ratios of rates, round by round, to Redis, memcached, memcached by UDP\n");
    }
    for value_len in VALUE_LENS {
        measure_size(&options, &cores, value_len);
    }
}

fn measure_size(options: &Options, cores: &Cores, value_len: usize) {
    let cluster = Cluster::start(cores, 1);
    let redis = Server::redis(cores);
    let memcached = Server::memcached(cores);
    let versions: Vec<String> = [&redis, &memcached].iter().map(|it| describe(it)).collect();
    let mut contents: Vec<Contents> = (0..3).map(|_| Contents::new(value_len)).collect();
    let keyway = |how| {
        let connection = Keyway::connect(&cluster.reach, &Contents::new(value_len), how);
        Some(Client::new(Box::new(connection.expect("a free port")), vec![cluster.pid()]))
    };
    let piped = |server: &Result<Server, Unavailable>, protocol| {
        let server = server.as_ref().ok()?;
        Some(Client::new(Box::new(Pipe::new(server.connect(), protocol)), vec![server.pid()]))
    };
    let datagrams = memcached.as_ref().ok().map(|server| {
        let connection = memcached::Datagrams::connect(server.at()).expect("a free port");
        Client::new(Box::new(connection), vec![server.pid()])
    });
    let arm = |name, store, client| Arm { name, store, client };
    let mut arms = [
        arm(KEYWAY, 0, keyway(Coordination::Client)),
        arm(KEYWAY_SWITCH, 0, keyway(Coordination::Switch)),
        arm(REDIS, 1, piped(&redis, redis::PROTOCOL)),
        arm(MEMCACHED, 2, piped(&memcached, memcached::PROTOCOL)),
        arm(MEMCACHED_UDP, 2, datagrams),
    ];
    if !options.json {
        println!("values of {value_len} B; {}", versions.join("; "));
    }
    let mut number = 1;
    for arm in &mut arms {
        if let (Some(client), Some(contents)) = (&mut arm.client, contents.get_mut(arm.store)) {
            client.load(contents, number);
        }
    }
    for kind in [Kind::Get, Kind::Put] {
        let mut measure = |pace| {
            let rounds = alternate(options, arms.len(), |arm| {
                let arm = arms.get_mut(arm).expect("one of them");
                let contents = contents.get_mut(arm.store).expect("one for each server");
                number += 1;
                let client = arm.client.as_mut()?;
                Some(client.run(contents, kind, number, pace, options.round()))
            });
            report(options, value_len, kind, pace, &arms, &rounds);
            rounds
        };
        for in_flight in IN_FLIGHT {
            let rounds = measure(Pace::Closed(in_flight));
            if in_flight == EQUAL_IN_FLIGHT {
                measure(equal(&rounds, 1));
            }
        }
    }
}

fn describe(server: &Result<Server, Unavailable>) -> String {
    match server {
        Ok(server) => server.version().to_owned(),
        Err(unavailable) => {
            eprintln!("\nSKIPPED: {unavailable}\n");
            unavailable.to_string()
        }
    }
}

fn report(
    options: &Options,
    value_len: usize,
    kind: Kind,
    pace: Pace,
    arms: &[Arm],
    rounds: &[Rounds],
) {
    if !options.json {
        println!("\n{} of {value_len} B, {pace}", kind.name());
    }
    for (arm, mine) in arms.iter().zip(rounds) {
        if arm.client.is_none() {
            print_skipped(options, value_len, kind, pace, arm.name);
            continue;
        }
        let ratio = |name| {
            let other = arms.iter().zip(rounds).find(|(it, _)| it.name == name);
            let (other, rounds) = other.expect("every arm has a row");
            other.client.as_ref().map(|_| mine.ratio_to(rounds))
        };
        let ratios = [REDIS, MEMCACHED, MEMCACHED_UDP].map(ratio);
        if options.json {
            print_json(options, value_len, kind, pace, arm.name, mine, ratios);
        } else {
            print_line(arm.name, mine, ratios);
        }
    }
}

fn print_skipped(options: &Options, value_len: usize, kind: Kind, pace: Pace, name: &'static str) {
    if options.json {
        let row = json!({
            "benchmark": "stores", "store": name, "op": kind.name(), "value_bytes": value_len,
            "in_flight": pace.in_flight(), "rate": pace.rate(), "skipped": true,
        });
        println!("{row}");
    } else {
        println!("  {name:<16} SKIPPED: not installed, see above");
    }
}

fn print_line(name: &str, rounds: &Rounds, ratios: [Option<Spread>; 3]) {
    let rate = rounds.rate();
    let (resent, strays) = rounds.losses();
    let ratios = ratios.map(|it| it.map_or("    -".into(), |it| format!("{:5.2}", it.median)));
    println!(
        "  {name:<16} {:6.1} [{:6.1} {:6.1}] k/s  {:5.0} / {:5.0} / {:5.0} us  CPU {:5.2} + \
         {:5.2}  full: {:<7}  ratios {}  resent {resent}, strays {strays}",
        rate.median / 1e3,
        rate.low / 1e3,
        rate.high / 1e3,
        rounds.latency_us(50.0),
        rounds.latency_us(99.0),
        rounds.latency_us(99.9),
        rounds.client_us(),
        rounds.server_us(""),
        rounds.saturated(),
        ratios.join(" "),
    );
}

fn print_json(
    options: &Options,
    value_len: usize,
    kind: Kind,
    pace: Pace,
    name: &'static str,
    rounds: &Rounds,
    ratios: [Option<Spread>; 3],
) {
    let [redis, memcached, memcached_udp] = ratios;
    let (resent, strays) = rounds.losses();
    let row = json!({
        "benchmark": "stores", "store": name, "op": kind.name(), "keys": KEYS,
        "key_bytes": KEY_LEN, "value_bytes": value_len,
        "in_flight": pace.in_flight(), "rate": pace.rate(),
        "batch": BATCH,
        "rounds": options.rounds, "round_ms": options.round().as_millis(),
        "per_second": rounds.rate(),
        "p50_us": rounds.latency_us(50.0), "p99_us": rounds.latency_us(99.0),
        "p999_us": rounds.latency_us(99.9),
        "client_cpu_us": rounds.client_us(), "server_cpu_us": rounds.server_us(""),
        "saturated": rounds.saturated(), "resent": resent, "strays": strays,
        "ratio_redis": redis, "ratio_memcached": memcached, "ratio_memcached_udp": memcached_udp,
    });
    println!("{row}");
}
