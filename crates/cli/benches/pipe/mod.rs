//! Requests in a row over one TCP connection, answered in their order.

pub(crate) mod redis;

use crate::load::closed_loop::{Connection, Reply, Request};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};

/// How requests and replies are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// Appends a request.
    pub(crate) encode: fn(&mut Vec<u8>, &Request<'_>),
    /// The first reply of these bytes and its length; `None` if it is not whole.
    pub(crate) parse: fn(&[u8]) -> Option<(Reply<'_>, usize)>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    stream: TcpStream,
    protocol: Protocol,
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    sent: usize,
    input: Vec<u8>,
    /// Bytes of `input` that hold something.
    filled: usize,
    /// Number of the request that is answered next.
    next: u64,
}

/// Bytes read in one system call at most.
const INPUT_SIZE: usize = 64 << 10;

impl Pipe {
    pub(crate) fn new(stream: TcpStream, protocol: Protocol) -> Self {
        let (out, input) = (Vec::new(), vec![0; INPUT_SIZE]);
        Self { stream, protocol, out, sent: 0, input, filled: 0, next: 1 }
    }
}

impl Connection for Pipe {
    fn queue(&mut self, request: &Request<'_>) {
        (self.protocol.encode)(&mut self.out, request);
    }

    fn send(&mut self) -> io::Result<()> {
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        !self.out.is_empty()
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, Reply<'_>)) -> io::Result<()> {
        let room = self.input.get_mut(self.filled..).expect("not over its length");
        match self.stream.read(room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut rest = self.input.get(..self.filled).expect("not over its length");
        while let Some((reply, len)) = (self.protocol.parse)(rest) {
            take(self.next, reply);
            self.next += 1;
            rest = rest.get(len..).expect("a reply lies within its bytes");
        }
        let left = rest.len();
        self.input.copy_within(self.filled - left..self.filled, 0);
        self.filled = left;
        assert!(left < self.input.len(), "a reply is longer than the buffer");
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn may_lose(&self) -> bool {
        false
    }
}

/// The first line of these bytes, and what follows its end.
pub(crate) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    let (line, rest) = bytes.split_at_checked(end)?;
    Some((line, rest.strip_prefix(b"\r\n")?))
}

/// A value with this decimal length in front of it, and what follows the end of its line.
pub(crate) fn split_value<'a>(len: &[u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let len = str::from_utf8(len).ok()?.parse().ok()?;
    let (value, rest) = rest.split_at_checked(len)?;
    Some((value, rest.strip_prefix(b"\r\n")?))
}
