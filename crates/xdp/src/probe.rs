//! Trying out how a machine and its interfaces run the switch.

use crate::Program;
use crate::link::{self, Hook};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use std::io;
use std::os::fd::AsFd as _;

impl Program {
    /// Attaches the XDP program in the driver of an interface and detaches it at once. Meanwhile
    /// packets meet it: load it for an address that nobody has.
    ///
    /// # Errors
    ///
    /// What the kernel says: `EBUSY` or `EEXIST` if another program is attached, `EOPNOTSUPP` if
    /// the driver cannot, `ERANGE` if the interface's packets may be too long for it.
    pub fn try_native(&self, ifindex: u32) -> io::Result<()> {
        link::attach(&self.program("keyway_one"), ifindex, Hook::XdpNative).map(drop)
    }

    /// The same with the tc program, which needs no driver.
    ///
    /// # Errors
    ///
    /// What the kernel says: `EINVAL` if it is too old for tcx links.
    pub fn try_tc(&self, ifindex: u32) -> io::Result<()> {
        link::attach(&self.program("keyway_many"), ifindex, Hook::TcIngress).map(drop)
    }

    /// Whether the kernel has made machine code of it, and does not interpret it. `None` if it does
    /// not say.
    #[must_use]
    pub fn is_compiled(&self) -> Option<bool> {
        let id = libbpf_rs::Program::id_from_fd(self.program("keyway_one").as_fd()).ok()?;
        let options = ProgInfoQueryOptions::default().include_jited_prog_insns(true);
        let info = ProgInfoIter::with_query_opts(options).find(|info| info.id == id)?;
        Some(!info.jited_prog_insns.is_empty())
    }
}
