//! Batches of datagrams between the kernel and a face.
//!
//! Most of what a datagram costs is its way through the kernel. So datagrams of one size to one
//! address are handed over as one, which the kernel takes apart at the end of that way (UDP
//! segmentation offload), and what comes like that is received as one.

use machine::Datagram;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage,
    recvmmsg, sendmsg, sendto, setsockopt, sockopt,
};
use std::cell::RefCell;
use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use wire::Endpoint;

/// Datagrams of one batch that are alike are sent as one, if they lie in so many kinds; a mix of
/// more sizes goes in more calls.
const RUNS_MAX: usize = 8;
/// The kernel cuts one message into so many datagrams at most (`UDP_MAX_SEGMENTS`).
const SEGMENTS_MAX: usize = 64;
/// Bytes that the kernel takes as one to cut: an IP packet's 64 KiB less its headers.
const RUN_BYTES_MAX: usize = 65_000;
/// What one call receives at most: so many datagrams, or runs of them.
const PLACES: usize = 16;
/// Bytes of the longest run.
const PLACE_BYTES: usize = 64 << 10;

/// Datagrams that are about to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    runs: Vec<Run>,
}

/// Datagrams of one size to one address, one after the other.
#[derive(Debug)]
struct Run {
    to: Endpoint,
    size: usize,
    bytes: Vec<u8>,
}

impl Outgoing {
    /// Takes a copy of a datagram, and may send some that were pushed before. They are sent in any
    /// order.
    pub(crate) fn push(&mut self, socket: &impl AsRawFd, datagram: Datagram<'_>) {
        let Datagram { to, payload } = datagram;
        let size = payload.len();
        let is_alike = |run: &Run| run.size == size && run.to == to;
        let place = self.runs.iter().position(is_alike);
        let place = place.or_else(|| self.runs.iter().position(|run| run.bytes.is_empty()));
        let place = place.unwrap_or_else(|| {
            if self.runs.len() < RUNS_MAX {
                self.runs.push(Run { to, size, bytes: Vec::new() });
                return self.runs.len() - 1;
            }
            self.send(socket);
            0
        });
        let run = self.runs.get_mut(place).expect("it was found, or made");
        (run.to, run.size) = (to, size);
        run.bytes.extend_from_slice(payload);
        if run.bytes.len() >= SEGMENTS_MAX * size || run.bytes.len() + size > RUN_BYTES_MAX {
            run.send(socket.as_raw_fd());
        }
    }

    /// Sends what was pushed. A datagram that cannot be sent is as good as lost on the way.
    pub(crate) fn send(&mut self, socket: &impl AsRawFd) {
        self.runs.iter_mut().for_each(|run| run.send(socket.as_raw_fd()));
    }
}

impl Run {
    fn send(&mut self, socket: RawFd) {
        let to = SockaddrStorage::from(SocketAddr::from(self.to));
        let is_sent = self.bytes.len() > self.size && self.send_as_one(socket, &to).is_ok();
        if !is_sent {
            for datagram in self.bytes.chunks(self.size.max(1)) {
                // What is not sent now is sent again when its answer does not come.
                sendto(socket, datagram, &to, MsgFlags::MSG_DONTWAIT).unwrap_or_default();
            }
        }
        self.bytes.clear();
    }

    /// An error means that none was sent: kernels before 4.18 cannot do it, nor can they if one
    /// datagram is longer than the path's packets.
    fn send_as_one(&self, socket: RawFd, to: &SockaddrStorage) -> nix::Result<()> {
        let size = u16::try_from(self.size).map_err(|_| Errno::EMSGSIZE)?;
        let bytes = [IoSlice::new(&self.bytes)];
        let cut = [ControlMessage::UdpGsoSegments(&size)];
        sendmsg(socket, &bytes, &cut, MsgFlags::MSG_DONTWAIT, Some(to)).map(drop)
    }
}

thread_local! {
    /// Where datagrams are received to: the clients of a thread share it. Of most places only the
    /// first page is ever touched.
    static BUFFERS: RefCell<Box<[[u8; PLACE_BYTES]; PLACES]>> = RefCell::new(buffers());
}

/// Made where they stay: they are too large for a stack.
fn buffers() -> Box<[[u8; PLACE_BYTES]; PLACES]> {
    let buffers = vec![[0; PLACE_BYTES]; PLACES].into_boxed_slice();
    buffers.try_into().expect("as many buffers as places")
}

/// Lets the socket receive as one what was sent as one. A kernel that cannot (before 5.0) hands
/// each datagram over by itself.
pub(crate) fn receive_runs(socket: &impl AsFd) {
    setsockopt(socket, sockopt::UdpGroSegment, &true).unwrap_or_default();
}

