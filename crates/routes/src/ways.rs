//! How members are reached: the next hops of routes.

use crate::channel::{Channel, Error, Request};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// The next hop on the way to a member: the member itself if it is on a link of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) gateway: Ipv6Addr,
    pub(crate) interface: u32,
}

/// The ways to all members that anything leads to, as the kernel said when it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Ways(BTreeMap<Ipv6Addr, Option<Way>>);

impl Ways {
    /// The way to a member, if there is one.
    pub(crate) fn find(
        &mut self,
        channel: &mut Channel,
        member: Ipv6Addr,
    ) -> Result<Option<Way>, Error> {
        if let Some(way) = self.0.get(&member) {
            return Ok(*way);
        }
        let way = ask(channel, member)?;
        self.0.insert(member, way);
        Ok(way)
    }

    /// Asks for all of them again. Says whether one is another.
    pub(crate) fn look_again(&mut self, channel: &mut Channel) -> Result<bool, Error> {
        let mut changed = false;
        for (member, known) in &mut self.0 {
            let way = ask(channel, *member)?;
            if way != *known {
                let now = way.map_or("nowhere".to_owned(), |way| format!("via {}", way.gateway));
                tracing::info!(%member, now, "a member is reached otherwise");
                (*known, changed) = (way, true);
            }
        }
        Ok(changed)
    }
}

fn ask(channel: &mut Channel, member: Ipv6Addr) -> Result<Option<Way>, Error> {
    let mut question = RouteMessage::default();
    question.header.address_family = AddressFamily::Inet6;
    question.header.destination_prefix_length = 128;
    let destination = RouteAttribute::Destination(RouteAddress::Inet6(member));
    question.attributes.push(destination);
    let message = RouteNetlinkMessage::GetRoute(question);
    let route = match channel.ask(Request { message, flags: 0 })? {
        Ok(route) if route.header.kind == RouteType::Unicast => route,
        // It is this machine itself, or somebody says that it is to be reached by nobody.
        Ok(_) | Err(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EACCES | Errno::EINVAL) => {
            return Ok(None);
        }
        Err(why) => {
            let what = "cannot ask how a member is reached";
            return Err(Error::Kernel { what, why: why.into() });
        }
    };
    let (gateway, interface) = next_hop(&route);
    Ok(interface.map(|interface| Way { gateway: gateway.unwrap_or(member), interface }))
}

/// What a route says of its next hop.
pub(crate) fn next_hop(route: &RouteMessage) -> (Option<Ipv6Addr>, Option<u32>) {
    let mut hop = (None, None);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => hop.0 = Some(*gateway),
            RouteAttribute::Oif(interface) => hop.1 = Some(*interface),
            _ => {}
        }
    }
    hop
}
