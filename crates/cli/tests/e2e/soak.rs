//! A soak of half a minute: that it runs, that its cluster keeps its promises, and that it leaves
//! nothing.

use serde_json::Value;
use testkit::program::run;

#[test]
fn a_short_soak_loses_nothing_and_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path().join("soak");
    let name = dir.to_str().expect("an ordinary name");
    let ran = run(&["lab", "soak", "--for", "30s", "--seed", "3", "--dir", name, "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|why| panic!("{why}: {} {}", ran.stdout, ran.stderr));
    let report = &answer["report"];
    assert_eq!((ran.code, &answer["outcome"]), (Some(0), &Value::from("done")), "{report:#}");
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    for what in ["answered", "keys_judged", "visitors"] {
        assert!(report[what].as_u64().is_some_and(|count| count > 10), "{what} in {report:#}");
    }
    let faults = report["faults"].as_object().expect("by kind");
    let count: u64 = faults.values().filter_map(Value::as_u64).sum();
    assert!(count >= 3, "{faults:?}");
    let node = &report["processes"]["node-5"];
    assert!(node["late"]["memory"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{report:#}");
    assert!(ran.stderr.contains("soak: "), "it tells how it goes: {}", ran.stderr);
    assert!(!dir.exists(), "what went well leaves nothing");
}

#[test]
fn a_directory_that_is_there_is_left_alone() {
    let place = tempfile::tempdir().expect("a directory");
    let name = place.path().to_str().expect("an ordinary name");
    let ran = run(&["lab", "soak", "--for", "1s", "--dir", name]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
}
