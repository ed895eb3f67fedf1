//! The socket of a face, and the datagrams that pass between it and the machine, in batches.

use crate::face::Driver;
use crate::{Channel, SERVICES_MAX, Services};
use envelope::Seat;
use net::Socket;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd, RawFd};

/// A socket to talk to every service address with. It is not connected: replies need not come from
/// where requests go, and a service that is not up yet must not break it.
#[derive(Debug)]
pub(crate) struct Port(Channel);

impl Port {
    pub(crate) fn bind(services: &Services, seat: Option<&Seat>) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = services.0.iter().map(|it| (*it).into()).collect();
        let Some(first) = addresses.first().filter(|_| addresses.len() <= SERVICES_MAX) else {
            let what = format!("{} service addresses; give 1 to {SERVICES_MAX}", addresses.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        };
        if let Some(other) = addresses.iter().find(|it| it.is_ipv4() != first.is_ipv4()) {
            let what = format!(
                "no socket reaches both {first} and {other}: give every service address as IPv4, \
                 or every one as IPv6"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let any = match first {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = Socket::bind(any)?;
        // Others may share the thread, and what is not sent is as good as lost on the way.
        socket.never_wait()?;
        Ok(Self(Channel::new(socket, seat)))
    }

    /// The socket once more, for those who wait on it.
    pub(crate) fn socket(&self) -> io::Result<UdpSocket> {
        Ok(self.0.socket().as_fd().try_clone_to_owned()?.into())
    }

    /// Hands the machine a batch of what has arrived. Callers wait for no more than that.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if nothing is there.
    pub(crate) fn receive(&mut self, driver: &mut Driver) -> io::Result<()> {
        let now = driver.now();
        let take = |from, packet: &mut [u8]| driver.machine.handle_packet(now, from, packet);
        match self.0.receive(take)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(()),
        }
    }

    /// Sends what the machine has to say. What cannot be sent is as good as lost on the way, and
    /// sent again.
    pub(crate) fn transmit(&mut self, driver: &mut Driver) {
        let now = driver.now();
        while let Some(datagram) = driver.machine.poll_transmit() {
            self.0.push(now, datagram.to, datagram.payload);
        }
        self.0.send();
        driver.note_sent();
    }
}

impl AsRawFd for Port {
    fn as_raw_fd(&self) -> RawFd {
        self.0.socket().as_raw_fd()
    }
}
