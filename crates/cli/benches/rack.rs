//! Coordination in a rack of network namespaces: `cargo bench -p keyway --bench rack [-- --json]`.
//!
//! Part A sends GETs and PUTs by several ways: past every switch, by way of the switch in the
//! kernel, by way of the one in user space, and by way of nutcracker in front of Redis servers,
//! beside a client that knows which of those servers has a key. Part B compares who takes a
//! multiget apart. All racks are up at once; the rounds of the ways alternate. The client has one
//! core and everything in the racks another. What the kernel does on links and in the switch is
//! done in the time of whoever sends, and counted there.
//!
//! Needs root: for network namespaces, and to load a program into the kernel.

mod load;
mod pipe;
mod rack {
    pub(crate) mod asker;
    pub(crate) mod lab;
    pub(crate) mod multiget;
    pub(crate) mod redis_rack;
    pub(crate) mod ways;
}

use clap::Parser as _;
use load::closed_loop::{BATCH, now};
use load::contents::{Contents, KEY_LEN, KEYS};
use load::cores::Cores;
use load::keyway::PARTITIONS;
use load::options::Options;
use load::round::Meter;
use nix::unistd::geteuid;
use rack::lab::{Lab, NODES};
use rack::redis_rack::RedisRack;
use rack::{multiget, ways};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

const VALUE_LEN: usize = 128;

/// Racks of the same size.
struct Racks {
    /// With a switch in user space.
    user: Lab,
    /// The same, where each packet on a link is one datagram.
    apart: Lab,
    /// With a switch in the kernel.
    xdp: Lab,
}

/// What the servers hold: of each of the racks in their order, and Redis.
type Stores = [Contents; 4];

fn main() -> ExitCode {
    let options = Options::parse();
    if !geteuid().is_root() {
        eprintln!(
            "rack: needs root, to make network namespaces, to load a program into the kernel and \
             to run before other processes; nothing was measured"
        );
        return ExitCode::FAILURE;
    }
    let cores = Cores::take();
    let racks = Racks {
        user: Lab::start(&cores, "benchuser", "user"),
        apart: Lab::start(&cores, "benchapart", "user"),
        xdp: Lab::start(&cores, "benchxdp", "xdp"),
    };
    racks.apart.keep_datagrams_apart();
    let redis = RedisRack::start(&cores, &racks.user);
    describe(&options, &cores, idle_share(&racks, redis.as_ref()));
    let mut stores: Stores = std::array::from_fn(|_| Contents::new(VALUE_LEN));
    ways::measure(&options, &racks, &mut stores, redis.as_ref());
    let [user, _, xdp, _] = &stores;
    multiget::measure(&options, (&racks.xdp, xdp), (&racks.user, user));
    ExitCode::SUCCESS
}

/// How much of a core everything takes while nobody asks.
fn idle_share(racks: &Racks, redis: Option<&RedisRack>) -> f64 {
    let mut pids = redis.map_or_else(Vec::new, RedisRack::pids);
    [&racks.user, &racks.apart, &racks.xdp].iter().for_each(|lab| pids.extend(&lab.pids));
    pids.sort_unstable();
    pids.dedup();
    let meter = Meter::start(&pids);
    let (started, length) = (now(), Duration::from_secs(1));
    while let Some(rest) = length.checked_sub(started.elapsed()) {
        std::thread::park_timeout(rest);
    }
    let round = meter.stop(&pids);
    round.server_cpu("").as_secs_f64() / round.elapsed.as_secs_f64()
}

fn describe(options: &Options, cores: &Cores, idle: f64) {
    if options.json {
        let row = json!({
            "benchmark": "rack", "part": "parameters", "nodes": NODES, "shards": 1,
            "partitions": PARTITIONS, "replicas": 1, "keys": KEYS, "key_bytes": KEY_LEN,
            "value_bytes": VALUE_LEN, "batch": BATCH, "idle_cores": idle,
        });
        println!("{row}");
        return;
    }
    println!("{NODES} nodes of one shard, memory engine, {PARTITIONS} partitions, one replica;");
    println!("{KEYS} keys of {KEY_LEN} B, chosen uniformly, values of {VALUE_LEN} B;");
    println!("batches of {BATCH}; {}", options.describe());
    println!("{}; all racks and servers", cores.describe());
    println!("together take {:.1} % of a core while nobody asks\n", 100.0 * idle);
    println!("direct:         the client stamps; a rack without XDP, where datagrams that were");
    println!("                handed over as one (UDP_SEGMENT) stay one as far as the far host");
    println!("direct, apart:  the same, but one datagram is one packet, as it is on wires and as");
    println!("                it is for XDP");
    println!("direct, same:   in the rack of the XDP switch, whose program lets the packets pass");
    println!("Redis, direct:  the client hashes, and has a connection to each server\n");
    println!("k/s: median [its 95 % interval]; us: p50 / p99 / p99.9; us of CPU time per request:");
    println!("client + switch + servers + ksoftirqd; full: whose core is; last, ratios of rates,");
    println!("round by round");
}
