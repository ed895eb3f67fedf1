//! Names of things, one type each, so that none is taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

/// Ids that are drawn at random: all 64 bits matter, and numbers in JSON keep 53 of them. So they
/// are written as text there; as numbers, which is how they were kept before, they are still read.
macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(#[serde(with = "crate::text::hex64")] pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A storage node; below `wire::NODES_MAX`.
    NodeId(u16)
}
id! {
    /// A cache.
    CacheId(u16)
}
id! {
    /// A partition, for as long as it lives, whatever its chain. Ids start at 1; the wire uses 0
    /// for "no single partition".
    PartitionId(u32)
}
id! {
    /// A keyspace.
    KeyspaceId(u16)
}
id! {
    /// Configuration number of a partition; grows with every change of its chain or bounds.
    Epoch(u32)
}
random_id! {
    /// Identity of a cluster: drawn at random when its map is first made. A node keeps it beside
    /// its data, so that the data of one cluster is never taken for another's.
    ClusterId
}
random_id! {
    /// One incarnation of a member's process: drawn at random when it starts. A lease given to one
    /// incarnation is void for the next.
    Incarnation
}
random_id! {
    /// Identity of a node's *memory*: drawn at random when a data directory (or a memory engine)
    /// is created. A node that comes back with another one has forgotten what it knew.
    StoreId
}

/// A match value: what the partition table matches on. Big-endian on the wire, hex in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match(pub u128);

impl Match {
    /// The first of all.
    pub const MIN: Self = Self(0);
    /// The last of all.
    pub const MAX: Self = Self(u128::MAX);
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for Match {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Match {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}
