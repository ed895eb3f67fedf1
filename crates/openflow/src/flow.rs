//! The content table as flows.

use crate::fields::{Does, Mac, Match};
use crate::message::{Flow, NORMAL};
use content::Entry;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use wire::AddressPrefix;

/// How a switch sends something to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The hardware address of the member, or of the router on the way to it.
    pub mac: Mac,
    /// The port of the switch that leads there; `None`: the switch finds it by the hardware
    /// address, as it would without OpenFlow.
    pub port: Option<u32>,
}

/// The exits to all members, by their own addresses.
pub type Exits = BTreeMap<Ipv6Addr, Exit>;

/// The table of rules.
pub(crate) const RULES: u8 = 0;
/// The table of prefixes.
pub(crate) const PREFIXES: u8 = 1;

/// What all cookies of ours begin with: "kw".
pub(crate) const COOKIE: u64 = 0x6b77 << 48;
/// The bits in which they do.
pub(crate) const COOKIE_MASK: u64 = 0xffff << 48;

/// Priority of flows that match all packets: the lowest.
const LOWEST: u16 = 0;
/// Priority of a prefix without any bit.
const PRIORITY: u16 = 1_000;

/// What is in a switch besides entries: what becomes of all other packets.
pub(crate) fn defaults() -> [Flow; 2] {
    let flow = |table, does| {
        let (priority, cookie, matches) = (LOWEST, COOKIE, Match::All);
        Flow { table, priority, cookie, matches, does }
    };
    [flow(PREFIXES, Does::Send(None, NORMAL)), flow(RULES, Does::GoTo(PREFIXES))]
}

/// The flow of a prefix. Its cookie says to which member it leads, so that all that lead there can
/// be found, or taken out, together.
pub(crate) fn flow(prefix: AddressPrefix, via: Ipv6Addr, exit: Exit) -> Flow {
    let table = if prefix.len == 128 { RULES } else { PREFIXES };
    let low = u64::try_from(u128::from(via) & u128::from(!COOKIE_MASK)).expect("48 bits");
    Flow {
        table,
        priority: PRIORITY + u16::from(prefix.len),
        cookie: COOKIE | low,
        matches: Match::To(prefix),
        does: Does::Send(Some(exit.mac), exit.port.unwrap_or(NORMAL)),
    }
}

/// What is to be removed to remove a prefix, wherever it leads.
pub(crate) fn any_flow(prefix: AddressPrefix) -> Flow {
    flow(prefix, Ipv6Addr::UNSPECIFIED, Exit { mac: Mac([0; 6]), port: None })
}

/// The entry that a flow is. One that does not do what it should leads to nobody.
pub(crate) fn entry(found: &Flow, exits: &Exits) -> Option<Entry> {
    let Match::To(prefix) = found.matches else { return None };
    let is = |(via, exit): &(&Ipv6Addr, &Exit)| flow(prefix, **via, **exit) == *found;
    let via = exits.iter().find(is).map_or(Ipv6Addr::UNSPECIFIED, |(via, _)| *via);
    Some(Entry { prefix, via })
}
