//! GETs by way of the user-space switch, beside a client that finds the node itself:
//! `cargo bench -p keyway --bench coordination [-- --json]`.
//!
//! Both arms ask the same cluster for the same keys from a socket each. Their rounds alternate, and
//! every other time in the other order. The switch and all nodes share one core and the client has
//! another, so the ratio of the rates is one of CPU time: with a core of its own the switch would
//! limit the rate only where it alone takes longest, which its CPU time per request tells.
//!
//! Tails are compared at equal load as well: in an open loop, at half of what the slower one
//! reaches with [`EQUAL_IN_FLIGHT`] requests in flight.

mod load;
mod local;

use clap::Parser as _;
use load::alternate::alternate;
use load::closed_loop::{BATCH, Client, Kind};
use load::contents::{Contents, KEY_LEN, KEYS};
use load::cores::Cores;
use load::figures::Rounds;
use load::keyway::{Coordination, Keyway, PARTITIONS};
use load::options::Options;
use load::pace::{Pace, equal};
use local::Cluster;
use serde_json::json;

const NODES: [u16; 2] = [1, 4];
const IN_FLIGHT: [usize; 3] = [1, 32, 256];
const EQUAL_IN_FLIGHT: usize = 32;
const VALUE_LEN: usize = 128;

fn main() {
    let options = Options::parse();
    let cores = Cores::take();
    if !options.json {
        println!("GET, {KEYS} keys of {KEY_LEN} B, chosen uniformly, values of {VALUE_LEN} B");
        println!("memory engine, {PARTITIONS} partitions, one replica, one socket,");
        println!("batches of {BATCH}; {}", options.describe());
        println!("{}\n", cores.describe());
        println!("kilorequests/s and ratio: median [its 95 % interval]; us: p50 / p99 / p99.9;");
        println!("us of CPU time per request: client, switch, nodes; full: whose core is\n");
    }
    for nodes in NODES {
        let cluster = Cluster::start(&cores, nodes);
        let mut contents = Contents::new(VALUE_LEN);
        let connect = |coordination| {
            let connection = Keyway::connect(&cluster.reach, &contents, coordination);
            Client::new(Box::new(connection.expect("a free port")), vec![cluster.pid()])
        };
        let mut arms = [connect(Coordination::Switch), connect(Coordination::Client)];
        arms.iter_mut().for_each(|client| client.load(&mut contents, 1));
        let mut measure = |pace| {
            let rounds = alternate(&options, arms.len(), |arm| {
                let client = arms.get_mut(arm).expect("one of them");
                Some(client.run(&mut contents, Kind::Get, 1, pace, options.round()))
            });
            report(&options, nodes, pace, &rounds);
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

fn report(options: &Options, nodes: u16, pace: Pace, rounds: &[Rounds]) {
    let [by_switch, by_client] = rounds else { unreachable!("there are two arms") };
    let ratio = by_switch.ratio_to(by_client);
    if options.json {
        let row = json!({
            "benchmark": "coordination", "op": "GET", "nodes": nodes,
            "in_flight": pace.in_flight(), "rate": pace.rate(),
            "batch": BATCH, "keys": KEYS, "key_bytes": KEY_LEN, "value_bytes": VALUE_LEN,
            "partitions": PARTITIONS, "replicas": 1, "rounds": options.rounds,
            "round_ms": options.round().as_millis(),
            "switch": arm_json(by_switch), "client": arm_json(by_client),
            "ratio": ratio,
        });
        println!("{row}");
        return;
    }
    println!("nodes {nodes}, {pace}");
    arm_line("switch-driven", by_switch);
    arm_line("client-driven", by_client);
    println!("  ratio          {:.3} [{:.3} {:.3}]", ratio.median, ratio.low, ratio.high);
}

fn arm_line(name: &str, rounds: &Rounds) {
    let rate = rounds.rate();
    let (resent, strays) = rounds.losses();
    println!(
        "  {name:<14} {:6.1} [{:6.1} {:6.1}] k/s  {:6.1} / {:6.1} / {:6.1} us  CPU {:5.2} {:5.2} \
         {:5.2}  full: {}, resent {resent}, strays {strays}",
        rate.median / 1e3,
        rate.low / 1e3,
        rate.high / 1e3,
        rounds.latency_us(50.0),
        rounds.latency_us(99.0),
        rounds.latency_us(99.9),
        rounds.client_us(),
        rounds.server_us("switch-"),
        rounds.server_us("node-"),
        rounds.saturated(),
    );
}

fn arm_json(rounds: &Rounds) -> serde_json::Value {
    let (resent, strays) = rounds.losses();
    json!({
        "per_second": rounds.rate(),
        "p50_us": rounds.latency_us(50.0), "p99_us": rounds.latency_us(99.0),
        "p999_us": rounds.latency_us(99.9),
        "client_cpu_us": rounds.client_us(), "switch_cpu_us": rounds.server_us("switch-"),
        "nodes_cpu_us": rounds.server_us("node-"), "saturated": rounds.saturated(),
        "resent": resent, "strays": strays,
    })
}
