//! Where the programs are measured: a namespace with one interface whose other end is silent, or
//! counts what arrives.

use crate::addresses::{CACHED_KEYS, CLIENT, HOT_KEYS, NODES_PORT, VALUE_AT};
use crate::cases::{self, Of, SERVICE};
use crate::sealers;
use cluster::{Incarnation, Lease, SwitchControl as _};
use envelope::ENVELOPE_LEN;
use machine::Outbox;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switch::Pipeline;
use testkit::frame::{self, Addresses, HEADERS};
use testkit::wires::{Room, ip};
use wire::{Fields as _, HEADER_LEN, MgetSlotBody, Op, Revision};
use xdp::Sink;
use xdp::{Plane, Program};

const INCARNATION: Incarnation = Incarnation(1);
const NOW: machine::Instant = machine::Instant::from_unix_ms(1_000);
const OWN: [u8; 6] = [2, 0, 0, 0, 1, 1];
const GATEWAY: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// Frames that really flow in a round.
pub(crate) const LIVE_FRAMES: u32 = 2_000_000;
const LIVE_ROUNDS: usize = 7;
/// `XDP_REDIRECT`.
const REDIRECT: u32 = 4;

/// Bytes of the clock in a packet.
const CLOCK_LEN: usize = 16;
/// Where a header has its client.
const CLIENT_AT: usize = 100;

pub(crate) type OwnPlane = Plane<fn() -> machine::Instant>;

/// The loaded programs and their surroundings.
pub(crate) struct Bed {
    plane: OwnPlane,
    /// What deals with what the cache says.
    behind: Pipeline,
    ifindex: u32,
    revision: u64,
    /// Whether packets are in envelopes.
    sealed: bool,
    room: Room,
}

/// A program to run on a datagram.
pub(crate) struct Task {
    program: &'static str,
    frame: Vec<u8>,
    runs: u32,
    /// Where the frame says how long they took.
    time_at: usize,
}

impl Task {
    pub(crate) fn new(program: &'static str, datagram: &[u8], runs: u32) -> Self {
        let mut frame = framed(datagram);
        let (_, header) = frame.split_first_chunk_mut::<HEADERS>().expect("it has headers");
        let header = header.first_chunk_mut::<HEADER_LEN>().expect("a whole datagram");
        // bpf/bench.bpf.c times the runs after the first; it does not mind the order of bytes.
        header.set_tag(runs.swap_bytes());
        header.set_client(0);
        let writes = [Of::NewWrite, Of::SameWrite].map(|of| of as u8);
        let delegates = header.op() == Op::Put as u8 && writes.contains(&header.count());
        let clock_at = if delegates { HEADER_LEN + VALUE_AT as usize } else { CLIENT_AT };
        Self { program, frame, runs, time_at: HEADERS + clock_at + size_of::<u64>() }
    }

    /// The same in an envelope, which the program makes.
    fn sealed(program: &'static str, packet: &[u8], runs: u32) -> Self {
        let datagram = [&[0; ENVELOPE_LEN][..], packet].concat();
        let mut frame = framed(&datagram);
        let (_, packet) = frame.split_at_mut(HEADERS + ENVELOPE_LEN);
        let header = packet.first_chunk_mut::<HEADER_LEN>().expect("a whole packet");
        header.set_tag(runs.swap_bytes());
        header.set_client(sealers::CLIENT);
        // Behind what the tags cover.
        let clock_at = match Op::from_wire(header.op()) {
            Some(Op::Put) => VALUE_AT as usize,
            Some(Op::Mget) => usize::from(header.count()) * (MgetSlotBody::LEN + size_of::<u16>()),
            _ => 0,
        };
        let clock = packet.get_mut(HEADER_LEN + clock_at..).expect("it has a body");
        clock.first_chunk_mut::<CLOCK_LEN>().expect("it has room").fill(0);
        let time_at = HEADERS + ENVELOPE_LEN + HEADER_LEN + clock_at + size_of::<u64>();
        Self { program, frame, runs, time_at }
    }
}

fn framed(datagram: &[u8]) -> Vec<u8> {
    let to = (*SERVICE.ip(), SERVICE.port());
    let addresses = Addresses { dmac: OWN, smac: GATEWAY, from: CLIENT, to };
    frame::build(&addresses, datagram)
}

