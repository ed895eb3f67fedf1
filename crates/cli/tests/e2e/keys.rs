//! Reading and writing keys.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use testkit::program::Up;

#[test]
fn a_session_with_a_cluster() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    let run = |arguments: &[&str]| up.run(arguments);

    // PUT, GET, DEL.
    run(&["get", "greeting"]).expect(1);
    run(&["put", "greeting", "hello"]).expect(0);
    assert_eq!(run(&["get", "greeting"]).expect(0).stdout, "hello");
    let got = run(&["get", "greeting", "--json"]).expect(0).json();
    assert_eq!(got["outcome"], "done");
    assert_eq!((&got["key"], &got["value"]), (&json!("greeting"), &json!("hello")));
    assert!(got["version"].as_u64().unwrap() > 0);
    run(&["del", "greeting"]).expect(0);
    run(&["del", "greeting"]).expect(1);
    let gone = run(&["get", "greeting", "--json"]).expect(1).json();
    assert_eq!(gone, json!({ "outcome": "not_found", "key": "greeting" }));

    // CAS.
    run(&["cas", "lock", "mine", "--expect-absent"]).expect(0);
    let lost = run(&["cas", "lock", "yours", "--expect-absent"]).expect(1);
    assert!(lost.stderr.contains("something else is there"), "{lost:?}");
    run(&["cas", "lock", "yours", "--expect", "mine"]).expect(0);
    let version = run(&["get", "lock", "--json"]).expect(0).json()["version"].to_string();
    run(&["cas", "lock", "ours", "--expect-version", &version]).expect(0);
    let stale = run(&["cas", "lock", "theirs", "--expect-version", &version, "--json"]).expect(1);
    assert_eq!(stale.json()["outcome"], "mismatch");
    assert_eq!(run(&["get", "lock"]).expect(0).stdout, "ours");
    let kept = run(&["cas", "lock", "--expect", "yours", "--ttl", "1h"]).expect(1);
    assert!(kept.stderr.contains("something else is there"), "{kept:?}");
    run(&["cas", "lock", "--expect", "ours", "--ttl", "1h"]).expect(0);
    let held = run(&["get", "lock", "--json"]).expect(0).json();
    assert!(held["value"] == "ours" && held["expiry_ms"].as_u64() > Some(0), "{held}");
    let version = held["version"].to_string();
    let stale = run(&["del", "lock", "--expect", "yours"]).expect(1);
    assert!(stale.stderr.contains(&format!("version {version}")), "{stale:?}");
    run(&["del", "lock", "--expect-version", &version]).expect(0);
    run(&["del", "lock", "--expect-version", &version]).expect(1);
    run(&["put", "lock", "ours"]).expect(0);

    // INCR.
    assert_eq!(run(&["incr", "visits"]).expect(0).stdout, "1\n");
    assert_eq!(run(&["incr", "visits", "41"]).expect(0).stdout, "42\n");
    assert_eq!(run(&["incr", "visits", "-43"]).expect(0).stdout, "-1\n");
    run(&["incr", "lock"]).expect(1);
    let most = i64::MAX.to_string();
    run(&["put", "full", &most]).expect(0);
    assert_eq!(run(&["incr", "full", "--json"]).expect(1).json()["outcome"], "overflow");

    assert_eq!(up.interrupt(), Some(0), "Ctrl-C ends it in good order");
}

