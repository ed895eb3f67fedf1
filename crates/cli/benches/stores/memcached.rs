//! The meta commands of memcached, in a row over TCP or one to a datagram.

use crate::load::closed_loop::{Connection, Reply, Request};
use crate::pipe::{Protocol, split_line, split_value};
use runtime::net::{Inbound, Outbound, Socket};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};
use wire::Endpoint;

pub(crate) const PROTOCOL: Protocol = Protocol { encode, parse };

fn encode(out: &mut Vec<u8>, request: &Request<'_>) {
    match request.value {
        None => {
            out.extend_from_slice(b"mg ");
            out.extend_from_slice(request.key);
            out.extend_from_slice(b" v\r\n");
        }
        Some(value) => {
            out.extend_from_slice(b"ms ");
            out.extend_from_slice(request.key);
            write!(out, " {}\r\n", value.len()).expect("memory takes it");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(Reply<'_>, usize)> {
    let (line, rest) = split_line(bytes)?;
    let (reply, rest) = match line {
        b"HD" => (Reply::Done, rest),
        [b'V', b'A', b' ', len @ ..] => {
            let (value, rest) = split_value(len, rest)?;
            (Reply::Value(value), rest)
        }
        other => (Reply::Failed(other.escape_ascii().to_string()), rest),
    };
    Some((reply, bytes.len() - rest.len()))
}

/// A UDP socket of a client.
pub(crate) struct Datagrams {
    socket: Socket,
    inbound: Inbound,
    outbound: Outbound,
    server: Endpoint,
    datagram: Vec<u8>,
    /// Every request below it has been answered.
    oldest: u64,
}

/// In front of each datagram: the request's number, which of how many it is, and nothing.
const FRAME_LEN: usize = 8;

impl Datagrams {
    pub(crate) fn connect(server: SocketAddr) -> io::Result<Self> {
        let socket = Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self {
            inbound: Inbound::new(socket.family()),
            outbound: Outbound::new(socket.family()),
            socket,
            server: server.into(),
            datagram: Vec::new(),
            oldest: 1,
        })
    }
}

impl Connection for Datagrams {
    fn queue(&mut self, request: &Request<'_>) {
        self.oldest = request.oldest;
        self.datagram.clear();
        self.datagram.extend_from_slice(&low_bits(request.seq).to_be_bytes());
        self.datagram.extend_from_slice(&[0, 0, 0, 1, 0, 0]);
        encode(&mut self.datagram, request);
        self.outbound.push(self.server, &self.datagram);
    }

    fn send(&mut self) -> io::Result<()> {
        // What the kernel refuses is sent again like anything that gets lost.
        self.outbound.send(&self.socket);
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, Reply<'_>)) -> io::Result<()> {
        self.inbound.receive(&self.socket)?;
        for received in self.inbound.iter_mut() {
            let Some(([high, low, 0, 0, 0, 1, _, _], reply)) =
                received.payload.split_first_chunk::<FRAME_LEN>()
            else {
                panic!("a reply is not one datagram");
            };
            // Fewer requests than 2^16 are ever between the oldest and the newest.
            let ahead = u16::from_be_bytes([*high, *low]).wrapping_sub(low_bits(self.oldest));
            let (reply, _) = parse(reply).expect("a datagram holds a whole reply");
            take(self.oldest + u64::from(ahead), reply);
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn may_lose(&self) -> bool {
        true
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
fn low_bits(seq: u64) -> u16 {
    seq as u16
}
