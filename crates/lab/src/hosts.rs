//! Where the processes of a cluster stand whose links fail one by one: hosts with an address each,
//! and the network in between.
//!
//! Every host is a network namespace, joined by a veth pair to one more that routes:
//!
//! ```text
//!   host n  10.77.n.2 ── eth0 ═══ v<n> ──┐
//!                                        router: forwards, and drops what the links say
//!   host m  10.77.m.2 ── eth0 ═══ v<m> ──┘
//! ```
//!
//! Where keys have addresses (content routing), all of it is IPv6: host n has fd78:0:0:n::2. The
//! router is a host then, that of the first switch: its routes lead to nodes and caches, which take
//! the addresses of keys as their own. If a bridge does that, what the cables meet in is its ports,
//! and host n is fd78::n of one network.
//!
//! The namespaces have no names: each is there as long as the thread that made it, or a process
//! that this thread started. Those processes are killed by the kernel when the thread ends. So
//! nothing is left behind, however the test ends.
//!
//! Where namespaces are not allowed, hosts are addresses of the loopback interface. Their links
//! cannot fail.

mod plan;

use crate::links::{self, Link};
use crate::place::Place;
use crate::plane::Plane;
use crate::tool;
use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use plan::{Cable, ROUTER, Topology, port};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

pub use plan::{INTERFACE, mac_of, port_of};

/// All hosts, and the router between them if they have networks of their own.
#[derive(Debug)]
pub struct Hosts {
    hosts: BTreeMap<Place, Host>,
    /// Or why there is none.
    router: Result<Host, String>,
    plan: Topology,
}

impl Hosts {
    /// Hosts with networks of their own, or else on the loopback interface.
    pub fn new(places: &[Place]) -> Self {
        match start_router(Topology::V4([10, 77])) {
            Ok(router) => Self::networked(router, places, Topology::V4([10, 77])),
            Err(why) => Self::without_links(places, format!("{why:#}")),
        }
    }

    /// Hosts for keys that have addresses, with networks of their own.
    ///
    /// # Errors
    ///
    /// If there can be none.
    ///
    /// # Panics
    ///
    /// If keys have no addresses on this plane.
    pub fn for_content(places: &[Place], plane: Plane) -> Result<Self> {
        assert!(plane.has_content(), "{} has no addresses of keys", plane.name());
        let plan = if plane.has_bridge() { Topology::Bridged } else { Topology::Routed };
        Ok(Self::networked(start_router(plan)?, places, plan))
    }

    fn networked(router: Host, places: &[Place], plan: Topology) -> Self {
        let link = |host: &Host, place: Place| {
            connect(&router, host, place, plan).unwrap_or_else(|why| panic!("{place}: {why:#}"));
        };
        let start = |place: &Place| {
            let host = Host::start(&place.to_string(), true).expect("the router has one, too");
            link(&host, *place);
            (*place, host)
        };
        if plan.is_bridged() {
            link(&router, ROUTER);
        }
        let hosts = places.iter().filter(|place| !plan.is_router(**place)).map(start).collect();
        Self { hosts, router: Ok(router), plan }
    }

    /// Hosts on the loopback interface: their links never fail, and it takes no rights.
    pub fn on_loopback(places: &[Place]) -> Self {
        Self::without_links(places, "nobody asked for networks".to_owned())
    }

    fn without_links(places: &[Place], why: String) -> Self {
        // Two runs at once should not meet.
        let second = std::process::id() % 250 + 2;
        let plan = Topology::V4([127, u8::try_from(second).expect("below 252")]);
        let start = |place: &Place| {
            let host = Host::start(&place.to_string(), false).expect("a thread");
            (*place, host)
        };
        Self { hosts: places.iter().map(start).collect(), router: Err(why), plan }
    }

    /// Whether links can fail, or why they cannot.
    pub fn has_links(&self) -> Result<(), &str> {
        self.router.as_ref().map(|_| ()).map_err(String::as_str)
    }

    /// Lets packets that the kernel of these hosts sends on from the driver leave: the hosts
    /// forward, and the other end of their cable takes packets that are no socket buffers.
    ///
    /// # Panics
    ///
    /// If there are no links.
    pub fn prepare_for_xdp(&self, places: &[Place]) {
        let router = self.router.as_ref().expect("XDP is for hosts with links");
        for place in places {
            let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
            self.host(*place).run(forward).expect("the namespace is ours");
            let port = port(*place);
            let set = router.run(move || tool::run("ethtool", &["-K", &port, "gro", "on"], ""));
            set.unwrap_or_else(|why| panic!("{place}: {why:#}"));
        }
    }

