//! Datagrams in bundles.

use super::{each, rows_with};
use crate::measure::markdown::{Markdown, digits};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    servers: u64,
    in_flight: u64,
    replies: String,
    apart_us: [f64; 3],
    bundles_us: [f64; 3],
    ratio: f64,
}

/// Processor time of both ways to receive.
pub(in crate::measure) fn costs(of: &[Value]) -> Result<String> {
    let heads = [
        "replies",
        "servers",
        "in flight",
        "apart: client, switch, servers",
        "in bundles",
        "ratio of all",
    ];
    let mut table = Markdown::new(1, &heads);
    for row in rows_with::<Row>(of, &[("benchmark", "bundles")])? {
        table.row(&[
            row.replies,
            row.servers.to_string(),
            row.in_flight.to_string(),
            each(&row.apart_us),
            each(&row.bundles_us),
            digits(row.ratio),
        ]);
    }
    Ok(table.text())
}

#[test]
fn both_ways_stand_beside_each_other() {
    let row = serde_json::json!({
        "benchmark": "bundles", "servers": 4, "in_flight": 256, "replies": "4 sizes",
        "apart_us": [2.481, 5.39, 4.26], "bundles_us": [0.65, 1.72, 1.37], "ratio": 0.3301,
    });
    let expected = "\
| replies | servers | in flight | apart: client, switch, servers | in bundles | ratio of all |
|---|--:|--:|--:|--:|--:|
| 4 sizes | 4 | 256 | 2.48, 5.39, 4.26 | 0.65, 1.72, 1.37 | 0.33 |
";
    assert_eq!(costs(&[row]).unwrap(), expected);
}
