//! A cluster of real processes in a rack, and what an operator or a disaster does to it.

use crate::ballast::COPY_BYTES_PER_S;
use crate::folder::Folder;
use crate::watch::Watch;
use client::Options;
use client::blocking::Client;
use console::shared::Shared;
use console::{certs, pass};
use controller::{MemberStatus, Status};
use envelope::Passes;
use lab::hosts::Hosts;
use lab::links::Link;
use lab::openvswitch;
use lab::place::Place;
use lab::plane::Plane;
use lab::redundant::{self, Controllers, Role, Spec};
use machine::Instant;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use runtime::identity::{Expected, Security, agent};
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use wire::Revision;
use wire::layout::metric::{CACHE_READS, NODE_BY_ADDRESS, SWITCH_IN_KERNEL};
use wire::metric::Metric;
use xdp::Program;

/// Whether hosts can have links of their own, or why not.
pub(crate) fn has_links() -> Result<(), String> {
    Hosts::new(&[]).has_links().map_err(str::to_owned)
}

/// Whether switches can be in the kernel, or why not: that takes links, too.
pub(crate) fn can_be_in_the_kernel() -> Result<(), String> {
    let service = "10.0.0.1:7700".parse().expect("an address");
    Program::load(service, None).map_err(|why| why.to_string())?;
    has_links()
}

/// Whether hosts can be linked by a bridge, or why not: that takes links, too.
pub(crate) fn can_have_a_bridge() -> Result<(), String> {
    openvswitch::is_installed()?;
    has_links()
}

/// What a cluster consists of, besides its two switches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Nodes, with ids from 1.
    pub(crate) nodes: u8,
    /// Caches, with ids from 1.
    pub(crate) caches: u8,
    /// Hosts for clients.
    pub(crate) clients: u8,
    /// What both switches are.
    pub(crate) plane: Plane,
    pub(crate) controllers: Controllers,
    /// Whether everybody has a certificate, and packets are in envelopes.
    pub(crate) secured: bool,
}

impl Size {
    /// So much of both, with two controllers, switches that are processes, and no cache.
    pub(crate) const fn new(nodes: u8, clients: u8) -> Self {
        let (plane, controllers) = (Plane::User, Controllers::Pair);
        Self { nodes, caches: 0, clients, plane, controllers, secured: false }
    }
}

/// The processes, where they stand, and what they keep.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: redundant::RedundantCluster,
    /// Where its operators are: their links never fail.
    desk: Place,
    pub(crate) watch: Arc<Watch>,
    pub(crate) folder: Folder,
}

impl Cluster {
    /// Starts a cluster with these keyspaces (TOML) and waits until it serves all keys.
    pub(crate) fn start(size: Size, keyspaces: &str, folder: Folder) -> Self {
        let spec = Spec {
            program: env!("CARGO_BIN_EXE_keyway").into(),
            nodes: size.nodes,
            caches: size.caches,
            clients: size.clients,
            plane: size.plane,
            controllers: size.controllers,
            of_switches: "threads = 1".into(),
            of_controllers: format!("copy_bytes_per_s = {COPY_BYTES_PER_S}"),
            of_nodes: String::new(),
            keyspaces: keyspaces.into(),
            secured: size.secured,
        };
        let places = redundant::RedundantCluster::places(&spec);
        let hosts = if spec.plane.has_content() {
            Hosts::for_content(&places, spec.plane).expect("who asks for it has looked")
        } else {
            Hosts::new(&places)
        };
        let members = redundant::RedundantCluster::start(spec, hosts, folder.path());
        let members = members.unwrap_or_else(|why| panic!("the cluster does not start: {why:#}"));
        let desk = match size.controllers {
            Controllers::Pair => Place::Controllers,
            Controllers::Sites(_) => Place::Client(0),
        };
        let mut cluster = Self { members, desk, watch: Arc::default(), folder };
        let up = cluster.wait_until_complete(START_WAIT_MAX);
        up.unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        cluster
    }

    /// Its hosts and links.
    pub(crate) fn hosts(&self) -> &Hosts {
        self.members.hosts()
    }