/// Receives what waits in a socket, without waiting for more. Returns whether that was all; if it
/// was not, there is more, or an error told what the network said of a datagram sent earlier.
pub(crate) fn receive(socket: &impl AsRawFd, mut take: impl FnMut(Endpoint, &[u8])) -> bool {
    BUFFERS.with_borrow_mut(|buffers| {
        let mut slices = buffers.each_mut().map(|buffer| [IoSliceMut::new(buffer)]);
        // New ones each time: the length of control messages is not set again in used ones.
        let mut headers =
            MultiHeaders::<SockaddrStorage>::preallocate(PLACES, Some(cmsg_space!(i32)));
        let places = slices.iter_mut();
        let socket = socket.as_raw_fd();
        match recvmmsg(socket, &mut headers, places, MsgFlags::MSG_DONTWAIT, None) {
            Ok(results) => {
                let mut count = 0;
                for run in results {
                    count += 1;
                    let from = sender(&run);
                    let bytes = run.iovs().next().unwrap_or_default();
                    let size = segment(&run).unwrap_or(bytes.len()).max(1);
                    bytes.chunks(size).for_each(|datagram| take(from, datagram));
                }
                count < PLACES
            }
            Err(errno) => errno == Errno::EAGAIN,
        }
    })
}

/// Bytes of each datagram of a run but the last, which may have fewer.
fn segment(run: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<usize> {
    run.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
        _ => None,
    })
}

fn sender(run: &RecvMsg<'_, '_, SockaddrStorage>) -> Endpoint {
    let Some(from) = run.address else { return Endpoint::default() };
    let v4 = from.as_sockaddr_in().map(|it| SocketAddr::V4(SocketAddrV4::from(*it)));
    let v6 = || from.as_sockaddr_in6().map(|it| SocketAddr::V6(SocketAddrV6::from(*it)));
    v4.or_else(v6).map_or_else(Endpoint::default, Endpoint::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::net::UdpSocket;

    /// A sender and a receiver, which takes runs or not.
    fn pair(at: &str, runs: bool) -> (UdpSocket, UdpSocket) {
        let (sender, receiver) = (UdpSocket::bind(at).unwrap(), UdpSocket::bind(at).unwrap());
        receiver.set_nonblocking(true).unwrap();
        if runs {
            receive_runs(&receiver);
        }
        (sender, receiver)
    }

    /// Sends datagrams of these sizes in a batch, each with its number and bytes of its own, and
    /// checks that all of them come. Loopback delivers before the sending call returns.
    fn round_trip(at: &str, runs: bool, sizes: impl IntoIterator<Item = usize>) {
        let (sender, receiver) = pair(at, runs);
        let to = Endpoint::from(receiver.local_addr().unwrap());
        let mut outgoing = Outgoing::default();
        let mut missing = BTreeMap::new();
        for (number, size) in (0_u32..).zip(sizes) {
            let filled = (4..size).map(|at| u8::try_from((at * 31 + size) % 251).unwrap());
            let payload: Vec<u8> = number.to_be_bytes().into_iter().chain(filled).collect();
            outgoing.push(&sender, Datagram { to, payload: &payload });
            missing.insert(number, payload);
        }
        outgoing.send(&sender);
        let mut drained = false;
        while !drained {
            drained = receive(&receiver, |from, datagram| {
                assert_eq!(from, Endpoint::from(sender.local_addr().unwrap()));
                let number = u32::from_be_bytes(*datagram.first_chunk().unwrap());
                assert_eq!(missing.remove(&number).as_deref(), Some(datagram));
            });
        }
        assert!(missing.is_empty(), "{} datagrams did not come", missing.len());
    }

    #[test]
    fn every_datagram_comes_whole_and_once_however_batches_are_cut() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            for runs in [false, true] {
                round_trip(at, runs, [100]);
                round_trip(at, runs, [100; 200]);
                round_trip(at, runs, [wire::DATAGRAM_MAX; 50]);
                // More sizes than there are runs, in turns; and each of its own.
                round_trip(at, runs, (0..150).map(|number| 64 + number % 11));
                round_trip(at, runs, (0..150).map(|number| 64 + number));
            }
        }
    }

    #[test]
    fn an_empty_socket_is_drained_at_once_and_a_longer_datagram_shows_as_one() {
        let (sender, receiver) = pair("127.0.0.1:0", true);
        assert!(receive(&receiver, |_, _| panic!("nothing was sent")));
        sender.send_to(&[7; 9000], receiver.local_addr().unwrap()).unwrap();
        let mut lengths = Vec::new();
        assert!(receive(&receiver, |_, datagram| lengths.push(datagram.len())));
        assert_eq!(lengths, [9000]);
    }

    #[test]
    fn what_was_sent_as_one_is_received_by_few_calls() {
        let (sender, receiver) = pair("127.0.0.1:0", true);
        let to = Endpoint::from(receiver.local_addr().unwrap());
        let mut outgoing = Outgoing::default();
        (0..10 * SEGMENTS_MAX).for_each(|_| {
            outgoing.push(&sender, Datagram { to, payload: &[1; 100] });
        });
        outgoing.send(&sender);
        let mut count = 0;
        assert!(receive(&receiver, |_, _| count += 1), "ten runs have room in one call");
        assert_eq!(count, 10 * SEGMENTS_MAX);
    }
}