impl Bed {
    pub(crate) fn make() -> Result<Self, String> {
        let room = Room::of_gateway()?;
        // Nobody listens: what is really sent is dropped as early as it can be.
        room.run(|| ip("link set far down"));
        let ifindex = nix::net::if_::if_nametoindex("near").map_err(|e| e.to_string())?;
        let (plane, behind) = load(ifindex, false).map_err(|e| e.to_string())?;
        Ok(Self { plane, behind, ifindex, revision: 0, sealed: false, room })
    }

    /// From the next load on, packets are in envelopes.
    pub(crate) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Runs a program on a packet as it comes here.
    pub(crate) fn task(&self, program: &'static str, packet: &[u8], runs: u32) -> Task {
        if self.sealed {
            Task::sealed(program, packet, runs)
        } else {
            Task::new(program, packet, runs)
        }
    }

    /// The first where packets are bare, the second where they are in envelopes.
    pub(crate) fn pick<T>(&self, bare: T, in_envelopes: T) -> T {
        if self.sealed { in_envelopes } else { bare }
    }

    /// Loads the programs again: where the kernel puts them changes a nanosecond or two.
    pub(crate) fn load_again(&mut self) {
        let loaded = load(self.ifindex, self.sealed);
        (self.plane, self.behind) = loaded.expect("it was loaded before");
    }

    pub(crate) fn instructions(&self) -> Vec<(String, u32)> {
        self.plane.program().instructions()
    }

    /// Installs tables of so many partitions on so many nodes, all behind the one interface.
    pub(crate) fn install(&mut self, partitions: u32, nodes: u16) {
        self.revision += 1;
        let tables = cases::tables(self.revision, partitions, nodes);
        sealers::install(&mut self.plane, &tables).expect("the kernel takes keys");
        self.plane.install(&tables).expect("sound tables");
        for node in &tables.nodes {
            let way = self.plane.set_way(node.id, self.ifindex, [GATEWAY, OWN]);
            way.expect("the kernel takes a way");
        }
        let way = self.plane.set_way_to_cache(cases::CACHE, self.ifindex, [GATEWAY, OWN]);
        way.expect("the kernel takes a way");
        self.behind.install(&tables).expect("sound tables");
    }

    /// Has the cache say that it holds all of its keys.
    pub(crate) fn cache(&mut self) {
        const AT_ONCE: u32 = 64;
        for first in (0..CACHED_KEYS).step_by(AT_ONCE as usize) {
            self.hear(first..first + AT_ONCE);
        }
        assert_eq!(self.plane.cache_rules().count(), u64::from(CACHED_KEYS), "each has a rule");
    }

    /// The cache says that it holds these keys, too.
    fn hear(&mut self, keys: Range<u32>) {
        let mut out = Outbox::default();
        let heard = self.behind.process(NOW, cases::cache(), &mut cases::rules(keys), &mut out);
        heard.expect("it is a cache of the tables");
    }

    /// How many reads went to the cache.
    pub(crate) fn cached(&self) -> u64 {
        self.counters().cached()
    }

    /// Has all hot keys installed, and all their readers say that they hold them. If they are to be
    /// under delegations, those begin.
    pub(crate) fn warm(&mut self, nodes: u16, delegations: bool) {
        let order = cases::hot_order(INCARNATION, nodes, delegations);
        self.plane.install_hot(&order).expect("a sound order");
        let to = (*SERVICE.ip(), SERVICE.port());
        for key in 0..HOT_KEYS {
            let warm = (0..nodes).map(|node| cases::warm(key, node));
            for (addr, datagram) in warm.chain(delegations.then(|| cases::left(key))) {
                let from = (addr, NODES_PORT);
                let addresses = Addresses { dmac: OWN, smac: GATEWAY, from, to };
                let frame = frame::build(&addresses, &datagram);
                let run = self.plane.program().run("keyway_one", &frame, self.ifindex, 1);
                assert_eq!(run.expect("the kernel runs it").action, REDIRECT, "it is a reply");
            }
        }
    }

    /// How many reads of hot keys there were, and how many of them went to copies.
    pub(crate) fn spread(&self) -> (u64, u64) {
        let counters = self.counters();
        let sum = |of: fn(&cluster::HotCount) -> u64| {
            counters.hot().iter().map(|load| of(&load.count)).sum()
        };
        (sum(|it| it.reads), sum(|it| it.spread))
    }

