//! Our routes in the kernel.

use crate::channel::{Channel, Error, Request};
use crate::watch::{Seen, Watch};
use crate::ways::{Way, Ways, next_hop};
use content::{Change, Entry};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use wire::{AddressPrefix, ROUTE_METRIC, ROUTE_PROTOCOL, ServicePrefix};

/// The routes of this network namespace that lead to members of a cluster.
#[derive(Debug)]
pub struct Fib {
    service: ServicePrefix,
    channel: Channel,
    watch: Watch,
    ways: Ways,
    seen: Seen,
}

impl Fib {
    /// Those of the namespace in which this thread is, for these addresses.
    ///
    /// # Errors
    ///
    /// If this process may not change routes.
    pub fn open(service: ServicePrefix) -> Result<Self, Error> {
        let (channel, watch) = (Channel::open()?, Watch::open()?);
        let mut fib =
            Self { service, channel, watch, ways: Ways::default(), seen: Seen::default() };
        fib.try_out()?;
        Ok(fib)
    }

    /// Whether routes may be changed: taking out one that cannot be there is refused for its
    /// absence if they may.
    fn try_out(&mut self) -> Result<(), Error> {
        let prefix = AddressPrefix { addr: self.service.addresses().addr, len: 128 };
        match self.channel.ask_for_all(vec![deletion(prefix)])?.first() {
            Some((_, Errno::EPERM)) => Err(Error::NoRight),
            Some((_, Errno::ESRCH)) | None => Ok(()),
            Some((_, why)) => {
                Err(Error::Kernel { what: "cannot change routes", why: (*why).into() })
            }
        }
    }

    /// Our routes as they are, whoever has made them. Where one leads to a member as it should
    /// (`wanted`), that is named, and otherwise its next hop.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn routes(
        &mut self,
        wanted: impl Fn(AddressPrefix) -> Option<Ipv6Addr>,
    ) -> Result<Vec<Entry>, Error> {
        let mut like = RouteMessage::default();
        like.header = header(0);
        (like.header.kind, like.header.scope) = (RouteType::Unspec, RouteScope::Universe);
        let mut entries = Vec::new();
        for route in self.channel.dump(like)? {
            let Some((prefix, hop)) = self.ours(&route) else { continue };
            let via = match wanted(prefix) {
                Some(member) if self.ways.find(&mut self.channel, member)? == Some(hop) => member,
                _ => hop.gateway,
            };
            entries.push(Entry { prefix, via });
        }
        Ok(entries)
    }

    /// What a route of ours leads to. Its addresses may be those of another cluster.
    fn ours(&self, route: &RouteMessage) -> Option<(AddressPrefix, Way)> {
        let (mut addr, mut metric) = (None, None);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet6(it)) => addr = Some(*it),
                RouteAttribute::Priority(it) => metric = Some(*it),
                _ => {}
            }
        }
        let prefix = AddressPrefix { addr: addr?, len: route.header.destination_prefix_length };
        let own = route.header.protocol == protocol()
            && route.header.table == RouteHeader::RT_TABLE_MAIN
            && metric == Some(ROUTE_METRIC as u32)
            && self.service.addresses().holds(prefix.addr);
        let (gateway, interface) = next_hop(route);
        // Without these it is none that we have made: it leads nowhere that is wanted.
        let hop = Way {
            gateway: gateway.unwrap_or(Ipv6Addr::UNSPECIFIED),
            interface: interface.unwrap_or(0),
        };
        own.then_some((prefix, hop))
    }

    /// Makes these changes. Says which could not be made, and why.
    ///
    /// # Errors
    ///
    /// If the kernel does not answer; some may have been made then.
    pub fn apply(&mut self, changes: &[Change]) -> Result<BTreeMap<AddressPrefix, Errno>, Error> {
        let refused = self.ask_for(changes)?;
        self.look()?;
        Ok(refused)
    }

    fn ask_for(&mut self, changes: &[Change]) -> Result<BTreeMap<AddressPrefix, Errno>, Error> {
        let (mut refused, mut asked) = (BTreeMap::new(), Vec::with_capacity(changes.len()));
        let mut requests = Vec::with_capacity(changes.len());
        for Change { prefix, via } in changes {
            let request = match via {
                None => deletion(*prefix),
                Some(member) => match self.ways.find(&mut self.channel, *member)? {
                    Some(way) => addition(*prefix, way),
                    None => {
                        refused.insert(*prefix, Errno::EHOSTUNREACH);
                        continue;
                    }
                },
            };
            asked.push((*prefix, via.is_none()));
            requests.push(request);
        }
        for (place, why) in self.channel.ask_for_all(requests)? {
            match asked.get(place) {
                // It went with its link.
                Some((_, true)) if why == Errno::ESRCH => {}
                Some(_) if why == Errno::EPERM => return Err(Error::NoRight),
                Some((prefix, _)) => drop(refused.insert(*prefix, why)),
                None => return Err(Error::Answer(format!("to request {place}"))),
            }
        }
        Ok(refused)
    }

    /// Whether somebody else has changed something since it was asked last, so that our routes, or
    /// the ways to members, may be other than they were: then look at [`routes`](Self::routes).
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn has_changed(&mut self) -> Result<bool, Error> {
        self.look()?;
        let Seen { ways, routes } = std::mem::take(&mut self.seen);
        let otherwise = (ways || routes) && self.ways.look_again(&mut self.channel)?;
        Ok(otherwise || routes)
    }

    /// Hears what has happened; there is little room for what nobody hears.
    fn look(&mut self) -> Result<(), Error> {
        self.watch.look(&mut self.seen, self.channel.port(), protocol())
    }
}

/// Our protocol, as netlink's library says it.
fn protocol() -> RouteProtocol {
    RouteProtocol::from(u8::try_from(ROUTE_PROTOCOL).expect("protocols are bytes"))
}

fn header(len: u8) -> RouteHeader {
    RouteHeader {
        address_family: AddressFamily::Inet6,
        destination_prefix_length: len,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: protocol(),
        scope: RouteScope::Universe,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    }
}

/// A route for a prefix, without a next hop.
fn route(prefix: AddressPrefix) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header = header(prefix.len);
    route.attributes.push(RouteAttribute::Destination(RouteAddress::Inet6(prefix.addr)));
    route.attributes.push(RouteAttribute::Priority(ROUTE_METRIC as u32));
    route
}

/// In place of what leads elsewhere, if there is something, without a moment between.
fn addition(prefix: AddressPrefix, way: Way) -> Request {
    let mut route = route(prefix);
    route.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet6(way.gateway)));
    route.attributes.push(RouteAttribute::Oif(way.interface));
    let message = RouteNetlinkMessage::NewRoute(route);
    Request { message, flags: NLM_F_CREATE | NLM_F_REPLACE }
}

fn deletion(prefix: AddressPrefix) -> Request {
    Request { message: RouteNetlinkMessage::DelRoute(route(prefix)), flags: 0 }
}
