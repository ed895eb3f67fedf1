//! Sending a batch.
//!
//! Most of what a datagram costs is its way through the kernel, on both sides. So datagrams of one
//! size to one address go that way as one message, a *bundle*, which the kernel takes apart at the
//! end of it (UDP segmentation offload), if its receiver does not. Bundles of one such size, and
//! single datagrams that are no larger, share a system call.

use super::socket::KernelAddress;
use super::{BATCH_MAX, Family, Socket};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, sendmmsg};
use std::array;
use std::cmp::Reverse;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, RawFd};
use wire::{Endpoint, Fields as _, HEADER_LEN, MAGIC, Op};

/// A batch of datagrams to send. Must be sent when it is full.
#[derive(Debug)]
pub struct Outbound {
    family: Family,
    buffers: Box<Buffers>,
    queued: [Queued; BATCH_MAX],
    len: usize,
}

/// A place for each datagram of a batch: a multiple of the cache line.
type Buffers = [[u8; BUFFER_SIZE]; BATCH_MAX];
const BUFFER_SIZE: usize = 1536;
const _: () = assert!(BUFFER_SIZE >= wire::DATAGRAM_MAX);

#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    to: Endpoint,
    /// Index of its buffer: the place in the batch that it was added at.
    buffer: usize,
    /// That of the last one to its address.
    last: usize,
    size: usize,
    /// What it is sent by, of all to its address.
    rank: Rank,
}

/// Replies come first, the largest before the others: it does not matter which of them is earlier,
/// and so there are few bundles. What is no reply keeps its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Reply(Reverse<usize>),
    #[default]
    Other,
}

impl Rank {
    fn of(payload: &[u8]) -> Self {
        let header = payload.first_chunk::<HEADER_LEN>().filter(|header| header.magic() == MAGIC);
        let is_reply = header.and_then(|it| Op::from_wire(it.op())).is_some_and(Op::is_reply);
        if is_reply { Self::Reply(Reverse(payload.len())) } else { Self::Other }
    }
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
        let buffers = vec![[0; BUFFER_SIZE]; BATCH_MAX].into_boxed_slice();
        Self {
            family,
            // Made where they stay: they are too large for a stack.
            buffers: buffers.try_into().expect("as many buffers as a batch has places"),
            queued: [Queued::default(); BATCH_MAX],
            len: 0,
        }
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
        let (at, size, rank) = (self.len, payload.len(), Rank::of(payload));
        *queued = Queued { to, buffer: at, last: at, size, rank };
        self.len += 1;
    }

    /// Whether there is room for no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == BATCH_MAX
    }

    /// Sends the batch and empties it. Waits for room in the socket's buffer if it must, unless the
    /// socket [never waits](Socket::never_wait): that is the one place where a sender slows down.
    /// Datagrams to one address keep their order, but for replies. The address that was last added
    /// to comes last: an answer that was added after copies for others is not sent before them.
    ///
    /// A datagram that the kernel refuses is left out, and the others go on. Returns how many those
    /// are; to their receivers they are lost.
    pub fn send(&mut self, socket: &Socket) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let Self { family, buffers, queued, len } = self;
        let queued = queued.get_mut(..*len).expect("no more than there are places");
        *len = 0;
        lay_together(queued);
        let slices: [IoSlice<'_>; BATCH_MAX] =
            array::from_fn(|index| IoSlice::new(bytes(queued.get(index), buffers)));
        let (fd, can_segment) = (socket.as_raw_fd(), socket.can_segment());
        match family {
            Family::V4 => send_all::<SockaddrIn>(fd, queued, &slices, can_segment),
            Family::V6 => send_all::<SockaddrIn6>(fd, queued, &slices, can_segment),
        }
    }
}

/// Puts what goes to one address together, by rank; first what goes to that which was not added to
/// for longest.
fn lay_together(queued: &mut [Queued]) {
    queued.sort_unstable_by_key(|it| (it.to, it.buffer));
    for to_one in queued.chunk_by_mut(|one, other| one.to == other.to) {
        let last = to_one.last().map_or(0, |it| it.buffer);
        to_one.iter_mut().for_each(|it| it.last = last);
    }
    queued.sort_unstable_by_key(|it| (it.last, it.rank, it.buffer));
}

/// Messages that can be handed over in one system call: a bundle each, or one datagram.
struct Call {
    /// Datagrams of each message.
    messages: [usize; BATCH_MAX],
    len: usize,
    /// What the bundles among them are cut into; 0 if there are none.
    segment: usize,
}

