//! Addresses of hosts, and the cables that link them, as `ip` is told.

use crate::cluster::{addresses_of_a_cache, addresses_of_a_node, content};
use crate::links::Side;
use crate::place::Place;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How hosts are linked, and what their addresses begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// By a router, and with these two bytes.
    V4([u8; 2]),
    /// By a router, and with fd78::/48. Keys have addresses, too, and the router is a host.
    Routed,
    /// By a bridge, and with fd78::/64. Keys have addresses, too. The process that switches runs on
    /// one of the hosts.
    Bridged,
}

/// The host that is the router, or where the bridge's process runs, where keys have addresses.
pub(super) const ROUTER: Place = Place::Switch(0);

/// The host's end of its cable.
pub const INTERFACE: &str = "eth0";

/// The other end.
pub(super) fn port(place: Place) -> String {
    format!("v{}", place.number())
}

/// The number of the bridge's port that leads to a host, and what it is called.
pub fn port_of(place: Place) -> (u32, String) {
    (place.number().into(), port(place))
}

/// The link-layer address of a host that a bridge links to others.
pub fn mac_of(place: Place) -> String {
    format!("02:78:00:00:00:{:02x}", place.number())
}

/// What `ip` is told at both ends.
pub(super) struct Cable {
    pub(super) at_the_router: String,
    pub(super) at_the_host: String,
}

impl Topology {
    pub(super) fn host(self, place: Place) -> IpAddr {
        self.address(place, 2)
    }

    /// What leads from there to all others.
    fn gateway(self, place: Place) -> IpAddr {
        match self {
            Self::V4(_) | Self::Routed => self.address(place, 1),
            Self::Bridged => self.host(ROUTER),
        }
    }

    fn address(self, place: Place, last: u8) -> IpAddr {
        let number = place.number();
        match self {
            Self::V4([first, second]) => Ipv4Addr::new(first, second, number, last).into(),
            Self::Routed => routed(place, last).into(),
            Self::Bridged => Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, number.into()).into(),
        }
    }

    /// Bits of the network that is a host's cable, or all cables of a bridge.
    fn bits(self) -> u8 {
        match self {
            Self::V4(_) => 24,
            Self::Routed | Self::Bridged => 64,
        }
    }

    /// Whether this host is where the cables of all others meet.
    pub(super) fn is_router(self, place: Place) -> bool {
        !matches!(self, Self::V4(_)) && place == ROUTER
    }

    pub(super) fn is_bridged(self) -> bool {
        self == Self::Bridged
    }

    /// The setting by which the kernel of the router forwards; `None` if it does not.
    pub(super) fn forwards(self) -> Option<&'static str> {
        match self {
            Self::V4(_) => Some("/proc/sys/net/ipv4/ip_forward"),
            Self::Routed => Some("/proc/sys/net/ipv6/conf/all/forwarding"),
            Self::Bridged => None,
        }
    }

    /// What the router begins with.
    pub(super) fn of_the_router(self) -> String {
        let mut text = "link set lo up\n".to_owned();
        if self == Self::Routed {
            text.push_str(&format!("address add {}/128 dev lo nodad\n", self.host(ROUTER)));
        }
        text
    }

    /// Where a host is to the router.
    pub(super) fn side(self, place: Place) -> Side {
        if self == Self::Routed && place == ROUTER {
            Side::Here(routed(place, 2))
        } else {
            Side::Port(port(place))
        }
    }

    /// The cable of a host in this namespace.
    pub(super) fn cable(self, place: Place, namespace: &str) -> Cable {
        let (port, address, gateway) = (port(place), self.host(place), self.gateway(place));
        let bits = self.bits();
        // Nobody else can have an IPv6 address.
        let nodad = if matches!(self, Self::V4(_)) { "" } else { " nodad" };
        let (mac, at_the_port, way) = match self {
            Self::V4(_) | Self::Routed => (
                String::new(),
                format!("address add {gateway}/{bits} dev {port}{nodad}\n"),
                format!("route add default via {gateway}\n"),
            ),
            Self::Bridged => {
                let keys = content().addresses();
                let way = format!("route add {keys} via {gateway} dev {INTERFACE}\n");
                let way = if place == ROUTER { String::new() } else { way };
                (format!(" address {}", mac_of(place)), String::new(), way)
            }
        };
        let at_the_router = format!(
            "link add {port} type veth peer name {INTERFACE}{mac} netns {namespace}\n\
             {at_the_port}link set {port} up\n"
        );
        let mut at_the_host = format!(
            "link set lo up\n\
             address add {address}/{bits} dev {INTERFACE}{nodad}\n\
             link set {INTERFACE} up\n{way}"
        );
        if !matches!(self, Self::V4(_)) {
            at_the_host.push_str(&own_addresses(place));
        }
        Cable { at_the_router, at_the_host }
    }
}

fn routed(place: Place, last: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd78, 0, 0, place.number().into(), 0, 0, 0, last.into())
}

/// The addresses of keys that a host takes as its own.
fn own_addresses(place: Place) -> String {
    match place {
        Place::Node(_) => addresses_of_a_node(),
        Place::Cache(_) => addresses_of_a_cache(),
        Place::Switch(_) | Place::Controllers | Place::Site(_) | Place::Client(_) => String::new(),
    }
}
