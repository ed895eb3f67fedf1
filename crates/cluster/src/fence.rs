//! Going on without a member whose lease still runs.

use crate::NodeId;
use serde::{Deserialize, Serialize};
use wire::Revision;

/// A node that no switch sends anything to, so that the cluster need not wait for the end of its
/// lease to go on without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Which.
    pub node: NodeId,
    /// The revision that set the fence. A switch that has installed this or a newer one brings the
    /// node nothing more.
    pub since: Revision,
    /// The last revision that rested on the fence: that one, or one that took the node out of a
    /// chain. All shards of the node have to know it before the fence is lifted.
    pub left: Revision,
    /// It was taken in with another memory: the process that had the one before may run on, and is
    /// waited for until its lease has ended. What the node says it has installed does not count for
    /// that process.
    #[serde(default)]
    pub replaced: bool,
}

impl Fence {
    /// A new one.
    #[must_use]
    pub fn new(node: NodeId, since: Revision) -> Self {
        Self { node, since, left: since, replaced: false }
    }
}

/// What is known of a switch that does not serve by the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standby {
    /// The revision from which on no map lets it serve. When it has installed this or a newer one,
    /// it brings nobody anything.
    pub since: Revision,
    /// The revision from which on all maps name another one as the active switch. A node that has
    /// installed this or a newer one takes nothing from it. `None` if the map names it, and it
    /// waits for the one before it.
    #[serde(default)]
    pub unnamed: Option<Revision>,
}
