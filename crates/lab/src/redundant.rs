//! A cluster of processes whose switch and controller stand twice, or whose controllers are several
//! with an etcd, each role on a host of its own, and what an operator or a disaster does to them.

mod bridge;
pub mod etcd;
mod role;

pub use role::Role;

use crate::certs;
use crate::cluster::{content, security};
use crate::hosts::{Hosts, INTERFACE};
use crate::openvswitch::OpenVSwitch;
use crate::place::Place;
use crate::plane::Plane;
use crate::process::{Running, last_lines, tied, without_settings};
use crate::user::HASHED;
use anyhow::{Context, Result, anyhow};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Which controllers a cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// Two on one host, which share a directory.
    Pair,
    /// So many on as many hosts, each with a member of their etcd.
    Sites(u8),
}

impl Controllers {
    fn count(self) -> u8 {
        match self {
            Self::Pair => 2,
            Self::Sites(count) => count,
        }
    }

    fn place(self, index: u8) -> Place {
        match self {
            Self::Pair => Place::Controllers,
            Self::Sites(_) => Place::Site(index),
        }
    }
}

/// What a cluster consists of, besides its two switches.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program that all of them are.
    pub program: PathBuf,
    /// Nodes, with ids from 1.
    pub nodes: u8,
    /// Caches, with ids from 1.
    pub caches: u8,
    /// Hosts for clients and gateways.
    pub clients: u8,
    /// What both switches are.
    pub plane: Plane,
    pub controllers: Controllers,
    /// Lines of the configuration of each switch, of the controllers and of each node.
    pub of_switches: String,
    pub of_controllers: String,
    pub of_nodes: String,
    /// All keyspaces, as the configuration has them.
    pub keyspaces: String,
    /// Whether everybody has a certificate, and packets are in envelopes.
    pub secured: bool,
}

/// How many shards a node has: some have more than others, so that no two think alike of where a
/// key lies.
pub fn shards(node: u8) -> u8 {
    1 + node % 2
}

impl Spec {
    /// The same where keys may have addresses: then it is one.
    fn shards_of(&self, node: u8) -> u8 {
        if self.plane.has_content() { 1 } else { shards(node) }
    }

    /// Where a switch forwards. Where keys have addresses, one of them keeps the router's routes,
    /// or the bridge's flows.
    fn plane_of(&self, switch: u8) -> Plane {
        if self.plane.has_content() && switch > 0 { Plane::User } else { self.plane }
    }
}

const SERVICE: u16 = 7700;
const LISTEN: u16 = 7800;
const ADMIN: u16 = 7780;
const STANDBY_ADMIN: u16 = 7781;
const REDIS: u16 = 6379;

const CONFIG: &str = "cluster.toml";
const LOGS: &str = "logs";

/// The processes, where they stand, and where their files are.
#[derive(Debug)]
pub struct RedundantCluster {
    // Dropped before the hosts that they are on.
    processes: BTreeMap<Role, Running>,
    /// Processes started so far, for the names of their logs.
    started: u32,
    spec: Spec,
    hosts: Hosts,
    /// What links them, if it is a bridge.
    bridge: Option<OpenVSwitch>,
    dir: PathBuf,
}

impl RedundantCluster {
    /// All hosts of such a cluster.
    pub fn places(spec: &Spec) -> Vec<Place> {
        let nodes = (1..=spec.nodes).map(Place::Node);
        let caches = (1..=spec.caches).map(Place::Cache);
        let clients = (0..spec.clients).map(Place::Client);
        let controllers = match spec.controllers {
            Controllers::Pair => vec![Place::Controllers],
            Controllers::Sites(count) => (0..count).map(Place::Site).collect(),
        };
        let switches = [Place::Switch(0), Place::Switch(1)];
        let members = switches.into_iter().chain(controllers).chain(nodes).chain(caches);
        members.chain(clients).collect()
    }

