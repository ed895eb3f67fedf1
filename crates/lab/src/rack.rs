//! What hosts a rack has, and how they, their links and their addresses are called. Racks do not
//! see each other: all have the same addresses.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Nodes of a rack: as many as the ports of a top-of-rack switch.
pub const NODES_MAX: u16 = 32;
/// Clients of a rack: more than one machine has cores to let them work.
pub const CLIENTS_MAX: u16 = 16;
/// Bytes of a lab's name, so that names of namespaces are short enough to be read.
pub const NAME_MAX: usize = 20;

/// The address that clients send everything to; it is the switch's, and the gateway of all hosts.
pub const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);

/// What IPv6 addresses of hosts begin with, where hosts have some.
const HOSTS: u16 = 0xfd77;

/// The first address of those of keys: the service prefix, in which no host is.
pub const CONTENT: Ipv6Addr = Ipv6Addr::new(HOSTS, 1, 0, 0, 0, 0, 0, 0);

/// A host, by what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabHost {
    /// The switch, which all links lead to.
    Switch,
    /// The controller.
    Controller,
    /// A storage node, by its id from 1.
    Node(u16),
    /// A cache, by its id from 1.
    Cache(u16),
    /// A client, counted from 0.
    Client(u16),
}

impl fmt::Display for LabHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("sw"),
            Self::Controller => f.write_str("ctl"),
            Self::Node(id) => write!(f, "n{id}"),
            Self::Cache(id) => write!(f, "k{id}"),
            Self::Client(index) => write!(f, "c{index}"),
        }
    }
}

impl LabHost {
    /// Its last two bytes in all addresses, which no other place has.
    fn number(self) -> [u8; 2] {
        let byte = |number: u16| u8::try_from(number).expect("racks are smaller");
        match self {
            Self::Switch => [255, 1],
            Self::Controller => [254, 1],
            Self::Node(id) => [1, byte(id)],
            Self::Client(index) => [2, byte(index + 1)],
            Self::Cache(id) => [3, byte(id)],
        }
    }

    /// Its address.
    pub fn address(self) -> Ipv4Addr {
        let [third, fourth] = self.number();
        let [first, second, ..] = SERVICE.octets();
        Ipv4Addr::new(first, second, third, fourth)
    }

    /// Its IPv6 address, if keys have addresses.
    pub fn address6(self) -> Ipv6Addr {
        let [third, fourth] = self.number().map(u16::from);
        Ipv6Addr::new(HOSTS, 0, 0, 0, 0, 0, third, fourth)
    }

    /// The interface at the switch's end of its link.
    pub fn port(self) -> String {
        format!("p-{self}")
    }

    /// The hardware address of its end of the link: locally administered, then "KW".
    pub fn host_mac(self) -> String {
        let [third, fourth] = self.number();
        format!("02:4b:57:00:{third:02x}:{fourth:02x}")
    }

    /// The hardware address of the switch's end.
    pub fn port_mac(self) -> String {
        let [third, fourth] = self.number();
        format!("02:4b:57:01:{third:02x}:{fourth:02x}")
    }
}

/// A rack, by its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rack {
    pub lab: String,
    pub nodes: u16,
    pub caches: u16,
    pub clients: u16,
}

impl Rack {
    /// Everything that is linked to the switch.
    pub fn hosts(&self) -> impl Iterator<Item = LabHost> + use<> {
        self.sides().chain([LabHost::Controller])
    }

    /// Hosts that requests and replies come from.
    pub fn sides(&self) -> impl Iterator<Item = LabHost> + use<> {
        self.clients().chain(self.nodes()).chain(self.caches())
    }

    /// Storage nodes.
    pub fn nodes(&self) -> impl Iterator<Item = LabHost> + use<> {
        (1..=self.nodes).map(LabHost::Node)
    }

    /// Caches.
    pub fn caches(&self) -> impl Iterator<Item = LabHost> + use<> {
        (1..=self.caches).map(LabHost::Cache)
    }

    /// Hosts for clients.
    pub fn clients(&self) -> impl Iterator<Item = LabHost> + use<> {
        (0..self.clients).map(LabHost::Client)
    }

    /// Everything that has a namespace.
    pub fn places(&self) -> impl Iterator<Item = LabHost> + use<> {
        std::iter::once(LabHost::Switch).chain(self.hosts())
    }

    /// The namespace of a host.
    pub fn namespace(&self, place: LabHost) -> String {
        format!("keyway-{}-{place}", self.lab)
    }
}

/// The name that a lab has if it is given none.
pub const NAME: &str = "lab";

/// What a command for this lab is told besides, for people.
pub fn name_option(lab: &str) -> String {
    if lab == NAME { String::new() } else { format!(" --name {lab}") }
}

/// Reads a lab's name. Without hyphens, so that no two labs have namespaces of the same name.
pub fn name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?}: choose 1 to {NAME_MAX} small letters and digits"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn largest() -> Rack {
        let caches = wire::CACHES_MAX as u16;
        Rack { lab: "a".repeat(NAME_MAX), nodes: NODES_MAX, caches, clients: CLIENTS_MAX }
    }

    #[test]
    fn no_two_places_share_a_name_or_an_address() {
        let rack = largest();
        let count = rack.places().count();
        let distinct = |of: &dyn Fn(LabHost) -> String| {
            rack.places().map(of).collect::<BTreeSet<String>>().len()
        };
        assert_eq!(count, usize::from(NODES_MAX + CLIENTS_MAX + 2) + wire::CACHES_MAX);
        assert_eq!(distinct(&|place| rack.namespace(place)), count);
        assert_eq!(distinct(&|place| place.address().to_string()), count);
        assert_eq!(distinct(&|place| place.address6().to_string()), count);
        let content = wire::ServicePrefix::new(CONTENT).expect("a service prefix").addresses();
        assert!(!rack.places().any(|place| content.holds(place.address6())));
        assert_eq!(distinct(&LabHost::port), count);
        let macs = rack.hosts().flat_map(|place| [place.host_mac(), place.port_mac()]);
        assert_eq!(macs.collect::<BTreeSet<String>>().len(), 2 * (count - 1));
        assert_eq!(LabHost::Switch.address(), SERVICE);
    }

    #[test]
    fn the_kernel_takes_the_names_of_interfaces() {
        assert!(largest().hosts().all(|place| place.port().len() <= 15));
    }

    #[test]
    fn a_name_that_could_be_taken_for_another_labs_is_refused() {
        assert_eq!(name("lab2"), Ok("lab2".to_owned()));
        for text in ["", "a-b", "A", "a/b", "..", "much2long4a9name2to4be9read"] {
            assert!(name(text).is_err(), "{text:?}");
        }
    }
}
