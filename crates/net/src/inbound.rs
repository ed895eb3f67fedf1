//! Receiving a batch.
//!
//! A message is one datagram or a bundle: datagrams of one size, the last perhaps shorter, that
//! have come through the kernel as one (UDP generic receive offload). So one system call fetches
//! some messages with any number of datagrams, and a batch is as many of these as a receiver takes
//! in one turn. What is left is the next batch, and only then is the kernel asked again.

use super::socket::KernelAddress;
use super::{BATCH_MAX, Family, Socket};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, recvmmsg,
};
use std::array;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, RawFd};
use wire::Endpoint;

/// Messages of one system call at most, each in a place of its own. Alone, twice as many would make
/// a batch full, but would gain little per message.
const MESSAGES_MAX: usize = 32;

/// Bytes of the place for a message: no UDP payload is longer than 65,535, so nothing is ever cut
/// off. That it is no multiple of a page keeps the beginnings of messages apart in the caches. All
/// places together are 2.1 MB of address space; memory is what messages have needed so far, a page
/// or two for each as a rule.
const PLACE_SIZE: usize = (64 << 10) + 192;

/// The messages of the last system call, in the memory in which they lie, and which of their
/// datagrams are the batch.
#[derive(Debug)]
pub struct Inbound {
    family: Family,
    places: Box<[u8]>,
    messages: [Message; MESSAGES_MAX],
    /// The first message with datagrams of the batch.
    first: usize,
    /// One beyond the last message.
    pub(super) end: usize,
    /// Datagrams of the batch.
    len: usize,
    /// Datagrams of the batch and behind it.
    left: usize,
    /// Messages that the next system call may bring: twice as many as the last one did, since each
    /// that may come costs a little even if it does not.
    room: usize,
    /// Whether the socket was found empty by the last system call.
    drained: bool,
}

/// What is left of a message: datagrams of the batch and behind it.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    from: Endpoint,
    /// Where they begin and end in its place.
    begin: usize,
    end: usize,
    /// Bytes of each but the last.
    segment: usize,
    count: usize,
}

/// One datagram of a batch.
#[derive(Debug)]
pub struct Received<'a> {
    /// Who sent it.
    pub from: Endpoint,
    /// How many datagrams that are here already waited behind it.
    pub waiting: u16,
    /// The UDP payload, all of it, however much longer than `wire::PACKET_MAX`.
    pub payload: &'a mut [u8],
}