    /// How many writes went under delegations, with a new stamp and again.
    pub(crate) fn delegated(&self) -> [u64; 2] {
        self.counters().delegated()
    }

    /// Packets sent so far.
    pub(crate) fn emitted(&self) -> u64 {
        self.counters().emitted()
    }

    fn counters(&self) -> switch::Counters {
        self.plane.read_counters().expect("the kernel says what it counted")
    }

    /// Nanoseconds of one run of each: the least of the rounds.
    pub(crate) fn time<const N: usize>(&mut self, tasks: &[Task; N], rounds: usize) -> [f64; N] {
        let mut least = [f64::MAX; N];
        for _ in 0..rounds {
            for (task, least) in tasks.iter().zip(&mut least) {
                // Nobody is silent: rules do not last for as long as all of this takes.
                self.hear(CACHED_KEYS..CACHED_KEYS);
                let program = self.plane.program();
                let run = program.run(task.program, &task.frame, self.ifindex, task.runs + 1);
                let verdict = run.expect("the kernel runs it");
                assert_ne!(verdict.action, 0, "{} did not know the packet", task.program);
                let time = verdict.frame.get(task.time_at..).and_then(|rest| rest.first_chunk());
                let time = u64::from_ne_bytes(*time.expect("a whole datagram"));
                let took = time as f64 / f64::from(task.runs);
                *least = least.min(took);
            }
        }
        least
    }

    /// Seconds in which one core dealt with [`LIVE_FRAMES`] copies of a frame, from the first to
    /// their arrival on the other side: the least of the rounds.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(crate) fn flow(&self, task: &Task) -> f64 {
        let sink = self.room.run(|| {
            ip("link set far up");
            Sink::attach("far")
        });
        let sink = sink.expect("the kernel takes the sink");
        let mut least = f64::MAX;
        for round in 1..=LIVE_ROUNDS {
            let start = Instant::now();
            let program = self.plane.program();
            let run = program.run_live(task.program, &task.frame, self.ifindex, LIVE_FRAMES);
            least = least.min(start.elapsed().as_secs_f64());
            run.expect("the kernel runs it");
            // The last ones are on their way.
            let wanted = u64::from(LIVE_FRAMES) * round as u64;
            let late = Instant::now() + Duration::from_secs(2);
            while sink.arrived() < wanted && Instant::now() < late {
                std::thread::yield_now();
            }
            assert_eq!(sink.arrived(), wanted, "every frame arrives");
        }
        least
    }
}

fn load(ifindex: u32, sealed: bool) -> Result<(OwnPlane, Pipeline), xdp::Error> {
    let clock = (|| NOW) as fn() -> machine::Instant;
    let program =
        if sealed { Program::load_sealed_bench(SERVICE)? } else { Program::load_bench(SERVICE)? };
    let mut plane = Plane::with_program(program, SERVICE, INCARNATION, clock)?;
    plane.pretend_port(ifindex)?;
    plane.renew(
        NOW,
        &Lease {
            cluster: cluster::ClusterId(0),
            incarnation: INCARNATION,
            revision: Revision::NONE,
            from: NOW,
            duration_ms: 86_400_000,
        },
    );
    let behind = Pipeline::behind(INCARNATION, Arc::new(plane.kernel_directory()?));
    Ok((plane, behind))
}

/// Where this runs, which is on one core and before all else, if that is allowed.
pub(crate) fn machine() -> String {
    let allowed = sched_getaffinity(Pid::from_raw(0)).expect("a thread may ask");
    let core = (0..CpuSet::count()).rev().find(|core| allowed.is_set(*core) == Ok(true));
    let core = core.expect("it runs somewhere");
    let mut set = CpuSet::new();
    set.set(core).expect("a core that the system named");
    sched_setaffinity(Pid::from_raw(0), &set).expect("a thread may move within what it was given");
    let priority = Command::new("chrt")
        .args(["-f", "-p", "10", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let priority = if priority { "FIFO priority 10" } else { "normal priority: chrt was refused" };
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name\t: "));
    let (model, kernel) = (model.unwrap_or("unknown"), read("/proc/sys/kernel/osrelease"));
    format!("{model}, Linux {}, core {core}, {priority}", kernel.trim())
}
