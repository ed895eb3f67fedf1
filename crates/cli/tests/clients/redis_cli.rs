//! Redis' own programs: redis-cli, redis-benchmark, and a server to compare with.

use crate::gateway::Gateway;
use crate::script::Step;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use testkit::program::free_addresses;

/// A program that is told where to connect, and ends after a time.
fn bounded(program: &str, to: SocketAddr) -> Command {
    let mut command = Command::new("timeout");
    command.args(["90", program, "-h", &to.ip().to_string(), "-p", &to.port().to_string()]);
    command
}

/// Runs it with this input to its end.
fn run(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it was there a moment ago");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // Meanwhile its output is read, so that neither waits for the other.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("our own child");
    writer.join().expect("it does not panic").expect("it reads everything");
    output
}

/// Sends these commands, and checks what redis-cli makes of each reply.
pub(crate) fn check(to: SocketAddr, steps: &[&Step]) {
    // It prints INFO as it came, not as JSON.
    let steps: Vec<&&Step> = steps.iter().filter(|step| step.send[0] != "INFO").collect();
    let lines: String = steps.iter().map(|step| quoted(&step.send) + "\n").collect();
    let output = run(bounded("redis-cli", to).arg("--json"), lines.as_bytes());
    assert!(output.status.success(), "{output:?}");
    // Other bytes than ASCII are left as they are; here each is one character.
    let text: String = output.stdout.iter().map(|byte| char::from(*byte)).collect();
    let replies: Vec<Value> = text.lines().map(reply).collect();
    assert_eq!(replies.len(), steps.len(), "{text}");
    for (step, reply) in steps.into_iter().zip(&replies) {
        step.check("redis-cli", reply);
    }
    println!("redis-cli: {} commands", replies.len());
}

/// A command as it is typed.
fn quoted(words: &[String]) -> String {
    let byte = |char: char| format!("\\x{:02x}", u32::from(char));
    let word = |word: &String| format!("\"{}\"", word.chars().map(byte).collect::<String>());
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What `redis-cli --json` prints of a reply: JSON, but for errors, and maps.
fn reply(line: &str) -> Value {
    let (is_error, text) = match line.strip_prefix("error:") {
        Some(text) => (true, text),
        None => (false, line),
    };
    match serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {line}")) {
        value if is_error => json!({"error": value}),
        Value::Object(map) => {
            map.into_iter().flat_map(|(key, value)| [json!(key), value]).collect()
        }
        value => value,
    }
}

/// Hands all commands over at once, with `redis-cli --pipe`.
pub(crate) fn pipe(to: SocketAddr, steps: &[Step]) {
    let mut bytes = Vec::new();
    for step in steps {
        bytes.extend(format!("*{}\r\n", step.send.len()).bytes());
        for word in &step.send {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
    }
    let output = run(bounded("redis-cli", to).arg("--pipe"), &bytes);
    let text = String::from_utf8_lossy(&output.stdout);
    // Two commands of the script's pipeline are refused.
    let wanted = format!("errors: 2, replies: {}\n", steps.len());
    assert!(text.ends_with(&wanted), "{text}");
    println!("redis-cli --pipe: {} commands", steps.len());
}

/// Its check of a cluster finds all slots, and with -c it is sent nowhere else.
pub(crate) fn finds_a_cluster(to: SocketAddr) {
    let mut check = bounded("redis-cli", to);
    let output = run(check.args(["--cluster", "check", &to.to_string()]), b"");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("[OK] All 16384 slots covered."), "{text}");
    let lines: String = (0..50).map(|n| format!("SET c:{n} {n}\nGET c:{n}\n")).collect();
    let output = run(bounded("redis-cli", to).arg("-c"), lines.as_bytes());
    let expected: String = (0..50).map(|n| format!("OK\n{n}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

/// A redis-cli that reads commands goes on after the gateway was restarted.
pub(crate) fn goes_on(gateway: &mut Gateway) {
    let mut command = bounded("redis-cli", gateway.at);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it was there a moment ago");
    let mut stdin = child.stdin.take().expect("piped");
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        stdout.lines().map_while(Result::ok).for_each(|line| sender.send(line).unwrap_or_default());
    });
    // A command that meets no gateway has no reply.
    let mut ask = |value: u32| {
        for _ in 0..ASKS_MAX {
            writeln!(stdin, "GETSET again {value}").expect("it reads commands");
            let line = lines.recv_timeout(ASK_AGAIN);
            if let Some(line) = line.ok().filter(|line| !line.starts_with("Error")) {
                return line;
            }
        }
        panic!("redis-cli had no reply {ASKS_MAX} times")
    };
    assert_eq!(ask(1), "");
    gateway.restart();
    assert_eq!(ask(2), "1");
    drop(stdin);
    assert!(child.wait().expect("our own child").success());
    println!("redis-cli: goes on after a restart");
}

/// Until a command is sent again; more than a reply takes, also on a busy machine.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Together more than a restart takes.
const ASKS_MAX: usize = 30;

/// Runs redis-benchmark's tests of strings, without and with pipelines.
pub(crate) fn benchmark(to: SocketAddr) {
    let arguments = ["-t", "ping,set,get,incr,mset", "-n", "2000", "-c", "10", "--csv"];
    for extra in [["-P", "1"], ["-P", "16"]] {
        let output = run(bounded("redis-benchmark", to).args(arguments).args(extra), b"");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        let tests = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"];
        for test in tests {
            let line = text.lines().find(|line| line.starts_with(&format!("\"{test}\"")));
            let rate = line.and_then(|line| line.split('"').nth(3));
            let rate: f64 = rate.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{text}"));
            assert!(rate > 0.0, "{text}");
            println!("redis-benchmark {} {}: {test} {rate:.0} per second", extra[0], extra[1]);
        }
    }
}

/// How often is looked whether a server listens; together half a minute.
const LOOKS_MAX: usize = 1_500;

/// A Redis server, killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) at: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Self {
        let [at] = free_addresses(1)[..] else { panic!("one address was asked for") };
        let mut command = Command::new("redis-server");
        command.args(["--port", &at.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        let child = command.stdout(Stdio::null()).spawn().expect("it was there a moment ago");
        let server = Self { child, at };
        for _ in 0..LOOKS_MAX {
            if TcpStream::connect(at).is_ok() {
                return server;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("no redis-server at {at}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }
}
