//! In a rack of namespaces.

use super::{Load, Spread, each, kilo, rows_with, tail};
use crate::measure::markdown::{Markdown, time};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Way {
    arm: String,
    op: String,
    #[serde(flatten)]
    load: Load,
    per_second: Spread,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    client_cpu_us: f64,
    switch_cpu_us: f64,
    servers_cpu_us: f64,
    saturated: String,
    ratio_to: BTreeMap<String, Spread>,
}

fn ways(of: &[Value], equal: bool) -> Result<Vec<Way>> {
    let mut rows = rows_with::<Way>(of, &[("benchmark", "rack"), ("part", "coordination")])?;
    rows.retain(|row| row.load.is_equal() == equal);
    Ok(rows)
}

/// Tails at equal rates.
pub(in crate::measure) fn equal(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(2, &["", "way", "k/s", "p99 / p99.9", "p50"]);
    for row in ways(of, true)? {
        table.row(&[
            row.op,
            row.arm,
            kilo(row.per_second.median),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
        ]);
    }
    Ok(table.text())
}

/// Rates with so many requests in flight.
pub(in crate::measure) fn rates(of: &[Value]) -> Result<String> {
    let heads = ["", "way", "p99 / p99.9", "p50", "k/s", "CPU us: client, switch, servers", "full"];
    let mut table = Markdown::new(2, &heads);
    for row in ways(of, false)? {
        table.row(&[
            format!("{}, {}", row.op, row.load.text()),
            row.arm,
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
            row.per_second.kilo(),
            each(&[row.client_cpu_us, row.switch_cpu_us, row.servers_cpu_us]),
            row.saturated,
        ]);
    }
    Ok(table.text())
}

/// What ways are compared with.
const BASES: [&str; 4] = ["direct", "direct, apart", "direct, same", "Redis, direct"];

/// Rates as ratios.
pub(in crate::measure) fn ratios(of: &[Value]) -> Result<String> {
    let heads = BASES.map(|base| format!("of *{base}*"));
    let mut heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    heads.splice(0..0, ["", "way"]);
    let mut table = Markdown::new(2, &heads);
    for row in ways(of, false)?.into_iter().filter(|row| !row.ratio_to.is_empty()) {
        let ratio = |base: &str| row.ratio_to.get(base).map_or_else(String::new, |it| it.text());
        let mut cells = vec![format!("{}, {}", row.op, row.load.text()), row.arm.clone()];
        cells.extend(BASES.map(ratio));
        table.row(&cells);
    }
    Ok(table.text())
}

#[derive(Deserialize)]
struct Multiget {
    arm: String,
    keys: u64,
    #[serde(flatten)]
    load: Load,
    keys_per_second: Spread,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    client_cpu_us_per_key: f64,
    other_cpu_us_per_key: f64,
    saturated: String,
    switch_ratio: Option<Spread>,
}

/// Who takes a multiget apart, as the benchmark and as people say it.
const SPLITTERS: [(&str, &str); 5] = [
    ("XDP switch splits", "XDP switch"),
    ("with hints", "XDP switch, by the client's hints"),
    ("client, per server", "client, per server"),
    ("without XDP", "client, per server, rack without XDP"),
    ("client, per key", "nobody: a GET per key"),
];

impl Multiget {
    fn name(&self) -> String {
        let name = SPLITTERS.iter().find(|(arm, _)| *arm == self.arm);
        name.map_or(self.arm.as_str(), |(_, name)| name).to_owned()
    }
}

fn multigets_with(of: &[Value], equal: bool) -> Result<Vec<Multiget>> {
    let mut rows = rows_with::<Multiget>(of, &[("benchmark", "rack"), ("part", "multiget")])?;
    rows.retain(|row| row.load.is_equal() == equal);
    Ok(rows)
}