impl Inbound {
    /// Buffers for datagrams of this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        Self {
            family,
            places: vec![0; MESSAGES_MAX * PLACE_SIZE].into_boxed_slice(),
            messages: [Message::default(); MESSAGES_MAX],
            first: 0,
            end: 0,
            len: 0,
            left: 0,
            room: MESSAGES_MAX,
            drained: false,
        }
    }

    /// Replaces the batch by the next one: what has been fetched and was too much for the last one,
    /// or else what waits in the socket. Does not wait for more. Returns how many datagrams the
    /// batch has, at most [`BATCH_MAX`]; 0 if the socket is empty.
    ///
    /// # Errors
    ///
    /// What the kernel says, but for interruptions and for complaints about datagrams sent earlier
    /// (a port that nobody listens on): those are no concern of a receiver.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        self.pass_over();
        if self.left == 0 {
            self.fetch(socket)?;
        }
        self.len = self.left.min(BATCH_MAX);
        Ok(self.len)
    }

    /// Takes the batch out of what has been fetched.
    fn pass_over(&mut self) {
        self.left -= self.len;
        while self.len > 0 {
            let message = self.messages.get_mut(self.first).expect("a batch lies in messages");
            let passed = self.len.min(message.count);
            message.pass_over(passed);
            self.len -= passed;
            if message.count == 0 {
                self.first += 1;
            }
        }
    }

    /// Fetches messages from the socket; nothing is left of the last ones.
    fn fetch(&mut self, socket: &Socket) -> io::Result<()> {
        (self.first, self.end, self.drained) = (0, 0, true);
        let (fd, bundles) = (socket.as_raw_fd(), socket.has_bundles());
        for _ in 0..COMPLAINTS_MAX {
            let Self { places, messages, room, .. } = self;
            let result = match self.family {
                Family::V4 => fill::<SockaddrIn>(fd, bundles, *room, places, messages),
                Family::V6 => fill::<SockaddrIn6>(fd, bundles, *room, places, messages),
            };
            match result {
                Ok(filled) => {
                    self.end = filled;
                    let datagrams = messages.iter().take(filled).map(|message| message.count);
                    self.left = datagrams.sum();
                    self.drained = filled < *room;
                    *room = (2 * filled).clamp(ROOM_MIN, MESSAGES_MAX);
                    return Ok(());
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR | Errno::ECONNREFUSED) => {}
                Err(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENETDOWN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Whether nothing came behind the batch until it was fetched: whatever is there by now has
    /// come since, and shows as a new event in an edge-triggered poll.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.drained && self.left == self.len
    }

    /// What the datagrams of the batch say.
    pub fn payloads(&self) -> impl Iterator<Item = &[u8]> {
        let messages = self.messages.iter().zip(self.places.chunks_exact(PLACE_SIZE));
        let messages = messages.take(self.end).skip(self.first);
        messages.flat_map(|(message, place)| message.payloads(place)).take(self.len)
    }

    /// The datagrams of the batch, in the order of their arrival.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = Received<'_>> {
        let last = self.left.saturating_sub(1);
        let messages = self.messages.iter().zip(self.places.chunks_exact_mut(PLACE_SIZE));
        let messages = messages.take(self.end).skip(self.first);
        let datagrams = messages.flat_map(|(message, place)| {
            let from = message.from;
            message.payloads_mut(place).map(move |payload| (from, payload))
        });
        let waiting = move |index| u16::try_from(last - index).unwrap_or(u16::MAX);
        let received = move |(index, (from, payload))| {
            let waiting = waiting(index);
            Received { from, waiting, payload }
        };
        datagrams.take(self.len).enumerate().map(received)
    }
}

impl Message {
    /// One that holds so many bytes in datagrams of this size, or in one if that is `None`.
    fn new(from: Endpoint, size: usize, segment: Option<usize>) -> Self {
        let segment = segment.unwrap_or(size).max(1);
        // A datagram may be empty, and is one all the same.
        Self { from, begin: 0, end: size, segment, count: size.div_ceil(segment).max(1) }
    }

    /// Takes datagrams from its front.
    fn pass_over(&mut self, datagrams: usize) {
        self.begin = self.end.min(self.begin + datagrams * self.segment);
        self.count -= datagrams;
    }

    fn payloads<'a>(&self, place: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = place.get(self.begin..self.end).expect("messages lie in their places");
        let empty = bytes.is_empty().then_some(&[][..]);
        empty.into_iter().chain(bytes.chunks(self.segment))
    }

    fn payloads_mut<'a>(
        &self,
        place: &'a mut [u8],
    ) -> impl Iterator<Item = &'a mut [u8]> + use<'a> {
        let bytes = place.get_mut(self.begin..self.end).expect("messages lie in their places");
        let empty = bytes.is_empty().then_some(&mut [][..]);
        empty.into_iter().chain(bytes.chunks_mut(self.segment))
    }
}

/// Complaints of the kernel that are passed over before the socket counts as empty.
const COMPLAINTS_MAX: usize = 16;

/// Messages that there is room for however few came before.
const ROOM_MIN: usize = 4;

/// Receives so many messages at most, perhaps bundles; gives how many came.
///
/// What the kernel is told about messages is made anew each time: it writes there how much of the
/// room for control messages it has used, none for a single datagram, and nix does not restore
/// that. The next bundle in such a place would pass for one datagram.
fn fill<S: KernelAddress>(
    fd: RawFd,
    bundles: bool,
    room: usize,
    places: &mut [u8],
    messages: &mut [Message; MESSAGES_MAX],
) -> nix::Result<usize> {
    // The one control message that comes is the size of a bundle's datagrams.
    let control = bundles.then(|| cmsg_space!(i32));
    let mut headers = MultiHeaders::<S>::preallocate(room, control);
    let mut places = places.chunks_exact_mut(PLACE_SIZE);
    let mut slices: [[IoSliceMut<'_>; 1]; MESSAGES_MAX] =
        array::from_fn(|_| [IoSliceMut::new(places.next().expect("a place for each message"))]);
    let slices = slices.iter_mut().take(room);
    let results = recvmmsg(fd, &mut headers, slices, MsgFlags::MSG_DONTWAIT, None)?;
    let mut count = 0;
    for (result, message) in results.zip(messages) {
        let from = result.address.map_or_else(Endpoint::default, |from| from.to_endpoint());
        let segment = result.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
            _ => None,
        });
        *message = Message::new(from, result.bytes, segment);
        count += 1;
    }
    Ok(count)
}
