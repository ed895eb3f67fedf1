//! A client's socket: what it sends and receives, in envelopes if its cluster has some.

use envelope::{ClientEnvelopes, ClientOpened, Seat};
use machine::Instant;
use net::{Inbound, Outbound, Socket};
use std::io;
use std::time::Duration;
use wire::Endpoint;

/// A socket with what passes through it in batches. It waits for nothing.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
    inbound: Inbound,
    outbound: Outbound,
    envelopes: Option<ClientEnvelopes>,
}

impl Channel {
    /// Through this socket; with a seat, everything is in envelopes.
    #[must_use]
    pub fn new(socket: Socket, seat: Option<&Seat>) -> Self {
        let (inbound, outbound) = (Inbound::new(socket.family()), Outbound::new(socket.family()));
        let envelopes = seat.map(|seat| ClientEnvelopes::new(seat.passes().clone()));
        Self { socket, inbound, outbound, envelopes }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Hands over the packets of a batch of what has arrived, and says how many datagrams that was.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn receive(&mut self, mut take: impl FnMut(Endpoint, &mut [u8])) -> io::Result<usize> {
        let received = self.inbound.receive(&self.socket)?;
        let mut has_cookie = false;
        for datagram in self.inbound.iter_mut() {
            let Some(envelopes) = &mut self.envelopes else {
                take(datagram.from, datagram.payload);
                continue;
            };
            match envelopes.open(datagram.from, datagram.payload) {
                Ok(ClientOpened::Packet(packet)) => take(datagram.from, packet),
                Ok(ClientOpened::Cookie) => has_cookie = true,
                // It was counted.
                Err(_) => {}
            }
        }
        if has_cookie {
            self.resend();
        }
        Ok(received)
    }

    /// Sends what has waited for a cookie.
    fn resend(&mut self) {
        let Self { socket, outbound, envelopes, .. } = self;
        let Some(envelopes) = envelopes else { return };
        envelopes.resend(|to, envelope, packet| {
            outbound.push_behind(None, to, envelope, packet);
            if outbound.is_full() {
                outbound.send(socket);
            }
        });
        outbound.send(socket);
    }

    /// Adds a packet to what is sent next.
    pub fn push(&mut self, now: Instant, to: Endpoint, packet: &[u8]) {
        let Self { socket, outbound, envelopes, .. } = self;
        let mut push = |envelope: &[u8]| {
            outbound.push_behind(None, to, envelope, packet);
            if outbound.is_full() {
                outbound.send(socket);
            }
        };
        match envelopes {
            None => push(&[]),
            Some(envelopes) => {
                let now = Duration::from_nanos(now.0);
                envelopes.seal(now, to, packet, |envelope| push(envelope));
            }
        }
    }

    /// Sends what was added. What cannot be sent is as good as lost on the way.
    pub fn send(&mut self) {
        self.outbound.send(&self.socket);
    }
}
