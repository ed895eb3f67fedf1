//! Durable writes.

use super::{rows_with, tail};
use crate::measure::markdown::{Markdown, digits, time};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    mix: String,
    arm: String,
    pace: Pace,
    kind: String,
    per_second: f64,
    over_rival: Option<f64>,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pace {
    Closed(f64),
    Open(f64),
}

impl Pace {
    fn text(self) -> String {
        match self {
            Self::Closed(count) => format!("{count:.0} in flight"),
            Self::Open(rate) => format!("{} a second", digits(rate)),
        }
    }
}

/// What a side is called.
fn side(arm: &str) -> &str {
    match arm {
        "keyway" => "Keyway",
        "memory" => "its memory engine",
        "redis-durable" => "Redis",
        other => other,
    }
}

/// Only writes, Keyway beside another.
pub(in crate::measure) fn writes(of: &[Value]) -> Result<String> {
    let heads = ["servers", "load", "p99 / p99.9", "p50", "per second", "Keyway's to it"];
    let mut table = Markdown::new(1, &heads);
    let mut ratio = None;
    for row in rows_with::<Row>(of, &[("mix", "put=1")])? {
        // Keyway has its row first, and there the ratio.
        let shown = if row.arm == "keyway" { None } else { ratio };
        ratio = row.over_rival;
        table.row(&[
            side(&row.arm).to_owned(),
            row.pace.text(),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
            digits(row.per_second),
            shown.map_or_else(String::new, digits),
        ]);
    }
    Ok(table.text())
}

/// Reads between writes, at equal rates and with as many in flight.
pub(in crate::measure) fn mixed(of: &[Value]) -> Result<String> {
    let heads = ["mix", "of", "servers", "load", "p99 / p99.9", "p50", "per second"];
    let mut table = Markdown::new(3, &heads);
    let rows = rows_with::<Row>(of, &[("command", "memory")])?;
    let mixed = rows.iter().filter(|row| row.mix != "put=1");
    let (equal, others): (Vec<_>, Vec<_>) =
        mixed.partition(|row| matches!(row.pace, Pace::Open(_)));
    for row in equal.into_iter().chain(others) {
        table.row(&[
            row.mix.clone(),
            row.kind.to_uppercase(),
            side(&row.arm).to_owned(),
            row.pace.text(),
            tail(row.p99_us, row.p999_us),
            time(row.p50_us),
            digits(row.per_second),
        ]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record;

    /// As `keyway bench --versus memory --json` prints it, but for most of its rows.
    const PRINTED: &str = concat!(
        r#"{"outcome":"done","fdatasync_us":183,"rows":["#,
        r#"{"mix":"put=1","arm":"keyway","pace":{"closed":8},"kind":"put","per_second":2577.3,"#,
        r#""over_rival":0.13,"p50_us":2400,"p99_us":19000,"p999_us":26000},"#,
        r#"{"mix":"put=1","arm":"memory","pace":{"closed":8},"kind":"put","per_second":19824.0,"#,
        r#""over_rival":null,"p50_us":310,"p99_us":900,"p999_us":1800},"#,
        r#"{"mix":"get=0.5,put=0.5","arm":"keyway","pace":{"closed":64},"kind":"get","#,
        r#""per_second":8383.0,"over_rival":0.12,"p50_us":2100,"p99_us":9900,"p999_us":14000},"#,
        r#"{"mix":"get=0.5,put=0.5","arm":"keyway","pace":{"open":6287.25},"kind":"get","#,
        r#""per_second":6285.0,"over_rival":1.0,"p50_us":640,"p99_us":4100,"p999_us":7200}]}"#
    );

    #[test]
    fn writes_have_the_ratio_beside_the_other() {
        let expected = "\
| servers | load | p99 / p99.9 | p50 | per second | Keyway's to it |
|---|--:|--:|--:|--:|--:|
| Keyway | 8 in flight | 19.0 ms / 26.0 ms | 2.40 ms | 2,577 |  |
| its memory engine | 8 in flight | 900 us / 1.80 ms | 310 us | 19,824 | 0.13 |
";
        assert_eq!(writes(&record::rows("memory", PRINTED).unwrap()).unwrap(), expected);
    }

    #[test]
    fn equal_rates_come_first() {
        let expected = "\
| mix | of | servers | load | p99 / p99.9 | p50 | per second |
|---|---|---|--:|--:|--:|--:|
| get=0.5,put=0.5 | GET | Keyway | 6,287 a second | 4.10 ms / 7.20 ms | 640 us | 6,285 |
| get=0.5,put=0.5 | GET | Keyway | 64 in flight | 9.90 ms / 14.0 ms | 2.10 ms | 8,383 |
";
        assert_eq!(mixed(&record::rows("memory", PRINTED).unwrap()).unwrap(), expected);
    }
}
