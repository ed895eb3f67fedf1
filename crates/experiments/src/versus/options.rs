//! Whom `keyway bench --versus` compares with, as it is typed.

use clap::ValueEnum;
use console::parse;
use std::time::Duration;

/// Whom to compare with, and how.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparison")]
pub struct Versus {
    /// Start servers of this and of Keyway on this machine, and compare.
    ///
    /// redis-cluster: throughput at equal tails, each key once: Zipf 0.99 and 1.2, reads only, 95 %
    /// reads, multigets of 16 and 100 keys, and uniform reads; or what --mix and --distribution
    /// say. Multigets of Keyway's own clients both by the switch alone and with hints (assisted).
    ///
    /// etcd, redis-durable, memory: three copies of each key, synced to disk before a write is
    /// answered, with 1 to 512 writes in flight (or what --mix says); memory is Keyway itself with
    /// its memory engine, also with reads between. Rounds alternate; figures are medians. Data lies
    /// in the directory for temporary files ($TMPDIR), which must be on the disk that is meant.
    #[arg(long, value_enum)]
    #[arg(conflicts_with_all =
        ["embedded", "load", "workload", "rate", "in_flight", "shift", "multigets"])]
    pub(super) versus: Option<Rival>,
    /// With --versus redis-cluster: what share of one processor each server process gets, by
    /// control groups. Without it 0.03, and 0.06 under multigets: what is left of two processors
    /// then still suffices for clients and switch.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) cpu_share: Option<f64>,
    /// With --versus redis-cluster: what the 99th percentile may be.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse::some_time)]
    pub(super) p99: Duration,
}

/// Whom to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Rival {
    /// Redis Cluster, masters only, and nutcracker before the same servers.
    RedisCluster,
    /// etcd with three members, asked at its leader.
    Etcd,
    /// Redis that syncs each write, with two replicas that do; writers WAIT for both.
    RedisDurable,
    /// Keyway with its memory engine, to see what durability costs.
    Memory,
}

/// A period of the kernel is a second at most, and the least that it gives a millisecond.
const SHARE_MIN: f64 = 0.001;

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| format!("{text:?} is no share"))?;
    let possible = (SHARE_MIN..=1.0).contains(&share);
    possible.then_some(share).ok_or_else(|| format!("a share is {SHARE_MIN} to 1"))
}

#[test]
fn a_share_is_some_of_one_processor() {
    assert!(share("0.03").is_ok() && share("0").is_err() && share("2").is_err());
}
