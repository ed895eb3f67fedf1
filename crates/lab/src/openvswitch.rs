//! An Open vSwitch that links the hosts of a cluster: its two processes, in the switch's namespace,
//! with everything of theirs in a directory. Packets are switched in its process, so that the
//! kernel needs no module.

use crate::process::{pause, tied};
use crate::rack::{LabHost, Rack};
use crate::tool::run_with;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What the bridge is called.
pub const BRIDGE: &str = "br0";

/// What its processes are called among those of the lab.
pub const DATABASE: &str = "ovsdb";
/// See [`DATABASE`].
pub const SWITCH: &str = "ovs";

/// Where switches that speak OpenFlow expect their controllers.
pub const PORT: u16 = 6653;

/// What a Debian package has installed.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// A port: its number, from 1, and the interface that it is.
pub type Port = (u32, String);

/// Those of a rack.
pub fn ports(rack: &Rack) -> Vec<Port> {
    (1..).zip(rack.places().map(LabHost::port)).collect()
}

/// The number of the port of a rack that leads to a host.
pub fn port_of(rack: &Rack, place: LabHost) -> Option<u32> {
    (1..).zip(rack.places()).find(|(_, it)| *it == place).map(|(number, _)| number)
}

/// One in this directory.
#[derive(Clone, Debug)]
pub struct OpenVSwitch {
    folder: PathBuf,
}

/// A process of it.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is called.
    pub name: &'static str,
    /// Which program.
    pub program: &'static str,
    /// What it is told.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: Vec<(&'static str, PathBuf)>,
}

impl Part {
    /// What starts it; killed when the thread that starts it ends.
    pub fn command(&self) -> Command {
        let mut command = tied(Path::new(self.program));
        command.args(&self.arguments);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl OpenVSwitch {
    /// One that knows nothing yet, in a directory that is made.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub fn new(lab: &Path) -> Result<Self> {
        let folder = lab.join("openvswitch");
        fs::create_dir_all(&folder).context("cannot create a directory for Open vSwitch")?;
        let bridge = Self { folder };
        bridge.run("ovsdb-tool", &["create", &bridge.database_file(), SCHEMA])?;
        Ok(bridge)
    }

    fn database_file(&self) -> String {
        self.path("conf.db")
    }

    fn socket(&self) -> String {
        self.path("db.sock")
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Where all else lies that it makes.
    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let names = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"];
        names.into_iter().map(|name| (name, self.folder.clone())).collect()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let advice = "is it installed? apt-get install openvswitch-switch";
        run_with(program, arguments, "", &self.variables(), advice)
    }

    fn part(&self, name: &'static str, program: &'static str, own: &[String]) -> Part {
        let mut arguments = own.to_vec();
        arguments.push(format!("--pidfile={}", self.path(&format!("{program}.pid"))));
        Part { name, program, arguments, variables: self.variables() }
    }

    /// The process to start first.
    pub fn database(&self) -> Part {
        let remote = format!("--remote=punix:{}", self.socket());
        self.part(DATABASE, "ovsdb-server", &[self.database_file(), remote])
    }

    /// Says, once that runs, that there is a bridge of these ports, whose controller is at a port
    /// of the namespace.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn add_bridge(&self, ports: &[Port]) -> Result<()> {
        let socket = self.socket();
        let there = (0..START_WAIT.as_millis() / LOOK_INTERVAL.as_millis()).any(|_| {
            pause(LOOK_INTERVAL);
            // It is there before anybody listens at it.
            UnixStream::connect(&socket).is_ok()
        });
        if !there {
            bail!("ovsdb-server does not start");
        }
        let database = format!("--db=unix:{socket}");
        let words = format!("{database} --no-wait{}", bridge(ports));
        self.run("ovs-vsctl", &words.split_whitespace().collect::<Vec<_>>())
    }

    /// The process to start then.
    pub fn switch(&self) -> Part {
        self.part(SWITCH, "ovs-vswitchd", &[format!("unix:{}", self.socket())])
    }
}

/// What `ovs-vsctl` is told, so that all is there when the switch starts.
fn bridge(ports: &[Port]) -> String {
    let mut words = format!(
        " -- add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail_mode=secure \
         -- set-controller {BRIDGE} tcp:127.0.0.1:{PORT} \
         -- set controller {BRIDGE} connection-mode=out-of-band max_backoff=1000"
    );
    for (number, port) in ports {
        write!(
            words,
            " -- add-port {BRIDGE} {port} -- set interface {port} ofport_request={number}"
        )
        .expect("strings take everything");
    }
    words
}

/// What a switch is told of a bridge whose flows it keeps: where that finds it, and which members,
/// by their addresses, are behind which ports.
pub fn section(exits: impl Iterator<Item = (IpAddr, String, u32)>) -> String {
    let mut text =
        format!("[switch.openflow]\nlisten = \"127.0.0.1:{PORT}\"\n\n[switch.openflow.exits]\n");
    for (address, mac, port) in exits {
        writeln!(text, "\"{address}\" = {{ mac = \"{mac}\", port = {port} }}")
            .expect("strings take everything");
    }
    text
}

/// Whether all of it is installed, or what to do.
///
/// # Errors
///
/// The advice.
pub fn is_installed() -> Result<(), String> {
    for program in ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"] {
        let found = Command::new(program).arg("--version").output();
        found.map_err(|_| format!("no {program}: install openvswitch-switch"))?;
    }
    Ok(())
}

/// Far more than it takes.
const START_WAIT: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_the_port_that_the_bridge_is_told() {
        let rack = Rack { lab: "lab".into(), nodes: 2, caches: 1, clients: 1 };
        assert_eq!(port_of(&rack, LabHost::Switch), Some(1));
        let words = bridge(&ports(&rack));
        for place in rack.places() {
            let port = port_of(&rack, place).expect("it is in the rack");
            let says = format!("interface {} ofport_request={port}", place.port());
            assert!(words.contains(&says), "{says}: {words}");
        }
        assert_eq!(port_of(&rack, LabHost::Node(3)), None);
    }
}
