//! The switch in the kernel as the control plane sees it.

mod control;
mod loader;

pub use loader::{Loader, Spare};

use crate::compile::{Compiled, Element};
use crate::counters::Counted;
use crate::envelopes::Envelopes;
use crate::grants::Grants;
use crate::hot::HotKeys;
use crate::kernel_directory::KernelDirectory;
use crate::layout::{Node, Report, Rule};
use crate::link::{self, Hook};
use crate::maps;
use crate::program::{Error, Program};
use cluster::{CacheId, Incarnation, KeyspaceId, NodeId, SwitchTables};
use libbpf_rs::MapHandle;
use machine::Instant;
use nix::errno::Errno;
use nix::time::{ClockId, clock_getres, clock_gettime};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use switch::{ClockReading, Counters, Loads, RuleTable};
use wire::Revision;

/// A loaded switch program, its interfaces, and what is in its maps. Dropping it detaches it; if
/// the process ends in any other way, the kernel does.
#[derive(Debug)]
pub struct Plane<C> {
    service: SocketAddrV4,
    program: Arc<Program>,
    ports: Vec<Port>,
    maps: Maps,
    counted: Counted,
    hot: HotKeys,
    grants: Grants,
    cache_rules: Arc<RuleTable>,
    /// Whether the table of grants has to be asked of what passes the sockets.
    delegates: Arc<AtomicBool>,
    clock: C,
    installed: Installed,
    /// Of a sealed program.
    pub(crate) envelopes: Option<Envelopes>,
}

/// An interface that the switch is attached to.
#[derive(Debug)]
pub struct Port {
    /// Its name in the namespace of this process.
    pub name: String,
    /// Its number there.
    pub ifindex: u32,
    /// How the program is attached.
    pub mode: Mode,
    xdp: OwnedFd,
    tc: OwnedFd,
}

/// How XDP is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver.
    Native,
    /// Behind the driver: it works, and costs most of the gain.
    Generic,
}

#[derive(Debug)]
struct Maps {
    keyspaces: MapHandle,
    large_keyspaces: MapHandle,
    nodes: MapHandle,
    caches: MapHandle,
    node_order: MapHandle,
    senders: MapHandle,
    sender_ports: MapHandle,
    ports: MapHandle,
    reports: MapHandle,
}

