//! Bad links, for experiments: a program at the far end of a link loses, doubles and delays the
//! datagrams that come in there. It stays when the process that attached it has ended, as long as
//! the interface is there or until it is detached.

use crate::bytes::{get, put};
use crate::program::Error;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, MapHandle, ObjectBuilder, TC_EGRESS, TC_INGRESS, TcHook,
    TcHookBuilder,
};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};

/// How bad a link is. Rates are of a million datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// What happens to the n-th datagram is a function of this and n.
    pub seed: u64,
    /// Dropped.
    pub lost_ppm: u32,
    /// Delivered twice.
    pub doubled_ppm: u32,
    /// Kept back until up to 16 others have passed. Only one is kept at a time: what should be
    /// meanwhile is delivered.
    pub overtaken_ppm: u32,
}

/// What a link has done to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that came in.
    pub came: u64,
    /// Dropped.
    pub lost: u64,
    /// Delivered twice.
    pub doubled: u64,
    /// Kept back until others had passed.
    pub overtaken: u64,
}

/// `bpf/faults.bpf.c`, compiled.
static FAULTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/faults.bpf.o"));

impl Faults {
    /// `struct faults`.
    fn to_bytes(self) -> [u8; 24] {
        let mut out = [0; 24];
        put(&mut out, 0, &self.seed.to_ne_bytes());
        put(&mut out, 8, &self.lost_ppm.to_ne_bytes());
        put(&mut out, 12, &self.doubled_ppm.to_ne_bytes());
        put(&mut out, 16, &self.overtaken_ppm.to_ne_bytes());
        out
    }

    /// Makes the link bad whose end this interface is, in place of what was there before. Counting
    /// begins anew.
    ///
    /// # Errors
    ///
    /// If there is no such interface, or the kernel does not take the program.
    pub fn attach(self, interface: &str) -> Result<(), Error> {
        let load = |why: libbpf_rs::Error| Error::Load { why, hint: "" };
        let mut open = ObjectBuilder::default().open_memory(FAULTS).map_err(load)?;
        for mut map in open.maps_mut() {
            if map.name().to_string_lossy().ends_with(".rodata.faults") {
                map.set_initial_value(&self.to_bytes()).map_err(load)?;
            }
        }
        let object = open.load().map_err(load)?;
        let program = object.progs().next().expect("bpf/faults.bpf.c has one program");
        let mut hook = hook(program.as_fd(), interface)?;
        let kernel = |why| Error::Kernel { what: format!("attaching to {interface}"), why };
        hook.create().map_err(kernel)?;
        hook.attach().map_err(kernel)?;
        Ok(())
    }
}

/// Makes the link good again.
///
/// # Errors
///
/// If there is no such interface, or the kernel refuses.
pub fn detach(interface: &str) -> Result<(), Error> {
    let mut hook = hook(std::io::stdin().as_fd(), interface)?;
    match hook.attach_point(TC_INGRESS | TC_EGRESS).destroy() {
        // What is not there need not be removed.
        Err(why) if !is_missing(&why) => {
            Err(Error::Kernel { what: format!("detaching from {interface}"), why })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What a link has done so far; `None` if it is a good one.
///
/// # Errors
///
/// If there is no such interface, or the kernel does not say.
pub fn counts(interface: &str) -> Result<Option<Counts>, Error> {
    let id = match hook(std::io::stdin().as_fd(), interface)?.query() {
        Ok(id) => id,
        Err(why) if is_missing(&why) => return Ok(None),
        Err(why) => {
            return Err(Error::Kernel { what: format!("asking about {interface}"), why });
        }
    };
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let info = ProgInfoIter::with_query_opts(options).find(|info| info.id == id);
    let maps = info.into_iter().flat_map(|info| info.map_ids);
    let mut maps = maps.filter_map(|id| MapHandle::from_map_id(id).ok());
    let Some(map) = maps.find(|map| map.name() == OsStr::new(".data.counts")) else {
        // Somebody else's program.
        return Ok(None);
    };
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(|why| Error::Kernel { what: "reading counts".into(), why })?;
    Ok(value.as_deref().and_then(Counts::from_bytes))
}

impl Counts {
    /// `struct counts`.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |at| get(bytes, at).map(u64::from_ne_bytes);
        Some(Self {
            came: number(0)?,
            lost: number(8)?,
            doubled: number(16)?,
            overtaken: number(24)?,
        })
    }
}

/// Where the program is attached: the first filter on the way in. Only attaching takes a program.
fn hook(program: BorrowedFd<'_>, interface: &str) -> Result<TcHook, Error> {
    let index = nix::net::if_::if_nametoindex(interface);
    let index = index.map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let index = i32::try_from(index).map_err(|_| Error::NoInterface(interface.to_owned()))?;
    let mut builder = TcHookBuilder::new(program);
    builder.ifindex(index).handle(1).priority(1).replace(true);
    Ok(builder.hook(TC_INGRESS))
}

/// Whether that is because nothing is attached.
fn is_missing(why: &libbpf_rs::Error) -> bool {
    matches!(why.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput)
}
