//! Sockets for the shards of a node or a cache, on ports that follow each other.

use crate::Socket;
use std::io;
use std::net::SocketAddr;

impl Socket {
    /// Binds so many sockets that nobody else shares, on consecutive ports from `listen` on, or
    /// wherever there is room if its port is 0.
    ///
    /// # Errors
    ///
    /// If a port is taken or does not exist.
    pub fn bind_row(listen: SocketAddr, count: u16) -> io::Result<Vec<Self>> {
        let mut tries = if listen.port() == 0 { FREE_PORT_TRIES_MAX } else { 1 };
        loop {
            tries -= 1;
            match bind_consecutive(listen, count) {
                Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                outcome => return outcome,
            }
        }
    }
}

/// Tries to find room for all shards: a machine with so few free ports in a row is not one to
/// run a cluster on.
const FREE_PORT_TRIES_MAX: u32 = 100;

fn bind_consecutive(listen: SocketAddr, count: u16) -> io::Result<Vec<Socket>> {
    let first = Socket::bind(listen)?;
    let base = first.local();
    let mut sockets = vec![first];
    for after in 1..count {
        let port = base.port().checked_add(after);
        let port = port.ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse))?;
        sockets.push(Socket::bind(SocketAddr::new(base.ip(), port))?);
    }
    Ok(sockets)
}
