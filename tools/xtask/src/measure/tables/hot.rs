//! Hot keys in a rack of slow nodes.

use super::{maybe, rows_with};
use crate::measure::markdown::{Markdown, digits};
use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Balanced {
    /// Of which of the commands it is.
    command: String,
    replicas: f64,
    reads_percent: f64,
    keys: String,
    arm: String,
    rate: Option<f64>,
    of_cap: Option<f64>,
    of_uniform: Option<f64>,
    over_hashing: Option<f64>,
    p99_ms_at_80: Option<f64>,
    p999_ms_at_80: Option<f64>,
    p99_at_80_over_uniform: Option<f64>,
    max_over_mean: Option<f64>,
}

/// Rows of searches: those that no head has yet.
fn searches(of: &[Value], command: Option<&str>) -> Result<Vec<Balanced>> {
    let is_row = |row: &&Value| row.get("of_cap").is_some();
    let of: Vec<Value> = of.iter().filter(is_row).cloned().collect();
    match command {
        Some(command) => rows_with(&of, &[("command", command)]),
        None => rows_with(&of, &[]),
    }
}

/// Two figures of one kind.
fn tail(row: &Balanced) -> String {
    format!("{} / {} ms", maybe(row.p99_ms_at_80), maybe(row.p999_ms_at_80))
}

/// What a rack serves in time: every plane, chain and share of reads.
pub(in crate::measure) fn balance(of: &[Value]) -> Result<String> {
    let heads = [
        "plane",
        "keys",
        "replicas",
        "reads %",
        "p99 / p99.9 at 80 %",
        "p99 to uniform",
        "max/mean",
        "in time, per second",
        "of cap",
        "of uniform",
    ];
    let mut table = Markdown::new(2, &heads);
    for row in searches(of, None)? {
        table.row(&[
            row.command.clone(),
            row.keys.clone(),
            format!("{:.0}", row.replicas),
            format!("{:.0}", row.reads_percent),
            tail(&row),
            maybe(row.p99_at_80_over_uniform),
            maybe(row.max_over_mean),
            maybe(row.rate),
            maybe(row.of_cap),
            maybe(row.of_uniform),
        ]);
    }
    Ok(table.text())
}

/// The same beside hashing.
pub(in crate::measure) fn hashing(of: &[Value]) -> Result<String> {
    let heads = ["keys", "arm", "in time, per second", "of cap", "to hashing", "max/mean"];
    let mut table = Markdown::new(2, &heads);
    for row in searches(of, None)? {
        let cells = [row.rate, row.of_cap, row.over_hashing, row.max_over_mean].map(maybe);
        table.row(&[vec![row.keys, row.arm], cells.to_vec()].concat());
    }
    Ok(table.text())
}

/// Half of the nodes at half speed, beside nodes that are alike.
pub(in crate::measure) fn slow(of: &[Value]) -> Result<String> {
    let heads = [
        "plane",
        "keys",
        "p99 / p99.9 at 80 %",
        "max/mean",
        "of the summed capacity",
        "nodes alike",
        "lost, %",
    ];
    let mut table = Markdown::new(2, &heads);
    for plane in ["user", "xdp"] {
        let alike = searches(of, Some(&format!("{plane}, alike")))?;
        for row in searches(of, Some(&format!("{plane}, slow")))? {
            let like = alike.iter().find(|it| it.keys == row.keys && it.arm == row.arm);
            let alike = like.and_then(|it| it.of_cap);
            let lost = row.of_cap.zip(alike).map(|(slow, alike)| (1.0 - slow / alike) * 100.0);
            table.row(&[
                plane.to_owned(),
                row.keys.clone(),
                tail(&row),
                maybe(row.max_over_mean),
                maybe(row.of_cap),
                maybe(alike),
                lost.map_or_else(|| "-".to_owned(), |it| format!("{:.1}", it.max(0.0))),
            ]);
        }
    }
    Ok(table.text())
}

