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
//! The namespaces have no names: each is there as long as the thread that made it, or a process
//! that this thread started. Those processes are killed by the kernel when the thread ends. So
//! nothing is left behind, however the test ends.
//!
//! Where namespaces are not allowed, hosts are addresses of the loopback interface. Their links
//! cannot fail.

use crate::links::{self, Link};
use crate::place::Place;
use crate::tool;
use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// All hosts, and the router between them if they have networks of their own.
#[derive(Debug)]
pub struct Hosts {
    hosts: BTreeMap<Place, Host>,
    /// Or why there is none.
    router: Result<Host, String>,
    plan: Plan,
}

/// The first two bytes of all addresses.
#[derive(Clone, Copy, Debug)]
struct Plan([u8; 2]);

impl Plan {
    fn address(self, place: Place, last: u8) -> Ipv4Addr {
        let Self([first, second]) = self;
        Ipv4Addr::new(first, second, place.number(), last)
    }

    fn host(self, place: Place) -> Ipv4Addr {
        self.address(place, 2)
    }

    fn gateway(self, place: Place) -> Ipv4Addr {
        self.address(place, 1)
    }
}

impl Hosts {
    /// Hosts with networks of their own, or else on the loopback interface.
    pub fn new(places: &[Place]) -> Self {
        match start_router() {
            Ok(router) => Self::networked(router, places),
            Err(why) => Self::without_links(places, format!("{why:#}")),
        }
    }

    fn networked(router: Host, places: &[Place]) -> Self {
        let plan = Plan([10, 77]);
        let start = |place: &Place| {
            let host = Host::start(&place.to_string(), true).expect("the router has one, too");
            connect(&router, &host, *place, plan).unwrap_or_else(|why| panic!("{place}: {why:#}"));
            (*place, host)
        };
        let hosts = places.iter().map(start).collect();
        Self { hosts, router: Ok(router), plan }
    }

    /// Hosts on the loopback interface: their links never fail, and it takes no rights.
    pub fn on_loopback(places: &[Place]) -> Self {
        Self::without_links(places, "nobody asked for networks".to_owned())
    }

    fn without_links(places: &[Place], why: String) -> Self {
        // Two runs at once should not meet.
        let second = std::process::id() % 250 + 2;
        let plan = Plan([127, u8::try_from(second).expect("below 252")]);
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
        self.hosts.keys().copied().collect()
    }

    /// This port of this host.
    pub fn at(&self, place: Place, port: u16) -> SocketAddr {
        (self.plan.host(place), port).into()
    }

    /// The host, to run something there.
    pub fn host(&self, place: Place) -> &Host {
        self.hosts.get(&place).unwrap_or_else(|| panic!("there is no {place}"))
    }

    /// From now on exactly these links are bad.
    pub fn set_links(&self, links: &[Link]) {
        let Ok(router) = &self.router else { return };
        let rules = links::rules(links, |place| self.plan.host(place));
        let set = router.run(move || tool::run("nft", &["-f", "-"], &rules));
        set.unwrap_or_else(|why| panic!("the links cannot be set: {why:#}"));
    }
}

/// The namespace that routes; or why there cannot be one.
fn start_router() -> Result<Host> {
    let router = Host::start("router", true)?;
    let table = links::table();
    router.run(move || {
        tool::ip(&[], "link set lo up\n")?;
        tool::run("nft", &["-f", "-"], &table)?;
        // What this file is depends on who opens it: here it belongs to the router.
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("cannot forward")
    })?;
    Ok(router)
}

/// The router's end of a host's cable.
fn port(place: Place) -> String {
    format!("v{}", place.number())
}

/// The host's end.
pub const INTERFACE: &str = "eth0";

fn connect(router: &Host, host: &Host, place: Place, plan: Plan) -> Result<()> {
    let (port, far_end) = (port(place), host.namespace());
    let (address, gateway) = (plan.host(place), plan.gateway(place));
    let there = format!(
        "link add {port} type veth peer name {INTERFACE} netns {far_end}\n\
         address add {gateway}/24 dev {port}\n\
         link set {port} up\n"
    );
    router.run(move || tool::ip(&[], &there))?;
    let here = format!(
        "link set lo up\n\
         address add {address}/24 dev {INTERFACE}\n\
         link set {INTERFACE} up\n\
         route add default via {gateway}\n"
    );
    host.run(move || tool::ip(&[], &here))
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

    fn namespace(&self) -> &str {
        &self.namespace
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
