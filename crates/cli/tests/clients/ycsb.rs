//! YCSB's core workloads, with records in strings (tests/clients/java/StringClient.java). Its own
//! check of what it reads is on. Workload E scans, which strings cannot.

use crate::toolchain::Java;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Records that are loaded, of ten fields of 100 bytes.
const RECORDS: u32 = 500;
/// Operations of each workload.
const OPERATIONS: u32 = 2_000;

/// Name, properties other than those of CoreWorkload, and what must have been done.
const WORKLOADS: [(&str, &[&str], &[&str]); 5] = [
    ("a", &["readproportion=0.5", "updateproportion=0.5"], &["READ", "UPDATE"]),
    ("b", &["readproportion=0.95", "updateproportion=0.05"], &["READ", "UPDATE"]),
    ("c", &["readproportion=1", "updateproportion=0"], &["READ"]),
    (
        "d",
        &[
            "readproportion=0.95",
            "updateproportion=0",
            "insertproportion=0.05",
            "requestdistribution=latest",
        ],
        &["READ", "INSERT"],
    ),
    (
        "f",
        &["readproportion=0.5", "updateproportion=0", "readmodifywriteproportion=0.5"],
        &["READ", "READ-MODIFY-WRITE"],
    ),
];

/// Loads the records and runs all workloads.
pub(crate) fn run(at: SocketAddr, java: &Java) {
    let text = client(java, at, "-load", &[]);
    assert_eq!(done(&text, "INSERT"), u64::from(RECORDS), "{text}");
    for (letter, properties, wanted) in WORKLOADS {
        let text = client(java, at, "-t", properties);
        // Each read is checked; a value that is not the last one written is an error.
        assert!(done(&text, "VERIFY") > 0, "{letter}: {text}");
        let counts: Vec<String> = wanted
            .iter()
            .map(|operation| (operation, done(&text, operation)))
            .inspect(|(_, count)| assert!(*count > 0, "{letter}: {text}"))
            .map(|(operation, count)| format!("{count} {operation}"))
            .collect();
        println!("YCSB {letter}: {}", counts.join(", "));
    }
}

/// Runs YCSB's client; everything must have succeeded.
fn client(java: &Java, at: SocketAddr, phase: &str, properties: &[&str]) -> String {
    let mut command = java.command("site.ycsb.Client");
    command.args([phase, "-db", "StringClient", "-threads", "4"]);
    let counts = [format!("recordcount={RECORDS}"), format!("operationcount={OPERATIONS}")];
    let to = [format!("redis.host={}", at.ip()), format!("redis.port={}", at.port())];
    let core = ["workload=site.ycsb.workloads.CoreWorkload", "requestdistribution=zipfian"];
    let check = ["dataintegrity=true", "fieldlengthdistribution=constant"];
    let all = counts.iter().chain(&to).map(String::as_str);
    for property in all.chain(core).chain(check).chain(properties.iter().copied()) {
        command.args(["-p", property]);
    }
    let mut bounded = Command::new("timeout");
    bounded.arg("90").arg(command.get_program()).args(command.get_args());
    let output = bounded.stdin(Stdio::null()).output().expect("a timeout and a Java");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{phase} {properties:?}: {text}\n{complaints}");
    let ended_badly = |line: &&str| line.contains("Return=") && !line.contains("Return=OK");
    assert_eq!(text.lines().find(ended_badly), None, "{text}\n{complaints}");
    text
}

/// How many of these operations it says that it did.
fn done(text: &str, operation: &str) -> u64 {
    let head = format!("[{operation}], Operations, ");
    let line = text.lines().find_map(|line| line.strip_prefix(&head));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
