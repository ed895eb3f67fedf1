//! Attaching programs so that the kernel detaches them when this process ends, however it ends, and
//! mapping what lies in one of its maps.
//!
//! The one place with unsafe code: libbpf's Rust face has no tcx links, no XDP links with a mode,
//! and maps nothing.
#![expect(unsafe_code, reason = "libbpf's C interface, and mapped memory")]

use crate::cached::Cached;
use libbpf_rs::{MapCore as _, MapHandle};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// XDP in the driver.
    XdpNative,
    /// XDP after the kernel has made a socket buffer of the packet: works everywhere, and is slow.
    XdpGeneric,
    /// tc, on the way in.
    TcIngress,
}

/// Attaches a program to an interface for as long as the descriptor that is returned is open.
pub(crate) fn attach(program: &impl AsFd, ifindex: u32, hook: Hook) -> io::Result<OwnedFd> {
    let (kind, flags) = match hook {
        Hook::XdpNative => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_DRV_MODE),
        Hook::XdpGeneric => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_SKB_MODE),
        Hook::TcIngress => (libbpf_sys::BPF_TCX_INGRESS, 0),
    };
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as u64,
        flags,
        ..Default::default()
    };
    let target = i32::try_from(ifindex).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = program.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed, and the options are of the
    // size that they say.
    let fd = unsafe { libbpf_sys::bpf_link_create(program, target, kind, &options) };
    owned(fd)
}

/// Puts another program in the place of the one that a link holds, between two packets.
pub(crate) fn replace(link: &OwnedFd, program: &impl AsFd) -> io::Result<()> {
    let program = program.as_fd().as_raw_fd();
    // SAFETY: both descriptors are open for as long as they are borrowed; no options are allowed.
    let status =
        unsafe { libbpf_sys::bpf_link_update(link.as_raw_fd(), program, std::ptr::null()) };
    if status < 0 { Err(io::Error::from_raw_os_error(-status)) } else { Ok(()) }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The rules of caches in the kernel's memory, mapped for as long as this lives.
#[derive(Debug)]
pub(crate) struct Mapped(NonNull<Cached>);

const MAPPED_LEN: NonZeroUsize = NonZeroUsize::new(size_of::<Cached>()).expect("not empty");

// SAFETY: nothing but atomic words is reached through it, and its only owner unmaps it.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the value of this map, which is one [`Cached`].
    pub(crate) fn new(map: &MapHandle) -> io::Result<Self> {
        let size = usize::try_from(map.value_size()).map_err(io::Error::other)?;
        assert_eq!(size, MAPPED_LEN.get(), "bpf/ has the same structure");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing else is.
        let mapped = unsafe { mmap(None, MAPPED_LEN, access, MapFlags::MAP_SHARED, map, 0) }?;
        Ok(Self(mapped.cast()))
    }

    pub(crate) fn value(&self) -> &Cached {
        // SAFETY: it is mapped until this is dropped, from the beginning of a page on and with all
        // of its length, and any words are a value of it. The program changes it by whole words.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: references into it do not outlive this.
        let unmapped = unsafe { munmap(self.0.cast(), MAPPED_LEN.get()) };
        unmapped.expect("it is mapped");
    }
}