    /// The host on which it runs.
    pub fn place(&self, role: Role) -> Place {
        match role {
            Role::BridgeDatabase | Role::Bridge => Place::Switch(0),
            Role::Switch(index) => Place::Switch(index),
            Role::Controller(index) => self.spec.controllers.place(index),
            Role::Etcd(index) => Place::Site(index),
            Role::Node(id) => Place::Node(id),
            Role::Gateway(index) => Place::Client(index),
            Role::Cache(id) => Place::Cache(id),
        }
    }

    /// Writes the configuration of a cluster on these hosts, whose files lie there, and starts all
    /// of it but for gateways, which find a cluster that is up.
    ///
    /// # Errors
    ///
    /// If files cannot be written, or a process does not start.
    pub fn start(spec: Spec, hosts: Hosts, dir: &Path) -> Result<Self> {
        if spec.plane == Plane::Xdp {
            hosts.prepare_for_xdp(&[Place::Switch(0), Place::Switch(1)]);
        }
        let dir = dir.to_owned();
        let bridge = spec.plane.has_bridge().then(|| OpenVSwitch::new(&dir)).transpose()?;
        let mut cluster = Self { processes: BTreeMap::new(), started: 0, spec, hosts, bridge, dir };
        fs::create_dir_all(cluster.logs()).context("cannot make a directory for logs")?;
        let config = cluster.config();
        fs::write(cluster.dir.join(CONFIG), config).context("cannot write cluster.toml")?;
        cluster.make_certificates()?;
        for role in cluster.roles() {
            cluster.revive(role)?;
            if let (Role::BridgeDatabase, Some(bridge)) = (role, &cluster.bridge) {
                bridge.add_bridge(&bridge::ports(&cluster.hosts))?;
            }
        }
        Ok(cluster)
    }

    fn make_certificates(&self) -> Result<()> {
        if self.certs().is_none() {
            return Ok(());
        }
        certs::make(self.command(), &self.dir.join(CONFIG))
    }

    /// Where the certificates are, if there are some.
    pub fn certs(&self) -> Option<PathBuf> {
        self.spec.secured.then(|| certs::directory_in(&self.dir))
    }

    /// All processes that there are to be, but for gateways.
    pub fn roles(&self) -> Vec<Role> {
        let etcds = match self.spec.controllers {
            Controllers::Pair => 0,
            Controllers::Sites(count) => count,
        };
        let bridge = self.bridge.iter().flat_map(|_| [Role::BridgeDatabase, Role::Bridge]);
        let etcds = (0..etcds).map(Role::Etcd);
        let controllers = (0..self.spec.controllers.count()).map(Role::Controller);
        let switches = [Role::Switch(0), Role::Switch(1)];
        let nodes = (1..=self.spec.nodes).map(Role::Node);
        let caches = (1..=self.spec.caches).map(Role::Cache);
        bridge.chain(etcds).chain(controllers).chain(switches).chain(nodes).chain(caches).collect()
    }

    /// Its hosts.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Where it forwards.
    pub fn plane(&self) -> Plane {
        self.spec.plane
    }

    /// How many caches there are.
    pub fn caches(&self) -> u8 {
        self.spec.caches
    }

    /// Hosts for clients and gateways.
    pub fn clients(&self) -> u8 {
        self.spec.clients
    }

    /// Where the output of its processes goes.
    pub fn logs(&self) -> PathBuf {
        self.dir.join(LOGS)
    }

    /// Where clients find the switches.
    pub fn services(&self) -> [SocketAddr; 2] {
        [0, 1].map(|index| self.hosts.at(Place::Switch(index), SERVICE))
    }

    /// Where a switch, a node or a cache says how it is.
    pub fn member_admin(&self, role: Role) -> SocketAddr {
        self.hosts.at(self.place(role), ADMIN)
    }

    /// Where the controllers answer: of several each at its own, of a pair each at whichever is
    /// free.
    pub fn admins(&self) -> Vec<SocketAddr> {
        match self.spec.controllers {
            Controllers::Pair => {
                [ADMIN, STANDBY_ADMIN].map(|port| self.hosts.at(Place::Controllers, port)).into()
            }
            Controllers::Sites(count) => {
                (0..count).map(|index| self.hosts.at(Place::Site(index), ADMIN)).collect()
            }
        }
    }

