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

/// The exits to all members, by their own addresses. Each has a cookie of its own, so that all
/// that leads there can be found, or taken out, together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    of: BTreeMap<Ipv6Addr, (u64, Exit)>,
    members: BTreeMap<u64, Ipv6Addr>,
}

impl FromIterator<(Ipv6Addr, Exit)> for Exits {
    fn from_iter<I: IntoIterator<Item = (Ipv6Addr, Exit)>>(all: I) -> Self {
        let all: BTreeMap<Ipv6Addr, Exit> = all.into_iter().collect();
        let mut exits = Self::default();
        for (member, exit) in all {
            // Of members that end alike the later ones have what is free: the same at each start.
            let own = u128::from(member) as u64 & !ENTRY_MASK;
            let mut numbers = own..=!ENTRY_MASK;
            let number = numbers.find(|it| !exits.members.contains_key(&(ENTRY | it)));
            let cookie = ENTRY | number.unwrap_or(own);
            exits.members.insert(cookie, member);
            exits.of.insert(member, (cookie, exit));
        }
        exits
    }
}

impl Exits {
    /// The flow of a prefix that leads to this member, if it is known where that is.
    pub(crate) fn flow(&self, prefix: AddressPrefix, member: Ipv6Addr) -> Option<Flow> {
        let (cookie, exit) = self.of.get(&member)?;
        let does = Does::Send(Some(exit.mac), exit.port.unwrap_or(NORMAL));
        Some(Flow { cookie: *cookie, does, ..any_flow(prefix) })
    }

    /// The cookie of all that leads to a member.
    pub(crate) fn cookie(&self, member: Ipv6Addr) -> Option<u64> {
        self.of.get(&member).map(|(cookie, _)| *cookie)
    }

    /// The entry that a flow is. One that does not do what it should leads to nobody.
    pub(crate) fn entry(&self, found: &Flow) -> Option<Entry> {
        let Match::To(prefix) = found.matches else { return None };
        (found.cookie & ENTRY_MASK == ENTRY).then_some(())?;
        let member = self.members.get(&found.cookie).copied();
        let is = |member: &Ipv6Addr| self.flow(prefix, *member).as_ref() == Some(found);
        Some(Entry { prefix, via: member.filter(is).unwrap_or(Ipv6Addr::UNSPECIFIED) })
    }
}

/// The table of rules.
pub(crate) const RULES: u8 = 0;
/// The table of prefixes.
pub(crate) const PREFIXES: u8 = 1;

/// What all cookies of ours begin with: "kw".
pub(crate) const COOKIE: u64 = 0x6b77 << 48;
/// The bits in which they do.
pub(crate) const COOKIE_MASK: u64 = 0xffff << 48;
/// What the cookies of entries begin with; then it is said to which member they lead.
pub(crate) const ENTRY: u64 = COOKIE | 1 << 47;
/// The bits in which they do.
pub(crate) const ENTRY_MASK: u64 = COOKIE_MASK | 1 << 47;

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

/// What is to be removed to remove a prefix, wherever it leads.
pub(crate) fn any_flow(prefix: AddressPrefix) -> Flow {
    Flow {
        table: if prefix.len == 128 { RULES } else { PREFIXES },
        priority: PRIORITY + u16::from(prefix.len),
        cookie: ENTRY,
        matches: Match::To(prefix),
        does: Does::Send(None, NORMAL),
    }
}
