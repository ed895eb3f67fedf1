//! Sockets for the shards of a node, on ports that follow each other.

use crate::net::Socket;
use std::io;
use std::net::SocketAddr;

/// As [`NodeDriver::bind`](super::NodeDriver::bind).
pub(super) fn bind(listen: SocketAddr, shards: u16) -> io::Result<Vec<Socket>> {
    let mut tries = if listen.port() == 0 { FREE_PORT_TRIES_MAX } else { 1 };
    loop {
        tries -= 1;
        match bind_consecutive(listen, shards) {
            Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            outcome => return outcome,
        }
    }
}

/// Tries to find room for a node's shards: a machine with so few free ports in a row is not one to
/// run a cluster on.
const FREE_PORT_TRIES_MAX: u32 = 100;

fn bind_consecutive(listen: SocketAddr, shards: u16) -> io::Result<Vec<Socket>> {
    let first = Socket::bind(listen)?;
    let base = first.local();
    let mut sockets = vec![first];
    for shard in 1..shards {
        let port = base.port().checked_add(shard);
        let port = port.ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse))?;
        sockets.push(Socket::bind(SocketAddr::new(base.ip(), port))?);
    }
    Ok(sockets)
}
