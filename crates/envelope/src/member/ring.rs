//! Where members are.

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, SocketAddrV6};
use wire::{ContentClass, Endpoint, Header, Op, ServicePrefix};

/// Consecutive UDP ports of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RingPorts {
    /// The first.
    pub first: SocketAddr,
    /// How many.
    pub ports: u16,
}

/// The addresses of all members. What comes from one of them must be a member's, and nothing else
/// may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    endpoints: HashSet<Endpoint>,
    /// The first bits of content addresses, and their port: members answer from there, and reach
    /// each other there.
    content: Option<(ServicePrefix, u16)>,
}

impl Ring {
    /// Of these members; `content` is the first content address, if there are any.
    #[must_use]
    pub fn new(members: &[RingPorts], content: Option<SocketAddrV6>) -> Self {
        let ports = members.iter().flat_map(|member| {
            let first = Endpoint::from(member.first);
            (0..member.ports).filter_map(move |offset| first.with_port_offset(offset))
        });
        let content = content.and_then(|at| Some((ServicePrefix::new(*at.ip())?, at.port())));
        Self { endpoints: ports.collect(), content }
    }

    /// All of them but content addresses.
    pub fn endpoints(&self) -> impl Iterator<Item = Endpoint> {
        self.endpoints.iter().copied()
    }

    /// Whether a member is there.
    #[must_use]
    pub fn has(&self, at: Endpoint) -> bool {
        self.endpoints.contains(&at)
            || self.content.is_some_and(|(prefix, port)| {
                port == at.port && prefix.addresses().holds(at.addr.into())
            })
    }

    /// The content address that a request of this header was sent to, if it was sent to one.
    pub(super) fn asked_at(&self, op: Op, header: &Header) -> Option<Endpoint> {
        let class = ContentClass::of_header(op, header)?;
        let (prefix, port) = self.content?;
        let addr = prefix.keyspace(header.keyspace)?.of_key(class, header.match_value);
        Some(Endpoint { addr: addr.octets(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn members_are_at_their_ports_and_at_content_addresses() {
        let members = [
            RingPorts { first: at("10.0.0.1:7700"), ports: 1 },
            RingPorts { first: at("10.0.0.2:7710"), ports: 3 },
        ];
        let SocketAddr::V6(content) = at("[fd00:1:2::]:7700") else { panic!("it is one of IPv6") };
        let ring = Ring::new(&members, Some(content));
        let has = |text| ring.has(at(text).into());
        for text in ["10.0.0.1:7700", "10.0.0.2:7710", "10.0.0.2:7712", "[fd00:1:2:30::9]:7700"] {
            assert!(has(text), "{text}");
        }
        for text in ["10.0.0.1:7701", "10.0.0.2:7713", "10.0.0.3:7700", "[fd00:1:2:30::9]:7701"] {
            assert!(!has(text), "{text}");
        }
        assert!(!has("[fd00:1:3::]:7700"));
        assert!(!Ring::default().has(Endpoint::default()));
    }
}
