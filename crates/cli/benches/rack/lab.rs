//! A rack: `keyway lab up` as a child, which takes it down when it is told to or when this process
//! ends, however it ends.

use crate::load::cores::Cores;
use crate::load::keyway::{PARTITIONS, Reach};
use crate::rack::namespace::inside;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Storage nodes of a rack, of one shard each.
pub(crate) const NODES: u16 = 4;

/// A rack that is up; it is taken down when this is dropped.
#[derive(Debug)]
pub(crate) struct Lab {
    name: &'static str,
    child: Child,
    /// How its client reaches the cluster.
    pub(crate) reach: Reach,
    /// Every process whose time is the rack's.
    pub(crate) pids: Vec<u32>,
    /// Held, so that the lab can go on writing.
    _stdout: BufReader<ChildStdout>,
}

impl Lab {
    /// Builds a rack whose switch has this plane and waits until it serves. All of its processes
    /// stay on the servers' core.
    pub(crate) fn start(cores: &Cores, name: &'static str, plane: &str) -> Self {
        // The kernel tells it to end when this process is no more.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_keyway")])
            .args(["lab", "up", "--json", "--name", name, "--plane", plane, "--clients", "1"])
            .args(["--engine", "memory", "--replicas", "1", "--shards", "1"])
            .args(["--switch-threads", "1", "--nodes", &NODES.to_string()])
            .args(["--partitions", &PARTITIONS.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = cores.spawn_server(&mut command).expect("setpriv is of util-linux");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its output is text");
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            let output = child.wait_with_output().expect("our own child");
            panic!("no rack with plane {plane}: {}", String::from_utf8_lossy(&output.stderr));
        };
        // What it says later would fill the pipe.
        let stderr = child.stderr.take().expect("piped");
        std::thread::spawn(move || std::io::copy(&mut { stderr }, &mut std::io::sink()));
        let (client, service) = (namespace(name, "c0"), address(&ready, "service"));
        let reach = inside(&client, || Reach::ask(address(&ready, "admin"), service, CLIENT));
        Self { name, child, reach, pids: pids(&ready), _stdout: stdout }
    }

    /// Does this on one of its hosts.
    pub(crate) fn on<T>(&self, host: &str, job: impl FnOnce() -> T) -> T {
        inside(&namespace(self.name, host), job)
    }

    /// Lets no packet be more than one datagram anywhere on its links, as on a wire. Otherwise
    /// datagrams that were handed over as one stay together as far as the receiving host.
    pub(crate) fn keep_datagrams_apart(&self) {
        let nodes = (1..=NODES).map(|id| format!("n{id}"));
        for host in nodes.chain(["c0".to_owned()]) {
            self.on(&host, || {
                let mut command = Command::new("ethtool");
                command.args(["-K", "eth0", "tx-udp-segmentation", "off"]);
                let done = command.status().is_ok_and(|status| status.success());
                assert!(done, "ethtool turns off what a veth can do");
            });
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are positive"));
        // It may have ended by itself.
        kill(pid, Signal::SIGTERM).ok();
        self.child.wait().expect("our own child");
    }
}

/// The address of a rack's first client.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

fn namespace(lab: &str, host: &str) -> String {
    format!("keyway-{lab}-{host}")
}

fn address(ready: &Value, name: &str) -> SocketAddr {
    let text = ready.get(name).and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).expect("the line names its addresses")
}

/// The rack's processes and the kernel's threads that do what is left of packets when a processor
/// has too many at once; all else the kernel does in the time of whoever sends.
fn pids(ready: &Value) -> Vec<u32> {
    let processes = ready.get("processes").and_then(Value::as_array);
    let pid = |process: &Value| u32::try_from(process.get("pid")?.as_u64()?).ok();
    let pids = processes.expect("the line names its processes").iter().filter_map(pid);
    pids.chain(soft_interrupt_threads()).collect()
}

/// How the names of those threads begin.
pub(crate) const SOFT_INTERRUPTS: &str = "ksoftirqd/";

/// Their process ids.
pub(crate) fn soft_interrupt_threads() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").expect("procfs is mounted").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.starts_with(SOFT_INTERRUPTS))
    })
}
