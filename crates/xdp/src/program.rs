//! The loaded object: its programs and maps by name.

use crate::layout::{Heard, HotChange, Rule, Service, Silent, Way};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{
    MapCore, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramInput, ProgramMut,
};
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;
use wire::Endpoint;

/// Why the kernel does not take or do something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not loaded.
    #[error("the kernel does not take the switch program: {why}{hint}")]
    Load {
        /// What libbpf says.
        why: libbpf_rs::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// An interface is not there.
    #[error("there is no interface {0}; `ip link` lists them")]
    NoInterface(String),
    /// A program is not attached.
    #[error("cannot attach to {port}: {why}{hint}")]
    Attach {
        /// Which interface.
        port: String,
        /// What the kernel says.
        why: std::io::Error,
        /// What to do about it.
        hint: &'static str,
    },
    /// A map is not written or read, or a program not run.
    #[error("{what}: {why}")]
    Kernel {
        /// What was tried.
        what: String,
        /// What the kernel says.
        why: libbpf_rs::Error,
    },
}

/// What the programs say about a frame when they are run on it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the program returns: a value of `xdp_action`, or of `TC_ACT_*`.
    pub action: u32,
    /// The frame as it then is.
    pub frame: Vec<u8>,
    /// Time of one run.
    pub took: Duration,
}

/// The programs and maps of `switch.bpf.c` in the kernel.
#[derive(Debug)]
pub struct Program {
    object: Object,
    kind: Kind,
}

/// Which switch it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One that sees packets as they are.
    Plain,
    /// One that sees packets in envelopes.
    Sealed,
}

/// `bpf/switch.bpf.c`, compiled.
static SWITCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/switch.bpf.o"));
/// `bpf/sealed.bpf.c`, compiled.
static SEALED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sealed.bpf.o"));
/// `bpf/bench.bpf.c`, compiled: the same with programs that call it again and again.
static BENCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bench.bpf.o"));
/// `bpf/sealed_bench.bpf.c`, compiled.
static SEALED_BENCH: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sealed_bench.bpf.o"));

impl Program {
    /// Loads the switch for a service address; it is attached to nothing yet. With `maps` it
    /// works on the maps of a program that was loaded before, whose service address is the same.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it, or this process may not load programs.
    pub fn load(service: SocketAddrV4, maps: Option<&Self>) -> Result<Self, Error> {
        Self::load_object((SWITCH, Kind::Plain), service, maps.map(|of| (of, Lent::All)))
    }

