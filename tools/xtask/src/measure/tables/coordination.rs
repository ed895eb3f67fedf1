//! By way of the user-space switch, and past it.

use super::{Load, Spread, each, kilo, rows_with, tail};
use crate::measure::markdown::{Markdown, time};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    nodes: u64,
    #[serde(flatten)]
    load: Load,
    switch: Way,
    client: Way,
    ratio: Spread,
}

#[derive(Deserialize)]
struct Way {
    per_second: Spread,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    switch_cpu_us: f64,
    nodes_cpu_us: f64,
    saturated: String,
}

const WAYS: [&str; 2] = ["switch-driven", "client-driven"];

fn rows(of: &[Value], equal: bool) -> Result<Vec<Row>> {
    let mut rows = rows_with::<Row>(of, &[("benchmark", "coordination")])?;
    rows.retain(|row| row.load.is_equal() == equal);
    Ok(rows)
}

/// Tails at equal rates.
pub(in crate::measure) fn equal(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(1, &["way", "nodes", "k/s", "p99 / p99.9", "p50"]);
    for row in rows(of, true)? {
        for (name, way) in WAYS.into_iter().zip([&row.switch, &row.client]) {
            table.row(&[
                name.to_owned(),
                row.nodes.to_string(),
                kilo(way.per_second.median),
                tail(way.p99_us, way.p999_us),
                time(way.p50_us),
            ]);
        }
    }
    Ok(table.text())
}

/// Rates with so many requests in flight.
pub(in crate::measure) fn rates(of: &[Value]) -> Result<String> {
    let heads =
        ["way", "nodes", "in flight", "p99 / p99.9", "p50", "k/s", "ratio", "CPU us", "full"];
    let mut table = Markdown::new(1, &heads);
    for row in rows(of, false)? {
        let ratio = row.ratio.text();
        let ways = [(&row.switch, ratio.as_str()), (&row.client, "")];
        for (name, (way, ratio)) in WAYS.into_iter().zip(ways) {
            table.row(&[
                name.to_owned(),
                row.nodes.to_string(),
                row.load.text(),
                tail(way.p99_us, way.p999_us),
                time(way.p50_us),
                way.per_second.kilo(),
                ratio.to_owned(),
                each(&[way.switch_cpu_us, way.nodes_cpu_us]),
                way.saturated.clone(),
            ]);
        }
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the benchmark prints it.
    const PRINTED: &str = r#"{"batch":32,"benchmark":"coordination","client":{"client_cpu_us":2.1,
        "nodes_cpu_us":2.4,"p50_us":131.2,"p999_us":1304.0,"p99_us":179.3,"per_second":
        {"high":235000.0,"low":229000.0,"median":232000.0},"resent":0,"saturated":"neither",
        "strays":0,"switch_cpu_us":0.0},"in_flight":32,"key_bytes":16,"keys":100000,"nodes":1,
        "op":"GET","partitions":128,"rate":null,"ratio":{"high":0.622,"low":0.613,"median":0.619},
        "replicas":1,"round_ms":60,"rounds":31,"switch":{"client_cpu_us":2.0,"nodes_cpu_us":2.0,
        "p50_us":215.0,"p999_us":412.7,"p99_us":283.1,"per_second":{"high":144400.0,"low":142000.0,
        "median":144000.0},"resent":0,"saturated":"server","strays":0,"switch_cpu_us":3.0},
        "value_bytes":128}"#;

    #[test]
    fn each_way_has_a_line_with_its_tail_first() {
        let row: Value = serde_json::from_str(PRINTED).unwrap();
        let mut equal_row = row.clone();
        (equal_row["in_flight"], equal_row["rate"]) = (Value::Null, 72_000.0.into());
        let of = [row, equal_row];
        let expected = "\
| way | nodes | in flight | p99 / p99.9 | p50 | k/s | ratio | CPU us | full |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| switch-driven | 1 | 32 | 283 us / 413 us | 215 us | 144 [142 144] | 0.62 [0.61 0.62] \
| 3.00, 2.00 | server |
| client-driven | 1 | 32 | 179 us / 1.30 ms | 131 us | 232 [229 235] |  | 0.00, 2.40 | neither |
";
        assert_eq!(rates(&of).unwrap(), expected);
        let expected = "\
| way | nodes | k/s | p99 / p99.9 | p50 |
|---|--:|--:|--:|--:|
| switch-driven | 1 | 144 | 283 us / 413 us | 215 us |
| client-driven | 1 | 232 | 179 us / 1.30 ms | 131 us |
";
        assert_eq!(equal(&of).unwrap(), expected);
    }

    #[test]
    fn a_row_of_another_version_is_an_error_that_shows_it() {
        let rows = serde_json::json!({ "benchmark": "coordination", "nodes": 1 });
        let error = rates(&[rows]).unwrap_err().to_string();
        assert!(error.starts_with("a row is not as it was when this table was written"), "{error}");
        let error = rates(&[]).unwrap_err().to_string();
        assert!(error.starts_with("there is no row for it"), "{error}");
    }
}
