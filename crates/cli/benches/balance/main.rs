//! Hot keys in a rack of slow nodes: `cargo bench -p keyway --bench balance [-- OPTIONS]`.
//!
//! Each node serves a fixed number of requests a second, one after the other, as the servers of
//! Pegasus' evaluation do (section 8), so that what is measured is where load goes and not how fast
//! a core is. For each workload it looks for the highest rate at which the 99th percentile stays
//! under five times what it is without load: for uniform keys, and for skewed ones in a keyspace
//! whose hot keys stay at home (consistent hashing) and in one whose hot keys are replicated.
//!
//! Needs root: the rack is made of network namespaces.

mod rack;
mod trial;

use clap::Parser;
use nix::unistd::geteuid;
use rack::{Kind, Rack};
use serde_json::json;
use std::process::ExitCode;
use trial::{Trial, Workload};

/// Where load goes when keys are hot.
#[derive(Debug, Parser)]
struct Options {
    /// Print JSON, one object per row.
    #[arg(long)]
    json: bool,
    /// Storage nodes.
    #[arg(long, default_value_t = 32)]
    nodes: u16,
    /// Requests that each serves in a second.
    #[arg(long, default_value_t = 400)]
    node_rate: u64,
    /// Where packets are switched: user or xdp.
    #[arg(long, default_value = "user")]
    plane: String,
    /// Nodes of each chain.
    #[arg(long, value_delimiter = ',', default_value = "1,3")]
    replicas: Vec<u64>,
    /// Exponents of Zipf's law.
    #[arg(long, value_delimiter = ',', default_value = "0.9,0.99,1.2")]
    theta: Vec<f64>,
    /// Shares of reads, in percent.
    #[arg(long, value_delimiter = ',', default_value = "100,95,50,0")]
    reads: Vec<u32>,
    /// Keys of each keyspace.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Seconds looked at in each run, after two to get used to it.
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// How much longer than without load the 99th percentile may get.
const P99_TIMES: u64 = 5;

/// Partitions of each keyspace: so many for each node that uniform keys load all alike.
const PARTITIONS: u32 = 2_048;

fn main() -> ExitCode {
    let options = Options::parse();
    if !geteuid().is_root() {
        eprintln!("balance: needs root, to make network namespaces; nothing was measured");
        return ExitCode::FAILURE;
    }
    let Options { nodes, node_rate, ref plane, .. } = options;
    let rack = Rack::start(Kind { nodes, node_rate, plane });
    if !options.json {
        println!("{nodes} nodes that serve {node_rate} requests/s each, one shard, plane {plane};");
        println!("{} keys, values of 100 B; open loop, Poisson; the highest rate at", options.keys);
        println!("which p99 stays under {P99_TIMES} times that of an idle rack\n");
        println!("cap: node rates / visits of a request; x hash: over hot keys at home;");
        println!("x even: over uniform keys; max/mean: load of the busiest node at that rate\n");
        println!("  r  reads  keys       cap/s    home/s  copies/s  x hash  x even  max/mean");
    }
    for replicas in &options.replicas {
        for hot in ["off", "replicate"] {
            prepare(&rack, &options, *replicas, hot);
        }
        for reads in &options.reads {
            measure(&rack, &options, *replicas, *reads);
        }
    }
    ExitCode::SUCCESS
}

fn keyspace(replicas: u64, hot: &str) -> String {
    format!("{hot}-{replicas}")
}

/// Makes a keyspace and fills it.
fn prepare(rack: &Rack, options: &Options, replicas: u64, hot: &str) {
    let name = keyspace(replicas, hot);
    eprintln!("filling keyspace {name}");
    let (replicas, partitions) = (replicas.to_string(), PARTITIONS.to_string());
    let words = ["keyspace", "create", &name, "--hot", hot, "--replicas", &replicas];
    let words = [&words[..], &["--partitions", &partitions]].concat();
    rack.keyway(&words.iter().copied().map(str::to_owned).collect::<Vec<_>>());
    let keys = format!("--keys={}", options.keys);
    let keyspace = format!("--keyspace={name}");
    let words = ["bench", "--load", "--mix=get=1", "--rate=10", "--duration=1s", &keys, &keyspace];
    rack.keyway(&words.map(str::to_owned));
}

/// All distributions at one share of reads.
fn measure(rack: &Rack, options: &Options, replicas: u64, reads: u32) {
    let visits = f64::from(reads) / 100.0 + replicas as f64 * (1.0 - f64::from(reads) / 100.0);
    let cap = (f64::from(options.nodes) * options.node_rate as f64 / visits) as u64;
    let workload = |hot: &str, distribution: String| Workload {
        keyspace: keyspace(replicas, hot),
        distribution,
        reads,
        keys: options.keys,
        seconds: options.seconds,
    };
    let even = workload("off", "uniform".to_owned());
    let idle = even.run(rack, cap / 50, 1).p99_us;
    let most = P99_TIMES * idle;
    let uniform = even.highest(rack, cap, most);
    row(options, replicas, reads, "uniform", cap, [uniform.as_ref(), None, None]);
    for theta in &options.theta {
        let zipf = format!("zipf:{theta}");
        let home = workload("off", zipf.clone()).highest(rack, cap, most);
        let copies = workload("replicate", zipf.clone()).highest(rack, cap, most);
        let trials = [home.as_ref(), copies.as_ref(), uniform.as_ref()];
        row(options, replicas, reads, &zipf, cap, trials);
    }
}

/// Of hot keys at home, of copies, and of what they are compared with.
fn row(
    options: &Options,
    replicas: u64,
    reads: u32,
    keys: &str,
    cap: u64,
    [home, copies, even]: [Option<&Trial>; 3],
) {
    let rate = |trial: Option<&Trial>| trial.map(|it| it.served);
    let over = |other| Some(rate(copies)? / rate(other)?);
    let busiest = copies.or(home).map(Trial::imbalance);
    if options.json {
        let row = json!({
            "benchmark": "balance", "nodes": options.nodes, "node_rate": options.node_rate,
            "plane": options.plane, "replicas": replicas, "reads_percent": reads, "keys": keys,
            "cap": cap, "home": rate(home), "copies": rate(copies), "over_home": over(home),
            "over_uniform": over(even), "max_over_mean": busiest,
        });
        println!("{row}");
        return;
    }
    let text = |number: Option<f64>, digits: usize| {
        number.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}"))
    };
    println!(
        "{replicas:>3} {reads:>6}  {keys:<9} {cap:>6} {:>9} {:>9} {:>7} {:>7} {:>9}",
        text(rate(home), 0),
        text(rate(copies), 0),
        text(over(home), 2),
        text(over(even), 2),
        text(busiest, 2),
    );
}
