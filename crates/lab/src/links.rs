//! Links that are bad, and how the router is told: packets that pass it from one host to another
//! are dropped, some of them or all. Hosts notice nothing but that.

use crate::place::Place;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// One direction between two hosts, and how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: Place,
    pub to: Place,
    /// Of 100 packets; 100 for a link that is cut.
    pub lost_percent: u8,
}

impl Link {
    /// By which a rule chooses what is lost.
    fn dice(self) -> String {
        match self.lost_percent {
            100.. => String::new(),
            percent => format!("numgen random mod 100 < {percent} "),
        }
    }
}

/// Packets between hosts, to a host that is the router itself, and from it.
const CHAINS: [(&str, &str); 3] = [("between", "forward"), ("into", "input"), ("out", "output")];

/// What the router begins with.
pub fn table() -> String {
    let chain = |(name, hook): (&str, &str)| {
        format!(" chain {name} {{\n type filter hook {hook} priority 0; policy accept;\n }}\n")
    };
    format!("table inet rack {{\n{}}}\n", CHAINS.map(chain).concat())
}

/// Where a host is, to the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// Behind this port.
    Port(String),
    /// It is the router itself, and has this address.
    Here(Ipv6Addr),
}

/// What makes exactly these links bad, in place of those that are; takes effect all at once.
pub fn rules(links: &[Link], side: impl Fn(Place) -> Side) -> String {
    let mut text = CHAINS.map(|(name, _)| format!("flush chain inet rack {name}\n")).concat();
    for link in links {
        let of = match (side(link.from), side(link.to)) {
            (Side::Port(from), Side::Port(to)) => {
                format!("between iifname \"{from}\" oifname \"{to}\"")
            }
            (Side::Port(from), Side::Here(to)) => {
                format!("into iifname \"{from}\" ip6 daddr {to}")
            }
            (Side::Here(from), Side::Port(to)) => {
                format!("out oifname \"{to}\" ip6 saddr {from}")
            }
            (Side::Here(_), Side::Here(_)) => continue,
        };
        writeln!(text, "add rule inet rack {of} {}drop", link.dice())
            .expect("strings take everything");
    }
    text
}

/// The same for links that end at one host, which knows others by their link-layer addresses.
pub fn rules_at_the_end<'a>(
    links: impl Iterator<Item = &'a Link>,
    mac: impl Fn(Place) -> String,
) -> String {
    let rule = |link: &Link| {
        format!("add rule inet rack into ether saddr {} {}drop\n", mac(link.from), link.dice())
    };
    "flush chain inet rack into\n".to_owned() + &links.map(rule).collect::<String>()
}

#[test]
fn a_cut_link_drops_every_packet_and_a_lossy_one_some() {
    let here = Ipv6Addr::LOCALHOST;
    let side = |place| match place {
        Place::Node(id) => Side::Port(format!("v{id}")),
        Place::Switch(_)
        | Place::Controllers
        | Place::Site(_)
        | Place::Client(_)
        | Place::Cache(_) => Side::Here(here),
    };
    let (one, two, router) = (Place::Node(1), Place::Node(2), Place::Switch(0));
    let link = |from, to, lost_percent| Link { from, to, lost_percent };
    let links = [
        link(one, two, 100),
        link(two, one, 7),
        link(one, router, 100),
        link(router, two, 100),
        link(router, router, 100),
    ];
    assert_eq!(
        rules(&links, side),
        "flush chain inet rack between\nflush chain inet rack into\nflush chain inet rack out\n\
         add rule inet rack between iifname \"v1\" oifname \"v2\" drop\n\
         add rule inet rack between iifname \"v2\" oifname \"v1\" numgen random mod 100 < 7 drop\n\
         add rule inet rack into iifname \"v1\" ip6 daddr ::1 drop\n\
         add rule inet rack out oifname \"v2\" ip6 saddr ::1 drop\n"
    );
    let to_two = links.iter().filter(|link| link.to == two);
    assert_eq!(
        rules_at_the_end(to_two, |place| format!("02::{}", place.number())),
        "flush chain inet rack into\n\
         add rule inet rack into ether saddr 02::31 drop\n\
         add rule inet rack into ether saddr 02::10 drop\n"
    );
}
