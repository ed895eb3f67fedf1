//! What a node takes of its machine, what it has room for, and what it holds.

use crate::ids::KeyspaceId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::iter::Sum;
use wire::Room;

/// Memory and disk of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Whether new data is taken.
    #[serde(with = "crate::text::room")]
    pub room: Room,
    /// Bytes that it holds in memory, about.
    pub memory: u64,
    /// The most that it may; `None`: as much as there is.
    pub memory_max: Option<u64>,
    /// Bytes that its disk has free, if it writes to one.
    pub disk_free: Option<u64>,
    /// From how many of these on new data is refused.
    pub disk_floor: Option<u64>,
    /// Bytes of the files of its store, if it has any.
    #[serde(default)]
    pub disk_used: Option<u64>,
    /// What the writes that it has acknowledged are safe from, if it says so.
    #[serde(default)]
    pub durability: Option<Durability>,
}

/// What the writes that a node has acknowledged are safe from, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: they are in the memory of its process.
    Memory,
    /// The end of its process. The operating system takes them to the disk when it sees fit.
    Never,
    /// The end of its process, and after an interval that of its machine.
    Interval,
    /// What the store of others is safe from that has them.
    Backend,
    /// The end of its machine: they are on disk.
    Always,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Never => "never",
            Self::Interval => "interval",
            Self::Backend => "backend",
            Self::Always => "always",
        })
    }
}

/// Keys that have a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// How many.
    pub keys: u64,
    /// Bytes of them and of their values, as clients wrote them.
    pub bytes: u64,
}

/// What a node holds of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Which.
    pub keyspace: KeyspaceId,
    /// All that it holds of it.
    pub held: Volume,
    /// What of that lies in partitions of which the node is tail: with the same of the other nodes,
    /// each key of the keyspace once.
    pub as_tail: Volume,
    /// Whether nothing is left out that is yet to be counted.
    pub counted: bool,
}

impl Volume {
    /// Both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let keys = self.keys.saturating_add(other.keys);
        Self { keys, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Sum for Volume {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::plus)
    }
}

impl Stored {
    /// Those of a node, by keyspace, of which parts say this.
    #[must_use]
    pub fn join(parts: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut all: BTreeMap<KeyspaceId, Self> = BTreeMap::new();
        for part in parts {
            let sum = all.entry(part.keyspace).or_insert(Self {
                keyspace: part.keyspace,
                held: Volume::default(),
                as_tail: Volume::default(),
                counted: true,
            });
            sum.held = sum.held.plus(part.held);
            sum.as_tail = sum.as_tail.plus(part.as_tail);
            sum.counted &= part.counted;
        }
        all.into_values().collect()
    }
}

impl Default for Resources {
    fn default() -> Self {
        let (memory, memory_max) = (0, None);
        Self {
            room: Room::Plenty,
            memory,
            memory_max,
            disk_free: None,
            disk_floor: None,
            disk_used: None,
            durability: None,
        }
    }
}

impl Resources {
    /// Those of a whole node whose shards say this.
    pub(crate) fn of_shards(shards: impl Iterator<Item = Self> + Clone) -> Self {
        let all = || shards.clone();
        Self {
            room: all().map(|it| it.room).max().unwrap_or(Room::Plenty),
            memory: all().map(|it| it.memory).fold(0, u64::saturating_add),
            memory_max: all().find_map(|it| it.memory_max),
            disk_free: all().filter_map(|it| it.disk_free).min(),
            disk_floor: all().find_map(|it| it.disk_floor),
            disk_used: all().filter_map(|it| it.disk_used).reduce(u64::saturating_add),
            durability: all().map(|it| it.durability).min().flatten(),
        }
    }
}
