//! Attaching programs so that the kernel detaches them when this process ends, however it ends.
//!
//! The one place with unsafe code: libbpf's Rust face has no tcx links, and no XDP links with a
//! mode.
#![expect(unsafe_code, reason = "libbpf's C interface")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

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
