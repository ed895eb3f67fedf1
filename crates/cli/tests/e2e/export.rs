//! Keys that are taken out of a keyspace and put back.

use std::fs;
use std::process::{Command, Stdio};
use testkit::program::{Ran, Up, keyway};

/// Bytes that look like nothing.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * at / 7 + at) as u8).collect()
}

/// A keyspace with all that is hard to carry.
fn fill(up: &Up) {
    for (key, value) in [
        (&b"plain"[..], &b"text"[..]),
        (b"\\x00", b"a key that looks like an escape"),
        (b"\x00\xff\n\t", b"\x00\xff\n\t\\"),
        (b"empty", b""),
        (b"length", b"(100000 bytes)"),
        (b"largest", &bytes(1_273)),
        (b"long", &bytes(100_000)),
        (b"longer", &bytes(3_000_000)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value");
        fs::write(&path, value).unwrap();
        let path = path.to_str().unwrap();
        up.run(&["put", "--hex", &hex(key), "--file", path]).expect(0);
    }
    up.run(&["put", "mortal", "text", "--expires-at", "1999999999999"]).expect(0);
    up.run(&["put", "long", "--file", "Cargo.toml", "--ttl", "1h"]).expect(0);
    up.run_with_input(
        &["put", "mortal long", "-", "--expires-at", "1999999999998"],
        &bytes(50_000),
    )
    .expect(0);
    let many: String = (0..20_000).map(|n| format!("many{n}\t{n}\n")).collect();
    up.run_with_input(&["mset", "-"], many.as_bytes()).expect(0);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All that a keyspace holds, but for versions.
fn contents(up: &Up, keyspace: &str) -> Vec<String> {
    let ran = up.run(&["export", "-k", keyspace]).expect(0);
    let mut lines: Vec<String> = ran.stdout.lines().skip(1).map(str::to_owned).collect();
    lines.pop();
    lines.sort_unstable();
    lines
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    fill(&up);
    for (name, kind) in [("copies", &[][..]), ("sorted", &["--range"])] {
        up.run(&[&["keyspace", "create", name, "--partitions", "4"], kind].concat()).expect(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all");
    let file = file.to_str().unwrap();
    let told = up.run(&["export", "--out", file, "--json"]).expect(0).json();
    assert_eq!(told["keys"], 20_010, "{told}");
    let expected = contents(&up, "default");
    assert!(expected.len() >= 20_010);
    for keyspace in ["copies", "sorted"] {
        let told = up.run(&["import", file, "-k", keyspace, "--json"]).expect(0).json();
        assert_eq!((&told["keys"], &told["present"]), (&20_010.into(), &0.into()), "{told}");
        assert!(contents(&up, keyspace) == expected, "{keyspace}");
    }
    let got = up.run(&["get", "mortal", "-k", "copies", "--json"]).expect(0).json();
    assert_eq!(got["expiry_ms"], 1_999_999_999_999_u64);
    // Once more does no harm, and what is there can stay.
    up.run(&["put", "plain", "newer", "-k", "copies"]).expect(0);
    up.run(&["del", "long", "-k", "copies"]).expect(0);
    let told = up.run(&["import", file, "-k", "copies", "--if-absent", "--json"]).expect(0).json();
    assert_eq!((&told["keys"], &told["present"]), (&1.into(), &20_009.into()), "{told}");
    assert_eq!(up.run(&["get", "plain", "-k", "copies"]).expect(0).stdout, "newer");
    up.run(&["import", file, "-k", "copies"]).expect(0);
    assert!(contents(&up, "copies") == expected);
    // Some of it, from either kind of keyspace.
    for keyspace in ["default", "sorted"] {
        let some = up.run(&["export", "-k", keyspace, "--prefix", "many1999"]).expect(0);
        let lines: Vec<&str> = some.stdout.lines().collect();
        assert_eq!(lines.len(), 2 + 11, "{keyspace}: {lines:?}");
    }
    let bounds = ["--from", "many0", "--before", "many1"];
    let some = up.run(&[&["export", "-k", "sorted"], &bounds[..]].concat()).expect(0);
    assert_eq!(some.stdout.lines().count(), 3);
    up.run(&[&["export"], &bounds[..]].concat()).expect(3);
}

#[test]
fn an_export_that_is_damaged_changes_nothing_and_it_is_said_where() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run_with_input(&["put", "long", "-"], &bytes(500_000)).expect(0);
    up.run(&["mset", "a", "1", "b", "2"]).expect(0);
    let whole = up.run(&["export"]).expect(0).stdout;
    up.run(&["mdel", "long", "a", "b"]).expect(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it");
    let import = |text: &str| {
        fs::write(&file, text).unwrap();
        up.run(&["import", file.to_str().unwrap()])
    };
    let mut lines: Vec<&str> = whole.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n") + "\n";
    let ran = import(&cut).expect(5);
    assert!(
        ran.stderr.contains("cut off") && ran.stderr.contains("nothing was written"),
        "{ran:?}"
    );
    let changed = whole.replacen("\"crc32c\":\"", "\"crc32c\":\"0", 1);
    assert!(import(&changed).expect(5).stderr.contains("checksum"), "{changed}");
    lines.swap(1, 2);
    assert!(import(&lines.join("\n")).expect(5).stderr.contains(", line "));
    assert!(import("a\t1\n").expect(5).stderr.contains("no export"));
    assert_eq!(up.run(&["scan", "--count"]).expect(0).stdout, "0\n");
    // Of a pipe nobody knows before its end; what was damaged is not written.
    let ran = up.run_with_input(&["import"], cut.as_bytes()).expect(5);
    assert!(ran.stderr.contains("keys were written before"), "{ran:?}");
    up.run_with_input(&["import", "-"], whole.as_bytes()).expect(0);
    assert_eq!(up.run(&["scan", "--count"]).expect(0).stdout, "3\n");
}

#[test]
fn a_long_value_passes_through_a_pipe_piece_by_piece() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run(&["keyspace", "create", "copies", "--replicas", "1", "--partitions", "2"]).expect(0);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    // Not a whole number of anything, and each part is another one.
    let value = bytes(64 * 1024 * 1024 + 7);
    fs::write(&from, &value).unwrap();
    up.run(&["put", "film", "--file", from.to_str().unwrap()]).expect(0);
    let command = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        // Limits of address space, far below the value with its copies.
        let line = format!("ulimit -v 600000; exec \"$0\" {}", arguments.join(" "));
        command.args(["-c", &line]).arg(keyway().get_program());
        command.env("KEYWAY_SERVICE", up.service.to_string());
        command
    };
    let mut export = command(&["export"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut import = command(&["import", "-k", "copies"]);
    let ran = import.stdin(export.stdout.take().unwrap()).output().unwrap();
    assert!(export.wait().unwrap().success());
    Ran::from(ran).expect(0);
    up.run(&["get", "film", "-k", "copies", "--out", to.to_str().unwrap()]).expect(0);
    assert!(fs::read(&to).unwrap() == value, "it is what was written");
}
