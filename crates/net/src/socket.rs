//! UDP sockets as the drivers want them: large buffers, and shared by threads if need be.

use nix::sys::socket::{SockaddrIn, SockaddrIn6, SockaddrLike, setsockopt, sockopt};
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Once;
use wire::Endpoint;

/// A bound UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    family: Family,
    local: SocketAddr,
    /// What it sends from if nobody says, where it receives at all addresses.
    source: Option<Ipv6Addr>,
    can_segment: bool,
    has_bundles: bool,
}

/// Which kind of address a socket's datagrams have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 alone.
    V4,
    /// IPv6, and IPv4 mapped into it.
    V6,
}

impl Socket {
    /// Binds one socket that nobody else shares.
    ///
    /// # Errors
    ///
    /// If the address is not this machine's or is taken.
    pub fn bind(at: SocketAddr) -> io::Result<Self> {
        Self::open(at, Sharing::Exclusive)
    }

    /// Binds a socket that receives at this port of every address that leads to this machine, and
    /// sends from whichever it is told, or else from this one, be they its interfaces' or not.
    ///
    /// # Errors
    ///
    /// If the address is not IPv6, or the port is taken at any address.
    pub fn bind_everywhere(at: SocketAddrV6) -> io::Result<Self> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, at.port()));
        let mut socket = Self::open(any, Sharing::Everywhere)?;
        socket.local.set_ip((*at.ip()).into());
        socket.source = Some(*at.ip());
        Ok(socket)
    }

    /// Binds `count` sockets to one address; the kernel spreads datagrams over them by source.
    ///
    /// # Errors
    ///
    /// If the address is not this machine's or is taken, be it by somebody who would share it:
    /// two switches on one address would each get half of the other's packets.
    pub fn bind_group(at: SocketAddr, count: usize) -> io::Result<Vec<Self>> {
        let alone = Self::open(at, Sharing::Exclusive)?;
        if count <= 1 {
            return Ok(vec![alone]);
        }
        let at = alone.local;
        drop(alone);
        (0..count).map(|_| Self::open(at, Sharing::Group)).collect()
    }

    fn open(at: SocketAddr, sharing: Sharing) -> io::Result<Self> {
        let family = if at.is_ipv4() { Family::V4 } else { Family::V6 };
        let socket =
            socket2::Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        if family == Family::V6 {
            socket.set_only_v6(sharing == Sharing::Everywhere)?;
        }
        if sharing == Sharing::Everywhere {
            socket.set_freebind_v6(true)?;
        }
        if sharing == Sharing::Group {
            socket.set_reuse_port(true)?;
        }
        enlarge_buffers(&socket)?;
        socket.bind(&at.into())?;
        let socket = UdpSocket::from(socket);
        let local = socket.local_addr()?;
        // Nothing is set by this, but kernels that cannot do it say so (Linux before 4.18).
        let can_segment = setsockopt(&socket, sockopt::UdpGsoSegment, &0).is_ok();
        let has_bundles = setsockopt(&socket, sockopt::UdpGroSegment, &true).is_ok();
        if !has_bundles {
            NO_BUNDLES.call_once(|| {
                tracing::info!(
                    "the kernel (Linux before 5.0) hands over datagrams one by one only: \
                     receiving takes more processor time"
                );
            });
        }
        Ok(Self { socket, family, local, source: None, can_segment, has_bundles })
    }

    /// Has datagrams come one by one from now on, not in bundles. Who is to receive in bundles has
    /// the kernel make some of what comes from a network, and does so before programs at tc see
    /// the packets.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn receive_apart(&mut self) -> io::Result<()> {
        if self.has_bundles {
            setsockopt(&self.socket, sockopt::UdpGroSegment, &false)?;
            self.has_bundles = false;
        }
        Ok(())
    }

    /// Has senders never wait: what finds no room in the socket's buffer is not sent. Receiving
    /// does not wait in any case.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn never_wait(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// The address it is bound to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What it sends from if nobody says; `None` if that is not told to the kernel.
    pub(super) fn source(&self) -> Option<Ipv6Addr> {
        self.source
    }

    /// The kind of its addresses.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Whether the kernel cuts a message into datagrams.
    pub(super) fn can_segment(&self) -> bool {
        self.can_segment
    }

    /// Whether a message that is received may be several datagrams.
    pub(super) fn has_bundles(&self) -> bool {
        self.has_bundles
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Exclusive,
    Group,
    /// Nobody shares it, and it has all addresses.
    Everywhere,
}

/// Bytes asked for each way: some thousand datagrams, a few milliseconds at full rate. More would
/// only make old what waits.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Said once for a process, however many sockets it has.
static SMALL_BUFFERS: Once = Once::new();
/// The same.
static NO_BUNDLES: Once = Once::new();

fn enlarge_buffers(socket: &socket2::Socket) -> io::Result<()> {
    // Over the system's limit only with the right to; without, as far as the limit goes.
    if setsockopt(socket, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &SOCKET_BUFFER_BYTES).is_err() {
        socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    }
    let got = socket.recv_buffer_size()?.min(socket.send_buffer_size()?);
    if got < SOCKET_BUFFER_BYTES {
        SMALL_BUFFERS.call_once(|| {
            tracing::info!(
                got_bytes = got,
                wanted_bytes = SOCKET_BUFFER_BYTES,
                "the kernel gives small socket buffers, bursts may be lost; to change that: \
                 sysctl -w net.core.rmem_max={SOCKET_BUFFER_BYTES} \
                 net.core.wmem_max={SOCKET_BUFFER_BYTES}"
            );
        });
    }
    Ok(())
}

/// An address as the kernel writes it. The scope of IPv6 link-local addresses is not kept: such
/// addresses cannot stand in a cluster's tables.
pub(super) trait KernelAddress: SockaddrLike + Copy {
    fn to_endpoint(&self) -> Endpoint;
    /// `None` if a socket of this family cannot send there.
    fn from_endpoint(endpoint: Endpoint) -> Option<Self>;
}

impl KernelAddress for SockaddrIn {
    fn to_endpoint(&self) -> Endpoint {
        SocketAddr::V4(SocketAddrV4::from(*self)).into()
    }

    fn from_endpoint(endpoint: Endpoint) -> Option<Self> {
        match SocketAddr::from(endpoint) {
            SocketAddr::V4(v4) => Some(v4.into()),
            SocketAddr::V6(_) => None,
        }
    }
}

impl KernelAddress for SockaddrIn6 {
    fn to_endpoint(&self) -> Endpoint {
        Endpoint { addr: self.ip().octets(), port: self.port() }
    }

    fn from_endpoint(endpoint: Endpoint) -> Option<Self> {
        Some(SocketAddrV6::new(endpoint.addr.into(), endpoint.port, 0, 0).into())
    }
}
