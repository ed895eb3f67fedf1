//! redis-cli and redis-benchmark, where they are installed.

use crate::raw::{put, start};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Whether a program is there; says so if it is not.
fn have(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        let line = format!("{test}: {program} is not installed (apt-get install redis-tools)");
        eprintln!("SKIPPED: {line}");
        if let Some(path) = std::env::var_os("KEYWAY_SKIPS") {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            writeln!(file.unwrap(), "{line}").unwrap();
        }
    }
    found
}

#[test]
fn redis_cli_reads_a_key() {
    if !have("redis-cli", "redis_cli_reads_a_key") {
        return;
    }
    put("cli", "hello");
    let gateway = start();
    let port = gateway.local().port().to_string();
    let ask = |words: &[&str]| {
        let output = Command::new("redis-cli").args(["-p", &port]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&["ping"]), "PONG\n");
    assert_eq!(ask(&["get", "cli"]), "hello\n");
    assert_eq!(ask(&["-3", "get", "cli"]), "hello\n");
    assert_eq!(ask(&["get", "cli-missing"]), "\n");
    assert!(ask(&["info", "server"]).contains("server_name:keyway"));
    assert!(ask(&["command", "docs", "get"]).contains("Returns the string value of a key."));
}

#[test]
fn redis_benchmark_runs_to_its_end() {
    if !have("redis-benchmark", "redis_benchmark_runs_to_its_end") {
        return;
    }
    let gateway = start();
    let port = gateway.local().port().to_string();
    for extra in [["-P", "1"], ["-P", "16"]] {
        let output = Command::new("timeout")
            .args(["60", "redis-benchmark", "-p", &port, "-t", "ping_mbulk,get", "-n", "2000"])
            .args(["-c", "10", "-r", "1000", "--csv"])
            .args(extra)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains("\"GET\""), "{text}");
    }
}