    /// Loads the switch that sees packets in envelopes.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_sealed(service: SocketAddrV4) -> Result<Self, Error> {
        Self::load_object((SEALED, Kind::Sealed), service, None)
    }

    /// Loads the same switch once more, on the maps of this one.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(crate) fn load_again(&self, service: SocketAddrV4) -> Result<Self, Error> {
        let object = match self.kind {
            Kind::Plain => SWITCH,
            Kind::Sealed => SEALED,
        };
        Self::load_object((object, self.kind), service, Some((self, Lent::All)))
    }

    /// Whether it sees packets in envelopes.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.kind == Kind::Sealed
    }

    /// Loads the switch on the maps of this one, but with counters of its own: what is tried out
    /// with it meets the same tables and is not counted. It is asked without an envelope.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(crate) fn load_shadow(&self, service: SocketAddrV4) -> Result<Self, Error> {
        let maps = (self, Lent::AllButCounts);
        Self::load_object((SWITCH, Kind::Plain), service, Some(maps))
    }

    /// Loads the switch and the programs that measure it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_bench(service: SocketAddrV4) -> Result<Self, Error> {
        Self::load_object((BENCH, Kind::Plain), service, None)
    }

    /// Loads the switch that sees packets in envelopes, and the programs that measure it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_sealed_bench(service: SocketAddrV4) -> Result<Self, Error> {
        Self::load_object((SEALED_BENCH, Kind::Sealed), service, None)
    }

    fn load_object(
        (object, kind): (&[u8], Kind),
        service: SocketAddrV4,
        maps: Option<(&Self, Lent)>,
    ) -> Result<Self, Error> {
        log_libbpf();
        let load = |why: libbpf_rs::Error| {
            let denied = why.kind() == libbpf_rs::ErrorKind::PermissionDenied;
            let hint = if denied { "; it needs root, or CAP_BPF and CAP_NET_ADMIN" } else { "" };
            Error::Load { why, hint }
        };
        let mut open = ObjectBuilder::default().open_memory(object).map_err(load)?;
        say_the_service(&mut open, service).map_err(load)?;
        if let Some((program, lent)) = maps {
            program.lend_maps(&mut open, lent).map_err(load)?;
        }
        let object = open.load().map_err(load)?;
        Ok(Self { object, kind })
    }

    /// Has the object use this program's maps instead of making its own.
    fn lend_maps(&self, open: &mut OpenObject, lent: Lent) -> Result<(), libbpf_rs::Error> {
        let is_own =
            |name: &OsStr| is_constant(name) || lent == Lent::AllButCounts && is_count(name);
        for mut wanted in open.maps_mut() {
            let lent = self.object.maps().find(|map| map.name() == wanted.name());
            if let Some(map) = lent.filter(|map| !is_own(map.name())) {
                wanted.reuse_fd(map.as_fd())?;
            }
        }
        Ok(())
    }

    /// The map of this name, for as long as it is used.
    ///
    /// # Panics
    ///
    /// If `bpf/` has none.
    pub(crate) fn map(&self, name: &str) -> MapHandle {
        let map = self.object.maps().find(|map| map.name() == name);
        let map = map.unwrap_or_else(|| panic!("bpf/ has a map {name}"));
        MapHandle::try_from(&map).expect("a loaded map has a descriptor")
    }

    /// All maps: for tests, which put them back as they were.
    #[must_use]
    pub fn maps(&self) -> Vec<MapHandle> {
        let maps = self.object.maps();
        maps.map(|map| MapHandle::try_from(&map).expect("a loaded map has a descriptor")).collect()
    }

    /// The program of this name.
    ///
    /// # Panics
    ///
    /// If `bpf/` has none.
    pub(crate) fn program(&self, name: &str) -> ProgramMut<'_> {
        let program = self.object.progs_mut().find(|program| program.name() == name);
        program.unwrap_or_else(|| panic!("bpf/ has a program {name}"))
    }

    /// Instructions that the verifier went through for each program, by name: it gives up at a
    /// million.
    #[must_use]
    pub fn instructions(&self) -> Vec<(String, u32)> {
        let known: Vec<_> = ProgInfoIter::default().collect();
        let verified = self.object.progs().filter_map(|program| {
            let id = libbpf_rs::Program::id_from_fd(program.as_fd()).ok()?;
            let info = known.iter().find(|info| info.id == id)?;
            Some((program.name().to_string_lossy().into_owned(), info.verified_insns))
        });
        verified.collect()
    }

    /// Runs a program on a frame, as if it had come in through an interface (0: the loopback
    /// interface), `repeat` times (at least once). What it sends it does not send, but clones.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, because the frame is too short for instance.
    pub fn run(
        &self,
        program: &str,
        frame: &[u8],
        ifindex: u32,
        repeat: u32,
    ) -> Result<Verdict, Error> {
        let mut out = vec![0; frame.len() + 64];
        let mut context = arrival(frame, ifindex);
        let is_xdp = self.program(program).prog_type() == libbpf_rs::ProgramType::Xdp;
        let input = ProgramInput {
            data_in: Some(frame),
            data_out: Some(&mut out),
            context_in: (is_xdp && ifindex != 0).then_some(&mut context[..]),
            repeat,
            ..ProgramInput::default()
        };
        let what = || format!("running {program}");
        let output = self.program(program).test_run(input);
        let output = output.map_err(|why| Error::Kernel { what: what(), why })?;
        let frame = output.data.map(|data| data.to_vec()).unwrap_or_default();
        Ok(Verdict { action: output.return_value, frame, took: output.duration })
    }

    /// Has an XDP program deal with so many copies of a frame, as if they had come in through an
    /// interface, and really do with them what it says.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn run_live(
        &self,
        program: &str,
        frame: &[u8],
        ifindex: u32,
        copies: u32,
    ) -> Result<(), Error> {
        let mut context = arrival(frame, ifindex);
        let input = ProgramInput {
            data_in: Some(frame),
            context_in: Some(&mut context[..]),
            repeat: copies,
            flags: libbpf_rs::libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            ..ProgramInput::default()
        };
        let run = self.program(program).test_run(input);
        run.map_err(|why| Error::Kernel { what: format!("running {program} live"), why })?;
        Ok(())
    }

    /// Sets what holds for all packets.
    pub(crate) fn govern(&self, rule: &Rule) -> Result<(), Error> {
        let told = self.call("govern", &mut rule.to_bytes())?;
        assert_eq!(told, 0, "no more delegations begin at once than it can bear");
        Ok(())
    }

    /// Begins to forget a client that has grants, if it was heard in no later pass: whether it did.
    pub(crate) fn silence(&self, client: &Silent) -> Result<bool, Error> {
        Ok(self.call("silence", &mut client.to_bytes())? == 0)
    }

    /// Takes out a client that it has begun to forget.
    pub(crate) fn part(&self, client: &Silent) -> Result<(), Error> {
        self.call("part", &mut client.to_bytes()).map(drop)
    }

    /// Forgets one that had ended.
    pub(crate) fn forget(&self, client: &Silent) -> Result<(), Error> {
        self.call("forget", &mut client.to_bytes()).map(drop)
    }

    /// Has the rules of a cache that was heard count for a while.
    pub(crate) fn heard(&self, cache: &Heard) -> Result<(), Error> {
        let known = self.call("heard", &mut cache.to_bytes())?;
        assert_eq!(known, 0, "it has rules, so its id is one of CACHES_MAX");
        Ok(())
    }

    /// Tells a hot key that stays who its readers are now.
    pub(crate) fn resettle(&self, change: &HotChange) -> Result<(), Error> {
        let found = self.call("resettle", &mut change.to_bytes())?;
        assert_eq!(found, 0, "nobody else takes keys out");
        Ok(())
    }

    /// Makes the keys of envelopes active that were written beside those that are.
    pub(crate) fn turn(&self) -> Result<(), Error> {
        let turned = self.call("turn", &mut [0; 8])?;
        assert_eq!(turned, 0, "it always is");
        Ok(())
    }

    /// Runs a syscall program.
    fn call(&self, name: &str, context: &mut [u8]) -> Result<u32, Error> {
        let input = ProgramInput { context_in: Some(context), ..ProgramInput::default() };
        let run = self.program(name).test_run(input);
        let run = run.map_err(|why| Error::Kernel { what: format!("running {name}"), why })?;
        Ok(run.return_value)
    }

    /// How the kernel reaches an address from the namespace of this process, if it knows. The
    /// interface is one on which it forwards packets.
    pub(crate) fn resolve(&self, to: Ipv4Addr, through: u32) -> Result<Option<Way>, Error> {
        let addr = to.to_ipv6_mapped().octets();
        let asked = Way { addr, ifindex: 0, dmac: [0; 6], smac: [0; 6] };
        let verdict = self.run("resolve", &asked.to_bytes(), through, 1)?;
        Ok(Way::from_bytes(&verdict.frame).filter(|way| verdict.action == PASS && way.ifindex != 0))
    }
}

