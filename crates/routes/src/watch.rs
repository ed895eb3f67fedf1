//! What others do to links, addresses and routes.

use crate::channel::{ALIGNMENT, Error, receive_buffer};
use netlink_packet_core::{NetlinkBuffer, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::RouteProtocol;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io::ErrorKind;

/// A socket on which the kernel tells of all changes.
#[derive(Debug)]
pub(crate) struct Watch(Socket);

/// What has happened since somebody looked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Members may be reached otherwise.
    pub(crate) ways: bool,
    /// Somebody else has changed routes of ours.
    pub(crate) routes: bool,
}

impl Watch {
    pub(crate) fn open() -> Result<Self, Error> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            for group in [LINKS, IPV6_ADDRESSES, IPV6_ROUTES] {
                socket.add_membership(group)?;
            }
            socket.set_non_blocking(true)?;
            receive_buffer(&socket)?;
            Ok(Self(socket))
        };
        open().map_err(Error::kernel("cannot hear of changes of routes"))
    }

    /// Adds what has happened since it was asked last; `own` is whose changes do not count,
    /// `protocol` whose routes are ours.
    pub(crate) fn look(
        &self,
        seen: &mut Seen,
        own: u32,
        protocol: RouteProtocol,
    ) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(EVENTS_MAX);
        loop {
            bytes.clear();
            match self.0.recv(&mut bytes, 0) {
                Ok(_) => {}
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                    // Some were lost: anything may have happened.
                    *seen = Seen { ways: true, routes: true };
                    continue;
                }
                Err(why) => return Err(Error::kernel("cannot hear of changes of routes")(why)),
            }
            for event in events(&bytes).filter(|event| event.port_number() != own) {
                let event = NetlinkMessage::<RouteNetlinkMessage>::deserialize(event.into_inner());
                let Ok(NetlinkPayload::InnerMessage(event)) = event.map(|event| event.payload)
                else {
                    // Something that this library does not know.
                    seen.ways = true;
                    continue;
                };
                match event {
                    RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route)
                        if route.header.protocol == protocol =>
                    {
                        seen.routes = true;
                    }
                    _ => seen.ways = true,
                }
            }
        }
    }
}

/// The messages of a datagram, not yet read: most are about changes of our own.
fn events(bytes: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let event = NetlinkBuffer::new_checked(rest).ok()?;
        let len = usize::try_from(event.length()).ok()?;
        rest = rest.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        Some(event)
    })
}

/// Netlink's group for links (`RTNLGRP_LINK`).
const LINKS: u32 = 1;
/// That for IPv6 addresses (`RTNLGRP_IPV6_IFADDR`).
const IPV6_ADDRESSES: u32 = 9;
/// That for IPv6 routes (`RTNLGRP_IPV6_ROUTE`).
const IPV6_ROUTES: u32 = 11;
/// The kernel puts no more into a datagram.
const EVENTS_MAX: usize = 32 << 10;
