//! A Keyway cluster in a process of its own, so that its CPU time can be told from the client's.

use crate::load::cores::Cores;
use crate::load::keyway::{PARTITIONS, Reach};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running `keyway up`; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    child: Child,
    pub(crate) reach: Reach,
    /// Held, so that the cluster can go on writing.
    _stdout: BufReader<ChildStdout>,
}

impl Cluster {
    /// Starts one in memory, with one shard per node and every key on one node.
    pub(crate) fn start(cores: &Cores, nodes: u16) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keyway"));
        command
            .args(["up", "--json", "--service", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--engine", "memory", "--replicas", "1", "--shards", "1"])
            .args(["--switch-threads", "1", "--nodes", &nodes.to_string()])
            .args(["--partitions", &PARTITIONS.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = cores.spawn_server(&mut command).expect("the binary was built beside this");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its output is text");
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the cluster did not start: {error}: {line:?}"));
        let address = |name| -> SocketAddr {
            let text = ready.get(name).and_then(Value::as_str);
            text.and_then(|text| text.parse().ok()).expect("the line names its addresses")
        };
        let (service, admin) = (address("service"), address("admin"));
        let reach = Reach::ask(admin, service, Ipv4Addr::LOCALHOST);
        Self { child, reach, _stdout: stdout }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It keeps nothing; it may have ended by itself.
        self.child.kill().ok();
        self.child.wait().expect("our own child");
    }
}
