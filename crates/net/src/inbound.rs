//! Receiving a batch.
//!
//! A message is one datagram or a bundle: datagrams of one size, the last perhaps shorter, that
//! have come through the kernel as one (UDP generic receive offload). So one system call fetches
//! some messages with any number of datagrams, and a batch is as many of these as a receiver takes
//! in one turn. What is left is the next batch, and only then is the kernel asked again.

use super::batch::Headers;
use super::socket::KernelAddress;
use super::{BATCH_MAX, Family, Socket};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg};
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
    headers: Headers,
    /// Whether the kernel has changed what the headers say about room for control messages.
    headers_used: bool,
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
    /// The UDP payload, all of it, however much longer than `wire::DATAGRAM_MAX`.
    pub payload: &'a mut [u8],
}

impl Inbound {
    /// Buffers for datagrams of this kind of address.
    #[must_use]
    pub fn new(family: Family) -> Self {
        Self {
            family,
            headers: new_headers(family),
            headers_used: false,
            places: vec![0; MESSAGES_MAX * PLACE_SIZE].into_boxed_slice(),
            messages: [Message::default(); MESSAGES_MAX],
            first: 0,
            end: 0,
            len: 0,
            left: 0,
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
        (self.first, self.end) = (0, 0);
        if self.headers_used && socket.has_bundles() {
            // A header that was used for a single datagram has no room for a control message any
            // more, as nix does not restore it: the next bundle there would pass for one datagram.
            self.headers = new_headers(self.family);
            self.headers_used = false;
        }
        let fd = socket.as_raw_fd();
        for _ in 0..COMPLAINTS_MAX {
            let Self { places, messages, .. } = self;
            let result = match &mut self.headers {
                Headers::V4(headers) => fill(fd, headers, places, messages),
                Headers::V6(headers) => fill(fd, headers, places, messages),
            };
            match result {
                Ok(filled) => {
                    self.end = filled.messages;
                    self.left = filled.datagrams;
                    self.headers_used = filled.singles;
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

/// With room for the one control message that comes: the size of a bundle's datagrams.
fn new_headers(family: Family) -> Headers {
    Headers::new(family, MESSAGES_MAX, Some(cmsg_space!(i32)))
}

/// What a system call has brought.
struct Filled {
    messages: usize,
    datagrams: usize,
    /// Whether some messages were not bundles.
    singles: bool,
}

fn fill<S: KernelAddress>(
    fd: RawFd,
    headers: &mut MultiHeaders<S>,
    places: &mut [u8],
    messages: &mut [Message; MESSAGES_MAX],
) -> nix::Result<Filled> {
    let mut places = places.chunks_exact_mut(PLACE_SIZE);
    let mut slices: [[IoSliceMut<'_>; 1]; MESSAGES_MAX] =
        array::from_fn(|_| [IoSliceMut::new(places.next().expect("a place for each message"))]);
    let results = recvmmsg(fd, headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
    let mut filled = Filled { messages: 0, datagrams: 0, singles: false };
    for (result, message) in results.zip(messages) {
        let from = result.address.map_or_else(Endpoint::default, |from| from.to_endpoint());
        let segment = result.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
            _ => None,
        });
        *message = Message::new(from, result.bytes, segment);
        filled.messages += 1;
        filled.datagrams += message.count;
        filled.singles |= segment.is_none();
    }
    Ok(filled)
}
