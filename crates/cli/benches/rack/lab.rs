//! A rack: `keyway lab up` as a child, which takes it down when it is told to or when this process
//! ends, however it ends.

use crate::load::cores::Cores;
use crate::load::keyway::{PARTITIONS, Reach};
use lab::child::ChildLab;
use serde_json::Value;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

/// Storage nodes of a rack, of one shard each.
pub(crate) const NODES: u16 = 4;

/// A rack that is up; it is taken down when this is dropped.
#[derive(Debug)]
pub(crate) struct Lab {
    child: ChildLab,
    /// How its client reaches the cluster.
    pub(crate) reach: Reach,
    /// Every process whose time is the rack's.
    pub(crate) pids: Vec<u32>,
}

impl Lab {
    /// Builds a rack whose switch has this plane and waits until it serves. All of its processes
    /// stay on the servers' core.
    pub(crate) fn start(cores: &Cores, name: &str, plane: &str) -> Self {
        // The kernel tells it to end when this process is no more.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--", env!("CARGO_BIN_EXE_keyway")]);
        let (nodes, partitions) = (NODES.to_string(), PARTITIONS.to_string());
        let options = [
            ["--plane", plane, "--clients", "1"],
            ["--engine", "memory", "--replicas", "1"],
            ["--shards", "1", "--switch-threads", "1"],
            ["--nodes", &nodes, "--partitions", &partitions],
        ];
        let child =
            ChildLab::up(command, name, options.as_flattened(), |it| cores.spawn_server(it));
        let child = child.unwrap_or_else(|why| panic!("no rack with plane {plane}: {why:#}"));
        let service = address(&child.ready, "service");
        let admin = address(&child.ready, "admin");
        let reach = child.on("c0", || Reach::ask(admin, service, CLIENT));
        Self { reach, pids: pids(&child.ready), child }
    }

    /// Does this on one of its hosts.
    pub(crate) fn on<T>(&self, host: &str, job: impl FnOnce() -> T) -> T {
        self.child.on(host, job)
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

/// The address of a rack's first client.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);

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