#[test]
fn keys_and_values_may_be_any_bytes() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    up.run(&["put", "--hex", "00ff01", "cafe00"]).expect(0);
    assert_eq!(up.run(&["get", "--hex", "00ff01"]).expect(0).stdout, "cafe00\n");
    let got = up.run(&["get", "--hex", "00FF01", "--json"]).expect(0).json();
    assert_eq!((&got["key_hex"], &got["value_hex"]), (&json!("00ff01"), &json!("cafe00")));

    up.run_with_input(&["put", "piped", "-"], b"line\n").expect(0);
    assert_eq!(up.run(&["get", "piped"]).expect(0).stdout, "line\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file").unwrap();
    up.run(&["put", "filed", &format!("@{}", file.path().display())]).expect(0);
    assert_eq!(up.run(&["get", "filed"]).expect(0).stdout, "from a file");
    up.run(&["put", "at", "@@home"]).expect(0);
    assert_eq!(up.run(&["get", "at"]).expect(0).stdout, "@home");
    up.run(&["put", "empty", ""]).expect(0);
    assert_eq!(up.run(&["get", "empty"]).expect(0).stdout, "");

    // The largest entry fits a datagram, one byte more takes another way, which long keys have not.
    for len in [wire::ENTRY_MAX - 3, wire::ENTRY_MAX - 2] {
        let value = vec![b'x'; len];
        up.run_with_input(&["put", "big", "-"], &value).expect(0);
        assert_eq!(up.run(&["get", "big"]).expect(0).stdout.len(), value.len());
    }
    let key = "k".repeat(wire::big::BIG_KEY_MAX + 1);
    let refused = up.run_with_input(&["put", &key, "-"], &[b'x'; 1280]).expect(3);
    assert!(refused.stderr.contains("at most 980"), "{refused:?}");
}

#[test]
fn a_value_goes_away_when_its_time_has_come() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    up.run(&["put", "brief", "x", "--ttl", "3s"]).expect(0);
    up.run(&["put", "brief", "y", "--keep-expiry"]).expect(0);
    let got = up.run(&["get", "brief", "--json"]).expect(0).json();
    assert!(got["expiry_ms"].as_u64().unwrap() > 1_600_000_000_000, "{got}");
    let give_up = now() + Duration::from_secs(20);
    while up.run(&["get", "brief"]).code == Some(0) {
        assert!(now() < give_up, "it has not expired");
    }
    up.run(&["get", "brief"]).expect(1);
    up.run(&["put", "brief", "z"]).expect(0);
    let got = up.run(&["get", "brief", "--json"]).expect(0).json();
    assert_eq!(got.get("expiry_ms"), None, "{got}");
}

#[test]
fn one_mget_of_32_keys_reaches_all_nodes() {
    let up = Up::start(&["--nodes", "8"]);
    // As many keys for each node as for the others, going by what `explain` says of them.
    let mut keys: Vec<String> = Vec::new();
    let mut tails: Vec<u64> = Vec::new();
    for candidate in (0..10_000).map(|n| format!("key-{n}")) {
        if keys.len() == 32 {
            break;
        }
        let way = up.run(&["explain", &candidate, "--json"]).expect(0).json();
        let tail = way["chain"].as_array().unwrap().last().unwrap()["node"].as_u64().unwrap();
        if tails.iter().filter(|it| **it == tail).count() < 4 {
            keys.push(candidate);
            tails.push(tail);
        }
    }
    assert_eq!(tails.iter().collect::<BTreeSet<_>>().len(), 8, "{tails:?}");
    for key in &keys {
        up.run(&["put", key, &format!("value of {key}")]).expect(0);
    }
    let mut arguments = vec!["mget", "--json"];
    arguments.extend(keys.iter().map(String::as_str));
    let found = up.run(&arguments).expect(0).json_lines();
    let right = |(key, it): (&String, &Value)| {
        it["key"] == json!(key) && it["value"] == json!(format!("value of {key}"))
    };
    assert!(keys.len() == found.len() && keys.iter().zip(&found).all(right), "{found:#?}");

    // As text, from standard input, with a key that is not there.
    let input = format!("{}\nnobody\n{}\n", keys[0], keys[1]);
    let ran = up.run_with_input(&["mget", "-"], input.as_bytes()).expect(1);
    let expected = format!("{0}\tvalue of {0}\n{1}\tvalue of {1}\n", keys[0], keys[1]);
    assert_eq!(ran.stdout, expected);
    assert!(ran.stderr.contains("no such key: nobody"), "{ran:?}");
}

