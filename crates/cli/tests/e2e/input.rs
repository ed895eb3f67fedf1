//! What commands read from standard input and from files: all of it, or nothing is done.

use std::fs::File;
use std::process::Stdio;
use testkit::program::{Up, free_addresses, keyway, run};

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * at / 7 + at) as u8).collect()
}

#[test]
fn standard_input_is_read_to_its_end() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    for len in [0, 1, 1_279, 1_280, 1_281, 100_000, 1_000_000] {
        let value = bytes(len);
        up.run_with_input(&["put", "k", "-"], &value).expect(0);
        assert_eq!(read(&up, "k"), value, "{len} bytes by put");
        up.run_with_input(&["put", "file", "--file", "-"], &value).expect(0);
        assert_eq!(read(&up, "file"), value, "{len} bytes by put --file");
        let key = format!("new{len}");
        up.run_with_input(&["cas", &key, "-", "--expect-absent"], &value).expect(0);
        assert_eq!(read(&up, &key), value, "{len} bytes by cas");
        // Many keys at once have values that fit a datagram each.
        let mset = ["mset", "many", "-", "other", "1"];
        if "many".len() + len <= 1_280 {
            up.run_with_input(&mset, &value).expect(0);
            assert_eq!(read(&up, "many"), value, "{len} bytes by mset");
        } else {
            up.run_with_input(&mset, &value).expect(3);
            assert!(read(&up, "many").len() < len, "what was there");
        }
    }
    // A key that is too long for long values has short ones all the same.
    let long = "k".repeat(1_000);
    up.run_with_input(&["put", &long, "-"], b"short").expect(0);
    assert_eq!(read(&up, &long), b"short");
    up.run_with_input(&["put", &long, "-"], &bytes(2_000)).expect(3);
    assert_eq!(read(&up, &long), b"short");
    // What is read can be read once.
    up.run_with_input(&["mset", "a", "-", "b", "-"], b"1").expect(2);
    up.run_with_input(&["cas", "k", "-", "--expect", "-"], b"1").expect(2);
    up.run(&["get", "a"]).expect(1);
}

fn read(up: &Up, key: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("value");
    up.run(&["get", key, "--out", to.to_str().unwrap()]).expect(0);
    std::fs::read(to).unwrap()
}

#[test]
fn a_file_that_is_too_long_is_refused_before_anything_is_sent() {
    // Nobody is there: whoever sent something would be told so.
    let free = free_addresses(1)[0].to_string();
    let away = ["--service", &free, "--timeout", "300ms"];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("film");
    File::create(&path).unwrap().set_len(600 << 20).unwrap();
    let name = path.to_str().unwrap();
    let at = format!("@{name}");
    for arguments in [
        &["put", "film", "--file", name][..],
        &["put", "film", &at],
        &["cas", "film", &at, "--expect-absent"],
        &["mset", "film", &at],
    ] {
        let ran = run(&[arguments, &away[..]].concat()).expect(3);
        assert!(ran.stderr.contains("536870912"), "{arguments:?}: {ran:?}");
    }
    let mut command = keyway();
    let command = command.args(["put", "film", "-"]).args(away);
    let ran = command.stdin(File::open(&path).unwrap()).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
}

#[test]
fn lines_that_could_mean_two_things_are_refused_before_anything_is_written() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run(&["put", "--hex", "6b00", "00ff"]).expect(0);
    up.run_with_input(&["put", "long", "-"], &bytes(100_000)).expect(0);
    let scanned = up.run(&["scan"]).expect(0).stdout;
    for (line, why) in [
        (scanned.as_str(), "standard input"),
        ("k\\x00\t1\n", "backslash"),
        ("k\ta\\tb\n", "backslash"),
        ("k\t(100000 bytes)\n", "in place of it"),
        ("k\ta\tb\n", "two tabs"),
        ("k\t1\r\n", "carriage return"),
        ("k 1\n", "no tab"),
    ] {
        let input = format!("first\t1\n{line}");
        let ran = up.run_with_input(&["mset", "-"], input.as_bytes()).expect(2);
        assert!(ran.stderr.contains(why), "{line:?}: {ran:?}");
    }
    let ran = up.run_with_input(&["mset", "-"], b"first\t\xff\n").expect(2);
    assert!(ran.stderr.contains("--hex"), "{ran:?}");
    up.run(&["get", "first"]).expect(1);
    for command in ["mget", "mdel"] {
        let ran = up.run_with_input(&[command, "-"], b"long\nk\\x00\n").expect(2);
        assert!(ran.stderr.contains("line 2") && ran.stderr.contains("backslash"), "{ran:?}");
    }
    up.run(&["get", "long"]).expect(0);
    up.run_with_input(&["mset", "-"], b"a\t1\nb\tx y (3)\n").expect(0);
    assert_eq!(up.run(&["get", "b"]).expect(0).stdout, "x y (3)");
    up.run_with_input(&["mset", "-", "--hex"], b"6b00\t5c09\n").expect(0);
    assert_eq!(up.run(&["get", "--hex", "6b00"]).expect(0).stdout, "5c09\n");
}
