//! Values that do not fit a datagram: whole, in part, from files and into files.

use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testkit::program::{Daemon, Up, keyway};

const MIB: usize = 1 << 20;

/// Bytes that are the same nowhere for long.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(|| next().to_le_bytes()).flatten().take(len).collect()
}

#[test]
fn a_value_of_a_mebibyte_comes_back_whole_or_in_part() {
    let up = Up::start(&["--nodes", "3", "--partitions", "8"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (from, to) = (from.to_str().expect("a name"), to.to_str().expect("a name"));
    let get = |range: &str| {
        up.run(&["get", "photo", "--range", range, "--out", to]).expect(0);
        fs::read(to).expect("the file is there")
    };
    let first = bytes(MIB + 7, 1);
    fs::write(from, &first).expect("room");
    up.run(&["put", "photo", "--file", from]).expect(0);
    assert!(get("..") == first, "it is what was written");
    assert_eq!(get("1000000..1000010"), first[1_000_000..1_000_010]);
    assert_eq!(get("1048580.."), first[1_048_580..]);
    assert!(get("9999999..").is_empty());
    let hex = up.run(&["get", "70686f746f", "--hex", "--range", "0..4"]).expect(0).stdout;
    let expected: String = first[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex.trim(), expected);

    // Another one takes its place, and a short one that of the other.
    let second = bytes(3 * MIB, 2);
    up.run_with_input(&["put", "photo", "--file", "-"], &second).expect(0);
    assert!(get("..") == second);
    up.run(&["cas", "photo", "short", "--expect", "none of that"]).expect(1);
    up.run(&["incr", "photo"]).expect(1);
    up.run(&["put", "photo", "short"]).expect(0);
    assert_eq!(get(".."), b"short");
    up.run(&["put", "photo", "--file", from, "--ttl", "1h"]).expect(0);
    let shown = up.run(&["get", "photo", "--range", "0..1", "--json"]).expect(0).json();
    assert!(shown["expiry_ms"].as_u64() > Some(0), "{shown}");
    up.run(&["del", "photo"]).expect(0);
    up.run(&["get", "photo", "--out", to]).expect(1);
    up.run(&["put", "photo", "--file", "/no/such/file"]).expect(5);
}

#[test]
fn parts_are_hidden_from_scans() {
    let up = Up::start(&["--nodes", "3"]);
    up.run(&["keyspace", "create", "files", "--range", "--prefix", "f"]).expect(0);
    for key in ["fa", "fb", "fc"] {
        let put = ["put", "-k", "files", key, "--file", "-"];
        up.run_with_input(&put, &bytes(200_000, 3)).expect(0);
        up.run(&["put", "-k", "files", &format!("{key}1"), "x"]).expect(0);
    }
    let mut expected = ["fa", "fa1", "fb", "fb1", "fc", "fc1"];
    for reverse in [false, true] {
        let mut scan = vec!["scan", "-k", "files", "--keys-only"];
        scan.extend(reverse.then_some("--reverse"));
        let found = up.run(&scan).expect(0).stdout;
        assert_eq!(found.lines().collect::<Vec<_>>(), expected);
        expected.reverse();
    }
    assert_eq!(up.run(&["scan", "-k", "files", "--count"]).expect(0).stdout, "6\n");
    let some = up.run(&["scan", "-k", "files", "--prefix", "fa", "--count"]).expect(0);
    assert_eq!(some.stdout, "2\n");
    // A scan says how long a value is, a multiget brings it.
    let scan = ["scan", "-k", "files", "--prefix", "fa"];
    assert_eq!(up.run(&scan).expect(0).stdout, "fa\t(200000 bytes)\nfa1\tx\n");
    let found = up.run(&[&scan[..], &["--json"]].concat()).expect(0).json_lines();
    assert_eq!((found[0]["bytes"].as_u64(), &found[0]["value"]), (Some(200_000), &Value::Null));
    let found = up.run(&["mget", "-k", "files", "6661", "--hex"]).expect(0).stdout;
    let whole: String = bytes(200_000, 3).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, format!("6661\t{whole}\n"));
}

#[test]
fn a_hundred_mebibytes_pass_in_little_memory() {
    let up = Up::start(&["--nodes", "3"]);
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let value = bytes(100 * MIB, 5);
    fs::write(&from, &value).expect("room");
    let idle = peak_kb(up.id());
    let (put, put_kb) = timed(&up, &["put", "film", "--file", from.to_str().expect("a name")]);
    let (get, get_kb) = timed(&up, &["get", "film", "--out", to.to_str().expect("a name")]);
    assert!(fs::read(&to).expect("the file is there") == value, "it is what was written");
    let (part, _) = timed(&up, &["get", "film", "--range", "50000000..50000100"]);
    let nodes = peak_kb(up.id());
    println!(
        "100 MiB: put in {put:?}, peak {put_kb} KiB; get in {get:?}, peak {get_kb} KiB; 100 bytes \
         of it in {part:?}; three nodes, switch and controller: {idle} KiB before, {nodes} KiB peak"
    );
    for (what, kb) in [("put", put_kb), ("get", get_kb)] {
        assert!(kb < 40 * 1024, "{what} took {kb} KiB for a value of 102400 KiB");
    }
    assert!(part < get / 2, "a range takes {part:?}, and the whole {get:?}");
}

#[test]
fn a_gateway_passes_long_values_on_without_holding_them() {
    let up = Up::start(&["--nodes", "3", "--redis", "off"]);
    let mut command = keyway();
    command.args(["gateway", "--json", "--listen", "127.0.0.1:0"]).args([
        "--service",
        &up.service.to_string(),
        "--admin",
        &up.admin.to_string(),
    ]);
    let (gateway, line) = Daemon::start(&mut command);
    let ready: serde_json::Value = serde_json::from_str(&line).expect("the ready line is JSON");
    let at = ready["redis"].as_str().expect("an address");
    let mut stream = TcpStream::connect(at).expect("a gateway");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    let value = bytes(100 * MIB, 7);
    let idle = peak_kb(gateway.id());
    let began = now();
    let head = format!("*5\r\n$3\r\nSET\r\n$4\r\nfilm\r\n${}\r\n", value.len());
    stream.write_all(head.as_bytes()).expect("it takes commands");
    stream.write_all(&value).expect("it takes values");
    stream.write_all(b"\r\n$2\r\nEX\r\n$4\r\n3600\r\n").expect("it takes options");
    assert_eq!(read(&mut stream, 5), b"+OK\r\n");
    let set = began.elapsed();
    stream.write_all(b"STRLEN film\r\nGETRANGE film 50000000 50000009\r\n").expect("commands");
    assert_eq!(read(&mut stream, 12), b":104857600\r\n");
    assert_eq!(read(&mut stream, 5), b"$10\r\n");
    assert_eq!(read(&mut stream, 12)[..10], value[50_000_000..50_000_010]);
    let began = now();
    stream.write_all(b"GET film\r\nTTL film\r\n").expect("it takes commands");
    let head = format!("${}\r\n", value.len());
    assert_eq!(read(&mut stream, head.len()), head.as_bytes());
    // A client that is slow to read makes the gateway wait, not grow.
    rest(500);
    assert!(read(&mut stream, value.len()) == value, "it is what was written");
    let get = began.elapsed();
    assert_eq!(read(&mut stream, 3), b"\r\n:");
    let peak = peak_kb(gateway.id());
    println!(
        "100 MiB: SET in {set:?}, GET in {get:?}; gateway: {idle} KiB before, {peak} KiB peak"
    );
    assert!(peak < idle + 32 * 1024, "the gateway grew from {idle} to {peak} KiB");
    assert_eq!(gateway.interrupt(), Some(0));
}

fn read(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).expect("a reply");
    bytes
}

/// Runs a command to its end; how long that took, and the most memory that it had.
fn timed(up: &Up, arguments: &[&str]) -> (Duration, u64) {
    let mut command = keyway();
    command.args(arguments).args(["--service", &up.service.to_string()]);
    let began = now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the binary runs");
    let mut peak = 0;
    loop {
        peak = peak_kb(child.id()).max(peak);
        if let Some(status) = child.try_wait().expect("our own child") {
            assert!(status.success(), "{arguments:?}");
            return (began.elapsed(), peak);
        }
        rest(5);
    }
}

/// The most memory that a process had, in KiB; 0 if it has ended.
fn peak_kb(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.map_or(0, |number| number.parse().expect("a number of KiB"))
}

#[expect(clippy::disallowed_methods, reason = "real processes take their time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "real processes take their time")]
fn rest(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
