//! A netlink socket to the kernel's routes.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::num::NonZeroI32;

/// Why routes cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process has not the right.
    #[error("changing routes takes the right CAP_NET_ADMIN in this network namespace: run as root")]
    NoRight,
    /// Something failed at the kernel.
    #[error("{what}: {why}")]
    Kernel {
        /// What.
        what: &'static str,
        /// What the kernel says.
        why: io::Error,
    },
    /// The kernel says something that nobody understands.
    #[error("the kernel's answer is not understood: {0}")]
    Answer(String),
}

impl Error {
    pub(crate) fn kernel(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Kernel { what, why }
    }
}

/// A request about one route.
pub(crate) struct Request {
    pub(crate) message: RouteNetlinkMessage,
    /// Besides those that every request has.
    pub(crate) flags: u16,
}

/// A socket on which requests are answered in their order.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: Socket,
    port: u32,
    next: u32,
    received: Vec<u8>,
}

impl Channel {
    pub(crate) fn open() -> Result<Self, Error> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            let port = socket.bind_auto()?.port_number();
            socket.connect(&SocketAddr::new(0, 0))?;
            // Errors name their request by its number; what it said we know.
            socket.set_cap_ack(true)?;
            // A dump of one protocol's routes is filtered in the kernel.
            socket.set_netlink_get_strict_chk(true)?;
            receive_buffer(&socket)?;
            Ok(Self { socket, port, next: 1, received: Vec::with_capacity(RECEIVED_MAX) })
        };
        open().map_err(Error::kernel("cannot open a netlink socket"))
    }

    /// What the kernel calls this socket; it says so of the changes that were made here.
    pub(crate) fn port(&self) -> u32 {
        self.port
    }

    /// Asks for all of this, with one system call for many. Says which requests failed, by their
    /// place, and why.
    pub(crate) fn ask_for_all(
        &mut self,
        requests: Vec<Request>,
    ) -> Result<Vec<(usize, Errno)>, Error> {
        let mut failed = Vec::new();
        let (mut bytes, mut first) = (Vec::with_capacity(CHUNK_MAX), 0);
        let last = requests.len().saturating_sub(1);
        for (place, request) in requests.into_iter().enumerate() {
            // The last of a chunk is answered in any case, the others if they fail.
            let ends = place == last || bytes.len() + 2 * MESSAGE_MAX > CHUNK_MAX;
            let flags = request.flags | if ends { NLM_F_ACK } else { 0 };
            self.append(&mut bytes, Request { flags, ..request });
            if ends {
                self.send(&bytes)?;
                self.wait(place, first, &mut failed)?;
                (first, bytes) = (place + 1, Vec::with_capacity(CHUNK_MAX));
            }
        }
        Ok(failed)
    }

    /// Waits for the answer to the request of this place, which was sent last.
    fn wait(
        &mut self,
        last: usize,
        first: usize,
        failed: &mut Vec<(usize, Errno)>,
    ) -> Result<(), Error> {
        let number_of_last = self.next.wrapping_sub(1);
        loop {
            for message in self.receive()? {
                let NetlinkPayload::Error(error) = message.payload else { continue };
                let before = number_of_last.wrapping_sub(message.header.sequence_number);
                let place = usize::try_from(before).ok().and_then(|it| last.checked_sub(it));
                let place = place.filter(|place| *place >= first);
                let place = place.ok_or_else(|| Error::Answer("to another request".into()))?;
                if let Some(code) = error.code {
                    failed.push((place, errno(code)));
                }
                if place == last {
                    return Ok(());
                }
            }
        }
    }

    /// Asks for one route; what the kernel says, or why it says nothing.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Result<RouteMessage, Errno>, Error> {
        let mut bytes = Vec::new();
        self.append(&mut bytes, request);
        self.send(&bytes)?;
        for message in self.receive()? {
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                    return Ok(Ok(route));
                }
                NetlinkPayload::Error(error) => {
                    let code = error.code.map_or(Errno::UnknownErrno, errno);
                    return Ok(Err(code));
                }
                _ => {}
            }
        }
        Err(Error::Answer("nothing about a route".into()))
    }

    /// All routes that are like this one.
    pub(crate) fn dump(&mut self, like: RouteMessage) -> Result<Vec<RouteMessage>, Error> {
        let message = RouteNetlinkMessage::GetRoute(like);
        let mut bytes = Vec::new();
        self.append(&mut bytes, Request { message, flags: NLM_F_DUMP });
        self.send(&bytes)?;
        let mut routes = Vec::new();
        loop {
            for message in self.receive()? {
                match message.payload {
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => {
                        routes.push(route);
                    }
                    NetlinkPayload::Done(_) => return Ok(routes),
                    NetlinkPayload::Error(error) => {
                        let why = error.code.map_or(Errno::UnknownErrno, errno).into();
                        return Err(Error::Kernel { what: "cannot list routes", why });
                    }
                    _ => {}
                }
            }
        }
    }

    fn append(&mut self, bytes: &mut Vec<u8>, request: Request) {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | request.flags;
        header.sequence_number = self.next;
        self.next = self.next.wrapping_add(1);
        let payload = NetlinkPayload::from(request.message);
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let at = bytes.len();
        bytes.resize(at + message.buffer_len().next_multiple_of(ALIGNMENT), 0);
        let (_, room) = bytes.split_at_mut(at);
        message.serialize(room);
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Error> {
        let sent = self.socket.send(bytes, 0);
        sent.map(drop).map_err(Error::kernel("cannot ask the kernel about routes"))
    }

    /// The next messages, however many there are in one datagram.
    fn receive(&mut self) -> Result<Vec<NetlinkMessage<RouteNetlinkMessage>>, Error> {
        self.received.clear();
        let received = self.socket.recv(&mut self.received, 0);
        received.map_err(Error::kernel("cannot hear what the kernel says of routes"))?;
        messages(&self.received)
    }
}

/// Gives a socket room for what comes while changes are made: the system's own limit is too low.
/// Who may change routes may do that.
pub(crate) fn receive_buffer(socket: &Socket) -> io::Result<()> {
    match setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER) {
        Err(Errno::EPERM) => Ok(()),
        set => Ok(set?),
    }
}

/// The messages of a datagram.
fn messages(bytes: &[u8]) -> Result<Vec<NetlinkMessage<RouteNetlinkMessage>>, Error> {
    let (mut rest, mut messages) = (bytes, Vec::new());
    while !rest.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest);
        let message = message.map_err(|why| Error::Answer(why.to_string()))?;
        let len = usize::try_from(message.header.length).unwrap_or(usize::MAX);
        let after = rest.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        if len == 0 {
            break;
        }
        rest = after;
        messages.push(message);
    }
    Ok(messages)
}

fn errno(code: NonZeroI32) -> Errno {
    Errno::from_raw(-code.get())
}

/// Where messages begin in a datagram.
pub(crate) const ALIGNMENT: usize = 4;
/// A request about a route with a next hop takes 88 bytes.
const MESSAGE_MAX: usize = 128;
/// Bytes of requests that are sent at once. The kernel works them off before the call returns.
const CHUNK_MAX: usize = 32 << 10;
/// The kernel puts no more into a datagram of an answer.
const RECEIVED_MAX: usize = 64 << 10;
/// Room for an error for each request of a chunk, or an event for each change of a batch: each
/// takes about 1 KB there, with what the kernel keeps besides.
const RECEIVE_BUFFER: usize = 4 << 20;
