//! What the memory engine costs per operation and per record:
//! `cargo bench -p keyway-node --bench engine [-- --json]`.
//!
//! Keys are looked up in random order over far more memory than the caches hold, which is what a
//! shard under uniform load meets.

use cluster::{KeyspaceId, Match, PartitionId, StoreId};
use machine::Rng;
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, KeyRef, Record};
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};
use wire::Version;

const KEYS: u64 = 1_000_000;
/// In one round: short enough to run undisturbed now and then.
const OPS: u64 = 50_000;
const VALUE_BYTES: usize = 128;
/// As many as a shard of a middling cluster serves.
const PARTITIONS: u32 = 32;

/// The best of so many rounds is what the engine costs; the others also measure the neighbours.
const ROUNDS: u32 = 200;

/// Each kind of keyspace in a process of its own, so that neither inherits the other's memory.
fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let kind = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    match kind.as_deref() {
        Some("hash") => measure("hash", false).print(json),
        Some("ordered") => measure("ordered", true).print(json),
        _ => {
            if !json {
                println!(
                    "memory engine: {KEYS} keys of 16 bytes, values of {VALUE_BYTES}, \
                     {PARTITIONS} partitions; {OPS} operations at random, best of {ROUNDS} rounds"
                );
            }
            ["hash", "ordered"].into_iter().for_each(|kind| in_own_process(kind, json));
        }
    }
}

fn in_own_process(kind: &str, json: bool) {
    let program = std::env::current_exe().expect("a running program has a name");
    let mut command = std::process::Command::new(program);
    let status = command.arg(kind).args(json.then_some("--json")).status();
    assert!(status.is_ok_and(|status| status.success()), "measuring {kind} failed");
}

/// What a keyspace of one kind costs.
struct Costs {
    name: &'static str,
    get_ns: f64,
    put_ns: f64,
    put_new_ns: f64,
    /// Bytes of a record beyond key and value.
    overhead_bytes: f64,
}

impl Costs {
    fn print(&self, json: bool) {
        let Self { name, get_ns, put_ns, put_new_ns, overhead_bytes } = self;
        if json {
            let row = json!({
                "benchmark": "engine", "keyspace": name, "keys": KEYS, "value_bytes": VALUE_BYTES,
                "partitions": PARTITIONS, "get_ns": get_ns, "put_ns": put_ns,
                "put_new_ns": put_new_ns, "overhead_bytes": overhead_bytes,
            });
            println!("{row}");
            return;
        }
        for (what, ns) in [("PUT new", put_new_ns), ("GET", get_ns), ("PUT", put_ns)] {
            println!("{name:8} {what:8} {ns:5.0} ns per operation");
        }
        println!("{name:8} overhead {overhead_bytes:5.0} bytes per record");
    }
}

fn measure(name: &'static str, ordered: bool) -> Costs {
    let before = resident_bytes();
    let mut engine = MemoryEngine::new(StoreId(1));
    let value = [7; VALUE_BYTES];
    let loaded = time(|| {
        for index in 0..KEYS {
            write(&mut engine, ordered, index, &value);
        }
    });
    let payload = KEYS * (16 + VALUE_BYTES as u64);
    let grown = resident_bytes().saturating_sub(before);
    let overhead_bytes = ratio(grown, KEYS) - ratio(payload, KEYS);

    // What it takes to make up a key is taken off below.
    let mut rng = Rng::new(3);
    let keys = best(|| {
        for _ in 0..OPS {
            black_box(&with_key(ordered, rng.below(KEYS), |key| key.keyhash));
        }
    });
    let mut rng = Rng::new(1);
    let read = best(|| {
        for _ in 0..OPS {
            // Into a reply, as a node does it.
            let mut reply = [0; VALUE_BYTES];
            let found = with_key(ordered, rng.below(KEYS), |key| {
                engine.read(key, |record| record.map(|r| reply.copy_from_slice(r.value)))
            });
            assert!(found.is_some(), "every key is there");
            black_box(&reply);
        }
    });
    let mut rng = Rng::new(2);
    let written = best(|| {
        for _ in 0..OPS {
            write(&mut engine, ordered, rng.below(KEYS), &value);
        }
    });
    Costs {
        name,
        get_ns: each_ns(read.saturating_sub(keys), OPS),
        put_ns: each_ns(written.saturating_sub(keys), OPS),
        put_new_ns: each_ns(loaded, KEYS),
        overhead_bytes,
    }
}

fn best(mut run: impl FnMut()) -> Duration {
    (0..ROUNDS).map(|_| time(&mut run)).min().expect("there is a round")
}

fn write(engine: &mut MemoryEngine, ordered: bool, index: u64, value: &[u8]) {
    let record = Record { version: Version::new(index + 1), expiry_ms: 0, tombstone: false, value };
    with_key(ordered, index, |key| engine.write(key, &record));
}

/// Key, match value and keyhash come from the request in a node, and cost the engine nothing.
fn with_key<R>(ordered: bool, index: u64, run: impl FnOnce(&KeyRef<'_>) -> R) -> R {
    let high = machine::mix(index);
    let low = machine::mix(high);
    let key = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let partition = PartitionId(1 + u32::try_from(high >> 32).expect("32 bits") % PARTITIONS);
    let match_value = Match(u128::from_be_bytes(key));
    let keyspace = KeyspaceId(1);
    run(&KeyRef { keyspace, partition, ordered, match_value, keyhash: low, key: &key })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time that really passes")]
fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn each_ns(elapsed: Duration, operations: u64) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}

/// Zero where there is no procfs.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

fn ratio(of: u64, to: u64) -> f64 {
    of as f64 / to as f64
}
