//! A configured cluster as processes, each of which a test may kill, and what it says of itself.

use crate::config::Cluster;
use client::Options;
use client::blocking::{Client, Space};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use testkit::program::{Daemon, Ran, keyway};

/// Every process of a cluster, by its command line.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) cluster: Cluster,
    config: PathBuf,
    running: BTreeMap<String, Daemon>,
}

/// How long anything may take that a cluster does by itself. On an idle machine it takes about a
/// second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at the status.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Processes {
    /// Starts these nodes, all switches and the controller, and waits until all keys are served.
    pub(crate) fn start(cluster: Cluster, nodes: &[u16]) -> Self {
        let processes = Self::begin(cluster, nodes);
        processes.wait("all keys are served", |status| status["ready"] == true);
        processes
    }

    /// Starts these nodes, all switches and the controller.
    pub(crate) fn begin(cluster: Cluster, nodes: &[u16]) -> Self {
        let mut processes = Self::new(cluster);
        for id in nodes {
            processes.run(&node(*id));
        }
        for index in 0..processes.cluster.services.len() {
            processes.run(&format!("switch --index {index}"));
        }
        processes.run("controller");
        processes
    }

    /// None of them yet.
    pub(crate) fn new(cluster: Cluster) -> Self {
        let config = cluster.file(&cluster.text);
        Self { cluster, config, running: BTreeMap::new() }
    }

    /// Starts a role; returns the line that it says when it runs.
    pub(crate) fn run(&mut self, role: &str) -> String {
        self.run_as(role, role)
    }

    /// The same under a name of its own, for one of several that are started in the same way.
    pub(crate) fn run_as(&mut self, name: &str, role: &str) -> String {
        let mut command = keyway();
        command.args(role.split(' ')).arg("--config").arg(&self.config);
        let (daemon, line) = Daemon::start(&mut command);
        self.running.insert(name.to_owned(), daemon);
        line
    }

    /// Starts a client that stays, as a gateway does.
    pub(crate) fn run_client(&mut self, name: &str, arguments: &str) -> String {
        let (daemon, line) = Daemon::start(&mut self.command(arguments));
        self.running.insert(name.to_owned(), daemon);
        line
    }

    /// Has it configured anew, for roles that are started from now on.
    pub(crate) fn configure(&mut self, text: &str) {
        self.config = self.cluster.file(text);
    }

    /// Its process id.
    pub(crate) fn id_of(&self, name: &str) -> u32 {
        self.running.get(name).expect("it runs").id()
    }

    /// Asks a role to end, waits until it has, and tells what it has logged.
    pub(crate) fn terminate(&mut self, role: &str) -> String {
        let (code, log) = self.running.remove(role).expect("it runs").terminate();
        assert_eq!(code, Some(0), "{role}: {log}");
        log
    }

    /// Kills a role as `kill -9` does.
    pub(crate) fn kill(&mut self, role: &str) {
        self.log_of(role);
    }

    /// Kills a role, and tells what it has logged.
    pub(crate) fn log_of(&mut self, role: &str) -> String {
        self.running.remove(role).expect("it runs").kill()
    }

    /// Runs a client's or an operator's command.
    pub(crate) fn ask(&self, arguments: &str) -> Ran {
        Ran::from(self.command(arguments).output().expect("the binary runs"))
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command: Command = keyway();
        command.args(arguments.split(' '));
        command.env("KEYWAY_SERVICE", list(&self.cluster.services));
        command.env("KEYWAY_ADMIN", list(&self.cluster.admins));
        if let Some(certs) = &self.cluster.certs {
            command.env("KEYWAY_CERTS", certs);
        }
        command
    }

    /// How the cluster stands; nothing while no controller answers.
    pub(crate) fn status(&self) -> Option<Value> {
        let ran = self.ask("status --json");
        matches!(ran.code, Some(0 | 1)).then(|| ran.json())
    }

    /// Waits until the status is as wanted.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let looks = PATIENCE.as_millis() / LOOK_AGAIN.as_millis();
        let mut last = None;
        for _ in 0..looks {
            last = self.status();
            if let Some(status) = last.as_ref().filter(|status| wanted(status)) {
                return status.clone();
            }
            std::thread::park_timeout(LOOK_AGAIN);
        }
        panic!("after {PATIENCE:?} still not so: {what}; {:#}", last.unwrap_or_default());
    }

    /// Waits until every key lies on as many nodes as it should.
    #[track_caller]
    pub(crate) fn wait_replicated(&self) -> Value {
        self.wait("everything is replicated", |it| {
            it["covered"] == true && it["replicated"] == true
        })
    }

    /// A client that knows every service address.
    pub(crate) fn space(&self) -> Space {
        self.space_of("default")
    }

    /// The same of another keyspace.
    pub(crate) fn space_of(&self, keyspace: &str) -> Space {
        let options = Options { deadline: PATIENCE, ..Options::default() };
        let client = Client::connect(self.cluster.services.as_slice(), options).expect("a socket");
        client.keyspace(keyspace).expect("the cluster is up")
    }
}

/// The command line of a node.
pub(crate) fn node(id: u16) -> String {
    format!("node --id {id}")
}

fn list(addresses: &[std::net::SocketAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(",")
}
