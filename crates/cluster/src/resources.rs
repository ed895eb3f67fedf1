//! What a node takes of its machine, and what it has room for.

use serde::{Deserialize, Serialize};
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
}

impl Default for Resources {
    fn default() -> Self {
        let (memory, memory_max) = (0, None);
        Self { room: Room::Plenty, memory, memory_max, disk_free: None, disk_floor: None }
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
        }
    }
}
