//! Why no map can be made, and what to do about it.

use cluster::{ClusterId, Match, NodeId, PartitionId};
use std::fmt;

/// Why no map can be made. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebuildError {
    /// No node has an assignment on record.
    Nothing,
    /// Nodes of several clusters answer.
    Clusters(ClusterId, ClusterId),
    /// These can have been members, and have not answered.
    Missing(Vec<NodeId>),
    /// These were members, and their memory is new.
    Blank(Vec<NodeId>),
    /// These have followed a map that they do not have on record, or not in all their shards.
    Unrecorded(Vec<NodeId>),
    /// These partitions, and these match values of keyspaces, have no member left.
    Lost {
        /// Partitions that somebody has on record.
        partitions: Vec<PartitionId>,
        /// What nobody has on record.
        gaps: Vec<(String, Match, Match)>,
    },
    /// Two nodes of one memory answer.
    OneMemory(NodeId, NodeId),
    /// The configuration has another seed than the keyspaces.
    Seed {
        /// As configured.
        configured: u64,
        /// As on record.
        recorded: u64,
    },
    /// What is on record contradicts itself, or cannot be.
    Unsound(String),
}

impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(
                "no node has an assignment on record, so there is nothing to make a map from: if \
                 this cluster never held anything, start its controller as that of a new one",
            ),
            Self::Clusters(one, other) => write!(
                f,
                "nodes of the clusters {:016x} and {:016x} answer: name only those of one in the \
                 configuration",
                one.0, other.0
            ),
            Self::Missing(nodes) => write!(
                f,
                "not heard of, and can have been a member: {}; start it and name its admin address \
                 in the configuration, or say {} if it is gone for good: what only it has \
                 acknowledged is lost then",
                list(nodes),
                flags(nodes)
            ),
            Self::Blank(nodes) => write!(
                f,
                "was a member, and its memory is new: {}; give it the data directory that it had, \
                 or say {} if that is gone for good: what only it has acknowledged is lost then",
                list(nodes),
                flags(nodes)
            ),
            Self::Unrecorded(nodes) => write!(
                f,
                "has followed a map that not all its shards have on record: {}; a shard's \
                 directory is missing, or an earlier version of keyway ran it last: put the \
                 directory back, or the newest copy of the controller's store, or say {}: what \
                 only it has acknowledged is lost then",
                list(nodes),
                flags(nodes)
            ),
            Self::Lost { partitions, gaps } => {
                let ids: Vec<String> = partitions.iter().map(ToString::to_string).collect();
                let gaps = gaps.iter().map(|(name, a, b)| format!("{name:?} from {a} to {b}"));
                let what: Vec<String> = ids.into_iter().chain(gaps).collect();
                let named = what.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
                let more = match what.len().saturating_sub(NAMED_MAX) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "no member is left of the partitions {named}{more}: bring a node back that \
                     holds them"
                )
            }
            Self::OneMemory(one, other) => write!(
                f,
                "nodes {one} and {other} have one memory: two nodes were given one data directory, \
                 or a copy; say --without for the wrong one"
            ),
            Self::Seed { configured, recorded } => write!(
                f,
                "the cluster was created with seed {recorded}, not {configured}: configure \
                 {recorded} again, because every key lies where the seed put it"
            ),
            Self::Unsound(why) => write!(
                f,
                "what nodes have on record cannot be: {why}; if one of them is damaged, say \
                 --without for it"
            ),
        }
    }
}

impl std::error::Error for RebuildError {}

/// Partitions that a message names.
const NAMED_MAX: usize = 8;

fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| format!("node {node}")).collect::<Vec<_>>().join(", ")
}

fn flags(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| format!("--without {node}")).collect::<Vec<_>>().join(" ")
}

/// A number that only a damaged record can have.
pub(super) fn exhausted() -> RebuildError {
    RebuildError::Unsound("an id, epoch or revision is the last that there is".into())
}
