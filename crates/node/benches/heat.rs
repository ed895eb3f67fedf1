//! What it costs to count a request by its key, and to log it for bursts:
//! `cargo bench -p keyway-node --bench heat [-- --json]`.

use cluster::KeyspaceId;
use machine::Rng;
use node::{Frequencies, Recent, TrackerConfig, Use};
use serde_json::json;
use std::hint::black_box;
use std::time::{Duration, Instant};

const KEYS: u64 = 1_000_000;
/// In one round, which begins with nothing counted, as segments do: a tenth of a second of a busy
/// shard.
const REQUESTS: usize = 20_000;
/// The best of so many rounds is what it costs; the others also measure the neighbours.
const ROUNDS: u32 = 300;
const SPACE: KeyspaceId = KeyspaceId(1);
const START: machine::Instant = machine::Instant(0);

/// Who is asked for.
#[derive(Clone, Copy)]
enum Stream {
    /// One key.
    One,
    /// The key of rank r for one in r requests, nearly (Zipf with exponent 1).
    Skewed,
    /// All keys alike: nearly every request takes the place of another key.
    Uniform,
}

impl Stream {
    const ALL: [(&'static str, Self); 3] =
        [("one", Self::One), ("skewed", Self::Skewed), ("uniform", Self::Uniform)];

    fn keys(self) -> Vec<u64> {
        let mut rng = Rng::new(1);
        let rank = |rng: &mut Rng| match self {
            Self::One => 0,
            Self::Skewed => (KEYS as f64).powf(rng.unit()) as u64,
            Self::Uniform => rng.below(KEYS),
        };
        (0..REQUESTS).map(|_| rank(&mut rng)).collect()
    }
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    if !json {
        println!("{REQUESTS} reads of {KEYS} keys of 16 bytes, best of {ROUNDS} rounds");
    }
    let log_len = TrackerConfig::default().instant.map_or(0, |it| it.last);
    for (name, stream) in Stream::ALL {
        let keys = stream.keys();
        let mut frequencies = Frequencies::default();
        let count_ns = best(&keys, |place, keyhash, key| {
            if place == 0 {
                frequencies.clear();
            }
            black_box(frequencies.see(SPACE, keyhash, key, Use::Read));
        });
        let mut recent = Recent::new(START, log_len);
        let log_ns = best(&keys, |_, keyhash, key| {
            black_box(recent.see(START, SPACE, keyhash, key));
        });
        if json {
            let row = json!({
                "benchmark": "heat", "stream": name, "count_ns": count_ns, "log_ns": log_ns,
            });
            println!("{row}");
        } else {
            println!("{name:8} {count_ns:6.1} ns to count one, {log_ns:6.1} ns to log it");
        }
    }
}

/// Nanoseconds of the best round, for each request. Each is given its place, keyhash and key.
fn best(keys: &[u64], mut see: impl FnMut(usize, u64, &[u8])) -> f64 {
    let mut round = || {
        for (place, index) in keys.iter().enumerate() {
            let hash = machine::mix(*index);
            see(place, hash, &(u128::from(hash) << 64 | u128::from(*index)).to_be_bytes());
        }
    };
    let rounds = (0..ROUNDS).map(|_| time(&mut round));
    let least = rounds.min().expect("there is a round");
    least.as_nanos() as f64 / REQUESTS as f64
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time that really passes")]
fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}
