//! How many worlds the simulator runs.

use super::rows_with;
use crate::measure::markdown::{Markdown, digits};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Timed {
    printed: f64,
    took_s: f64,
}

/// Each world is a line that was printed.
pub(in crate::measure) fn worlds(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(0, &["worlds", "seconds", "worlds a second"]);
    for row in rows_with::<Timed>(of, &[("command", "worlds")])? {
        let rate = row.printed / row.took_s;
        table.row(&[digits(row.printed), digits(row.took_s), digits(rate)]);
    }
    Ok(table.text())
}

#[test]
fn worlds_are_counted_against_time() {
    let row = serde_json::json!({ "command": "worlds", "printed": 2000, "took_s": 5.97 });
    let expected =
        "| worlds | seconds | worlds a second |\n|--:|--:|--:|\n| 2,000 | 5.97 | 335 |\n";
    assert_eq!(worlds(&[row]).unwrap(), expected);
}
