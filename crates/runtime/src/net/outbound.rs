//! Sending a batch.
//!
//! Most of what a datagram costs is its way through the kernel, on both sides. So datagrams of one
//! size to one address go that way as one, and the kernel takes them apart at the end of it (UDP
//! segmentation offload). What does not lie together, or what the kernel will not segment, goes as
//! one datagram each, many to a system call.

use super::batch::{Buffers, Headers, buffers};
use super::socket::KernelAddress;
use super::{BATCH_MAX, Family, Socket};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, sendmmsg, sendmsg};
use std::array;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, RawFd};
use wire::Endpoint;

/// A batch of datagrams to send. Must be sent when it is full.
#[derive(Debug)]
pub struct Outbound {
    headers: Headers,
    buffers: Box<Buffers>,
    queued: [Queued; BATCH_MAX],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    to: Endpoint,
    /// Index of its buffer.
    buffer: usize,
    size: usize,
}

/// Bytes that the kernel takes as one to segment: an IP packet's 64 KiB less its headers.
const SEGMENTED_SIZE_MAX: usize = 65_000;
/// The kernel cuts one message into so many datagrams at most (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;
const _: () = assert!(BATCH_MAX <= SEGMENTS_MAX);

impl Outbound {
    /// An empty batch for a socket with this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        let (headers, buffers) = (Headers::new(family), buffers());
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
        *queued = Queued { to, buffer: self.len, size: payload.len() };
        self.len += 1;
    }

    /// Whether there is room for no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == BATCH_MAX
    }

    /// Sends the batch and empties it. Waits for room in the socket's buffer if it must: that is
    /// the one place where a sender slows down. Datagrams to one address keep their order.
    ///
    /// A datagram that the kernel refuses is left out, and the others go on. Returns how many those
    /// are; to their receivers they are lost.
    pub fn send(&mut self, socket: &Socket) -> u64 {
        let Self { headers, buffers, queued, len } = self;
        let queued = queued.get_mut(..*len).expect("no more than there are places");
        *len = 0;
        // What goes to one address lies together then.
        queued.sort_unstable_by_key(|it| (it.to, it.buffer));
        match headers {
            Headers::V4(headers) => send_all(socket, headers, queued, buffers),
            Headers::V6(headers) => send_all(socket, headers, queued, buffers),
        }
    }
}

/// Sends what is alike as one and the rest one by one. Returns how many were refused.
fn send_all<S: KernelAddress>(
    socket: &Socket,
    headers: &mut MultiHeaders<S>,
    mut queued: &[Queued],
    buffers: &Buffers,
) -> u64 {
    let fd = socket.as_raw_fd();
    let alike = |queued: &[Queued]| if socket.can_segment() { alike(queued) } else { 1 };
    let mut unsent = 0;
    while !queued.is_empty() {
        let run = alike(queued);
        let is_run = |at: &usize| queued.get(*at..).is_some_and(|rest| alike(rest) > 1);
        let count =
            if run > 1 { run } else { (1..queued.len()).find(is_run).unwrap_or(queued.len()) };
        let (now, later) = queued.split_at(count);
        let sent = run > 1 && send_segmented::<S>(fd, now, buffers).is_ok();
        if !sent {
            unsent += send_apart(fd, headers, now, buffers);
        }
        queued = later;
    }
    unsent
}

/// How many from the front on go to one address and have one size, but for a last one that may be
/// smaller: that is what the kernel can make of one message. Empty ones it cannot.
fn alike(queued: &[Queued]) -> usize {
    let Some(first) = queued.first() else { return 0 };
    let mut size = 0;
    let mut ended = false;
    let follows = |next: &&Queued| {
        size += next.size;
        let fits = !ended && (1..=first.size).contains(&next.size) && size <= SEGMENTED_SIZE_MAX;
        ended |= next.size < first.size;
        fits && next.to == first.to
    };
    queued.iter().take_while(follows).count().max(1)
}

/// Hands these over as one message to be cut into datagrams of the first one's size. An error
/// means that none was sent.
fn send_segmented<S: KernelAddress>(
    fd: RawFd,
    alike: &[Queued],
    buffers: &Buffers,
) -> nix::Result<()> {
    let first = alike.first().copied().unwrap_or_default();
    let to = S::from_endpoint(first.to).ok_or(Errno::EAFNOSUPPORT)?;
    let size = u16::try_from(first.size).expect("buffers are smaller");
    let slices: [IoSlice<'_>; BATCH_MAX] =
        array::from_fn(|index| IoSlice::new(bytes(alike.get(index), buffers)));
    let slices = slices.get(..alike.len()).expect("no more than a batch");
    let extras = [ControlMessage::UdpGsoSegments(&size)];
    sendmsg(fd, slices, &extras, MsgFlags::empty(), Some(&to)).map(drop)
}

/// Sends these one by one, many to a system call. Returns how many were refused.
fn send_apart<S: KernelAddress>(
    fd: RawFd,
    headers: &mut MultiHeaders<S>,
    mut queued: &[Queued],
    buffers: &Buffers,
) -> u64 {
    let mut unsent = 0;
    while let [first, others @ ..] = queued {
        match hand_over(fd, headers, queued, buffers) {
            Ok(sent) => queued = queued.get(sent.max(1)..).unwrap_or(&[]),
            Err(Errno::EINTR) => {}
            Err(errno) => {
                unsent += 1;
                tracing::debug!(to = %first.to, %errno, "the kernel refused a datagram");
                queued = others;
            }
        }
    }
    unsent
}

/// Hands over as many as the kernel takes in one call; an error is about the first of them.
fn hand_over<S: KernelAddress>(
    fd: RawFd,
    headers: &mut MultiHeaders<S>,
    queued: &[Queued],
    buffers: &Buffers,
) -> nix::Result<usize> {
    let addresses: [Option<S>; BATCH_MAX] =
        array::from_fn(|index| S::from_endpoint(queued.get(index)?.to));
    // A datagram to an address of the wrong family ends the run; alone at its front, it fails.
    let run = addresses.iter().take_while(|address| address.is_some()).count();
    if run == 0 {
        return Err(Errno::EAFNOSUPPORT);
    }
    let slices: [[IoSlice<'_>; 1]; BATCH_MAX] =
        array::from_fn(|index| [IoSlice::new(bytes(queued.get(index), buffers))]);
    let no_extras: [ControlMessage<'_>; 0] = [];
    let sent =
        sendmmsg(fd, headers, slices.iter().take(run), addresses, no_extras, MsgFlags::empty())?;
    Ok(sent.count())
}

fn bytes<'b>(queued: Option<&Queued>, buffers: &'b Buffers) -> &'b [u8] {
    let buffer = queued.and_then(|it| Some((buffers.get(it.buffer)?, it.size)));
    buffer.and_then(|(buffer, size)| buffer.get(..size)).unwrap_or(&[])
}
