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
use nix::libc::{in6_addr, in6_pktinfo};
use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, sendmmsg};
use std::io::IoSlice;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, RawFd};
use wire::{Endpoint, Fields as _, HEADER_LEN, MAGIC, Op};

/// A batch of datagrams to send. Must be sent when it is full.
#[derive(Debug)]
pub struct Outbound {
    family: Family,
    buffers: Box<Buffers>,
    /// What has been added, in that order.
    queued: Vec<Queued>,
    /// The same as it is sent, and what it is sorted by; only while it is.
    laid: Vec<Queued>,
    keys: Vec<u64>,
}

/// A place for each datagram of a batch: a multiple of the cache line.
type Buffers = [[u8; BUFFER_SIZE]; BATCH_MAX];
const BUFFER_SIZE: usize = 1536;
const _: () = assert!(BUFFER_SIZE >= wire::EnvelopeBody::LEN + wire::PACKET_MAX);

#[derive(Clone, Copy, Debug, Default)]
struct Queued {
    /// What it is sent from, if that is said.
    from: Option<Ipv6Addr>,
    to: Endpoint,
    /// Index of its buffer: the place in the batch that it was added at.
    buffer: u16,
    size: u16,
    /// What it is sent by, of all to its address.
    rank: u32,
}

const _: () = assert!(BATCH_MAX <= 1 << u16::BITS);

/// Requests and replies come first, the largest before the others: whoever sends a request before
/// another one is answered says that it does not matter which is earlier, and so there are few
/// bundles. What goes from node to node keeps its order.
fn rank(payload: &[u8], size: u16) -> u32 {
    let header = payload.first_chunk::<HEADER_LEN>().filter(|header| header.magic() == MAGIC);
    let op = header.and_then(|it| Op::from_wire(it.op()));
    if op.is_some_and(|op| !op.is_chain()) { (u16::MAX - size).into() } else { 1 << u16::BITS }
}

/// Bytes that the kernel takes as one to segment: an IP packet's 64 KiB less its headers.
const SEGMENTED_SIZE_MAX: usize = 65_000;
/// The kernel cuts one message into so many datagrams at most (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;

impl Outbound {
    /// An empty batch for a socket with this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        let buffers = vec![[0; BUFFER_SIZE]; BATCH_MAX].into_boxed_slice();
        Self {
            family,
            // Made where they stay: they are too large for a stack.
            buffers: buffers.try_into().expect("as many buffers as a batch has places"),
            queued: Vec::with_capacity(BATCH_MAX),
            laid: Vec::with_capacity(BATCH_MAX),
            keys: Vec::with_capacity(BATCH_MAX),
        }
    }

    /// Adds a copy of a datagram.
    ///
    /// # Panics
    ///
    /// If the batch is full, or the datagram over `wire::PACKET_MAX`: machines make none.
    pub fn push(&mut self, to: Endpoint, payload: &[u8]) {
        self.push_from(None, to, payload);
    }

    /// The same for a datagram that is to come from another address of the socket's port, if one is
    /// given: by a socket that receives [everywhere](Socket::bind_everywhere). Others send it from
    /// their own.
    ///
    /// # Panics
    ///
    /// As [`push`](Self::push).
    pub fn push_from(&mut self, from: Option<Endpoint>, to: Endpoint, payload: &[u8]) {
        self.push_behind(from, to, &[], payload);
    }

    /// The same with an envelope before the packet.
    ///
    /// # Panics
    ///
    /// As [`push`](Self::push), and if the envelope is longer than envelopes are.
    pub fn push_behind(
        &mut self,
        from: Option<Endpoint>,
        to: Endpoint,
        envelope: &[u8],
        payload: &[u8],
    ) {
        assert!(payload.len() <= wire::PACKET_MAX, "machines keep to the limit");
        let at = self.queued.len();
        let buffer = self.buffers.get_mut(at).expect("full batches are sent first");
        let (before, behind) = buffer.split_at_mut(envelope.len());
        before.copy_from_slice(envelope);
        let room = behind.get_mut(..payload.len()).expect("buffers exceed the limit");
        room.copy_from_slice(payload);
        let fits = "batches and datagrams are short";
        let size = u16::try_from(envelope.len() + payload.len()).expect(fits);
        let buffer = u16::try_from(at).expect(fits);
        let from = from.map(|from| Ipv6Addr::from(from.addr));
        self.queued.push(Queued { from, to, buffer, size, rank: rank(payload, size) });
    }

    /// Whether there is room for no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queued.len() == BATCH_MAX
    }

    /// Sends the batch and empties it. Waits for room in the socket's buffer if it must, unless the
    /// socket [never waits](Socket::never_wait): that is the one place where a sender slows down.
    /// Datagrams to one address keep their order, but for requests and replies. The address that
    /// was last added to comes last: an answer that was added after copies for others is not sent
    /// before them.
    ///
    /// A datagram that the kernel refuses is left out, and the others go on. Returns how many those
    /// are; to their receivers they are lost.
    pub fn send(&mut self, socket: &Socket) -> u64 {
        let Self { family, buffers, queued, laid, keys } = self;
        lay_together(queued, laid, keys);
        queued.clear();
        let slices: Vec<IoSlice<'_>> =
            laid.iter().map(|it| IoSlice::new(it.bytes(buffers))).collect();
        // Only the kernel says what others are sent from.
        let source = socket.source();
        laid.iter_mut().for_each(|it| it.from = source.and(it.from.or(source)));
        let (fd, can_segment) = (socket.as_raw_fd(), socket.can_segment());
        match family {
            Family::V4 => send_all::<SockaddrIn>(fd, laid, &slices, can_segment),
            Family::V6 => send_all::<SockaddrIn6>(fd, laid, &slices, can_segment),
        }
    }
}

