//! The switch program in the kernel.

use super::{Spread, rows_with};
use crate::measure::markdown::{Markdown, digits};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// Sizes of the partition table.
const PARTITIONS: [u64; 2] = [128, 4096];

#[derive(Deserialize)]
struct Packet {
    partitions: u64,
    packet: String,
    ns: f64,
    ratio: Spread,
}

/// Packets, as they are without hot keys, with them, with delegations, or with rules of a cache.
fn packets(of: &[Value], group: &str) -> Result<String> {
    let rows = rows_with::<Packet>(of, &[("group", group)])?;
    let heads =
        ["packet", "ns, 128 partitions", "to the least", "ns, 4096 partitions", "to the least"];
    let mut table = Markdown::new(1, &heads);
    // What a packet takes to be made anew is none of the switch's.
    let of_first = |row: &&Packet| Some(row.partitions) == PARTITIONS.first().copied();
    for first in rows.iter().filter(of_first).filter(|row| !row.packet.ends_with("made anew")) {
        let mut cells = vec![first.packet.clone()];
        for partitions in PARTITIONS {
            let is_it = |row: &&Packet| row.partitions == partitions && row.packet == first.packet;
            let row = rows.iter().find(is_it);
            let row = row.with_context(|| format!("no {}, {partitions}", first.packet))?;
            cells.extend([digits(row.ns), row.ratio.text()]);
        }
        table.row(&cells);
    }
    Ok(table.text())
}

pub(in crate::measure) fn plain(of: &[Value]) -> Result<String> {
    packets(of, "plain")
}

pub(in crate::measure) fn hot(of: &[Value]) -> Result<String> {
    packets(of, "hot")
}

pub(in crate::measure) fn delegated(of: &[Value]) -> Result<String> {
    packets(of, "delegated")
}

pub(in crate::measure) fn cached(of: &[Value]) -> Result<String> {
    packets(of, "cached")
}

#[derive(Deserialize)]
struct Mget {
    partitions: u64,
    keys: u64,
    nodes: u64,
    parts: f64,
    ns: f64,
    ns_without_clones: f64,
}

/// Multigets, and what is left without the kernel's clones.
pub(in crate::measure) fn multigets(of: &[Value]) -> Result<String> {
    let rows = rows_with::<Mget>(of, &[("group", "mget")])?;
    let heads = [
        "keys",
        "nodes",
        "parts",
        "ns, 128 partitions",
        "without the clones",
        "ns, 4096 partitions",
        "without the clones",
    ];
    let mut table = Markdown::new(0, &heads);
    let mut firsts: Vec<&Mget> =
        rows.iter().filter(|row| Some(row.partitions) == PARTITIONS.first().copied()).collect();
    firsts.sort_by_key(|row| (row.keys, row.nodes));
    for first in firsts {
        let mut cells = [first.keys, first.nodes].map(|it| it.to_string()).to_vec();
        cells.push(format!("{:.1}", first.parts));
        for partitions in PARTITIONS {
            let is_it = |row: &&Mget| {
                (row.partitions, row.keys, row.nodes) == (partitions, first.keys, first.nodes)
            };
            let row = rows.iter().find(is_it);
            let row = row.with_context(|| format!("no multigets with {partitions} partitions"))?;
            cells.extend([row.ns, row.ns_without_clones].map(digits));
        }
        table.row(&cells);
    }
    Ok(table.text())
}

#[derive(Deserialize)]
struct Live {
    packet: String,
    per_second: f64,
}

/// Frames that really flow.
pub(in crate::measure) fn live(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(1, &["packet", "millions a second", "ns"]);
    for row in rows_with::<Live>(of, &[("group", "live")])? {
        let figures = [row.per_second / 1e6, 1e9 / row.per_second].map(digits);
        let [rate, ns] = figures;
        table.row(&[row.packet, rate, ns]);
    }
    Ok(table.text())
}

#[derive(Deserialize)]
struct Verified {
    program: String,
    instructions: f64,
}

/// What the verifier goes through.
pub(in crate::measure) fn verifier(of: &[Value]) -> Result<String> {
    let mut table = Markdown::new(1, &["program", "instructions"]);
    for row in rows_with::<Verified>(of, &[("group", "verifier")])? {
        table.row(&[format!("`{}`", row.program), digits(row.instructions)]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packets_have_a_line_and_what_makes_them_has_none() {
        let row = |partitions: u64, packet: &str, ns: f64| {
            json!({
                "group": "plain", "partitions": partitions, "packet": packet, "ns_raw": 64.4,
                "ns": ns, "ratio": { "median": 2.72, "low": 2.584, "high": 2.8 },
            })
        };
        let of = [
            row(128, "packet made anew", 37.9),
            row(128, "GET", 26.5),
            row(4096, "packet made anew", 37.9),
            row(4096, "GET", 33.9),
        ];
        let expected = "\
| packet | ns, 128 partitions | to the least | ns, 4096 partitions | to the least |
|---|--:|--:|--:|--:|
| GET | 26.5 | 2.72 [2.58 2.80] | 33.9 | 2.72 [2.58 2.80] |
";
        assert_eq!(plain(&of).unwrap(), expected);
        assert_eq!(plain(&of[..2]).unwrap_err().to_string(), "no GET, 4096");
        assert!(hot(&of).is_err());
    }

    #[test]
    fn multigets_are_sorted_and_frames_have_a_rate() {
        let row = |partitions: u64, keys: u64| {
            json!({
                "group": "mget", "partitions": partitions, "keys": keys, "nodes": 4, "parts": 3.61,
                "ns_raw": 0.0, "ns": 1374.0, "ns_without_clones": 553.0,
            })
        };
        let of = [row(128, 32), row(128, 8), row(4096, 32), row(4096, 8)];
        let text = multigets(&of).unwrap();
        assert_eq!(text.lines().nth(2), Some("| 8 | 4 | 3.6 | 1,374 | 553 | 1,374 | 553 |"));
        let frames = json!({ "group": "live", "packet": "GET", "per_second": 5.9e6 });
        assert_eq!(live(&[frames]).unwrap().lines().nth(2), Some("| GET | 5.90 | 169 |"));
        let program =
            json!({ "group": "verifier", "program": "keyway_one", "instructions": 156_301 });
        let text = verifier(&[program]).unwrap();
        assert_eq!(text.lines().nth(2), Some("| `keyway_one` | 156,301 |"));
    }
}