#[test]
fn thousands_of_keys_are_written_read_and_deleted_at_once() {
    let up = Up::start(&["--nodes", "4", "--partitions", "16"]);
    let count = 5_000;
    let line = |n: u32| format!("key-{n}\tvalue of {n}\n");
    // One value is overwritten in the same request.
    let mut input = "key-7\tnever seen\n".to_owned();
    input.extend((0..count).map(line));
    let ran = up.run_with_input(&["mset", "-"], input.as_bytes()).expect(0);
    assert_eq!(ran.stdout, format!("ok, {0} of {0} written\n", count + 1));
    let mut keys: String = (0..count).map(|n| format!("key-{n}\n")).collect();
    let found = up.run_with_input(&["mget", "-"], keys.as_bytes()).expect(0);
    assert_eq!(found.stdout, (0..count).map(line).collect::<String>());
    keys.push_str("key-0\n");
    let deleted = up.run_with_input(&["mdel", "-", "--json"], keys.as_bytes()).expect(0);
    let versions = |lines: &[Value]| -> Vec<u64> {
        lines.iter().map(|it| it["version"].as_u64().expect("it was deleted")).collect()
    };
    let versions = versions(&deleted.json_lines());
    assert_eq!(versions.len(), count as usize + 1);
    assert_eq!(versions.first(), versions.last(), "a key that is there twice is deleted once");
    let gone = up.run_with_input(&["mdel", "-"], keys.as_bytes()).expect(1);
    assert_eq!(gone.stdout, format!("ok, 0 of {} deleted\n", count + 1));

    up.run(&["mset", "a", "1", "b", "-2", "--ttl", "1h"]).expect(0);
    let found = up.run(&["mget", "b", "a", "b", "--within", "5s", "--json"]).expect(0).json_lines();
    let values: Vec<&Value> = found.iter().map(|it| &it["value"]).collect();
    assert_eq!(values, [&json!("-2"), &json!("1"), &json!("-2")]);
    assert!(found.iter().all(|it| it["expiry_ms"].as_u64().is_some()), "{found:?}");
    let odd = up.run(&["mset", "a", "1", "b"]).expect(2);
    assert!(odd.stderr.contains("each key needs a value"), "{odd:?}");
}

#[test]
fn the_key_that_is_asked_for_most_is_listed_first() {
    let up = Up::start(&[]);
    assert_eq!(up.run(&["hot", "list"]).expect(1).stdout, "");
    up.run(&["put", "loved", "x"]).expect(0);
    up.run(&["put", "liked", "x"]).expect(0);
    let give_up = now() + Duration::from_secs(20);
    loop {
        up.run(&["mget", "loved", "liked"]).expect(0);
        (0..3).for_each(|_| drop(up.run(&["get", "loved"]).expect(0)));
        let listed = up.run(&["hot", "list", "--json"]);
        // Segments are short and this load is low: many have little.
        let both = listed.code == Some(0) && listed.stdout.contains("liked");
        let first = if both { listed.json_lines().remove(0) } else { Value::Null };
        // The write before is forgotten soon.
        if first["key"] == "loved" && first["writes_per_s"] == 0 {
            assert_eq!(first["keyspace"], "default");
            assert!(first["reads_per_s"].as_u64().unwrap() > 0, "{first}");
            break;
        }
        assert!(now() < give_up, "{listed:?}");
    }
}

#[test]
fn explain_tells_the_way_of_a_key() {
    let up = Up::start(&["--nodes", "4", "--replicas", "3", "--partitions", "16"]);
    let text = up.run(&["explain", "greeting"]).expect(0).stdout;
    for word in ["match value", "XXH3-128", "partition", "epoch", "head: orders writes", "PUT, DEL"]
    {
        assert!(text.contains(word), "{word:?} is missing:\n{text}");
    }
    let way = up.run(&["explain", "banana", "-k", "ordered", "--json"]).expect(0).json();
    assert_eq!(way["chain"].as_array().unwrap().len(), 3);
    assert_eq!(way["chain"][0]["endpoint"], way["write_goes_to"]);
    assert_eq!(way["chain"][2]["endpoint"], way["read_goes_to"]);
    assert!(way["match"].as_str().unwrap().starts_with("62616e616e61"), "{way}");
    let missing = up.run(&["explain", "x", "-k", "nowhere"]).expect(1);
    assert!(missing.stderr.contains("keyway keyspace list"), "{missing:?}");
}

#[expect(clippy::disallowed_methods, reason = "a deadline of a real process")]
fn now() -> Instant {
    Instant::now()
}
