//! The rack under test: `keyway lab up` as a child, and commands on its client's host.

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// What kind of rack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    /// Storage nodes of one shard each.
    pub(crate) nodes: u16,
    /// Requests that each serves in a second.
    pub(crate) node_rate: u64,
    /// Where packets are switched.
    pub(crate) plane: &'a str,
}

/// A rack that is up; it is taken down when this is dropped, or this process ends.
#[derive(Debug)]
pub(crate) struct Rack {
    child: Child,
    /// Held, so that the lab can go on writing.
    _stdout: BufReader<ChildStdout>,
}

/// What the lab is called.
const NAME: &str = "balance";

impl Rack {
    /// Builds it, and waits until it serves.
    pub(crate) fn start(kind: Kind<'_>) -> Self {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_keyway")])
            .args(["lab", "up", "--json", "--name", NAME, "--plane", kind.plane])
            .args(["--engine", "memory", "--replicas", "1", "--shards", "1"])
            .args(["--nodes", &kind.nodes.to_string()])
            .args(["--node-rate", &kind.node_rate.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("setpriv is of util-linux");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its output is text");
        assert!(line.contains("ready"), "no rack with plane {}: {line}", kind.plane);
        Self { child, _stdout: stdout }
    }

    /// Runs `keyway` with these words on the client's host, and gives what it printed as JSON.
    pub(crate) fn keyway(&self, words: &[String]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keyway"));
        command.args(["lab", "run", "--name", NAME, "--", "keyway"]).args(words).arg("--json");
        let output = command.stderr(Stdio::piped()).output().expect("the binary was built");
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "keyway {}: {text}{errors}", words.join(" "));
        serde_json::from_str(text.trim()).unwrap_or_else(|why| panic!("{why}: {text}"))
    }

    /// Requests that each node has taken so far.
    pub(crate) fn requests(&self) -> Vec<u64> {
        let status = self.keyway(&["status".to_owned()]);
        let nodes = status.pointer("/load").and_then(Value::as_array);
        let nodes = nodes.unwrap_or_else(|| panic!("no load in {status:#}"));
        nodes.iter().filter_map(|node| node.get("requests")?.as_u64()).collect()
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("process ids are positive");
        let pid = nix::unistd::Pid::from_raw(pid);
        // It may have ended by itself.
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).ok();
        self.child.wait().expect("our own child");
    }
}
