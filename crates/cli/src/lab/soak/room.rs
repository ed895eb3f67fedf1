//! The processes of a soak, each with an address of its own on the loopback interface, and what an
//! operator or a disaster does to them.

use crate::lab::process::{last_lines, this_binary};
use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A keyspace that is hashed.
pub(super) const HASHED: &str = "hashed";
/// A keyspace that is kept in order; its keys begin with a k.
pub(super) const ORDERED: &str = "ordered";

/// Five nodes for chains of three: there is always somebody to replace a lost one.
pub(super) const NODES: u8 = 5;
/// What nodes may take of memory each; they are to stay well below.
const MAX_MEMORY: &str = "512m";

/// How many shards a node has.
pub(super) fn shards(node: u8) -> u8 {
    1 + node % 2
}

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A switch, by its position in the configuration.
    Switch(u8),
    /// One of two controllers: whoever comes first is active, the other stands by.
    Controller(u8),
    /// A storage node, by its id.
    Node(u8),
    /// A gateway, by its position.
    Gateway(u8),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(index) => write!(f, "switch-{index}"),
            Self::Controller(index) => write!(f, "controller-{index}"),
            Self::Node(id) => write!(f, "node-{id}"),
            Self::Gateway(index) => write!(f, "gateway-{index}"),
        }
    }
}

/// All processes, and where their files are.
#[derive(Debug)]
pub(super) struct Room {
    dir: PathBuf,
    net: u8,
    lives: BTreeMap<Role, Life>,
    /// Processes started so far, for the names of their logs.
    started: u32,
}

#[derive(Debug)]
struct Life {
    child: Child,
    log: PathBuf,
}

