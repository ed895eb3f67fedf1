//! Content routing: keys have addresses, and whoever routes by addresses brings requests to nodes.

use crate::{Keyspace, KeyspaceId, Map, Match, NodeId, Partition};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv6Addr;
use wire::{ContentClass, Endpoint, ServicePrefix};

/// Where the content addresses of a cluster are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentRouting {
    /// What all of them begin with.
    pub prefix: ServicePrefix,
    /// The UDP port of all of them, at which every node and cache receives.
    pub port: u16,
}

/// Why the keys of a keyspace could have no content addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAddresses {
    /// They are kept in order.
    Ordered,
    /// Its partitions are so many, which is no power of two.
    Partitions(u32),
}

impl NoAddresses {
    /// What speaks against a keyspace with so many partitions at first, if anything does.
    #[must_use]
    pub fn of(ordered: bool, partitions: u32) -> Option<Self> {
        if ordered {
            Some(Self::Ordered)
        } else {
            (!partitions.is_power_of_two()).then_some(Self::Partitions(partitions))
        }
    }
}

impl fmt::Display for NoAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordered => f.write_str(
                "its keys are kept in order: its partitions are no prefixes of content addresses, \
                 and keys that differ late would share one; choose kind = \"hash\", or remove \
                 [content]",
            ),
            Self::Partitions(partitions) => write!(
                f,
                "it has {partitions} partitions: with [content] choose a power of two, so that \
                 each is a prefix of content addresses"
            ),
        }
    }
}

impl Partition {
    /// The node that requests of this class go to.
    #[must_use]
    pub fn asked(&self, class: ContentClass) -> Option<NodeId> {
        match class {
            ContentClass::Read | ContentClass::ReadAtHome => self.tail(),
            ContentClass::Write => self.head(),
        }
    }
}

impl ContentRouting {
    /// Where a request about a key goes. `None` if the keyspace has no such addresses: its id is
    /// too large.
    #[must_use]
    pub fn endpoint(
        &self,
        class: ContentClass,
        keyspace: KeyspaceId,
        at: Match,
    ) -> Option<Endpoint> {
        let addr = self.prefix.keyspace(keyspace.0)?.of_key(class, at.0);
        Some(Endpoint { addr: addr.octets(), port: self.port })
    }

    /// Whether this is one of the addresses.
    #[must_use]
    pub fn holds(&self, endpoint: Endpoint) -> bool {
        endpoint.port == self.port && self.prefix.addresses().holds(Ipv6Addr::from(endpoint.addr))
    }

    /// Checks that tables of addresses can hold a keyspace.
    pub(crate) fn check_keyspace(&self, keyspace: &Keyspace) -> Result<(), String> {
        let Keyspace { id, name, .. } = keyspace;
        if keyspace.is_ordered() {
            return Err(format!("keyspace {name:?}: {}", NoAddresses::Ordered));
        }
        match self.prefix.keyspace(id.0) {
            Some(_) => Ok(()),
            None => Err(format!(
                "keyspace {name:?} has the id {id}: content addresses have room for {} bits",
                wire::CONTENT_KEYSPACE_BITS
            )),
        }
    }

    /// Checks that tables of addresses can hold a partition.
    pub(crate) fn check_partition(&self, partition: &Partition) -> Result<(), String> {
        let Partition { id, keyspace, first, last, .. } = partition;
        if self.is_prefix(*keyspace, *first, *last) {
            return Ok(());
        }
        Err(format!(
            "partition {id} is from {first} to {last}, which is no prefix of content addresses: a \
             keyspace has 1, 2, 4, 8, ... partitions there"
        ))
    }

    /// Whether the addresses of these keys are one prefix.
    fn is_prefix(&self, keyspace: KeyspaceId, first: Match, last: Match) -> bool {
        let addresses = self.prefix.keyspace(keyspace.0);
        addresses.is_some_and(|it| it.of_interval(ContentClass::Read, first.0, last.0).is_some())
    }
}

impl Map {
    /// Whether these match values can be a partition: where keys have content addresses they have
    /// to be a prefix.
    #[must_use]
    pub fn may_be_partition(&self, keyspace: KeyspaceId, first: Match, last: Match) -> bool {
        let content = self.keyspaces.iter().find(|it| it.id == keyspace).and_then(|it| it.content);
        content.is_none_or(|content| content.is_prefix(keyspace, first, last))
    }

    /// Where a partition is cut that ought to be cut there: in its middle if its keys have content
    /// addresses, and else there.
    #[must_use]
    pub fn cuts(&self, partition: &Partition, wanted: Vec<Match>) -> Vec<Match> {
        let Partition { keyspace, first, last, .. } = *partition;
        let found = self.keyspaces.iter().find(|it| it.id == keyspace);
        let Some(content) = found.and_then(|it| it.content).filter(|_| !wanted.is_empty()) else {
            return wanted;
        };
        let half = Match(first.0 + (last.0 - first.0) / 2);
        let can = half < last && content.is_prefix(keyspace, first, half);
        if can { vec![Match(half.0 + 1)] } else { Vec::new() }
    }
}