    /// Runs this where operators are.
    pub(crate) fn at_the_desk<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.hosts().host(self.desk).run(job)
    }

    /// Where the controllers answer.
    pub(crate) fn admins(&self) -> Vec<SocketAddr> {
        self.members.admins()
    }

    /// The host on which this runs.
    pub(crate) fn place(&self, role: Role) -> Place {
        self.members.place(role)
    }

    /// Its process id, and what it has printed so far.
    pub(crate) fn process(&self, role: Role) -> Option<(Pid, String)> {
        let (_, pid, _) = self.members.processes().find(|(of, ..)| *of == role)?;
        Some((pid, self.members.printed(role)?))
    }

    /// Whether a bridge links its hosts.
    pub(crate) fn has_bridge(&self) -> bool {
        self.members.plane().has_bridge()
    }

    /// Whether keys have addresses, and none are kept in order.
    pub(crate) fn has_content(&self) -> bool {
        self.members.plane().has_content()
    }

    /// How many caches there are.
    pub(crate) fn caches(&self) -> u8 {
        self.members.caches()
    }

    /// Reads that a cache has answered since it was started last; `None` if it does not say yet.
    pub(crate) fn cache_hits(&self, id: u8) -> Option<u64> {
        let text = self.try_to_ask_member(Role::Cache(id), "/metrics").ok()?;
        first_value(&text, &CACHE_READS)
    }

    /// Hosts for clients.
    pub(crate) fn clients(&self) -> u8 {
        self.members.clients()
    }

    /// All processes that there are to be.
    pub(crate) fn roles(&self) -> Vec<Role> {
        self.members.roles()
    }

    /// The binary with what a gateway is told that listens there.
    pub(crate) fn gateway(&self, listen: SocketAddr) -> Command {
        let mut command = self.keyway();
        command.args(self.members.gateway_arguments(listen, GATEWAY_WORKERS));
        command
    }

    /// The binary, without settings from outside; killed when the thread that starts it ends.
    fn keyway(&self) -> Command {
        let mut command = self.members.command();
        command.env_remove("KEYWAY_LOG");
        if let Some(certs) = self.certs() {
            command.env("KEYWAY_CERTS", certs);
        }
        command
    }

    /// Where the certificates are, if there are some.
    pub(crate) fn certs(&self) -> Option<PathBuf> {
        self.members.certs()
    }

    /// What it shows others, and asks of them.
    fn security(&self) -> Security {
        let load = |certs: PathBuf| certs::load(&certs, &[certs::Role::Admin]);
        let loaded = self.certs().map_or(Ok(Security::Open), load);
        loaded.unwrap_or_else(|why| panic!("no certificate: {}", why.message()))
    }

    /// A pass for a client, if it needs one.
    fn passes(&self) -> Option<Passes> {
        let certs = self.certs()?;
        let (admins, services) = (self.admins(), self.members.services());
        let get = move || pass::passes(&Shared::of(&services, &admins, Some(certs), PASS_WAIT_MAX));
        let got = self.hosts().host(self.desk).run(get);
        got.unwrap_or_else(|why| panic!("there is no pass: {}", why.message()))
    }

    /// A client of its own on this host.
    pub(crate) fn client(&self, host: u8, options: Options) -> Client {
        let services = self.members.services();
        let options = Options { passes: self.passes(), ..options };
        let connect = move || Client::connect(&services[..], options);
        self.hosts().host(Place::Client(host)).run(connect).expect("a socket")
    }

    /// What `keyway status` says at these admin addresses.
    fn ask_status(&self, admins: &[SocketAddr]) -> Result<Status, String> {
        let admins: Vec<String> = admins.iter().map(ToString::to_string).collect();
        let mut command = self.keyway();
        command.args(["status", "--json", "--timeout", "1s", "--admin", &admins.join(",")]);
        let host = self.hosts().host(self.desk);
        let output = host.run(move || command.output()).expect("setpriv and the binary are there");
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What `keyway status` says.
    pub(crate) fn status(&self) -> Result<Status, String> {
        self.ask_status(&self.members.admins())
    }

    /// The switch that is active.
    pub(crate) fn active_switch(&self) -> Role {
        let status = self.status().unwrap_or_else(|why| panic!("who is active? {why}"));
        Role::Switch(u8::try_from(status.active_switch).expect("there are two"))
    }

    /// Asks a process to end, and waits until it has; what it has printed.
    pub(crate) fn terminate(&mut self, role: Role) -> String {
        self.members.signal(role, Signal::SIGTERM);
        let ended = self.watch.clone().wait_for(END_WAIT_MAX, || match self.members.end(role) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(status.to_string()),
            None => Err("it has not ended".into()),
        });
        ended.unwrap_or_else(|why| panic!("{role}: {why}"));
        let printed = self.members.printed(role).unwrap_or_default();
        self.members.kill(role);
        printed
    }

    /// Datagrams that both switches have dealt with in the kernel since they were started last.
    pub(crate) fn in_kernel(&self) -> u64 {
        let count = |index| self.count(Role::Switch(index), &SWITCH_IN_KERNEL);
        count(0) + count(1)
    }

    /// Requests that came to nodes by the addresses of keys since these were started last.
    pub(crate) fn by_address(&self) -> u64 {
        let nodes = self.roles().into_iter().filter(|role| matches!(role, Role::Node(_)));
        nodes.map(|role| self.count(role, &NODE_BY_ADDRESS)).sum()
    }

    /// What a switch, a node or a cache says of itself at this path.
    pub(crate) fn ask_member(&self, role: Role, path: &str) -> String {
        let answer = self.try_to_ask_member(role, path);
        answer.unwrap_or_else(|why| panic!("{role} does not answer: {why}"))
    }

    fn try_to_ask_member(&self, role: Role, path: &str) -> Result<String, ureq::Error> {
        let security = self.security();
        let url = format!("{}://{}{path}", security.scheme(), self.members.member_admin(role));
        let (config, resolver) = (Config::default(), DefaultResolver::default());
        let agent = agent(&security, Expected::Server, config, resolver);
        let read = move || agent.get(&url).call()?.body_mut().read_to_string();
        let host = self.hosts().host(self.place(role));
        host.run(read)
    }

    /// The first value that it has for this.
    pub(crate) fn count(&self, role: Role, metric: &Metric) -> u64 {
        let text = self.ask_member(role, "/metrics");
        first_value(&text, metric).unwrap_or_else(|| panic!("{role} has no {}", metric.name))
    }

    /// Waits until every chain is complete and every process has said so lately; says since when.
    pub(crate) fn wait_until_complete(
        &mut self,
        give_up_after: Duration,
    ) -> Result<Instant, String> {
        let watch = Arc::clone(&self.watch);
        let mut held: Option<(Instant, Revision)> = None;
        let check = || {
            self.all_run()?;
            let status = self.status()?;
            if !(status.replicated && status.ready) {
                held = None;
                return Err(what_lacks(&status));
            }
            // What is reported may be a little old: it has to hold for a while.
            let (now, revision) = (watch.now(), status.revision);
            let so_far = held.filter(|(_, then)| *then == revision);
            let (begun, _) = *held.insert(so_far.unwrap_or((now, revision)));
            if now.since(begun) < COMPLETE_FOR { Err("only just".into()) } else { Ok(()) }
        };
        watch.wait_for(give_up_after, check)?;
        Ok(held.map_or_else(|| watch.now(), |(since, _)| since))
    }

    /// Waits until it is complete, and ends the test if it does not become so.
    pub(crate) fn become_complete(&mut self, when: fmt::Arguments<'_>) {
        let complete = self.wait_until_complete(COMPLETE_WAIT_MAX);
        complete.unwrap_or_else(|why| panic!("{when}: {why}"));
    }

    /// Whether every process that was started and not killed still runs.
    pub(crate) fn all_run(&mut self) -> Result<(), String> {
        self.members.all_run().map_err(|why| format!("{why:#}"))
    }

    /// The controller that is active; `None` if none answers.
    pub(crate) fn active_controller(&self) -> Option<u8> {
        let answers = |index: &u8| {
            let printed = self.members.printed(Role::Controller(*index))?;
            let admin = printed.split("http://").nth(1)?.split_whitespace().next()?;
            self.ask_status(&[admin.parse().ok()?]).ok()
        };
        [0, 1].into_iter().find(|index| answers(index).is_some())
    }

    pub(crate) fn kill(&mut self, role: Role) {
        self.members.kill(role);
    }

    /// Removes all that a node has on disk. It must not run.
    pub(crate) fn forget(&mut self, node: u8) {
        assert!(!self.members.runs(Role::Node(node)), "a node must not run");
        fs::remove_dir_all(self.members.data(node)).expect("it has had data");
    }

    /// Starts a process that does not run.
    pub(crate) fn revive(&mut self, role: Role) {
        self.members.revive(role).unwrap_or_else(|why| panic!("{role}: {why:#}"));
    }

    pub(crate) fn stop(&mut self, role: Role) {
        assert!(self.members.runs(role), "{role} does not run");
        self.members.signal(role, Signal::SIGSTOP);
    }

    pub(crate) fn go_on(&mut self, role: Role) {
        assert!(self.members.runs(role), "{role} was stopped, not killed");
        self.members.signal(role, Signal::SIGCONT);
    }

    pub(crate) fn set_links(&self, links: &[Link]) {
        self.hosts().set_links(links);
    }
}

