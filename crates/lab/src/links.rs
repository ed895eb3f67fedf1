//! Links that are bad, and how the router is told: packets that pass it from one host to another
//! are dropped, some of them or all. Hosts notice nothing but that.

use crate::place::Place;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// One direction between two hosts, and how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: Place,
    pub to: Place,
    /// Of 100 packets; 100 for a link that is cut.
    pub lost_percent: u8,
}

const CHAIN: &str = "ip rack links";

/// What the router begins with.
pub fn table() -> String {
    "table ip rack {\n chain links {\n type filter hook forward priority 0; policy accept;\n }\n}\n"
        .to_owned()
}

/// What makes exactly these links bad, in place of those that are; takes effect all at once.
pub fn rules(links: &[Link], address: impl Fn(Place) -> Ipv4Addr) -> String {
    let mut text = format!("flush chain {CHAIN}\n");
    for Link { from, to, lost_percent } in links {
        let (from, to) = (address(*from), address(*to));
        let dice = format!("numgen random mod 100 < {lost_percent} ");
        let dice = if *lost_percent < 100 { dice } else { String::new() };
        writeln!(text, "add rule {CHAIN} ip saddr {from} ip daddr {to} {dice}drop")
            .expect("strings take everything");
    }
    text
}

#[test]
fn a_cut_link_drops_every_packet_and_a_lossy_one_some() {
    let address = |place| match place {
        Place::Node(id) => Ipv4Addr::new(10, 0, 0, id),
        Place::Switch(_)
        | Place::Controllers
        | Place::Site(_)
        | Place::Client(_)
        | Place::Cache(_) => Ipv4Addr::LOCALHOST,
    };
    let (from, to) = (Place::Node(1), Place::Node(2));
    let links =
        [Link { from, to, lost_percent: 100 }, Link { from: to, to: from, lost_percent: 7 }];
    assert_eq!(
        rules(&links, address),
        "flush chain ip rack links\n\
         add rule ip rack links ip saddr 10.0.0.1 ip daddr 10.0.0.2 drop\n\
         add rule ip rack links ip saddr 10.0.0.2 ip daddr 10.0.0.1 numgen random mod 100 < 7 \
         drop\n"
    );
}
