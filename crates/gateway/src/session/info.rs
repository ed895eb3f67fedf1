//! INFO: figures in the sections of Redis, true ones only.

use super::words::{Response, quoted};
use crate::Reply;
use crate::clients::Entry;
use crate::databases::Database;
use crate::lookups::Lookups;
use crate::memory;
use crate::reply::REDIS_VERSION;
use crate::shared::Shared;
use crate::stats::CommandFigures;
use bytes::Bytes;
use client::KeyCount;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Sections that are told without being asked for.
const DEFAULT: [&str; 10] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "errorstats",
    "cluster",
    "keyspace",
];
/// Sections that are told besides when everything is asked for.
const MORE: [&str; 2] = ["commandstats", "latencystats"];

pub(super) fn run(shared: &Arc<Shared>, database: u8, args: &[Bytes]) -> Response {
    let mut wanted: Vec<&'static str> = Vec::new();
    let names: Vec<String> =
        args.iter().skip(1).map(|it| quoted(it).to_ascii_lowercase()).collect();
    if names.is_empty() {
        wanted.extend(DEFAULT);
    }
    for name in &names {
        match name.as_str() {
            "default" => wanted.extend(DEFAULT),
            "all" | "everything" => wanted.extend(DEFAULT.iter().chain(&MORE)),
            other => wanted.extend(DEFAULT.iter().chain(&MORE).filter(|it| **it == other)),
        }
    }
    let mut seen = Vec::new();
    wanted.retain(|name| {
        !seen.contains(name) && {
            seen.push(*name);
            true
        }
    });
    let shared = Arc::clone(shared);
    if wanted.contains(&"keyspace") {
        // The number of keys is the cluster's to say.
        return Response::Later(Box::pin(async move {
            let mut counted = Vec::new();
            for served in &shared.databases {
                let count = served.key_count().await.unwrap_or_default();
                counted.push((served.database.number, count));
            }
            write(&shared, database, &wanted, &counted)
        }));
    }
    write(&shared, database, &wanted, &[]).into()
}

fn write(shared: &Shared, database: u8, sections: &[&str], counted: &[(u8, KeyCount)]) -> Reply {
    let texts = sections.iter().map(|name| match *name {
        "server" => server(shared),
        "clients" => clients(shared),
        "memory" => memory(shared),
        "persistence" => persistence(shared),
        "stats" => stats(shared),
        "replication" => replication(shared, database),
        "cpu" => cpu(),
        "errorstats" => errors(shared),
        // Without one, clients need not know where keys lie.
        "cluster" => {
            let enabled = u8::from(shared.cluster.is_some()).to_string();
            section("Cluster", &[("cluster_enabled", enabled)])
        }
        "commandstats" => command_stats(shared),
        "latencystats" => latency_stats(shared),
        _ => keyspace(counted),
    });
    Reply::Verbatim(texts.collect::<Vec<_>>().join("\r\n").into())
}

/// A section from its lines.
fn section(title: &str, lines: &[(&str, String)]) -> String {
    let mut text = format!("# {title}\r\n");
    for (name, value) in lines {
        write!(text, "{name}:{value}\r\n").expect("writing to a string does not fail");
    }
    text
}

fn server(shared: &Shared) -> String {
    let uptime = shared.now().as_secs();
    let now = shared.time_of_day();
    section(
        "Server",
        &[
            ("redis_version", REDIS_VERSION.into()),
            ("redis_mode", shared.mode().into()),
            ("server_name", "keyway".into()),
            ("keyway_version", env!("CARGO_PKG_VERSION").into()),
            ("keyway_multi", shared.multi.to_string()),
            ("os", std::env::consts::OS.into()),
            ("arch_bits", usize::BITS.to_string()),
            ("process_id", std::process::id().to_string()),
            ("run_id", shared.run_id.clone()),
            ("tcp_port", shared.listen.port().to_string()),
            ("server_time_usec", now.as_micros().to_string()),
            ("uptime_in_seconds", uptime.to_string()),
            ("uptime_in_days", (uptime / 86_400).to_string()),
        ],
    )
}

fn clients(shared: &Shared) -> String {
    let entries = shared.clients.list();
    let most = |figure: fn(&Entry) -> usize| {
        entries.iter().map(|entry| figure(entry)).max().unwrap_or_default().to_string()
    };
    let watched = entries.iter().map(|entry| entry.watched.load(Ordering::Relaxed));
    section(
        "Clients",
        &[
            ("connected_clients", entries.len().to_string()),
            ("cluster_connections", "0".into()),
            ("maxclients", shared.settings.maxclients().to_string()),
            ("client_recent_max_input_buffer", most(|entry| entry.input.load(Ordering::Relaxed))),
            ("client_recent_max_output_buffer", most(|entry| entry.output.load(Ordering::Relaxed))),
            ("blocked_clients", "0".into()),
            ("tracking_clients", "0".into()),
            ("pubsub_clients", "0".into()),
            ("watching_clients", watched.clone().filter(|keys| *keys > 0).count().to_string()),
            ("total_watched_keys", watched.sum::<usize>().to_string()),
            ("total_blocking_keys", "0".into()),
        ],
    )
}

