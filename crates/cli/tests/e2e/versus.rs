//! `keyway bench --versus`: both sides are started, limited, loaded and measured.

use serde_json::Value;
use std::process::{Command, Stdio};
use testkit::program::run;
use testkit::skip;

/// What is compared under this mix, unless this machine cannot.
fn rows(test: &str, mix: &str) -> Option<Vec<Value>> {
    let mut server = Command::new("redis-server");
    if server.arg("--version").stdout(Stdio::null()).status().is_err() {
        skip::report(test, "there is no redis-server: apt-get install redis-server");
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

#[test]
fn what_cannot_be_compared_is_refused() {
    let ran = run(&["bench", "--versus", "redis-cluster", "--nodes", "3"]).expect(2);
    assert!(ran.stderr.contains("a power of two"), "{ran:?}");
    run(&["bench", "--versus", "redis-cluster", "--embedded"]).expect(2);
    run(&["bench", "--versus", "redis-cluster", "--cpu-share", "2"]).expect(2);
    run(&["bench", "--versus", "redis-cluster", "--multigets", "client"]).expect(2);
}
