//! Beside Redis and memcached.

use super::{Load, Spread, each, kilo, rows_with, tail};
use crate::measure::markdown::{Markdown, digits, time};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    store: String,
    op: String,
    value_bytes: u64,
    #[serde(flatten)]
    load: Load,
    per_second: Spread,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    server_cpu_us: f64,
    saturated: String,
    ratio_redis: Spread,
    ratio_memcached: Spread,
    ratio_memcached_udp: Spread,
}

fn rows(of: &[Value], equal: bool) -> Result<Vec<Row>> {
    let mut rows = rows_with::<Row>(of, &[("benchmark", "stores")])?;
    rows.retain(|row| row.load.is_equal() == equal);
    Ok(rows)
}

/// Tails at equal rates.
pub(in crate::measure) fn equal(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(2, &["", "store", "k/s", "p99 / p99.9", "p50"]);
    for row in rows(of, true)? {
        table.row(&[
            format!("{}, {} B", row.op, row.value_bytes),
            row.store,
            kilo(row.per_second.median),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
        ]);
    }
    Ok(table.text())
}

/// Rates with so many requests in flight.
pub(in crate::measure) fn rates(of: &[Value]) -> Result<String> {
    let heads = ["", "store", "in flight", "p99 / p99.9", "p50", "k/s", "server's CPU us", "full"];
    let mut table = Markdown::new(2, &heads);
    for row in rows(of, false)? {
        table.row(&[
            format!("{}, {} B", row.op, row.value_bytes),
            row.store,
            row.load.text(),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
            row.per_second.kilo(),
            each(&[row.server_cpu_us]),
            row.saturated,
        ]);
    }
    Ok(table.text())
}

/// Keyway's rates as ratios to those of others.
pub(in crate::measure) fn ratios(of: &[Value]) -> Result<String> {
    let heads = ["", "way", "in flight", "to Redis", "to memcached, TCP", "to memcached, UDP"];
    let mut table = Markdown::new(2, &heads);
    for row in rows(of, false)?.into_iter().filter(|row| row.store.starts_with("Keyway")) {
        let ratios = [row.ratio_redis, row.ratio_memcached, row.ratio_memcached_udp];
        let mut cells =
            vec![format!("{}, {} B", row.op, row.value_bytes), row.store, row.load.text()];
        cells.extend(ratios.map(|it| digits(it.median)));
        table.row(&cells);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tails_rates_and_ratios_are_of_the_same_rows() {
        let spread = |median: f64| json!({ "median": median, "low": median, "high": median });
        let row = |store: &str, in_flight: Option<u64>, rate: Option<f64>| {
            json!({
                "benchmark": "stores", "store": store, "op": "GET", "value_bytes": 128,
                "in_flight": in_flight, "rate": rate, "per_second": spread(188_000.0),
                "p50_us": 150.0, "p99_us": 310.0, "p999_us": 1_200.0, "client_cpu_us": 2.0,
                "server_cpu_us": 2.85, "saturated": "neither", "ratio_redis": spread(0.72),
                "ratio_memcached": spread(0.61), "ratio_memcached_udp": spread(1.23),
            })
        };
        let of = [
            row("Keyway", Some(32), None),
            row("Redis, TCP", Some(32), None),
            row("Keyway", None, Some(61_000.0)),
        ];
        let expected = "\
|  | store | k/s | p99 / p99.9 | p50 |
|---|---|--:|--:|--:|
| GET, 128 B | Keyway | 188 | 310 us / 1.20 ms | 150 us |
";
        assert_eq!(equal(&of).unwrap(), expected);
        let expected = "\
|  | store | in flight | p99 / p99.9 | p50 | k/s | server's CPU us | full |
|---|---|--:|--:|--:|--:|--:|--:|
| GET, 128 B | Keyway | 32 | 310 us / 1.20 ms | 150 us | 188 [188 188] | 2.85 | neither |
| GET, 128 B | Redis, TCP | 32 | 310 us / 1.20 ms | 150 us | 188 [188 188] | 2.85 | neither |
";
        assert_eq!(rates(&of).unwrap(), expected);
        let expected = "\
|  | way | in flight | to Redis | to memcached, TCP | to memcached, UDP |
|---|---|--:|--:|--:|--:|
| GET, 128 B | Keyway | 32 | 0.72 | 0.61 | 1.23 |
";
        assert_eq!(ratios(&of).unwrap(), expected);
    }
}
