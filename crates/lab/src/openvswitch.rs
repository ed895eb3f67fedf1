//! An Open vSwitch that links the hosts of a rack: its two processes, in the switch's namespace,
//! with everything of theirs in the directory of the lab. Packets are switched in its process, so
//! that the kernel needs no module.

use crate::process::pause;
use crate::rack::{LabHost, Rack};
use crate::tool::run_with;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
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

/// The number of the port that leads to a host; those of Open vSwitch begin with 1.
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

impl OpenVSwitch {
    /// In a directory that is made.
    pub fn new(lab: &Path) -> Result<Self> {
        let folder = lab.join("openvswitch");
        fs::create_dir_all(&folder).context("cannot create a directory for Open vSwitch")?;
        Ok(Self { folder })
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

    /// The process to start first. What there is for it to say is written before.
    pub fn database(&self) -> Result<Part> {
        let file = self.path("conf.db");
        self.run("ovsdb-tool", &["create", &file, SCHEMA])?;
        let remote = format!("--remote=punix:{}", self.path("db.sock"));
        Ok(self.part(DATABASE, "ovsdb-server", &[file, remote]))
    }

    /// The one to start then: a bridge of the rack's ports, whose controller is this port of the
    /// namespace.
    pub fn switch(&self, rack: &Rack) -> Result<Part> {
        let socket = self.path("db.sock");
        let there = (0..START_WAIT.as_millis() / LOOK_INTERVAL.as_millis()).any(|_| {
            pause(LOOK_INTERVAL);
            Path::new(&socket).exists()
        });
        if !there {
            bail!("ovsdb-server does not start");
        }
        let database = format!("--db=unix:{socket}");
        let words = format!("{database} --no-wait{}", bridge(rack));
        self.run("ovs-vsctl", &words.split_whitespace().collect::<Vec<_>>())?;
        Ok(self.part(SWITCH, "ovs-vswitchd", &[format!("unix:{socket}")]))
    }
}

/// What `ovs-vsctl` is told, so that all is there when the switch starts.
fn bridge(rack: &Rack) -> String {
    let mut words = format!(
        " -- add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail_mode=secure \
         -- set-controller {BRIDGE} tcp:127.0.0.1:{PORT} \
         -- set controller {BRIDGE} connection-mode=out-of-band max_backoff=1000"
    );
    for (number, place) in (1..).zip(rack.places()) {
        let port = place.port();
        write!(
            words,
            " -- add-port {BRIDGE} {port} -- set interface {port} ofport_request={number}"
        )
        .expect("strings take everything");
    }
    words
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
        let words = bridge(&rack);
        for place in rack.places() {
            let port = port_of(&rack, place).expect("it is in the rack");
            let says = format!("interface {} ofport_request={port}", place.port());
            assert!(words.contains(&says), "{says}: {words}");
        }
        assert_eq!(port_of(&rack, LabHost::Node(3)), None);
    }
}