#[derive(Deserialize)]
struct Shifted {
    shift: String,
    keys: String,
    rate: f64,
    p99_ms_median: Option<f64>,
    p99_ms_worst: Option<f64>,
    p99_ms_idle: Option<f64>,
    back_after_ms: String,
}

/// While popularity shifts.
pub(in crate::measure) fn shifts(of: &[Value]) -> Result<String> {
    let is_row = |row: &&Value| row.get("shift").is_some();
    let of: Vec<Value> = of.iter().filter(is_row).cloned().collect();
    let heads = [
        "shift",
        "keys",
        "per second",
        "median p99 of 100 ms",
        "worst",
        "idle rack",
        "back within 1.5 times after",
    ];
    let mut table = Markdown::new(2, &heads);
    for row in rows_with::<Shifted>(&of, &[])? {
        let ms =
            |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |it| format!("{} ms", digits(it)));
        let back = if row.back_after_ms.is_empty() {
            String::new()
        } else {
            format!("{} ms", row.back_after_ms)
        };
        table.row(&[
            row.shift,
            row.keys,
            digits(row.rate),
            ms(row.p99_ms_median),
            ms(row.p99_ms_worst),
            ms(row.p99_ms_idle),
            back,
        ]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(command: &str, keys: &str, arm: &str, of_cap: f64) -> Value {
        json!({
            "command": command, "replicas": 1, "reads_percent": 100, "keys": keys, "arm": arm,
            "cap": 12_800, "rate": of_cap * 12_800.0, "of_cap": of_cap, "of_uniform": 1.36,
            "over_hashing": null, "p99_ms_at_80": 7.5, "p999_ms_at_80": 15.1,
            "p99_at_80_over_uniform": 0.56, "max_over_mean": 1.0, "sent_again_percent": 0.0,
        })
    }

    #[test]
    fn searches_have_a_line_and_their_heads_none() {
        let head = json!({ "title": "Load", "notes": [], "command": "user" });
        let of = [head, row("user", "zipf 1.2", "anywhere", 0.98)];
        let expected = "\
| plane | keys | replicas | reads % | p99 / p99.9 at 80 % | p99 to uniform | max/mean \
| in time, per second | of cap | of uniform |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|
| user | zipf 1.2 | 1 | 100 | 7.50 / 15.1 ms | 0.56 | 1.00 | 12,544 | 0.98 | 1.36 |
";
        assert_eq!(balance(&of).unwrap(), expected);
        let text = hashing(&of).unwrap();
        assert_eq!(text.lines().nth(2), Some("| zipf 1.2 | anywhere | 12,544 | 0.98 | - | 1.00 |"));
    }

    #[test]
    fn slow_nodes_stand_beside_nodes_that_are_alike() {
        let both = |plane: &str| {
            let named = |what: &str| format!("{plane}, {what}");
            let (slow, alike) = (named("slow"), named("alike"));
            [row(&slow, "zipf 0.9", "anywhere", 0.90), row(&alike, "zipf 0.9", "anywhere", 0.93)]
        };
        let of: Vec<Value> = ["user", "xdp"].into_iter().flat_map(both).collect();
        let expected = "| user | zipf 0.9 | 7.50 / 15.1 ms | 1.00 | 0.90 | 0.93 | 3.2 |";
        assert_eq!(slow(&of).unwrap().lines().nth(2), Some(expected));
    }

    #[test]
    fn shifts_say_after_how_long_all_is_as_before() {
        let of = json!({
            "shift": "hot-in", "keys": "zipf 1.2, copies", "rate": 7680, "answered": 1.0,
            "p99_ms_median": 7.8, "p99_ms_worst": 1701.0, "p99_ms_idle": 4.0,
            "back_after_ms": "2100, 1400", "back_after_ms_worst": 2100, "late_p99_ms": 0.2,
        });
        let expected = "| hot-in | zipf 1.2, copies | 7,680 | 7.80 ms | 1,701 ms | 4.00 ms \
                        | 2100, 1400 ms |";
        assert_eq!(shifts(&[of]).unwrap().lines().nth(2), Some(expected));
    }
}
