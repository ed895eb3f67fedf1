//! A cluster of real processes in a rack, and what an operator or a disaster does to it.

use crate::ballast::COPY_BYTES_PER_S;
use crate::folder::Folder;
use crate::link::Link;
use crate::process::{Plane, Process, Role, keyway};
use crate::rack::{Place, Rack};
use crate::watch::Watch;
use client::Options;
use client::blocking::Client;
use controller::{MemberState, Status};
use machine::Instant;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::{Revision, layout::metric::SWITCH_IN_KERNEL};

/// What a cluster consists of, besides its two switches and two controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Nodes, with ids from 1.
    pub(crate) nodes: u8,
    /// Hosts for clients.
    pub(crate) clients: u8,
    /// What both switches are.
    pub(crate) plane: Plane,
}

/// The processes, where they stand, and what they keep.
#[derive(Debug)]
pub(crate) struct Cluster {
    processes: BTreeMap<Role, Process>,
    /// Processes started so far, for the names of their logs.
    started: u32,
    size: Size,
    pub(crate) rack: Rack,
    pub(crate) watch: Arc<Watch>,
    pub(crate) folder: Folder,
}

const SERVICE: u16 = 7700;
const LISTEN: u16 = 7800;
const ADMIN: u16 = 7780;
const STANDBY_ADMIN: u16 = 7781;

impl Cluster {
    /// Starts a cluster with these keyspaces (TOML) and waits until it serves all keys.
    pub(crate) fn start(size: Size, keyspaces: &str, folder: Folder) -> Self {
        let nodes = (1..=size.nodes).map(Place::Node);
        let clients = (0..size.clients).map(Place::Client);
        let places = [Place::Switch(0), Place::Switch(1), Place::Controllers];
        let places: Vec<Place> = places.into_iter().chain(nodes).chain(clients).collect();
        let rack = Rack::new(&places);
        if size.plane == Plane::Xdp {
            rack.prepare_for_xdp(&[Place::Switch(0), Place::Switch(1)]);
        }
        fs::create_dir_all(folder.path().join("logs")).expect("the target directory is ours");
        let watch = Arc::new(Watch::default());
        let mut cluster =
            Self { processes: BTreeMap::new(), started: 0, size, rack, watch, folder };
        let config = cluster.config(keyspaces);
        cluster.folder.write("cluster.toml", &config);
        cluster.roles().into_iter().for_each(|role| cluster.revive(role));
        let up = cluster.wait_until_complete(START_WAIT_MAX);
        up.unwrap_or_else(|why| panic!("the cluster does not start: {why}"));
        cluster
    }

    /// Hosts for clients.
    pub(crate) fn clients(&self) -> u8 {
        self.size.clients
    }

    /// All processes that there are to be.
    pub(crate) fn roles(&self) -> Vec<Role> {
        let first = [Role::Controller(0), Role::Controller(1), Role::Switch(0), Role::Switch(1)];
        first.into_iter().chain((1..=self.size.nodes).map(Role::Node)).collect()
    }

    fn config(&self, keyspaces: &str) -> String {
        let at = |place, port| self.rack.at(place, port);
        let mut text = "[cluster]\nseed = 7\n".to_owned();
        for place in [Place::Switch(0), Place::Switch(1)] {
            let (service, admin) = (at(place, SERVICE), at(place, ADMIN));
            writeln!(
                text,
                "\n[[switch]]\nservice = \"{service}\"\nadmin = \"{admin}\"\nthreads = 1"
            )
            .expect("strings take everything");
        }
        let [admin, standby] = self.admins();
        let data = self.folder.path().join("controllers");
        writeln!(
            text,
            "\n[controller]\nadmin = \"{admin}\"\nstandby_admin = \"{standby}\"\ndata = {data:?}\n\
             copy_bytes_per_s = {COPY_BYTES_PER_S}"
        )
        .expect("strings take everything");
        for id in 1..=self.size.nodes {
            let place = Place::Node(id);
            let (listen, admin, data) = (at(place, LISTEN), at(place, ADMIN), self.data(id));
            // Some have more shards than others, so that no two think alike of where a key lies.
            let shards = 1 + id % 2;
            writeln!(
                text,
                "\n[[node]]\nid = {id}\nlisten = \"{listen}\"\nadmin = \"{admin}\"\n\
                 shards = {shards}\nengine = \"fjall\"\ndata = {data:?}"
            )
            .expect("strings take everything");
        }
        format!("{text}\n{keyspaces}")
    }

