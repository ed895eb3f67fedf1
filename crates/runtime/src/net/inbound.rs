//! Receiving a batch.

use super::batch::{Buffers, Headers, buffers};
use super::socket::KernelAddress;
use super::{BATCH_MAX, Family, Socket};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, RawFd};
use wire::Endpoint;

/// The last batch received, and the buffers it lies in.
#[derive(Debug)]
pub struct Inbound {
    headers: Headers,
    buffers: Box<Buffers>,
    arrived: [Arrived; BATCH_MAX],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    from: Endpoint,
    size: usize,
}

/// One datagram of a batch.
#[derive(Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: Endpoint,
    /// How many datagrams of the batch waited behind it.
    pub waiting: u16,
    /// The UDP payload; cut off somewhere beyond `wire::DATAGRAM_MAX`.
    pub payload: &'a mut [u8],
}

impl Inbound {
    /// Buffers for datagrams of this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        let (headers, buffers) = (Headers::new(family), buffers());
        Self { headers, buffers, arrived: [Arrived::default(); BATCH_MAX], len: 0 }
    }

    /// Replaces the batch by what waits in the socket, without waiting for more. Returns how many
    /// datagrams that are.
    ///
    /// # Errors
    ///
    /// What the kernel says, but for interruptions and for complaints about datagrams sent earlier
    /// (a port that nobody listens on): those are no concern of a receiver.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        let fd = socket.as_raw_fd();
        self.len = 0;
        for _ in 0..COMPLAINTS_MAX {
            let result = match &mut self.headers {
                Headers::V4(headers) => fill(fd, headers, &mut self.buffers, &mut self.arrived),
                Headers::V6(headers) => fill(fd, headers, &mut self.buffers, &mut self.arrived),
            };
            match result {
                Ok(count) => {
                    self.len = count;
                    return Ok(count);
                }
                Err(Errno::EAGAIN) => return Ok(0),
                Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
                Err(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENETDOWN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(0)
    }

    /// What the datagrams of the batch say.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let batch = self.arrived.iter().zip(self.buffers.iter()).take(self.len);
        batch.map(|(arrived, buffer)| {
            buffer.get(..arrived.size).expect("datagrams lie in their buffers")
        })
    }

    /// The datagrams of the batch, in the order of their arrival.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = Received<'_>> {
        let arrived = self.arrived.iter().zip(self.buffers.iter_mut()).take(self.len);
        let last = self.len.saturating_sub(1);
        arrived.enumerate().map(move |(index, (arrived, buffer))| Received {
            from: arrived.from,
            waiting: u16::try_from(last - index).expect("a batch is shorter than that"),
            payload: buffer.get_mut(..arrived.size).expect("datagrams lie in their buffers"),
        })
    }
}

/// Complaints of the kernel that are passed over before the socket counts as empty.
const COMPLAINTS_MAX: usize = 16;

fn fill<S: KernelAddress>(
    fd: RawFd,
    headers: &mut MultiHeaders<S>,
    buffers: &mut Buffers,
    arrived: &mut [Arrived; BATCH_MAX],
) -> nix::Result<usize> {
    let mut slices = buffers.each_mut().map(|buffer| [IoSliceMut::new(buffer)]);
    let results = recvmmsg(fd, headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    let mut count = 0;
    for (result, arrived) in results.zip(arrived) {
        let from = result.address.map_or_else(Endpoint::default, |from| from.to_endpoint());
        *arrived = Arrived { from, size: result.bytes };
        count += 1;
    }
    Ok(count)
}