    /// All hosts.
    pub fn places(&self) -> Vec<Place> {
        let router = self.plan.is_router(ROUTER).then_some(ROUTER);
        router.into_iter().chain(self.hosts.keys().copied()).collect()
    }

    /// This port of this host.
    pub fn at(&self, place: Place, port: u16) -> SocketAddr {
        (self.plan.host(place), port).into()
    }

    /// The host, to run something there.
    pub fn host(&self, place: Place) -> &Host {
        if let Some(router) = self.router.as_ref().ok().filter(|_| self.plan.is_router(place)) {
            return router;
        }
        self.hosts.get(&place).unwrap_or_else(|| panic!("there is no {place}"))
    }

    /// From now on exactly these links are bad.
    pub fn set_links(&self, links: &[Link]) {
        let Ok(router) = &self.router else { return };
        let set = |host: &Host, rules: String| {
            let set = host.run(move || tool::run("nft", &["-f", "-"], &rules));
            set.unwrap_or_else(|why| panic!("the links cannot be set: {why:#}"));
        };
        if !self.plan.is_bridged() {
            return set(router, links::rules(links, |place| self.plan.side(place)));
        }
        // Packets that a process switches pass no rules of the kernel on their way.
        for place in self.places() {
            let to_it = links.iter().filter(|link| link.to == place);
            set(self.host(place), links::rules_at_the_end(to_it, mac_of));
        }
    }
}

/// The namespace that the links of all hosts meet in; or why there cannot be one.
fn start_router(plan: Topology) -> Result<Host> {
    let router = Host::start("router", true)?;
    router.run(move || {
        let lines = plan.of_the_router();
        tool::ip(&[], &lines)?;
        tool::run("nft", &["-f", "-"], &links::table())?;
        // What this file is depends on who opens it: here it belongs to the router.
        let set = plan.forwards().map_or(Ok(()), |path| std::fs::write(path, "1"));
        set.context("cannot forward")
    })?;
    Ok(router)
}

fn connect(router: &Host, host: &Host, place: Place, plan: Topology) -> Result<()> {
    let Cable { at_the_router, at_the_host } = plan.cable(place, &host.namespace);
    let port = plan.is_bridged().then(|| port(place));
    router.run(move || {
        tool::ip(&[], &at_the_router)?;
        // It is the bridge's: this kernel is no host behind it.
        let path = port.map(|port| format!("/proc/sys/net/ipv6/conf/{port}/disable_ipv6"));
        path.map_or(Ok(()), |path| std::fs::write(path, "1")).context("cannot set up a port")
    })?;
    let is_router = std::ptr::eq(router, host);
    host.run(move || {
        tool::ip(&[], &at_the_host)?;
        if !plan.is_bridged() {
            return Ok(());
        }
        if !is_router {
            tool::run("nft", &["-f", "-"], &links::table())?;
        }
        // A bridge gets packets as they are when they leave, and sums nothing up.
        tool::run("ethtool", &["-K", INTERFACE, "tx", "off"], "")
    })
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread with, perhaps, a network of its own. Sockets that it opens and processes that it starts
/// belong to that network.
#[derive(Debug)]
pub struct Host {
    /// Taken only when the host goes away.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    namespace: String,
}

impl Host {
    fn start(name: &str, own_network: bool) -> Result<Self> {
        let (jobs, to_do) = channel::<Job>();
        let (ready, started) = channel();
        let body = move || {
            let made = if own_network { unshare(CloneFlags::CLONE_NEWNET) } else { Ok(()) };
            let failed = made.is_err();
            let namespace = format!("/proc/{}/task/{}/ns/net", std::process::id(), gettid());
            ready.send(made.map(|()| namespace)).expect("the starter waits");
            if !failed {
                to_do.iter().for_each(|job| job());
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        let thread = thread.context("no thread")?;
        let namespace = started.recv().expect("it says how it went");
        let namespace =
            namespace.context("network namespaces are not allowed here; run the tests as root")?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), namespace })
    }

    /// Runs this on the host, and waits for it.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, result) = channel();
        let job = Box::new(move || drop(sender.send(job())));
        self.jobs.as_ref().expect("the host is there").send(job).expect("its thread runs");
        result.recv().expect("the job on the host does not panic")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of a job has been printed.
            thread.join().ok();
        }
    }
}
