//! Prefixes of partitions, from the tables that the controller gives a switch.

use cluster::{KeyspaceId, NodeId, NodeSpec, PartitionId, SwitchTables};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use wire::{AddressPrefix, ContentClass, Endpoint, ServicePrefix};

/// A partition that no prefix leads to: requests by addresses do not find its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unroutable {
    /// Which.
    pub partition: PartitionId,
    /// Of which keyspace.
    pub keyspace: KeyspaceId,
    /// Why.
    pub why: Why,
}

/// Why no prefix leads to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The keyspace's id does not fit an address.
    Keyspace,
    /// Its match values are no prefix: their number is no power of two, or keys on both sides of a
    /// bound have one address.
    Bounds,
    /// The node that it would lead to has an IPv4 address.
    Address(NodeId),
}

impl fmt::Display for Unroutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, keyspace, why } = self;
        write!(f, "partition {partition} of keyspace {keyspace} ")?;
        match why {
            Why::Keyspace => f.write_str("has no addresses: the keyspace's id is too large"),
            Why::Bounds => f.write_str("is no prefix of addresses"),
            Why::Address(node) => write!(f, "lies on node {node}, which has no IPv6 address"),
        }
    }
}

/// A prefix for each partition and class, and what has none. A partition whose head or tail is
/// unknown or fenced has none for that, and that is nobody's fault.
pub(crate) fn prefixes(
    service: ServicePrefix,
    tables: &SwitchTables,
) -> (BTreeMap<AddressPrefix, Ipv6Addr>, Vec<Unroutable>) {
    let nodes: BTreeMap<NodeId, &NodeSpec> = tables.reachable().map(|it| (it.id, it)).collect();
    let (mut prefixes, mut unroutable) = (BTreeMap::new(), Vec::new());
    for partition in &tables.partitions {
        let mut add = |class| {
            let addresses = service.keyspace(partition.keyspace.0).ok_or(Why::Keyspace)?;
            let (first, last) = (partition.first.0, partition.last.0);
            let prefix = addresses.of_interval(class, first, last).ok_or(Why::Bounds)?;
            let node = partition.asked(class).and_then(|id| nodes.get(&id));
            let Some(node) = node else { return Ok(()) };
            let via = ipv6(node.endpoint).ok_or(Why::Address(node.id))?;
            prefixes.insert(prefix, via);
            Ok(())
        };
        if let Err(why) = ContentClass::ALL.into_iter().try_for_each(&mut add) {
            let (partition, keyspace) = (partition.id, partition.keyspace);
            unroutable.push(Unroutable { partition, keyspace, why });
        }
    }
    (prefixes, unroutable)
}

/// The address of a member, if it is IPv6.
pub(crate) fn ipv6(of: Endpoint) -> Option<Ipv6Addr> {
    match SocketAddr::from(of) {
        SocketAddr::V6(it) => Some(*it.ip()),
        SocketAddr::V4(_) => None,
    }
}
