//! The switch program in memory.

use super::rows_with;
use crate::measure::markdown::{Markdown, digits};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Row {
    partitions: u64,
    packet: String,
    ns_min: f64,
    ns_median: f64,
    ratio: f64,
}

#[derive(Deserialize)]
struct Directory {
    hot_keys: u64,
    bytes_per_entry: f64,
    install_ms: f64,
    install_kept_ms: f64,
}

/// The packets, as the benchmark and as people call them.
const PACKETS: [(&str, &str); 11] = [
    ("get", "GET"),
    ("get-cold", "GET of a cold key, others are hot"),
    ("get-hot", "GET of a hot key"),
    ("put", "PUT, value of 100 B"),
    ("put-hot", "PUT of a hot key"),
    ("reply", "reply, value of 100 B"),
    ("reply-hot", "reply for a hot key"),
    ("mget8", "MGET of 8 keys, over 16 nodes"),
    ("mget8-hot", "MGET of 8 hot keys"),
    ("mget32", "MGET of 32 keys"),
    ("range", "RANGE over 8 partitions"),
];

/// A line for each packet.
pub(in crate::measure) fn packets(of: &[Value]) -> Result<String> {
    let is_packet = |row: &&Value| row.get("packet").is_some();
    let rows: Vec<Value> = of.iter().filter(is_packet).cloned().collect();
    let rows = rows_with::<Row>(&rows, &[])?;
    let heads = ["packet", "ns, 128 partitions", "to copying", "ns, 4096 partitions", "to copying"];
    let mut table = Markdown::new(1, &heads);
    for (packet, name) in PACKETS {
        let mut cells = vec![name.to_owned()];
        for partitions in [128, 4096] {
            let is_it = |row: &&Row| row.partitions == partitions && row.packet == packet;
            let row = rows.iter().find(is_it);
            let row =
                row.with_context(|| format!("no row of {packet}, {partitions} partitions"))?;
            cells.push(format!("{} ({})", digits(row.ns_min), digits(row.ns_median)));
            cells.push(digits(row.ratio));
        }
        table.row(&cells);
    }
    Ok(table.text())
}

/// A full directory of hot keys.
pub(in crate::measure) fn directory(of: &[Value]) -> Result<String> {
    let is_directory = |row: &&Value| row.get("hot_keys").is_some();
    let rows: Vec<Value> = of.iter().filter(is_directory).cloned().collect();
    let heads = ["hot keys", "bytes each", "ms to install", "ms with all kept"];
    let mut table = Markdown::new(0, &heads);
    for row in rows_with::<Directory>(&rows, &[])? {
        table.row(&[
            digits(row.hot_keys as f64),
            format!("{:.0}", row.bytes_per_entry),
            digits(row.install_ms),
            digits(row.install_kept_ms),
        ]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_sizes_of_tables_stand_beside_each_other() {
        let row = |partitions: u64, packet: &str| {
            json!({
                "partitions": partitions, "packet": packet, "ns_min": 34.94, "ns_median": 135.6,
                "ratio": 2.41,
            })
        };
        let both = |packet: &'static str| [128, 4096].map(|partitions| row(partitions, packet));
        let mut rows: Vec<Value> = PACKETS.iter().flat_map(|(packet, _)| both(packet)).collect();
        rows.push(json!({
            "hot_keys": 65536, "bytes_per_entry": 173.0, "install_ms": 41.2, "install_kept_ms": 9.5,
        }));
        let text = packets(&rows).unwrap();
        let expected = "| GET | 34.9 (136) | 2.41 | 34.9 (136) | 2.41 |";
        assert_eq!(text.lines().nth(2), Some(expected));
        let text = directory(&rows).unwrap();
        assert_eq!(text.lines().nth(2), Some("| 65,536 | 173 | 41.2 | 9.50 |"));
        let error = packets(&rows[1..]).unwrap_err().to_string();
        assert_eq!(error, "no row of get, 128 partitions");
    }
}