/// Tails of multigets at equal rates.
pub(in crate::measure) fn multigets_equal(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(1, &["who splits", "keys", "kilokeys/s", "p99 / p99.9", "p50"]);
    for row in multigets_with(of, true)? {
        table.row(&[
            row.name(),
            row.keys.to_string(),
            kilo(row.keys_per_second.median),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
        ]);
    }
    Ok(table.text())
}

/// Rates of multigets with so many keys in flight.
pub(in crate::measure) fn multigets(of: &[Value]) -> Result<String> {
    let heads = [
        "who splits",
        "keys",
        "p99 / p99.9",
        "p50",
        "kilokeys/s",
        "switch, to this",
        "CPU us per key: client, others",
        "full",
    ];
    let mut table = Markdown::new(1, &heads);
    for row in multigets_with(of, false)? {
        table.row(&[
            row.name(),
            row.keys.to_string(),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
            row.keys_per_second.kilo(),
            row.switch_ratio.map_or_else(String::new, Spread::text),
            each(&[row.client_cpu_us_per_key, row.other_cpu_us_per_key]),
            row.saturated,
        ]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spread(median: f64) -> Value {
        json!({ "median": median, "low": median, "high": median })
    }

    #[test]
    fn ways_have_tails_rates_and_the_ratios_that_there_are() {
        let row = |arm: &str, rate: Option<f64>, ratio_to: Value| {
            let in_flight = rate.is_none().then_some(32);
            json!({
                "benchmark": "rack", "part": "coordination", "arm": arm, "op": "PUT",
                "in_flight": in_flight, "rate": rate, "per_second": spread(198_000.0),
                "p50_us": 155.0, "p99_us": 404.0, "p999_us": 900.0, "client_cpu_us": 4.39,
                "switch_cpu_us": 0.0, "servers_cpu_us": 4.94, "saturated": "server",
                "ratio_to": ratio_to,
            })
        };
        let of = [
            row("direct", None, json!({})),
            row(
                "XDP switch",
                None,
                json!({ "direct": spread(0.67), "direct, apart": spread(0.86) }),
            ),
            row("XDP switch", Some(48_000.0), json!({})),
        ];
        let text = equal(&of).unwrap();
        assert_eq!(
            text.lines().nth(2),
            Some("| PUT | XDP switch | 198 | 404 us / 900 us | 155 us |")
        );
        let expected = "| PUT, 32 | direct | 404 us / 900 us | 155 us | 198 [198 198] \
                        | 4.39, 0.00, 4.94 | server |";
        assert_eq!(rates(&of).unwrap().lines().nth(2), Some(expected));
        let expected = "\
|  | way | of *direct* | of *direct, apart* | of *direct, same* | of *Redis, direct* |
|---|---|--:|--:|--:|--:|
| PUT, 32 | XDP switch | 0.67 [0.67 0.67] | 0.86 [0.86 0.86] |  |  |
";
        assert_eq!(ratios(&of).unwrap(), expected);
    }

    #[test]
    fn splitters_are_named() {
        let mut of = json!({
            "benchmark": "rack", "part": "multiget", "arm": "without XDP", "op": "MGET", "keys": 8,
            "keys_per_second": spread(341_000.0), "p50_us": 710.0, "p99_us": 1_540.0,
            "p999_us": 2_000.0, "client_cpu_us_per_key": 2.63, "other_cpu_us_per_key": 2.85,
            "saturated": "server", "switch_ratio": null, "in_flight": 32, "rate": null,
        });
        let expected = "| client, per server, rack without XDP | 8 | 1.54 ms / 2.00 ms | 710 us \
                        | 341 [341 341] |  | 2.63, 2.85 | server |";
        assert_eq!(multigets(&[of.clone()]).unwrap().lines().nth(2), Some(expected));
        (of["in_flight"], of["rate"]) = (Value::Null, 21_300.0.into());
        let expected = "| client, per server, rack without XDP | 8 | 341 | 1.54 ms / 2.00 ms \
                        | 710 us |";
        assert_eq!(multigets_equal(&[of]).unwrap().lines().nth(2), Some(expected));
    }
}
