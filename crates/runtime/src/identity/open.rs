//! Where a control plane may be open: on the machine itself, which nobody else reaches.

use std::net::SocketAddr;

/// Whether nobody outside of this machine reaches it.
#[must_use]
pub fn is_local(at: SocketAddr) -> bool {
    at.ip().to_canonical().is_loopback()
}
