//! What the memory engine costs per operation and per record: `cargo bench -p keyway-node`.
//!
//! Keys are looked up in random order over far more memory than the caches hold, which is what a
//! shard under uniform load meets.

use cluster::{KeyspaceId, Match, PartitionId, StoreId};
use machine::Rng;
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, KeyRef, Record};
use std::hint::black_box;
use std::time::{Duration, Instant};

const KEYS: u64 = 1_000_000;
const OPS: u64 = 4_000_000;
const VALUE_BYTES: usize = 128;
/// As many as a shard of a middling cluster serves.
const PARTITIONS: u32 = 32;

fn main() {
    println!("memory engine: {KEYS} keys of 16 bytes, values of {VALUE_BYTES}, {OPS} operations");
    for ordered in [false, true] {
        measure(ordered);
    }
}

fn measure(ordered: bool) {
    let name = if ordered { "ordered" } else { "hash" };
    let before = resident_bytes();
    let mut engine = MemoryEngine::new(StoreId(1));
    let value = [7; VALUE_BYTES];
    let loaded = time(|| {
        for index in 0..KEYS {
            write(&mut engine, ordered, index, &value);
        }
    });
    report(name, "load", loaded, KEYS);
    let payload = KEYS * (16 + VALUE_BYTES as u64);
    let grown = resident_bytes().saturating_sub(before);
    println!(
        "{name:8} overhead {:5.0} bytes per record",
        ratio(grown, KEYS) - ratio(payload, KEYS)
    );

    let keys = time(|| {
        let mut rng = Rng::new(3);
        for _ in 0..OPS {
            black_box(&with_key(ordered, rng.below(KEYS), |key| key.keyhash));
        }
    });
    report(name, "(keys)", keys, OPS);
    let read = time(|| {
        let mut rng = Rng::new(1);
        for _ in 0..OPS {
            let sum = with_key(ordered, rng.below(KEYS), |key| {
                engine.read(key, |record| record.map_or(0, |r| r.version + r.value.len() as u64))
            });
            assert!(black_box(sum) > 0, "every key is there");
        }
    });
    report(name, "GET", read.saturating_sub(keys), OPS);
    let written = time(|| {
        let mut rng = Rng::new(2);
        for _ in 0..OPS {
            write(&mut engine, ordered, rng.below(KEYS), &value);
        }
    });
    report(name, "PUT", written.saturating_sub(keys), OPS);
}

fn write(engine: &mut MemoryEngine, ordered: bool, index: u64, value: &[u8]) {
    let record = Record { version: index + 1, expiry_ms: 0, tombstone: false, value };
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

fn report(name: &str, what: &str, elapsed: Duration, operations: u64) {
    let nanos = elapsed.as_nanos() as f64 / operations as f64;
    println!("{name:8} {what:8} {nanos:5.0} ns per operation");
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
