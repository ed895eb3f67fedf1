//! The memory engine.

use super::rows_with;
use crate::measure::markdown::{Markdown, digits};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    keyspace: String,
    get_ns: f64,
    put_ns: f64,
    put_new_ns: f64,
    overhead_bytes: f64,
}

/// What operations and records cost.
pub(in crate::measure) fn costs(of: &[Value]) -> Result<String> {
    let heads =
        ["keyspace", "GET", "PUT", "PUT of a new key", "bytes per record beyond key and value"];
    let mut table = Markdown::new(1, &heads);
    for row in rows_with::<Row>(of, &[("benchmark", "engine")])? {
        let name = if row.keyspace == "ordered" { "range (ordered)" } else { &row.keyspace };
        let figures = [row.get_ns, row.put_ns, row.put_new_ns, row.overhead_bytes];
        let cells = figures.iter().map(|it| digits(it.round()));
        let cells = cells.map(|it| it.trim_end_matches(".0").to_owned());
        table.row(&[name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    Ok(table.text())
}

#[test]
fn each_kind_of_keyspace_has_a_line() {
    let row = serde_json::json!({
        "benchmark": "engine", "keyspace": "ordered", "get_ns": 713.2, "put_ns": 622.8,
        "put_new_ns": 1764.5, "overhead_bytes": 85.2,
    });
    let expected = "\
| keyspace | GET | PUT | PUT of a new key | bytes per record beyond key and value |
|---|--:|--:|--:|--:|
| range (ordered) | 713 | 623 | 1,765 | 85 |
";
    assert_eq!(costs(&[row]).unwrap(), expected);
}