/// What the kernel counts for the gateway's process; what the nodes use is not known here.
fn memory(shared: &Shared) -> String {
    let (resident, peak) = (memory::resident(), memory::peak());
    let buffers = shared.budget.held();
    section(
        "Memory",
        &[
            ("used_memory", resident.to_string()),
            ("used_memory_human", human(resident)),
            ("used_memory_rss", resident.to_string()),
            ("used_memory_rss_human", human(resident)),
            ("used_memory_peak", peak.to_string()),
            ("used_memory_peak_human", human(peak)),
            ("mem_clients_normal", buffers.to_string()),
            ("maxmemory_clients", shared.settings.held_max().to_string()),
            ("maxmemory", "0".into()),
            ("maxmemory_policy", "noeviction".into()),
        ],
    )
}

/// The gateway itself keeps nothing; the last line is about the nodes.
fn persistence(shared: &Shared) -> String {
    section(
        "Persistence",
        &[
            ("loading", "0".into()),
            ("async_loading", "0".into()),
            ("rdb_bgsave_in_progress", "0".into()),
            ("aof_enabled", "0".into()),
            ("keyway_sync", shared.sync.clone()),
        ],
    )
}

/// Nodes evict nothing. How many keys have expired, a gateway does not know, and does not say.
fn stats(shared: &Shared) -> String {
    let stats = &shared.stats;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed).to_string();
    let (rates, Lookups { hits, misses }) = (stats.rates(), stats.lookups());
    let errors: u64 = stats.errors().iter().map(|(_, count)| count).sum();
    section(
        "Stats",
        &[
            ("total_connections_received", load(&stats.connections)),
            ("total_commands_processed", stats.calls().to_string()),
            ("instantaneous_ops_per_sec", rates.calls.to_string()),
            ("total_net_input_bytes", load(&stats.bytes_in)),
            ("total_net_output_bytes", load(&stats.bytes_out)),
            ("instantaneous_input_kbps", kbps(rates.bytes_in)),
            ("instantaneous_output_kbps", kbps(rates.bytes_out)),
            ("rejected_connections", load(&stats.rejected)),
            ("evicted_clients", load(&stats.evicted)),
            ("evicted_keys", "0".into()),
            ("keyspace_hits", hits.to_string()),
            ("keyspace_misses", misses.to_string()),
            ("keyway_multi_in_order", load(&stats.ordered)),
            ("acl_access_denied_auth", shared.guesses.counts().0.to_string()),
            ("total_error_replies", errors.to_string()),
            ("client_protocol_errors", load(&stats.protocol_errors)),
        ],
    )
}

/// Kilobytes with two decimals.
fn kbps(bytes: u64) -> String {
    let hundredths = bytes.saturating_mul(100) >> 10;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Bytes in the unit that fits, with two decimals, as Redis writes them.
fn human(bytes: u64) -> String {
    let mut unit = (0, 'B');
    for (power, name) in [(10, 'K'), (20, 'M'), (30, 'G'), (40, 'T')] {
        if bytes >> power > 0 {
            unit = (power, name);
        }
    }
    let (power, name) = unit;
    let hundredths = (u128::from(bytes) * 100) >> power;
    format!("{}.{:02}{name}", hundredths / 100, hundredths % 100)
}

fn replication(shared: &Shared, database: u8) -> String {
    let served = shared.database(database);
    let Database { keyspace, replicas, .. } = &served.database;
    let known = replicas.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
    section(
        "Replication",
        &[
            ("role", "master".into()),
            ("connected_slaves", served.others().to_string()),
            ("keyway_keyspace", keyspace.clone()),
            ("keyway_replicas", known),
            (
                "keyway_service",
                shared.services.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
            ),
        ],
    )
}

fn cpu() -> String {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let seconds = |micros: Option<i64>| {
        let micros = micros.unwrap_or_default();
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    };
    let system = usage.as_ref().map(|usage| usage.system_time().num_microseconds());
    let user = usage.as_ref().map(|usage| usage.user_time().num_microseconds());
    section("CPU", &[("used_cpu_sys", seconds(system)), ("used_cpu_user", seconds(user))])
}

fn errors(shared: &Shared) -> String {
    let mut text = "# Errorstats\r\n".to_owned();
    for (word, count) in shared.stats.errors() {
        text.push_str(&format!("errorstat_{word}:count={count}\r\n"));
    }
    text
}

fn command_stats(shared: &Shared) -> String {
    let mut text = "# Commandstats\r\n".to_owned();
    for figures in shared.stats.commands() {
        let CommandFigures { name, calls, micros, failed, rejected, .. } = figures;
        let hundredths = micros.saturating_mul(100).checked_div(calls).unwrap_or_default();
        let each = (hundredths / 100, hundredths % 100);
        text.push_str(&format!(
            "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={}.{:02},\
             rejected_calls={rejected},failed_calls={failed}\r\n",
            each.0, each.1,
        ));
    }
    text
}

fn latency_stats(shared: &Shared) -> String {
    let mut text = "# Latencystats\r\n".to_owned();
    for figures in shared.stats.commands() {
        let Some(latency) = figures.latency.filter(|latency| !latency.is_empty()) else { continue };
        let at = |quantile| latency.value_at_quantile(quantile);
        text.push_str(&format!(
            "latency_percentiles_usec_{}:p50={}.000,p99={}.000,p99.9={}.000\r\n",
            figures.name,
            at(0.5),
            at(0.99),
            at(0.999),
        ));
    }
    text
}

/// Of databases without keys Redis says nothing.
fn keyspace(counted: &[(u8, KeyCount)]) -> String {
    let mut text = "# Keyspace\r\n".to_owned();
    for (number, KeyCount { keys, expiring }) in counted.iter().filter(|(_, it)| it.keys > 0) {
        text.push_str(&format!("db{number}:keys={keys},expires={expiring}\r\n"));
    }
    text
}