/// Sends these, as few messages in few system calls, or as one message each if the kernel cuts none
/// apart. Returns how many datagrams were refused.
fn send_all<S: KernelAddress>(
    fd: RawFd,
    mut queued: &[Queued],
    mut slices: &[IoSlice<'_>],
    can_segment: bool,
) -> u64 {
    let mut unsent = 0;
    while let Some(Queued { to, .. }) = queued.first() {
        let call = Call::of(queued, can_segment);
        let done = match call.hand_over::<S>(fd, queued, slices) {
            Ok(sent) => sent,
            Err(Errno::EINTR) => 0,
            // What it will not cut apart it may take one by one.
            Err(_) if call.first() > 1 => {
                let apart = queued.get(..call.first()).expect("it is made of these");
                unsent += send_all::<S>(fd, apart, slices, false);
                apart.len()
            }
            Err(errno) => {
                tracing::debug!(%to, %errno, "the kernel refused a datagram");
                unsent += 1;
                1
            }
        };
        queued = queued.get(done..).expect("no more than there were");
        slices = slices.get(done..).expect("as many");
    }
    unsent
}

impl Call {
    /// As many messages from the front on as one call can take; without bundles if the kernel can
    /// make none.
    fn of(queued: &[Queued], with_bundles: bool) -> Self {
        let mut call = Self { messages: [0; BATCH_MAX], len: 0, segment: 0 };
        let mut rest = queued;
        let mut largest_single = 0;
        while let Some(first) = rest.first() {
            let count = if with_bundles { alike(rest) } else { 1 };
            // One size stands for the whole call; a single datagram that is larger would be cut.
            let fits = match (count, call.segment) {
                (1, 0) => true,
                (1, segment) => first.size <= segment,
                (_, 0) => largest_single <= first.size,
                (_, segment) => first.size == segment,
            };
            if !fits {
                break;
            }
            if count > 1 {
                call.segment = first.size;
            } else {
                largest_single = largest_single.max(first.size);
            }
            *call.messages.get_mut(call.len).expect("no more messages than datagrams") = count;
            call.len += 1;
            rest = rest.get(count..).expect("it is made of these");
        }
        call
    }

    /// Datagrams of its first message.
    fn first(&self) -> usize {
        self.messages.first().copied().unwrap_or(0)
    }

    /// Hands over as many messages as the kernel takes, and returns how many datagrams those are;
    /// an error is about the first message.
    fn hand_over<S: KernelAddress>(
        &self,
        fd: RawFd,
        queued: &[Queued],
        slices: &[IoSlice<'_>],
    ) -> nix::Result<usize> {
        let mut addresses = [None; BATCH_MAX];
        let mut messages: [&[IoSlice<'_>]; BATCH_MAX] = [&[]; BATCH_MAX];
        let (mut at, mut ready) = (0, 0);
        let counts = self.messages.iter().take(self.len);
        for ((count, address), message) in counts.zip(&mut addresses).zip(&mut messages) {
            let to = queued.get(at).map(|it| it.to).unwrap_or_default();
            *address = S::from_endpoint(to);
            // One to an address of the wrong family ends the call; alone at its front, it fails.
            if address.is_none() {
                break;
            }
            *message = slices.get(at..at + count).expect("messages are made of these");
            at += count;
            ready += 1;
        }
        if ready == 0 {
            return Err(Errno::EAFNOSUPPORT);
        }
        let segment = u16::try_from(self.segment).expect("buffers are smaller");
        let extras = [ControlMessage::UdpGsoSegments(&segment)];
        let extras = extras.get(..usize::from(segment > 0)).unwrap_or(&[]);
        let control = (segment > 0).then(|| cmsg_space!(u16));
        let mut headers = MultiHeaders::preallocate(ready, control);
        let messages = messages.iter().take(ready);
        let sent =
            sendmmsg(fd, &mut headers, messages, addresses, extras, MsgFlags::empty())?.count();
        Ok(self.messages.iter().take(sent).sum())
    }
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

fn bytes<'b>(queued: Option<&Queued>, buffers: &'b Buffers) -> &'b [u8] {
    let buffer = queued.and_then(|it| Some((buffers.get(it.buffer)?, it.size)));
    buffer.and_then(|(buffer, size)| buffer.get(..size)).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_sent_after_the_copies_that_were_added_before_it() {
        let to = |port| Endpoint { addr: [0; 16], port };
        // The service has the least address; a copy comes between two answers.
        let ports = [1, 9, 8, 1, 9, 1];
        let each = ports.iter().enumerate();
        let mut queued: Vec<Queued> = each
            .map(|(at, port)| Queued { to: to(*port), buffer: at, ..Queued::default() })
            .collect();
        lay_together(&mut queued);
        let order: Vec<(u16, usize)> = queued.iter().map(|it| (it.to.port, it.buffer)).collect();
        assert_eq!(order, [(8, 2), (9, 1), (9, 4), (1, 0), (1, 3), (1, 5)]);
    }

    #[test]
    fn replies_of_one_size_make_one_bundle_whatever_came_between() {
        let datagram = |op: Op, value: usize| {
            let mut out = Vec::new();
            wire::emit(
                &mut out,
                &wire::Header { op: op as u8, ..Default::default() },
                &[&vec![0; value]],
            );
            out
        };
        let sent = [
            (Op::GetReply, 64),
            (Op::PutReply, 0),
            (Op::ChainWrite, 10),
            (Op::GetReply, 64),
            (Op::ChainWrite, 90),
            (Op::PutReply, 0),
        ];
        let mut outbound = Outbound::new(Family::V4);
        sent.iter()
            .for_each(|(op, value)| outbound.push(Endpoint::default(), &datagram(*op, *value)));
        let queued = &mut outbound.queued[..sent.len()];
        lay_together(queued);
        let order: Vec<usize> = queued.iter().map(|it| it.buffer).collect();
        assert_eq!(order, [0, 3, 1, 5, 2, 4], "writes of a chain keep their order");
        assert_eq!(alike(queued), 3, "the last of a bundle may be smaller");
    }
}
