//! `keyway bench --versus`: both sides are started, limited, loaded and measured.

use serde_json::Value;
use std::process::{Command, Stdio};
use testkit::program::run;
use testkit::skip;

/// What is compared under this mix, unless this machine cannot.
fn rows(test: &str, mix: &str) -> Option<Vec<Value>> {
    if !has_program(test, "redis-server") {
        return None;
    }
    let load = ["--mix", mix, "--distribution", "zipf:1.2", "--keys", "500", "--duration", "300ms"];
    let size = ["--nodes", "2", "--partitions", "8", "--cpu-share", "0.2", "--p99", "20ms"];
    let ran = run(&[&["bench", "--versus", "redis-cluster", "--json"], &load[..], &size].concat());
    if ran.code == Some(5) && ran.stderr.contains("control group") {
        skip::report(test, ran.stderr.lines().last().unwrap_or_default());
        return None;
    }
    let result = ran.expect(0).json();
    assert_eq!(result["parameters"]["nodes"], 2, "{result:#}");
    let rows = result["rows"].as_array().expect("rows").clone();
    for row in &rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row:#}"));
        assert!(number("per_second") > 0.0 && number("p99_us") > 0.0, "{row:#}");
        assert!((1.0..=2.0).contains(&number("max_over_mean")), "{row:#}");
        assert!(number("nodes_us") > 0.0 && number("clients_us") > 0.0, "{row:#}");
        assert_eq!(number("cpu_share"), 0.2, "{row:#}");
    }
    Some(rows)
}

fn ways(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["way"].as_str()).collect()
}

#[test]
fn reads_are_compared_on_every_way() {
    let Some(rows) = rows("reads_are_compared_on_every_way", "get=0.95,put=0.05") else { return };
    let mut ways = ways(&rows);
    if ways.contains(&"nutcracker") {
        let proxy = ways.remove(1);
        assert!(proxy == "nutcracker" && rows[1]["between_us"].as_f64() > Some(0.0), "{rows:#?}");
    } else {
        skip::report("nutcracker in a comparison", "apt-get install nutcracker");
    }
    assert_eq!(ways, ["redis-cluster", "keyway", "keyway-gateway"]);
}

#[test]
fn multigets_are_compared_without_the_proxy() {
    let Some(rows) = rows("multigets_are_compared_without_the_proxy", "mget:16=1") else { return };
    assert_eq!(ways(&rows), ["redis-cluster", "keyway", "keyway-assisted", "keyway-gateway"]);
}

/// Whether a test has the program that it needs; if not, that is said.
fn has_program(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        skip::report(test, &format!("there is no {program}: make prerequisites-test"));
    }
    found
}

/// Rows of a comparison of durable writes with this one.
fn durable_rows(rival: &str) -> Vec<Value> {
    let load = ["--keys", "200", "--duration", "100ms", "--partitions", "8", "--json"];
    let result = run(&[&["bench", "--versus", rival], &load[..]].concat()).expect(0).json();
    assert!(result["fdatasync_us"].as_u64().is_some(), "{result:#}");
    let rows = result["rows"].as_array().expect("rows").clone();
    for row in &rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row:#}"));
        assert!(number("per_second") > 0.0 && number("p50_us") > 0.0, "{row:#}");
        assert!(number("p50_us") <= number("p99_us"), "{row:#}");
        assert!(number("p99_us") <= number("p999_us"), "{row:#}");
        assert_eq!(row["over_rival"].is_number(), row["arm"] == "keyway", "{row:#}");
    }
    rows
}

/// Which side, which kind of operation, and how many in flight.
fn cells(rows: &[Value]) -> Vec<(&str, &str, Option<u64>)> {
    fn cell(row: &Value) -> (&str, &str, Option<u64>) {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        (text("arm"), text("kind"), row["pace"]["closed"].as_u64())
    }
    rows.iter().map(cell).collect()
}

#[test]
fn durable_writes_are_compared_with_what_others_promise() {
    let test = "durable_writes_are_compared_with_what_others_promise";
    for (rival, program) in [("etcd", "etcd"), ("redis-durable", "redis-server")] {
        if !has_program(test, program) {
            continue;
        }
        let rows = durable_rows(rival);
        let each = |count| [("keyway", "put", Some(count)), (rival, "put", Some(count))];
        let expected: Vec<_> = [1, 8, 64, 512].into_iter().flat_map(each).collect();
        assert_eq!(cells(&rows), expected);
    }
}

#[test]
fn what_durability_costs_is_told_of_reads_too() {
    let rows = durable_rows("memory");
    let at_rates = rows.iter().filter(|row| row["pace"]["open"].is_number());
    assert_eq!(at_rates.filter(|row| row["kind"] == "get").count(), 4, "{rows:#?}");
    let closed =
        cells(&rows).into_iter().filter(|(_, kind, count)| *kind == "get" && count.is_some());
    assert_eq!(closed.count(), 4, "{rows:#?}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let ran = run(&["bench", "--versus", "redis-cluster", "--nodes", "3"]).expect(2);
    assert!(ran.stderr.contains("a power of two"), "{ran:?}");
    run(&["bench", "--versus", "redis-cluster", "--embedded"]).expect(2);
    run(&["bench", "--versus", "redis-cluster", "--cpu-share", "2"]).expect(2);
    run(&["bench", "--versus", "redis-cluster", "--multigets", "client"]).expect(2);
}
