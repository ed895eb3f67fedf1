//! Where a datagram comes from or goes to.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A UDP address as it stands in headers and tables: IPv6, or IPv4 mapped into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// 16 bytes of IPv6; IPv4 as `::ffff:a.b.c.d`.
    pub addr: [u8; 16],
    /// UDP port.
    pub port: u16,
}

impl Endpoint {
    /// Whether this can be sent to at all: an unset endpoint has port 0.
    #[must_use]
    pub fn is_set(self) -> bool {
        self.port != 0
    }

    /// The same address at `port + offset`; `None` if there is no such port.
    #[must_use]
    pub fn with_port_offset(self, offset: u16) -> Option<Self> {
        Some(Self { port: self.port.checked_add(offset)?, ..self })
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(socket: SocketAddr) -> Self {
        let addr = match socket.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self { addr: addr.octets(), port: socket.port() }
    }
}

impl From<Endpoint> for SocketAddr {
    fn from(endpoint: Endpoint) -> Self {
        let addr = Ipv6Addr::from(endpoint.addr);
        let ip = addr.to_ipv4_mapped().map_or(IpAddr::V6(addr), IpAddr::V4);
        Self::new(ip, endpoint.port)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(f)
    }
}
