//! Who of a closed chain holds what was acknowledged, by nothing but what its members say.

use crate::state::Bits;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How far what a member holds is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// Not at all by itself.
    None,
    /// It has begun another incarnation, and remembers the one that it was known by.
    Remembers,
    /// It has been in the chain all the time.
    Stayed,
}

impl Trust {
    /// That of a member of which the map has noted this: if it came back, whether it remembers.
    pub(crate) fn of(returned: Option<bool>) -> Self {
        match returned {
            None => Self::Stayed,
            Some(true) => Self::Remembers,
            Some(false) => Self::None,
        }
    }
}

/// What a member that has settled says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) node: u8,
    /// The newest version that it holds, and all that it has committed.
    pub(crate) held: (u8, Bits),
    pub(crate) trust: Trust,
    /// How many writes it has committed; `None` if it does not count.
    pub(crate) writes: Option<u32>,
    /// What was certain when it came back, if it did.
    pub(crate) base: Option<u8>,
}

/// One member that is right, and all that are behind; `None` if an operator has to decide. That the
/// first is right is a broken rule.
pub(crate) fn compare(claims: &[Claim], first_is_right: bool) -> Option<(u8, Vec<u8>)> {
    let mut groups: BTreeMap<(u8, Bits), Vec<&Claim>> = BTreeMap::new();
    claims.iter().for_each(|claim| groups.entry(claim.held).or_default().push(claim));
    let rank = |((newest, _), members): &(&(u8, Bits), &Vec<&Claim>)| {
        // Who has stayed comes before who remembers.
        let trust = members.iter().map(|claim| claim.trust).max();
        let first = Reverse(first_of(members));
        if first_is_right {
            return (trust, None, 0, None, 0, first);
        }
        let writes = members.iter().filter_map(|claim| claim.writes).max();
        let base = members.iter().map(|claim| claim.base.unwrap_or(u8::MAX)).max();
        (trust, writes, *newest, base, members.len(), first)
    };
    let (right, agree) = groups.iter().max_by_key(rank)?;
    if agree.iter().all(|claim| claim.trust == Trust::None) {
        return None;
    }
    let behind = claims.iter().filter(|claim| claim.held != *right).map(|claim| claim.node);
    Some((first_of(agree)?, behind.collect()))
}

fn first_of(members: &[&Claim]) -> Option<u8> {
    members.first().map(|claim| claim.node)
}
