//! What becomes of output that nobody takes, and of files that commands write.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::program::{Daemon, Up, keyway, run};

/// Commands that print something, with and without a cluster.
const PRINTING: [&[&str]; 20] = [
    &["--help"],
    &["--version"],
    &["get", "--help"],
    &["get", "greeting"],
    &["get", "greeting", "--json"],
    &["get", "greeting", "--out", "-"],
    &["put", "greeting", "hello"],
    &["put", "greeting", "hello", "--json"],
    &["incr", "visits"],
    &["mget", "greeting"],
    &["mset", "a", "1"],
    &["scan"],
    &["scan", "--json"],
    &["scan", "--count"],
    &["status"],
    &["status", "--json"],
    &["top", "--once", "--json"],
    &["keyspace", "list"],
    &["explain", "greeting"],
    &["sim", "--seeds", "1..2", "--profile", "calm", "--json"],
];

#[test]
fn a_full_disk_is_told_and_ends_no_command_well() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run(&["put", "greeting", "hello"]).expect(0);
    for arguments in PRINTING {
        let mut command = at(&up, arguments);
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        let ran = command.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(5), "{arguments:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_pipe_that_nobody_reads_ends_every_command_quietly() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run(&["put", "greeting", "hello"]).expect(0);
    for arguments in PRINTING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = at(&up, arguments);
        let ran = command.stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!((ran.status.code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn what_prints_again_and_again_ends_when_nobody_reads_on() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    for arguments in [
        &["status", "--watch"][..],
        &["status", "--watch", "--json"],
        &["top", "--interval", "200ms"],
        &["top", "--interval", "200ms", "--json"],
        &["sim", "--seeds", "1..1000000", "--profile", "calm", "--json"],
    ] {
        let mut child = at(&up, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        assert!(!first.is_empty(), "{arguments:?}");
        drop(reader);
        assert_eq!(ended(&mut child), Some(0), "{arguments:?}");
    }
}

#[test]
fn messages_that_nobody_reads_are_no_reason_to_panic() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    let bench = ["bench", "--load", "--keys", "100", "--duration", "2s", "--threads", "1"];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = at(&up, &bench);
    let mut child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    assert_eq!(ended(&mut child), Some(0));

    // A role whose log is not read any more goes on.
    let mut command = keyway();
    command.args(["up", "--json", "--service", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(["--nodes", "3", "--log", "trace"]);
    let (daemon, line) = Daemon::start_deaf(&mut command);
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    let service = ready["service"].as_str().unwrap();
    run(&["put", "greeting", "hello", "--service", service]).expect(0);
    assert_eq!(run(&["get", "greeting", "--service", service]).expect(0).stdout, "hello");
    assert_eq!(daemon.interrupt(), Some(0));
}

#[test]
fn a_value_goes_into_what_is_named_and_takes_nothing_elses_place() {
    let up = Up::start(&["--nodes", "1", "--replicas", "1", "--partitions", "2"]);
    up.run(&["put", "greeting", "hello"]).expect(0);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let get = |to: &std::path::Path| up.run(&["get", "greeting", "--out", to.to_str().unwrap()]);
    let device = at("device");
    let made = Command::new("mknod").arg(&device).args(["c", "1", "3"]).status().unwrap();
    if made.success() {
        get(&device).expect(0);
        let kind = fs::symlink_metadata(&device).unwrap().file_type();
        assert!(kind.is_char_device(), "a device stays one");
    }
    get("/dev/null".as_ref()).expect(0);
    get("/dev/full".as_ref()).expect(5);
    fs::write(at("file"), "old").unwrap();
    symlink("file", at("link")).unwrap();
    get(&at("link")).expect(0);
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "hello");
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    // A name that others can guess is not written through.
    fs::write(at("victim"), "mine").unwrap();
    symlink("victim", at("new.unfinished")).unwrap();
    get(&at("new")).expect(0);
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "mine");
    assert!(fs::symlink_metadata(at("new.unfinished")).is_ok());
}

fn at(up: &Up, arguments: &[&str]) -> Command {
    let mut command = keyway();
    command
        .args(arguments)
        .env("KEYWAY_SERVICE", up.service.to_string())
        .env("KEYWAY_ADMIN", up.admin.to_string())
        .stdin(Stdio::null());
    command
}

/// How a child ends, within a time in which all of these end.
#[expect(clippy::disallowed_methods, reason = "real processes take their time")]
fn ended(child: &mut Child) -> Option<i32> {
    for _ in 0..600 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("it does not end");
}