    fn data(&self, node: u8) -> PathBuf {
        self.folder.path().join(Role::Node(node).to_string())
    }

    fn admins(&self) -> [SocketAddr; 2] {
        [ADMIN, STANDBY_ADMIN].map(|port| self.rack.at(Place::Controllers, port))
    }

    /// Where its switches and controllers are, as arguments of the binary.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let join = |all: [SocketAddr; 2]| all.map(|at| at.to_string()).join(",");
        let services = [0, 1].map(|index| self.rack.at(Place::Switch(index), SERVICE));
        ["--service".into(), join(services), "--admin".into(), join(self.admins())].into()
    }

    /// A client of its own on this host.
    pub(crate) fn client(&self, host: u8, options: Options) -> Client {
        let services = [0, 1].map(|index| self.rack.at(Place::Switch(index), SERVICE));
        let connect = move || Client::connect(&services[..], options);
        self.rack.host(Place::Client(host)).run(connect).expect("a socket")
    }

    /// What `keyway status` says at these admin addresses.
    fn ask_status(&self, admins: &[SocketAddr]) -> Result<Status, String> {
        let admins: Vec<String> = admins.iter().map(ToString::to_string).collect();
        let mut command = keyway();
        command.args(["status", "--json", "--timeout", "1s", "--admin", &admins.join(",")]);
        // Links of the controllers' own host never fail.
        let host = self.rack.host(Place::Controllers);
        let output = host.run(move || command.output()).expect("setpriv and the binary are there");
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// What `keyway status` says.
    pub(crate) fn status(&self) -> Result<Status, String> {
        self.ask_status(&self.admins())
    }

    /// Datagrams that both switches have dealt with in the kernel since they were started last.
    pub(crate) fn in_kernel(&self) -> u64 {
        let count = |index| {
            let place = Place::Switch(index);
            let url = format!("http://{}/metrics", self.rack.at(place, ADMIN));
            let read = move || ureq::get(&url).call()?.body_mut().read_to_string();
            let text = self.rack.host(place).run(read).expect("the switch answers");
            let name = format!("{}_total{{}} ", SWITCH_IN_KERNEL.name);
            let value = text.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u64>().ok());
            value.expect("every switch has this metric")
        };
        count(0) + count(1)
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

    /// Whether every process that was started and not killed still runs.
    pub(crate) fn all_run(&mut self) -> Result<(), String> {
        for (role, process) in &mut self.processes {
            if let Some(end) = process.end() {
                return Err(format!("{role} ended by itself: {end}"));
            }
        }
        Ok(())
    }

    /// The controller that is active; `None` if none answers.
    pub(crate) fn active_controller(&self) -> Option<u8> {
        let answers = |index: &u8| {
            let printed = self.processes.get(&Role::Controller(*index))?.printed();
            let admin = printed.split("http://").nth(1)?.split_whitespace().next()?;
            self.ask_status(&[admin.parse().ok()?]).ok()
        };
        [0, 1].into_iter().find(|index| answers(index).is_some())
    }

    pub(crate) fn kill(&mut self, role: Role) {
        self.processes.remove(&role);
    }

    /// Removes all that a node has on disk. It must not run.
    pub(crate) fn forget(&mut self, node: u8) {
        assert!(!self.processes.contains_key(&Role::Node(node)), "a node must not run");
        fs::remove_dir_all(self.data(node)).expect("it has had data");
    }

    /// Starts a process that does not run.
    pub(crate) fn revive(&mut self, role: Role) {
        self.started += 1;
        let log = self.folder.path().join("logs").join(format!("{:03}-{role}", self.started));
        let config = self.folder.path().join("cluster.toml");
        let process =
            Process::start(self.rack.host(role.place()), role, self.size.plane, &config, log);
        let before = self.processes.insert(role, process);
        assert!(before.is_none(), "{role} runs already");
    }

    pub(crate) fn stop(&mut self, role: Role) {
        self.processes.get(&role).expect("it runs").stop();
    }

    pub(crate) fn go_on(&mut self, role: Role) {
        self.processes.get(&role).expect("it was stopped, not killed").go_on();
    }

    pub(crate) fn set_links(&self, links: &[Link]) {
        self.rack.set_links(links);
    }
}

fn what_lacks(status: &Status) -> String {
    let late = status.members.iter().filter(|it| it.state != MemberState::Ready);
    let late: Vec<String> = late.map(|it| format!("{}: {}", it.member, it.detail)).collect();
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