impl Queued {
    fn bytes<'b>(&self, buffers: &'b Buffers) -> &'b [u8] {
        let buffer = buffers.get(usize::from(self.buffer));
        buffer.and_then(|buffer| buffer.get(..self.size.into())).unwrap_or(&[])
    }
}

/// Puts what goes to one address together, by rank; first what goes to that which was not added to
/// for longest.
///
/// What is sorted are numbers: most of a batch would else be moved several times. Two addresses
/// with the same [fold](fold) pass for one here; what is sent to each keeps its order all the same.
fn lay_together(queued: &[Queued], laid: &mut Vec<Queued>, keys: &mut Vec<u64>) {
    const PLACE: u64 = u16::MAX as u64;
    let place = |it: &Queued| u64::from(it.buffer);
    let address = |key: &u64| key >> 32;
    keys.clear();
    keys.extend(queued.iter().map(|it| u64::from(fold(it.to)) << 32 | place(it)));
    keys.sort_unstable();
    let at = |key: u64| usize::try_from(key & PLACE).ok().and_then(|at| queued.get(at));
    for to_one in keys.chunk_by_mut(|one, other| address(one) == address(other)) {
        let last = to_one.last().map_or(0, |key| key & PLACE);
        for key in to_one {
            let rank = at(*key).map_or(0, |it| u64::from(it.rank));
            *key = last << 48 | rank << 16 | *key & PLACE;
        }
    }
    keys.sort_unstable();
    laid.clear();
    laid.extend(keys.iter().filter_map(|key| at(*key)));
}

/// A number that differs between most addresses.
fn fold(Endpoint { addr, port }: Endpoint) -> u32 {
    /// 2^128 over the golden ratio, odd: spreads whatever bits differ over the upper half.
    const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let both = u128::from_be_bytes(addr) ^ u128::from(port) << 32;
    (both.wrapping_mul(SPREAD) >> 96) as u32
}