/// A frame's `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, and one
/// more.
fn arrival(frame: &[u8], ifindex: u32) -> [u8; 24] {
    let len = u32::try_from(frame.len()).expect("frames are short");
    let mut context = [0; 24];
    crate::bytes::put(&mut context, 4, &len.to_ne_bytes());
    crate::bytes::put(&mut context, 12, &ifindex.to_ne_bytes());
    context
}

/// Which maps of one program another one works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lent {
    All,
    /// Not those that programs write.
    AllButCounts,
}

/// `XDP_PASS`.
pub(crate) const PASS: u32 = 2;
/// `XDP_TX`.
pub(crate) const TX: u32 = 3;

/// Sends to the log what libbpf says.
pub(crate) fn log_libbpf() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        tracing::debug!(target: "libbpf", "{}", text.trim_end());
    })));
}

/// Fixes the service address before the program is verified.
fn say_the_service(open: &mut OpenObject, service: SocketAddrV4) -> Result<(), libbpf_rs::Error> {
    let Endpoint { addr, port } = Endpoint::from(std::net::SocketAddr::V4(service));
    let value = Service { addr, port }.to_bytes();
    for mut map in open.maps_mut() {
        if is_constant(map.name()) {
            map.set_initial_value(&value)?;
        }
    }
    Ok(())
}

/// Whether this map is that of the constants.
fn is_constant(name: &OsStr) -> bool {
    name.to_string_lossy().ends_with(".rodata.service")
}

/// Whether this map is one that the programs write.
fn is_count(name: &OsStr) -> bool {
    let said = [".data.reports", ".data.fastest", ".data.backlogs"];
    let mut counts = ["own", "loads", "hot_loads"].into_iter().chain(said);
    counts.any(|count| name == count)
}