/// After every failure all partitions are to be fully replicated again within a minute.
pub(crate) const COMPLETE_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a process may take to end: it waits for others for ten seconds at most.
const END_WAIT_MAX: Duration = Duration::from_secs(15);

/// How long a client waits for its pass while controllers may be dead.
const PASS_WAIT_MAX: Duration = Duration::from_secs(20);

/// Threads of each gateway.
const GATEWAY_WORKERS: u8 = 2;

/// The first value of a metric in this text.
fn first_value(text: &str, metric: &Metric) -> Option<u64> {
    let value = |line: &str| {
        let rest = line.strip_prefix(metric.name)?;
        let rest = rest.strip_prefix("_total").unwrap_or(rest).strip_prefix('{')?;
        rest.rsplit_once(' ')?.1.parse().ok()
    };
    text.lines().find_map(value)
}

fn what_lacks(status: &Status) -> String {
    let late: Vec<String> = status.late().map(MemberStatus::in_words).collect();
    format!(
        "{} partitions lack nodes, {} are closed, {} are being copied; {}",
        status.under_replicated,
        status.closed,
        status.copies.len(),
        late.join("; ")
    )
}

/// How long a cluster may take to start: much longer than it does.
const START_WAIT_MAX: Duration = Duration::from_secs(60);

/// How long a cluster must say that it is complete. Every process is asked ten times in a second,
/// so that all has been said anew by then.
const COMPLETE_FOR: Duration = Duration::from_secs(1);
