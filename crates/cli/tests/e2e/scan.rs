//! Range keyspaces and scans.

use testkit::program::{Ran, Up};
use workload::{KeyNames, Values};

const KEYS: u64 = 100_000;

#[test]
fn a_scan_of_100_000_keys_in_128_partitions_is_complete_sorted_and_right() {
    let up = Up::start(&["--nodes", "8"]);
    let create = [
        "keyspace",
        "create",
        "users",
        "--range",
        "--prefix",
        "user",
        "--partitions",
        "128",
        "--split-numbers",
        "100k",
    ];
    up.run(&create).expect(0);
    let load = [
        "bench",
        "-k",
        "users",
        "--load",
        "--keys",
        "100k",
        "--value-size",
        "32",
        "--mix",
        "get=1",
        "--duration",
        "200ms",
        "--json",
    ];
    up.run(&load).expect(0);

    let names = KeyNames::new("user", 16, KEYS).unwrap();
    let lines = up.run(&["scan", "-k", "users", "--hex"]).expect(0);
    let mut index = 0;
    for line in lines.stdout.lines() {
        let (key, value) = line.split_once('\t').unwrap();
        assert_eq!(names.index(&from_hex(key)), Some(index), "key {index} is next");
        assert!(Values::stamp_of(index, &from_hex(value)).is_some(), "the value of key {index}");
        index += 1;
    }
    assert_eq!(index, KEYS);

    let shown = up.run(&["keyspace", "show", "users", "--json"]).expect(0).json();
    assert_eq!(shown["keyspace"]["partitions"].as_array().unwrap().len(), 128);
    assert_eq!(up.run(&["scan", "-k", "users", "--count"]).expect(0).stdout, "100000\n");

    let part = ["--from", "user000000049990", "--before", "user000000050010", "--keys-only"];
    let expected: Vec<String> = (49_990..50_010).map(|n| format!("user{n:012}")).collect();
    assert_eq!(keys(&scan(&up, &part)), expected);
    let mut reverse = part.to_vec();
    reverse.push("--reverse");
    let mut backwards = expected.clone();
    backwards.reverse();
    assert_eq!(keys(&scan(&up, &reverse)), backwards);
    reverse.extend(["--limit", "7"]);
    assert_eq!(keys(&scan(&up, &reverse)), backwards[..7]);
    let after = ["--after", "user000000099997", "--to", "user000000099999", "--keys-only"];
    assert_eq!(keys(&scan(&up, &after)), ["user000000099998", "user000000099999"]);
    let prefix = ["--prefix", "user00000009999", "--keys-only", "--limit", "3"];
    let first: Vec<String> = (99_990..99_993).map(|n| format!("user{n:012}")).collect();
    assert_eq!(keys(&scan(&up, &prefix)), first);
    assert_eq!(scan(&up, &["--from", "z"]).stdout, "", "nothing is there");
}

#[test]
fn a_hash_keyspace_is_scanned_whole_and_not_between_keys() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    let refused = up.run(&["scan", "--prefix", "k"]).expect(3);
    assert!(refused.stderr.contains("range"), "{refused:?}");
    let mut keys: Vec<String> = (0..30).map(|n| format!("k{n:02}")).collect();
    for key in &keys {
        up.run(&["put", key, "v"]).expect(0);
    }
    keys.remove(7);
    up.run(&["del", "k07"]).expect(0);
    let lines = up.run(&["scan"]).expect(0).stdout;
    let mut found: Vec<&str> =
        lines.lines().map(|line| line.strip_suffix("\tv").unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, keys);
    assert_eq!(up.run(&["scan", "--count"]).expect(0).stdout, "29\n");
    let some = up.run(&["scan", "--keys-only", "--limit", "4"]).expect(0).stdout;
    assert!(lines.lines().zip(some.lines()).all(|(line, key)| line.starts_with(key)));
    assert_eq!(some.lines().count(), 4);
}

#[test]
fn keyspaces_are_listed_and_can_be_used_once_created() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    up.run(&[
        "keyspace",
        "create",
        "words",
        "--range",
        "--partitions",
        "3",
        "--split",
        "h",
        "--split",
        "q",
        "--replicas",
        "2",
    ])
    .expect(0);
    let list = up.run(&["keyspace", "list", "--json"]).expect(0).json_lines();
    let names: Vec<&str> = list.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "ordered", "words"]);
    assert_eq!((&list[2]["partitions"], &list[2]["replicas"]), (&3.into(), &2.into()));
    for word in ["zebra", "apple", "house", "queue"] {
        up.run(&["put", "-k", "words", word, "1"]).expect(0);
    }
    let found = up.run(&["scan", "-k", "words", "--keys-only"]).expect(0);
    assert_eq!(keys(&found), ["apple", "house", "queue", "zebra"]);
    let twice = up.run(&["keyspace", "create", "words"]).expect(3);
    assert!(twice.stderr.contains("there is a keyspace of that name"), "{twice:?}");
    up.run(&["keyspace", "show", "nowhere"]).expect(1);
}

fn scan(up: &Up, arguments: &[&str]) -> Ran {
    let mut all = vec!["scan", "-k", "users"];
    all.extend(arguments);
    up.run(&all).expect(0)
}

fn keys(ran: &Ran) -> Vec<&str> {
    ran.stdout.lines().collect()
}

fn from_hex(digits: &str) -> Vec<u8> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty(), "pairs of digits");
    let byte = |pair: &[u8; 2]| {
        let text = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(text, 16).expect("digits")
    };
    pairs.iter().map(byte).collect()
}