/// Messages that can be handed over in one system call: a bundle each, or one datagram.
struct Call {
    /// Datagrams of each message.
    messages: Vec<usize>,
    /// What the bundles among them are cut into; 0 if there are none.
    segment: u16,
    /// What all of them are sent from, if that is said: one call can say no more than one.
    from: Option<Ipv6Addr>,
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
        let from = queued.first().and_then(|it| it.from);
        let mut call = Self { messages: Vec::new(), segment: 0, from };
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
            if !fits || first.from != from {
                break;
            }
            if count > 1 {
                call.segment = first.size;
            } else {
                largest_single = largest_single.max(first.size);
            }
            call.messages.push(count);
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
        let mut addresses = Vec::with_capacity(self.messages.len());
        let mut messages = Vec::with_capacity(self.messages.len());
        let mut at = 0;
        for count in &self.messages {
            let to = queued.get(at).map(|it| it.to).unwrap_or_default();
            // One to an address of the wrong family ends the call; alone at its front, it fails.
            let Some(address) = S::from_endpoint(to) else { break };
            addresses.push(Some(address));
            messages.push(slices.get(at..at + count).expect("messages are made of these"));
            at += count;
        }
        if messages.is_empty() {
            return Err(Errno::EAFNOSUPPORT);
        }
        let source = source(self.from.unwrap_or(Ipv6Addr::UNSPECIFIED));
        let extras = [
            ControlMessage::Ipv6PacketInfo(&source),
            ControlMessage::UdpGsoSegments(&self.segment),
        ];
        let said = usize::from(self.from.is_none())..1 + usize::from(self.segment > 0);
        let extras = extras.get(said).unwrap_or(&[]);
        // Exactly as much: the kernel would take what is left for a third one.
        let control = match (self.from, self.segment) {
            (None, 0) => None,
            (None, _) => Some(cmsg_space!(u16)),
            (Some(_), 0) => Some(cmsg_space!(in6_pktinfo)),
            (Some(_), _) => Some(cmsg_space!(in6_pktinfo, u16)),
        };
        let mut headers = MultiHeaders::preallocate(messages.len(), control);
        let sent =
            sendmmsg(fd, &mut headers, &messages, addresses, extras, MsgFlags::empty())?.count();
        Ok(self.messages.iter().take(sent).sum())
    }
}

/// As the kernel is told what to send from, on whichever interface leads there.
fn source(addr: Ipv6Addr) -> in6_pktinfo {
    in6_pktinfo { ipi6_addr: in6_addr { s6_addr: addr.octets() }, ipi6_ifindex: 0 }
}

/// How many from the front on go to one address and have one size, but for a last one that may be
/// smaller: that is what the kernel can make of one message. Empty ones it cannot.
fn alike(queued: &[Queued]) -> usize {
    let Some(first) = queued.first() else { return 0 };
    let mut size = 0;
    let mut ended = false;
    let follows = |next: &&Queued| {
        size += usize::from(next.size);
        let fits = !ended && (1..=first.size).contains(&next.size) && size <= SEGMENTED_SIZE_MAX;
        ended |= next.size < first.size;
        fits && (next.to, next.from) == (first.to, first.from)
    };
    queued.iter().take(SEGMENTS_MAX).take_while(follows).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(op: Op, value: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let header = wire::Header { op: op as u8, ..Default::default() };
        wire::emit(&mut out, &header, &[&vec![0; value]]);
        out
    }

    #[test]
    fn an_answer_is_sent_after_the_copies_that_were_added_before_it() {
        let to = |port| Endpoint { addr: [0; 16], port };
        // The service has the least address; a copy comes between two answers.
        let ports = [1, 9, 8, 1, 9, 1];
        let mut laid = Vec::new();
        let queued: Vec<Queued> = (0..)
            .zip(&ports)
            .map(|(at, port)| Queued { to: to(*port), buffer: at, ..Queued::default() })
            .collect();
        lay_together(&queued, &mut laid, &mut Vec::new());
        let order: Vec<(u16, u16)> = laid.iter().map(|it| (it.to.port, it.buffer)).collect();
        assert_eq!(order, [(8, 2), (9, 1), (9, 4), (1, 0), (1, 3), (1, 5)]);
    }

    #[test]
    fn replies_of_one_size_make_one_bundle_whatever_came_between() {
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
        let Outbound { queued, laid, keys, .. } = &mut outbound;
        lay_together(queued, laid, keys);
        let order: Vec<u16> = laid.iter().map(|it| it.buffer).collect();
        assert_eq!(order, [0, 3, 1, 5, 2, 4], "writes of a chain keep their order");
        assert_eq!(alike(laid), 3, "the last of a bundle may be smaller");
        let many = vec![laid[0]; BATCH_MAX];
        assert_eq!(alike(&many), SEGMENTS_MAX, "the kernel takes no longer ones");
    }

    #[test]
    fn requests_with_and_without_values_are_laid_apart() {
        let mut outbound = Outbound::new(Family::V4);
        for (op, value) in [(Op::Get, 16), (Op::Put, 80), (Op::Get, 16), (Op::Put, 80)] {
            outbound.push(Endpoint::default(), &datagram(op, value));
        }
        let Outbound { queued, laid, keys, .. } = &mut outbound;
        lay_together(queued, laid, keys);
        let order: Vec<u16> = laid.iter().map(|it| it.buffer).collect();
        assert_eq!((order, alike(laid)), (vec![1, 3, 0, 2], 3));
    }
}
