//! Sending a batch.

use super::socket::KernelAddress;
use super::{BATCH_MAX, BUFFER_SIZE, Family, Socket};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, sendmmsg};
use std::array;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, RawFd};
use wire::Endpoint;

/// A batch of datagrams to send. Must be sent when it is full.
#[derive(Debug)]
pub struct Outbound {
    headers: Headers,
    buffers: Box<[[u8; BUFFER_SIZE]]>,
    queued: [Queued; BATCH_MAX],
    len: usize,
}

#[derive(Debug)]
enum Headers {
    V4(MultiHeaders<SockaddrIn>),
    V6(MultiHeaders<SockaddrIn6>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    to: Endpoint,
    size: usize,
}

impl Outbound {
    /// An empty batch for a socket with this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        let headers = match family {
            Family::V4 => Headers::V4(MultiHeaders::preallocate(BATCH_MAX, None)),
            Family::V6 => Headers::V6(MultiHeaders::preallocate(BATCH_MAX, None)),
        };
        let buffers = vec![[0; BUFFER_SIZE]; BATCH_MAX].into_boxed_slice();
        Self { headers, buffers, queued: [Queued::default(); BATCH_MAX], len: 0 }
    }

    /// Adds a copy of a datagram.
    ///
    /// # Panics
    ///
    /// If the batch is full, or the datagram over `wire::DATAGRAM_MAX`: machines make none.
    pub fn push(&mut self, to: Endpoint, payload: &[u8]) {
        assert!(payload.len() <= wire::DATAGRAM_MAX, "machines keep to the limit");
        let buffer = self.buffers.get_mut(self.len).expect("full batches are sent first");
        let room = buffer.get_mut(..payload.len()).expect("buffers exceed the limit");
        room.copy_from_slice(payload);
        let queued = self.queued.get_mut(self.len).expect("as many as buffers");
        *queued = Queued { to, size: payload.len() };
        self.len += 1;
    }

    /// Whether there is room for no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == BATCH_MAX
    }

    /// Sends the batch and empties it. Waits for room in the socket's buffer if it must: that is
    /// the one place where a sender slows down.
    ///
    /// A datagram that the kernel refuses is left out, and the others go on. Returns how many those
    /// are; to their receivers they are lost.
    pub fn send(&mut self, socket: &Socket) -> u64 {
        let fd = socket.as_raw_fd();
        let mut next = 0;
        let mut unsent = 0;
        while next < self.len {
            let queued = self.queued.get(next..self.len).unwrap_or(&[]);
            let buffers = self.buffers.get(next..self.len).unwrap_or(&[]);
            let result = match &mut self.headers {
                Headers::V4(headers) => hand_over(fd, headers, queued, buffers),
                Headers::V6(headers) => hand_over(fd, headers, queued, buffers),
            };
            match result {
                Ok(sent) => next += sent.max(1),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    unsent += 1;
                    let to = self.queued.get(next).map(|queued| queued.to).unwrap_or_default();
                    tracing::debug!(%to, %errno, "the kernel refused a datagram");
                    next += 1;
                }
            }
        }
        self.len = 0;
        unsent
    }
}

/// Hands over as many as the kernel takes in one call; an error is about the first of them.
fn hand_over<S: KernelAddress>(
    fd: RawFd,
    headers: &mut MultiHeaders<S>,
    queued: &[Queued],
    buffers: &[[u8; BUFFER_SIZE]],
) -> nix::Result<usize> {
    let addresses: [Option<S>; BATCH_MAX] =
        array::from_fn(|index| S::from_endpoint(queued.get(index)?.to));
    // A datagram to an address of the wrong family ends the run; alone at its front, it fails.
    let run = addresses.iter().take_while(|address| address.is_some()).count();
    if run == 0 {
        return Err(Errno::EAFNOSUPPORT);
    }
    let slices: [[IoSlice<'_>; 1]; BATCH_MAX] = array::from_fn(|index| {
        let bytes = buffers.get(index).zip(queued.get(index));
        let bytes = bytes.and_then(|(buffer, queued)| buffer.get(..queued.size));
        [IoSlice::new(bytes.unwrap_or(&[]))]
    });
    let no_extras: [ControlMessage<'_>; 0] = [];
    let sent =
        sendmmsg(fd, headers, slices.iter().take(run), addresses, no_extras, MsgFlags::empty())?;
    Ok(sent.count())
}
