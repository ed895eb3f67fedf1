//! Children of a test: started, waited for, and killed by their process id when it ends.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a child may take to say that it is ready. Far more than it takes.
const READY_WAIT_MAX: Duration = Duration::from_secs(120);

/// The binary under test: cargo puts it above the folder of the tests that it builds it for.
fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let built = test.ancestors().nth(2).expect("it lies in a folder of tests");
    let binary = built.join("keyway");
    assert!(binary.is_file(), "no {}: run tests of keyway", binary.display());
    binary
}

/// The binary under test, without settings from outside.
pub fn keyway() -> Command {
    let mut command = Command::new(binary());
    for name in ["KEYWAY_SERVICE", "KEYWAY_ADMIN", "KEYWAY_KEYSPACE", "KEYWAY_LOG", "KEYWAY_CERTS"]
    {
        command.env_remove(name);
    }
    command
}

/// Runs the binary to its end.
pub fn run(arguments: &[&str]) -> Ran {
    Ran::of(keyway().args(arguments).stdin(Stdio::null()))
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the binary runs"))
    }

    /// Checks the exit code; the whole output is shown if it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// The output's only line, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.stdout.trim()).unwrap_or_else(|error| {
            panic!("{error}: {self:#?}");
        })
    }

    /// Each line of the output, as JSON.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("a JSON object on each line");
        self.stdout.lines().map(parse).collect()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A child that stays until it is dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    stderr: Receiver<String>,
}

impl Daemon {
    /// Starts a command and waits for its first line of output.
    pub fn start(command: &mut Command) -> (Self, String) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("piped");
        let (line_sender, line) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut first = String::new();
            // A test that has given up does not read on.
            if reader.read_line(&mut first).is_ok() {
                line_sender.send(first).ok();
            }
            // Read on, so that the child never waits for room in the pipe.
            reader.read_to_end(&mut Vec::new()).ok();
        });
        let mut errors = child.stderr.take().expect("piped");
        let (stderr_sender, stderr) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).ok();
            stderr_sender.send(text).ok();
        });
        let daemon = Self { child, stderr };
        let line = line.recv_timeout(READY_WAIT_MAX).unwrap_or_default();
        if line.is_empty() {
            let why = daemon.kill();
            panic!("the child was not ready: {why}");
        }
        (daemon, line)
    }

    /// The same, and nobody reads on: neither its output nor what it complains about.
    pub fn start_deaf(command: &mut Command) -> (Self, String) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        drop(child.stderr.take());
        let mut first = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut first).expect("a line");
        (Self { child, stderr: channel().1 }, first)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as `kill -9` does, and returns what it had to complain about.
    pub fn kill(mut self) -> String {
        self.end();
        self.stderr.recv_timeout(READY_WAIT_MAX).unwrap_or_default()
    }

    /// Asks it to end, as a service manager does, waits for that, and returns its exit code and
    /// what it had to say.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("there is a kill");
        assert!(sent.success());
        let code = self.child.wait().expect("our own child").code();
        (code, self.stderr.recv_timeout(READY_WAIT_MAX).unwrap_or_default())
    }

    /// Waits until it ends by itself, and returns its exit code and what it had to say.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("our own child").code();
        (code, self.stderr.recv_timeout(READY_WAIT_MAX).unwrap_or_default())
    }

    /// Asks it to end, as Ctrl-C does, and waits for that.
    pub fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("there is a kill");
        assert!(sent.success());
        self.child.wait().expect("our own child").code()
    }

    fn end(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

/// An embedded cluster.
#[derive(Debug)]
pub struct Up {
    daemon: Daemon,
    pub service: SocketAddr,
    pub admin: SocketAddr,
    /// Where Redis clients connect, if they can.
    pub redis: Option<SocketAddr>,
}

impl Up {
    /// Starts one on any ports.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// Starts one at this service address.
    pub fn start_at(service: &str, arguments: &[&str]) -> Self {
        Self::start_by(keyway(), service, arguments)
    }

    /// Starts one on any ports that may have so many descriptors.
    pub fn start_with_files(files: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(binary());
        Self::start_by(command, "127.0.0.1:0", arguments)
    }

    /// Starts one by a command that ends with the binary.
    pub fn start_by(mut command: Command, service: &str, arguments: &[&str]) -> Self {
        command.args(["up", "--json", "--service", service, "--admin", "127.0.0.1:0"]);
        let (daemon, line) = Daemon::start(command.args(arguments));
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        assert_eq!(ready.get("outcome"), Some(&Value::from("ready")));
        let address = |name| {
            let text = ready.get(name).and_then(Value::as_str).expect("an address");
            text.parse().expect("an address")
        };
        let redis = ready.get("redis").and_then(Value::as_str);
        let redis = redis.map(|text| text.parse().expect("an address"));
        Self { daemon, service: address("service"), admin: address("admin"), redis }
    }

    /// Runs a command against it.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with_input(arguments, b"")
    }

    /// Runs a command against it that reads this from standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = keyway();
        command
            .args(arguments)
            .env("KEYWAY_SERVICE", self.service.to_string())
            .env("KEYWAY_ADMIN", self.admin.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("piped");
        // A command that reads nothing may have ended already.
        stdin.write_all(input).ok();
        drop(stdin);
        Ran::from(child.wait_with_output().expect("our own child"))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.daemon.id()
    }

    pub fn kill(self) -> String {
        self.daemon.kill()
    }

    /// Waits until it ends by itself, and returns its exit code and what it had to say.
    pub fn ended(self) -> (Option<i32>, String) {
        self.daemon.ended()
    }

    pub fn interrupt(self) -> Option<i32> {
        self.daemon.interrupt()
    }
}

/// Addresses that nobody listens at, over UDP or TCP; all different. They lie below the ports that
/// the kernel gives to sockets which ask for none, so that none is taken before it is used, and
/// no two tests are given the same.
pub fn free_addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = FREE_PORTS.start + u16::try_from(std::process::id() % 10_000).expect("small");
    let next = || first + NEXT.fetch_add(1, Ordering::Relaxed);
    let ports = std::iter::repeat_with(next).take_while(|port| FREE_PORTS.contains(port));
    let at = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let free = |at: &SocketAddr| UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok();
    let found: Vec<SocketAddr> = at.filter(free).take(count).collect();
    assert_eq!(found.len(), count, "enough free ports");
    found
}

/// Linux gives ports from 32768 on by itself.
const FREE_PORTS: Range<u16> = 12_000..32_000;