impl Maps {
    /// Puts in the tables of keyspaces, all of one kind at once. Each keyspace has one at all
    /// times: the programs look for a large one only if there is no other.
    fn put_spaces<'a>(
        &self,
        changed: impl Iterator<Item = (&'a KeyspaceId, &'a Vec<Element>)>,
    ) -> Result<(), Error> {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (id, elements) in changed {
            let key = u32::from(id.0);
            let (tables, room) = if elements.len() > wire::SPACE_ELEMENTS {
                (&mut large, wire::LARGE_SPACE_ELEMENTS)
            } else {
                (&mut small, wire::SPACE_ELEMENTS)
            };
            let map = maps::inner(elements.as_flattened(), room * size_of::<Element>())?;
            tables.push((key, map));
        }
        for (here, there, tables) in [
            (&self.large_keyspaces, &self.keyspaces, large),
            (&self.keyspaces, &self.large_keyspaces, small),
        ] {
            maps::swap(here, &tables)?;
            for (key, _) in &tables {
                maps::remove(there, &key.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    fn remove_space(&self, id: KeyspaceId) -> Result<(), Error> {
        let key = u32::from(id.0).to_ne_bytes();
        maps::remove(&self.keyspaces, &key)?;
        maps::remove(&self.large_keyspaces, &key)
    }
}

/// What the kernel has been given.
#[derive(Debug, Default)]
struct Installed {
    revision: Revision,
    active: bool,
    compiled: Compiled,
}

impl<C: FnMut() -> Instant> Plane<C> {
    /// Loads the switch for a service address, in this incarnation. `clock` is that of the reports
    /// by which leases are asked for.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it, or this process may not load programs.
    pub fn load(service: SocketAddrV4, incarnation: Incarnation, clock: C) -> Result<Self, Error> {
        Self::with_program(Program::load(service, None)?, service, incarnation, clock)
    }

    /// Loads the switch whose packets are in envelopes. It lets nothing through until it is told
    /// keys.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_sealed(
        service: SocketAddrV4,
        incarnation: Incarnation,
        clock: C,
    ) -> Result<Self, Error> {
        Self::with_program(Program::load_sealed(service)?, service, incarnation, clock)
    }

    /// Works with a program that is loaded already.
    ///
    /// # Errors
    ///
    /// If the kernel does not show the rules of caches.
    pub fn with_program(
        program: impl Into<Arc<Program>>,
        service: SocketAddrV4,
        incarnation: Incarnation,
        clock: C,
    ) -> Result<Self, Error> {
        let program: Arc<Program> = program.into();
        let map = |name| program.map(name);
        let maps = Maps {
            keyspaces: map("keyspaces"),
            large_keyspaces: map("large_keyspaces"),
            nodes: map("nodes"),
            caches: map("caches"),
            node_order: map("node_order"),
            senders: map("senders"),
            sender_ports: map(".data.senders"),
            ports: map("ports"),
            reports: map(".data.reports"),
        };
        let (counted, hot) = (Counted::new(&program), HotKeys::new(&program, incarnation));
        let (grants, delegates) = (Grants::new(&program), Arc::default());
        let cache_rules = Arc::new(crate::cached::rules(&program)?);
        let (ports, installed) = (Vec::new(), Installed::default());
        let envelopes = program.is_sealed().then(|| Envelopes::new(&program));
        Ok(Self {
            service,
            program,
            ports,
            maps,
            counted,
            hot,
            grants,
            cache_rules,
            delegates,
            clock,
            installed,
            envelopes,
        })
    }

    /// Attaches the switch to an interface, in the driver if that can run it.
    ///
    /// # Errors
    ///
    /// If there is no such interface, or another program is attached to it.
    pub fn attach(&mut self, name: &str) -> Result<Mode, Error> {
        let ifindex =
            nix::net::if_::if_nametoindex(name).map_err(|_| Error::NoInterface(name.to_owned()))?;
        let (one, many) = (self.program.program("keyway_one"), self.program.program("keyway_many"));
        let failed = |why| attach_failed(name, why);
        let tc = link::attach(&many, ifindex, Hook::TcIngress).map_err(failed)?;
        let (xdp, mode) = match link::attach(&one, ifindex, Hook::XdpNative) {
            Ok(link) => (link, Mode::Native),
            Err(why) if is_taken(&why) => return Err(failed(why)),
            Err(_) => {
                let link = link::attach(&one, ifindex, Hook::XdpGeneric).map_err(failed)?;
                (link, Mode::Generic)
            }
        };
        let key = ifindex.to_ne_bytes();
        maps::put(&self.maps.ports, &key, &key)?;
        self.ports.push(Port { name: name.to_owned(), ifindex, mode, xdp, tc });
        self.find_ways()?;
        Ok(mode)
    }

    /// Takes an interface for one of the switch's without attaching anything: for tests that hand
    /// frames to the program themselves.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub fn pretend_port(&mut self, ifindex: u32) -> Result<(), Error> {
        let key = ifindex.to_ne_bytes();
        maps::put(&self.maps.ports, &key, &key)
    }

    /// Asks the kernel again how each node and cache is reached: routes and neighbours change. To
    /// be called every second or so.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub fn find_ways(&mut self) -> Result<(), Error> {
        let Some(through) = self.ports.first().map(|port| port.ifindex) else { return Ok(()) };
        let Compiled { nodes, caches, .. } = &mut self.installed.compiled;
        let nodes = nodes.iter_mut().map(|(id, node)| (&self.maps.nodes, id.0, node));
        let caches = caches.iter_mut().map(|(id, cache)| (&self.maps.caches, id.0, cache));
        for (map, id, node) in nodes.chain(caches) {
            let Some(to) = Ipv6Addr::from(node.addr).to_ipv4_mapped() else { continue };
            let found = way(&self.program, &self.ports, to, through, *node)?;
            if found != *node {
                *node = found;
                put_node(map, id, node)?;
            }
        }
        Ok(())
    }

    /// Says how a node is reached, instead of the kernel.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub fn set_way(
        &mut self,
        node: NodeId,
        ifindex: u32,
        [dmac, smac]: [[u8; 6]; 2],
    ) -> Result<(), Error> {
        let Some(known) = self.installed.compiled.nodes.get_mut(&node) else { return Ok(()) };
        *known = Node { ifindex, dmac, smac, ..*known };
        put_node(&self.maps.nodes, node.0, known)
    }

    /// Says how a cache is reached, instead of the kernel.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told.
    pub fn set_way_to_cache(
        &mut self,
        cache: CacheId,
        ifindex: u32,
        [dmac, smac]: [[u8; 6]; 2],
    ) -> Result<(), Error> {
        let Some(known) = self.installed.compiled.caches.get_mut(&cache) else { return Ok(()) };
        *known = Node { ifindex, dmac, smac, ..*known };
        put_node(&self.maps.caches, cache.0, known)
    }

    /// Interfaces that the switch is attached to.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The programs, to run them on a frame.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// How the sockets behind the program take note of replies for hot keys, grant what they
    /// send, and write the rules of caches: to be given to the pipelines that deal with what the
    /// program leaves to them, which have no directory.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it.
    pub fn kernel_directory(&self) -> Result<KernelDirectory, Error> {
        let shared = (self.hot.bits(), self.hot.clock(), self.delegates.clone());
        KernelDirectory::new(&self.program, self.service, shared, self.cache_rules.clone())
    }

    /// The keys that caches hold, as the programs and the sockets behind them know it.
    #[must_use]
    pub fn cache_rules(&self) -> &RuleTable {
        &self.cache_rules
    }

    /// Revision of the installed order of hot keys; 0 for none.
    #[must_use]
    pub fn hot_revision(&self) -> Revision {
        self.hot.gate.installed()
    }

    /// Revision of the installed tables; 0 for none.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.installed.revision
    }

    /// Everything counted so far.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn read_counters(&self) -> Result<Counters, Error> {
        self.counted.read(self.hot.counts()?)
    }

    /// The loads that nodes reported in replies that passed here.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn read_loads(&self) -> Result<Loads, Error> {
        let mut loads = Loads::default();
        let all = maps::one(&self.maps.reports)?;
        for (id, report) in (0_u16..).zip(all.chunks(Report::LEN)) {
            let load = Report::from_bytes(report).map_or(0, |report| report.load);
            let load = load.checked_sub(1).and_then(|load| u16::try_from(load).ok());
            load.into_iter().for_each(|load| loads.note(NodeId(id), load));
        }
        Ok(loads)
    }

    /// Tables of all keyspaces and nodes in the order in which nothing is missing meanwhile: what
    /// is new comes before the rows that lead to it, what is gone goes after them.
    fn install_compiled(&mut self, next: Compiled, from: &SwitchTables) -> Result<(), Error> {
        if !from.active {
            self.installed.active = false;
            self.govern()?;
        }
        let before = &self.installed.compiled;
        let ports = next.sender_ports();
        let mut both = ports;
        both.iter_mut().zip(before.sender_ports()).for_each(|(word, old)| *word |= old);
        maps::put_words(&self.maps.sender_ports, &both)?;
        for (source, sender) in &next.senders {
            if before.senders.get(source) != Some(sender) {
                maps::put(&self.maps.senders, source, &sender.to_bytes())?;
            }
        }
        for (id, node) in &next.nodes {
            if before.nodes.get(id) != Some(node) {
                put_node(&self.maps.nodes, id.0, node)?;
            }
        }
        for (id, cache) in &next.caches {
            if before.caches.get(id) != Some(cache) {
                put_node(&self.maps.caches, id.0, cache)?;
            }
        }
        for id in before.caches.keys().filter(|id| !next.caches.contains_key(id)) {
            put_node(&self.maps.caches, id.0, &Node::default())?;
        }
        let changed = next.spaces.iter().filter(|(id, rows)| before.spaces.get(id) != Some(rows));
        self.maps.put_spaces(changed)?;
        for (place, id) in (0_u32..).zip(&next.order) {
            let id = u32::from(id.0);
            maps::put(&self.maps.node_order, &place.to_ne_bytes(), &id.to_ne_bytes())?;
        }
        for id in before.spaces.keys().filter(|id| !next.spaces.contains_key(id)) {
            self.maps.remove_space(*id)?;
        }
        for source in before.senders.keys().filter(|at| !next.senders.contains_key(*at)) {
            maps::remove(&self.maps.senders, source)?;
        }
        maps::put_words(&self.maps.sender_ports, &ports)?;
        for id in before.nodes.keys().filter(|id| !next.nodes.contains_key(id)) {
            put_node(&self.maps.nodes, id.0, &Node::default())?;
        }
        let (revision, active) = (from.revision, from.active);
        self.installed = Installed { revision, active, compiled: next };
        self.govern()
    }

    /// Tells the programs what holds for all packets.
    fn govern(&mut self) -> Result<(), Error> {
        let leased_until = self.lease_end();
        let ClockReading { present: directory_clock, beginning } = self.hot.clock().now();
        self.program.govern(&Rule {
            leased_until,
            directory_clock,
            beginning,
            order: self.hot.number(),
            pass: self.grants.pass(),
            nodes: u32::try_from(self.installed.compiled.order.len()).expect("NODES_MAX at most"),
            installed: u8::from(!self.installed.revision.is_none()),
            active: u8::from(self.installed.active),
            hot: self.hot.rule(),
            delegates: u8::from(self.hot.delegates()),
            tick: tick(),
        })
    }

    /// When the lease ends, by the clock of the programs. That one is not ours: it may be slewed
    /// by whoever sets the time, so what is left is cut by more than that makes of it.
    fn lease_end(&mut self) -> u64 {
        // In this order: whatever time goes by in between shortens the lease.
        let kernel = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Into::into);
        let now = (self.clock)();
        let left = self.hot.gate.tenure().until().since(now) / 100 * (100 - SLEWED_MAX_PERCENT);
        if left.is_zero() {
            return 0;
        }
        u64::try_from((kernel + left).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Nanoseconds of a tick of the kernel, which is what a coarse clock is precise to.
pub(crate) fn tick() -> u32 {
    let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::ZERO, Into::into);
    tick.subsec_nanos()
}