impl Life {
    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are positive"))
    }

    fn is_ready(&self) -> bool {
        fs::read_to_string(&self.log).is_ok_and(|text| text.contains("\"ready\""))
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // As a crash would; it may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Room {
    /// Writes the configuration of a cluster whose files lie there, and starts all of it.
    pub(super) fn start(dir: &Path) -> Result<Self> {
        let net = u8::try_from(std::process::id() % 250 + 2).expect("below 252");
        let mut room = Self { dir: dir.to_owned(), net, lives: BTreeMap::new(), started: 0 };
        fs::create_dir_all(dir.join("logs")).context("cannot make the directory of the soak")?;
        fs::write(dir.join("soak.toml"), room.config()).context("cannot write soak.toml")?;
        for role in room.roles() {
            room.revive(role)?;
        }
        Ok(room)
    }

    /// All that there are to be, but for gateways, which find a cluster that is up.
    fn roles(&self) -> Vec<Role> {
        let first = [Role::Controller(0), Role::Controller(1), Role::Switch(0), Role::Switch(1)];
        first.into_iter().chain((1..=NODES).map(Role::Node)).collect()
    }

    fn at(&self, role: Role, port: u16) -> SocketAddr {
        let last = match role {
            Role::Switch(index) => 10 + index,
            Role::Controller(index) => 20 + index,
            Role::Node(id) => 30 + id,
            Role::Gateway(index) => 50 + index,
        };
        (Ipv4Addr::new(127, self.net, 0, last), port).into()
    }

    /// Where clients find the switches.
    pub(super) fn services(&self) -> [SocketAddr; 2] {
        [0, 1].map(|index| self.at(Role::Switch(index), 7700))
    }

    /// Where the controllers answer.
    pub(super) fn admins(&self) -> [SocketAddr; 2] {
        [0, 1].map(|index| self.at(Role::Controller(index), 7780))
    }

    /// Where Redis clients find this gateway.
    pub(super) fn gateway(&self, index: u8) -> SocketAddr {
        self.at(Role::Gateway(index), 6379)
    }

    /// The same, as arguments of a command.
    pub(super) fn addresses(&self) -> [String; 4] {
        let join = |all: [SocketAddr; 2]| all.map(|at| at.to_string()).join(",");
        ["--service".into(), join(self.services()), "--admin".into(), join(self.admins())]
    }

    fn config(&self) -> String {
        let mut text = "[cluster]\nseed = 7\n".to_owned();
        let mut add = |part: fmt::Arguments<'_>| {
            text.write_fmt(part).expect("strings take everything");
        };
        for role in [Role::Switch(0), Role::Switch(1)] {
            let (service, admin) = (self.at(role, 7700), self.at(role, 7780));
            add(format_args!("\n[[switch]]\nservice = \"{service}\"\nadmin = \"{admin}\"\n"));
        }
        let ([admin, standby], data) = (self.admins(), self.dir.join("controllers"));
        add(format_args!(
            "\n[controller]\nadmin = \"{admin}\"\nstandby_admin = \"{standby}\"\ndata = {data:?}\n"
        ));
        for id in 1..=NODES {
            let (listen, admin) = (self.at(Role::Node(id), 7800), self.at(Role::Node(id), 7780));
            let (data, shards) = (self.dir.join(Role::Node(id).to_string()), shards(id));
            add(format_args!(
                "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\nshards = \
                 {shards}\nengine = \"fjall\"\ndata = {data:?}\nmax_memory = \"{MAX_MEMORY}\"\n"
            ));
        }
        add(format_args!(
            "\n[[keyspace]]\nname = \"{HASHED}\"\nkind = \"hash\"\npartitions = 8\nreplicas = 3\n\
             \n[[keyspace]]\nname = \"{ORDERED}\"\nkind = \"range\"\nprefix = \"k\"\n\
             splits = [\"k3\", \"k6\"]\npartitions = 3\nreplicas = 3\n"
        ));
        text
    }

    fn arguments(&self, role: Role) -> Vec<String> {
        let config = ["--config".to_owned(), self.dir.join("soak.toml").display().to_string()];
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let first = match role {
            Role::Switch(index) => words(&["switch", "--index", &index.to_string()]),
            Role::Controller(_) => words(&["controller", "--standby"]),
            Role::Node(id) => words(&["node", "--id", &id.to_string()]),
            Role::Gateway(index) => {
                let listen = self.gateway(index).to_string();
                let mut all = words(&["gateway", "--json", "--workers", "1", "--timeout", "2s"]);
                all.extend(words(&["--listen", &listen, "--keyspace", HASHED]));
                all.extend(self.addresses());
                return all;
            }
        };
        first.into_iter().chain(config).collect()
    }

    /// Starts a process that does not run.
    pub(super) fn revive(&mut self, role: Role) -> Result<()> {
        self.started += 1;
        let log = self.dir.join("logs").join(format!("{:04}-{role}", self.started));
        let file = File::create(&log).context("cannot write a log")?;
        let mut command = self.keyway()?;
        command.args(self.arguments(role)).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().context("is setpriv there? apt-get install util-linux")?;
        self.lives.insert(role, Life { child, log });
        Ok(())
    }

    /// This program, killed when the thread that starts it ends.
    fn keyway(&self) -> Result<Command> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(this_binary()?).stdin(Stdio::null());
        for name in ["KEYWAY_SERVICE", "KEYWAY_ADMIN", "KEYWAY_KEYSPACE"] {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// A client that does one thing and ends.
    pub(super) fn visitor(&self, words: &[&str]) -> Result<Command> {
        let mut command = self.keyway()?;
        command.args(words).args(self.addresses()).args(["--keyspace", HASHED]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    pub(super) fn runs(&self, role: Role) -> bool {
        self.lives.contains_key(&role)
    }

    /// Kills it as a crash would.
    pub(super) fn kill(&mut self, role: Role) {
        self.lives.remove(&role);
    }

    /// Stops it for a while, or has it go on.
    pub(super) fn signal(&self, role: Role, signal: Signal) {
        if let Some(life) = self.lives.get(&role) {
            // It is not waited for before it is killed, so that its id is not another's.
            kill(life.pid(), signal).ok();
        }
    }

    /// Whether every process that was started and not killed still runs. A gateway that found no
    /// cluster when it started is started again.
    pub(super) fn all_run(&mut self) -> Result<()> {
        let mut again = Vec::new();
        for (role, life) in &mut self.lives {
            let Some(status) = life.child.try_wait()? else { continue };
            let starts = matches!(role, Role::Gateway(_)) && !life.is_ready();
            if !starts {
                let log = last_lines(&life.log);
                return Err(anyhow!("{role} ended by itself: {status}{log}"));
            }
            again.push(*role);
        }
        again.into_iter().try_for_each(|role| self.revive(role))
    }

    /// The processes that run: which, its id in the system, and the directory of its data.
    pub(super) fn processes(&self) -> impl Iterator<Item = (Role, Pid, Option<PathBuf>)> {
        self.lives.iter().map(|(role, life)| {
            let data = match role {
                Role::Node(_) => Some(self.dir.join(role.to_string())),
                // One directory for both: whoever is active writes there.
                Role::Controller(0) => Some(self.dir.join("controllers")),
                Role::Controller(_) | Role::Switch(_) | Role::Gateway(_) => None,
            };
            (*role, life.pid(), data)
        })
    }
}
