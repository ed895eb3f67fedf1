//! A hot key: its reads spread over nodes that its chain is not on, and every answer is right.

use lab::hammer::{KEY, hammer, wait};
use lab::process::pause;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::Up;

/// Whatever the key is in what this command prints.
fn listed(up: &Up, command: &str) -> Vec<Value> {
    let ran = up.run(&["hot", command, "--json"]);
    let mut lines = ran.json_lines();
    lines.retain(|line| line.get("key") == Some(&Value::from(KEY)));
    lines
}

fn number(line: &Value, field: &str) -> u64 {
    line.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// Whether `explain` says of the key that it is under a delegation that has begun.
fn explained(up: &Up) -> Option<()> {
    let said = up.run(&["explain", KEY, "--json"]).expect(0).json();
    let hot = said.get("hot").expect("the switch is beside the controller");
    let delegation =
        hot.get("delegation").filter(|delegation| number(delegation, "next_version") > 0)?;
    assert_eq!(number(delegation, "replicas"), 2, "{said}");
    // What was stamped last may be under way, and is above what was shown.
    assert!(number(delegation, "next_version") > number(hot, "floor"), "{said}");
    let readers = hot.get("readers").and_then(Value::as_array).expect("a list");
    assert_eq!(readers.len(), 4, "any node: {said}");
    let asked = hot.get("read_goes_to_one_of").and_then(Value::as_array).expect("a list");
    assert!(!asked.is_empty() || hot.get("floor_at_home") == hot.get("floor"), "{said}");
    up.run(&["explain", KEY]).expect(0).stdout.contains("version stamped").then_some(())
}

/// A metric of each node.
fn of_nodes(up: &Up, metric: &str) -> BTreeMap<String, u64> {
    let mut response = ureq::get(format!("http://{}/metrics", up.admin)).call().unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    let samples = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(metric)?.strip_prefix("{node=\"")?;
        let (node, value) = rest.split_once("\"} ")?;
        Some((node.to_owned(), value.parse().unwrap()))
    });
    samples.collect()
}

#[test]
fn a_key_that_is_written_much_is_delegated_and_comes_home_for_what_needs_it() {
    let up = Up::start(&["--nodes", "4", "--replicas", "2"]);
    up.run(&["hot", "pin", KEY]).expect(0);
    let (service, ends) = (up.service, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| hammer(service, &ends, Duration::from_millis(2)));
        let _ends = RaiseOnDrop(&ends);
        let taken = || of_nodes(&up, "keyway_node_hot_delegated_writes_total");
        let delegates = || Some(taken()).filter(|it| it.values().all(|writes| *writes > 0));
        wait(delegates).expect("all four nodes take writes of it");
        let asked = up.run(&["incr", KEY, "0", "--json"]).expect(0).json();
        assert!(number(&asked, "sum") > 0, "{asked}");
        let before: u64 = taken().values().sum();
        let again = || Some(taken().values().sum()).filter(|sum: &u64| *sum > before + 100);
        wait(again).expect("it goes again");
        wait(|| explained(&up)).expect("explain tells of the delegation");
    });
    let cold = up.run(&["explain", "nobody-asks"]).expect(0).stdout;
    assert!(cold.lines().any(|line| line.split_whitespace().eq(["hot", "no"])), "{cold}");
    let log = listed(&up, "log");
    let did = |what: &str| log.iter().filter(|it| it.get("decision") == Some(&what.into())).count();
    assert!(did("delegation_begun") >= 2 && did("delegation_ended") >= 1, "{log:?}");
    let sum = |field: &str| log.iter().map(|line| number(line, field)).sum::<u64>();
    assert!(sum("writes_spread") > 0 && sum("writes_per_s_after") > 0, "{log:?}");
}

#[test]
fn reads_of_a_hot_key_are_spread_beyond_its_chain_and_are_right() {
    let up = Up::start(&["--nodes", "4", "--replicas", "2"]);
    let (service, ends) = (up.service, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| hammer(service, &ends, Duration::from_millis(20)));
        let _ends = RaiseOnDrop(&ends);
        let is_spread = |line: &Value| number(line, "spread_per_s") > 0;
        let spread = wait(|| listed(&up, "list").into_iter().find(is_spread));
        let spread = spread.expect("its reads are spread");
        // A second of spread reads, of which each is checked.
        pause(Duration::from_secs(1));
        let copies = of_nodes(&up, "keyway_node_hot_reads_total");
        assert!(number(&spread, "copies") >= 2 && number(&spread, "age_ms") > 0, "{spread}");
        let busy = copies.values().filter(|reads| **reads > 0).count();
        assert!(busy >= 2, "copies at nodes that are not its tail answered: {copies:?}");
    });
    let log = listed(&up, "log");
    let first = log.first().expect("a decision");
    assert_eq!(first.get("decision"), Some(&Value::from("added")), "{log:?}");
    let nodes = first.get("nodes").and_then(Value::as_str).expect("where it was to be copied to");
    assert!(nodes.split([' ', '-']).all(|id| id.parse::<u16>().is_ok()), "{nodes:?}");
    assert!(log.iter().map(|line| number(line, "spread")).sum::<u64>() > 0, "{log:?}");
    assert!(up.run(&["hot", "log"]).expect(0).stdout.contains(KEY));
}

#[test]
fn a_pinned_key_is_hot_though_nobody_asks_for_it() {
    let up = Up::start(&["--nodes", "3"]);
    assert_eq!(up.run(&["hot", "log"]).expect(1).stdout, "");
    let pinned = up.run(&["hot", "pin", "idle", "--json"]).expect(0).json();
    assert_eq!(pinned.get("outcome"), Some(&Value::from("pinned")));
    up.run(&["put", "idle", "1"]).expect(0);
    let is_hot = || {
        let list = up.run(&["hot", "list"]).stdout;
        (list.contains("idle") && list.contains("pinned") && list.contains(" s")).then_some(())
    };
    wait(is_hot).expect("it is hot");
    assert_eq!(up.run(&["get", "idle"]).expect(0).stdout, "1");
    up.run(&["hot", "unpin", "idle"]).expect(0);
    assert!(up.run(&["hot", "unpin", "idle"]).expect(3).stderr.contains("not pinned"));
    up.run(&["keyspace", "create", "ledger", "--hot", "off"]).expect(0);
    let refused = up.run(&["hot", "pin", "idle", "-k", "ledger"]).expect(3);
    assert!(refused.stderr.contains("ledger"), "{refused:?}");
}