/// Daemons that set the time may make the kernel's clock run this much slower: chrony by 8.3 %.
const SLEWED_MAX_PERCENT: u32 = 10;

/// How a node is reached through one of the ports; nowhere if the kernel does not know, or goes
/// another way.
fn way(
    program: &Program,
    ports: &[Port],
    to: Ipv4Addr,
    through: u32,
    node: Node,
) -> Result<Node, Error> {
    let way = program.resolve(to, through)?;
    let way = way.filter(|way| ports.iter().any(|port| port.ifindex == way.ifindex));
    Ok(match way {
        Some(way) => Node { ifindex: way.ifindex, dmac: way.dmac, smac: way.smac, ..node },
        None => Node { ifindex: 0, ..node },
    })
}

fn put_node(nodes: &MapHandle, id: u16, node: &Node) -> Result<(), Error> {
    maps::put(nodes, &u32::from(id).to_ne_bytes(), &node.to_bytes())
}

/// Whether an interface has a program already.
fn is_taken(why: &std::io::Error) -> bool {
    let errno = why.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EBUSY | Errno::EEXIST))
}

fn attach_failed(port: &str, why: std::io::Error) -> Error {
    let hint = match why.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY | Errno::EEXIST) => {
            "; another program is attached: `ip -details link` shows it"
        }
        Some(Errno::EPERM) => "; it needs root, or CAP_BPF and CAP_NET_ADMIN",
        Some(Errno::EINVAL) => "; tcx links need Linux 6.6 or newer",
        _ => "",
    };
    Error::Attach { port: port.to_owned(), why, hint }
}
