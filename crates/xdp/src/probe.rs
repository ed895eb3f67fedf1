//! Trying out whether an interface can run the switch.

use crate::Program;
use crate::link::{self, Hook};
use std::io;

impl Program {
    /// Attaches the XDP program in the driver of an interface and detaches it at once. Meanwhile
    /// packets meet it: load it for an address that nobody has.
    ///
    /// # Errors
    ///
    /// What the kernel says: `EBUSY` or `EEXIST` if another program is attached, `EOPNOTSUPP` if the
    /// driver cannot, `ERANGE` if the interface's packets may be too long for it.
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
}