    /// Where Redis clients find this gateway.
    pub fn gateway(&self, index: u8) -> SocketAddr {
        self.hosts.at(Place::Client(index), REDIS)
    }

    /// Where its switches and controllers are, as arguments of the program.
    pub fn addresses(&self) -> Vec<String> {
        let join = |all: &[SocketAddr]| {
            all.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
        };
        ["--service".into(), join(&self.services()), "--admin".into(), join(&self.admins())].into()
    }

    /// Where a node keeps its data.
    pub fn data(&self, node: u8) -> PathBuf {
        self.dir.join(Role::Node(node).to_string())
    }

    fn config(&self) -> String {
        let Spec { of_switches, of_controllers, of_nodes, keyspaces, .. } = &self.spec;
        let security = security(self.certs().as_deref());
        let mut text = format!("[cluster]\nseed = 7\n[security]\n{security}\n");
        if self.spec.plane.has_content() {
            let prefix = content();
            text.push_str(&format!("\n[content]\nprefix = \"{prefix}\"\nport = {LISTEN}\n"));
        }
        let mut add = |part: fmt::Arguments<'_>| {
            text.write_fmt(part).expect("strings take everything");
        };
        for (service, index) in self.services().into_iter().zip(0..) {
            let admin = self.member_admin(Role::Switch(index));
            add(format_args!(
                "\n[[switch]]\nservice = \"{service}\"\nadmin = \"{admin}\"\n{of_switches}\n"
            ));
            if self.spec.plane_of(index).has_bridge() {
                add(format_args!("{}", bridge::openflow(&self.hosts)));
            }
        }
        let controllers = self.of_controllers();
        add(format_args!("\n[controller]\n{controllers}{of_controllers}\n"));
        for id in 1..=self.spec.nodes {
            let at = |port| self.hosts.at(Place::Node(id), port);
            let (listen, admin, data, shards) =
                (at(LISTEN), at(ADMIN), self.data(id), self.spec.shards_of(id));
            add(format_args!(
                "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\
                 shards = {shards}\nengine = \"fjall\"\ndata = {data:?}\n{of_nodes}\n"
            ));
        }
        for id in 1..=self.spec.caches {
            let [listen, admin] = [LISTEN, ADMIN].map(|port| self.hosts.at(Place::Cache(id), port));
            add(format_args!(
                "\n[[cache]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n"
            ));
        }
        add(format_args!("\n{keyspaces}"));
        text
    }

    /// Where controllers answer and keep what they have, as the configuration says it.
    fn of_controllers(&self) -> String {
        let admins: Vec<String> = self.admins().iter().map(|it| format!("\"{it}\"")).collect();
        let (first, others) = admins.split_first().expect("there is one");
        let others = others.join(", ");
        match self.spec.controllers {
            Controllers::Pair => {
                let data = self.dir.join(CONTROLLERS);
                format!("admin = {first}\nstandby_admin = {others}\ndata = {data:?}\n")
            }
            Controllers::Sites(count) => {
                let store = etcd::store(&self.hosts, count);
                format!("admin = {first}\nother_admins = [{others}]\nstore = \"{store}\"\n")
            }
        }
    }

    fn bridge(&self) -> &OpenVSwitch {
        self.bridge.as_ref().expect("its roles are there with it")
    }

    /// What to start for a role.
    fn command_of(&self, role: Role) -> Command {
        let mut command = self.command();
        match role {
            Role::BridgeDatabase => return self.bridge().database().command(),
            Role::Bridge => return self.bridge().switch().command(),
            Role::Etcd(index) => {
                let count = self.spec.controllers.count();
                return etcd::command(&self.hosts, index, count, &self.dir);
            }
            Role::Gateway(index) => {
                command.args(self.gateway_arguments(self.gateway(index), 1));
                return command;
            }
            Role::Switch(index) => {
                command.args(["switch", "--index", &index.to_string()]);
                command.args(self.spec.plane_of(index).arguments(INTERFACE));
            }
            Role::Controller(_) => {
                command.args(["controller", "--standby"]);
            }
            Role::Node(id) => {
                command.args(["node", "--id", &id.to_string()]);
            }
            Role::Cache(id) => {
                command.args(["cache", "--id", &id.to_string()]);
            }
        }
        command.arg("--config").arg(self.dir.join(CONFIG));
        command
    }

    /// What a gateway is told that listens there, with so many threads.
    pub fn gateway_arguments(&self, listen: SocketAddr, workers: u8) -> Vec<String> {
        let (workers, listen) = (workers.to_string(), listen.to_string());
        let first = ["gateway", "--json", "--timeout", "2s", "--workers", &workers];
        let then = ["--listen", &listen, "--keyspace", HASHED];
        let all = first.into_iter().chain(then).map(str::to_owned);
        all.chain(self.addresses()).collect()
    }

    /// Its program, killed when the thread that starts it ends.
    pub fn command(&self) -> Command {
        let mut command = tied(&self.spec.program);
        without_settings(&mut command);
        command
    }

    /// A client that does one thing and ends.
    pub fn visitor(&self, words: &[&str]) -> Command {
        let mut command = self.command();
        command.args(words).args(self.addresses()).args(["--keyspace", HASHED]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Starts a process that does not run.
    ///
    /// # Errors
    ///
    /// If it does not start.
    ///
    /// # Panics
    ///
    /// If it runs already.
    pub fn revive(&mut self, role: Role) -> Result<()> {
        self.started += 1;
        let log = self.logs().join(format!("{:04}-{role}", self.started));
        let mut command = self.command_of(role);
        let host = self.hosts.host(self.place(role));
        let process = host.run(move || Running::start(&mut command, log))?;
        let before = self.processes.insert(role, process);
        assert!(before.is_none(), "{role} runs already");
        Ok(())
    }

    /// Whether it was started, and not killed.
    pub fn runs(&self, role: Role) -> bool {
        self.processes.contains_key(&role)
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self, role: Role) {
        self.processes.remove(&role);
    }

    /// Stops it for a while, or has it go on.
    pub fn signal(&self, role: Role, signal: Signal) {
        if let Some(process) = self.processes.get(&role) {
            process.signal(signal);
        }
    }

    /// How it has ended by itself, if it has.
    pub fn end(&mut self, role: Role) -> Option<ExitStatus> {
        self.processes.get_mut(&role).and_then(Running::end)
    }

    /// What it has printed so far; `None` if it does not run.
    pub fn printed(&self, role: Role) -> Option<String> {
        self.processes.get(&role).map(Running::printed)
    }

    /// Whether every process that was started and not killed still runs. A gateway that found no
    /// cluster when it started is started again.
    ///
    /// # Errors
    ///
    /// If one has ended by itself.
    pub fn all_run(&mut self) -> Result<()> {
        let mut again = Vec::new();
        for (role, process) in &mut self.processes {
            let Some(status) = process.end() else { continue };
            let starts = matches!(role, Role::Gateway(_)) && !process.is_ready();
            if !starts {
                let (log, last) = (process.log().display(), last_lines(process.log()));
                return Err(anyhow!("{role} ended by itself: {status}, see {log}{last}"));
            }
            again.push(*role);
        }
        again.into_iter().try_for_each(|role| {
            self.kill(role);
            self.revive(role)
        })
    }

    /// The processes that run: which, its id in the system, and the directory of its data.
    pub fn processes(&self) -> impl Iterator<Item = (Role, Pid, Option<PathBuf>)> {
        self.processes.iter().map(|(role, process)| {
            let data = match role {
                Role::Node(id) => Some(self.data(*id)),
                // One directory for both: whoever is active writes there.
                Role::Controller(0) => Some(self.dir.join(CONTROLLERS)),
                Role::Controller(_)
                | Role::BridgeDatabase
                | Role::Bridge
                | Role::Etcd(_)
                | Role::Switch(_)
                | Role::Gateway(_)
                | Role::Cache(_) => None,
            };
            (*role, process.pid(), data)
        })
    }
}

/// Where both controllers keep what they have.
const CONTROLLERS: &str = "controllers";
