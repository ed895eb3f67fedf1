//! Why a command is not taken, and what to do about it.

use crate::keyspace::NO_CACHES;
use cluster::{MapError, Member, NodeId, PartitionId};
use std::fmt;
use wire::Endpoint;

/// Keys that can be pinned: what a person pins, and a program that knows its hot keys.
pub const PINS_MAX: usize = 256;

/// Why a command was not taken. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no node of this id.
    UnknownNode(NodeId),
    /// There is a node of this id.
    NodeExists(NodeId),
    /// Another member receives packets at this endpoint.
    SharedEndpoint(Endpoint),
    /// The node has a replica in this many chains.
    NodeInUse {
        /// Which.
        node: NodeId,
        /// How many.
        partitions: usize,
    },
    /// The node may hold the newest writes of hot keys that are under delegations.
    NodeInDelegations(NodeId),
    /// Without the node there would be too few for the chains of a keyspace.
    TooFewNodes {
        /// Name of the keyspace.
        keyspace: String,
        /// How many nodes each of its chains is to have.
        replicas: u8,
        /// How many would be left.
        left: usize,
    },
    /// There is no partition of this id.
    NoPartition(PartitionId),
    /// A replica cannot move.
    Move(PartitionId, MoveError),
    /// A partition cannot be split or merged.
    Remake(PartitionId, RemakeError),
    /// There is no keyspace of this name.
    UnknownKeyspace(String),
    /// A keyspace cannot have so many replicas.
    Replicas {
        /// Its name.
        keyspace: String,
        /// How many were asked for.
        replicas: u8,
        /// The most that it could have now: one on each node that can take partitions, and
        /// `wire::CHAIN_MAX` in all.
        most: usize,
    },
    /// Caches are to hold the hot keys of this keyspace, and there is none.
    NoCaches(String),
    /// Hot keys of this keyspace have no copies.
    HotIsOff(String),
    /// No key is as long as this one.
    KeyTooLong(usize),
    /// [`PINS_MAX`] keys are pinned.
    PinsFull,
    /// This pinned key has the same keyhash, and a switch knows but one key of a hash.
    PinnedTwin(Vec<u8>),
    /// This key is not pinned.
    NotPinned,
    /// No partition waits for what this node holds to be believed.
    NothingToAccept(NodeId),
    /// This member follows another controller, or an older incarnation of this one; what the
    /// controller knows may be out of date, so it changes nothing.
    Foreign(Member),
    /// The map would be unsound.
    Unsound(MapError),
}

/// Why a replica cannot move now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// The partition has no replica at this node.
    NotThere(NodeId),
    /// The partition has a replica at this node.
    ThereAlready(NodeId),
    /// Its chain changes already, or has no place for one more.
    Changing,
    /// A copy to this node cannot begin now.
    CannotBegin(NodeId),
}

/// Why a partition cannot be split or merged now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemakeError {
    /// Its keys are in order, so that somebody has to say where.
    Where,
    /// That key is no place to cut it: it is in another partition, or its first.
    Outside,
    /// That partition does not come right before it or after it in its keyspace.
    NotNeighbours(PartitionId),
    /// That partition has other nodes.
    OtherNodes(PartitionId),
    /// Some node has that partition at another shard.
    OtherShards(PartitionId),
    /// What comes of it would be no prefix of content addresses.
    NoPrefix,
    /// Its chain, or that of the other, changes already, or takes a node in.
    Changing,
    /// This node is of a version that cannot.
    Unable(NodeId),
    /// Some of its keys are delegated.
    Delegated,
    /// There is room for no more partitions.
    Full,
    /// It cannot be closed now.
    CannotBegin,
}

impl fmt::Display for RemakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Where => f.write_str("keeps its keys in order: say where to cut it (--at KEY)"),
            Self::Outside => f.write_str(
                "cannot be cut there: the key is in another partition, or the first of this one",
            ),
            Self::NotNeighbours(other) => write!(
                f,
                "does not come right before or after partition {other} in its keyspace: the \
                 status names all in their order"
            ),
            Self::OtherNodes(other) => write!(
                f,
                "has other nodes than partition {other}: move its replicas first (`keyway \
                 placement move`)"
            ),
            Self::NoPrefix => f.write_str(
                "has content addresses: it is cut in the middle, or made one with the other half \
                 of what was cut in the middle, so that each is a prefix",
            ),
            Self::OtherShards(other) => write!(
                f,
                "lies at another shard than partition {other} at some node, and nothing is copied \
                 between shards"
            ),
            Self::Changing => f.write_str(
                "has a chain that changes already, or takes a node in, or its neighbour has: wait \
                 until the status says that it is open and takes nobody in",
            ),
            Self::Unable(node) => {
                write!(
                    f,
                    "cannot be split or merged before node {node} is upgraded: its version cannot"
                )
            }
            Self::Delegated => f.write_str(
                "has keys whose writes go to other nodes (`keyway hot`): unpin them or wait until \
                 they are less hot",
            ),
            Self::Full => write!(
                f,
                "cannot be split: a cluster has room for {} partitions",
                wire::PARTITIONS_MAX
            ),
            Self::CannotBegin => f.write_str(
                "cannot be closed now, for a node of its chain does not answer: see the status and \
                 try again",
            ),
        }
    }
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotThere(node) => {
                write!(f, "has no replica at node {node}: the status names its chain")
            }
            Self::ThereAlready(node) => write!(f, "has a replica at node {node} already"),
            Self::Changing => f.write_str(
                "has a chain that changes already, or has no place for one more: wait until the \
                 status says that it is open and takes nobody in",
            ),
            Self::CannotBegin(node) => write!(
                f,
                "cannot be copied to node {node} now: copies are paused, or the node is not ready, \
                 gives or takes another copy, or still clears away an earlier replica; see the \
                 status and try again"
            ),
        }
    }
}

fn why_not_so_many(replicas: u8, most: usize) -> String {
    match replicas {
        0 => "has to have 1 replica or more".to_owned(),
        _ if most == wire::CHAIN_MAX => format!("cannot have {replicas} replicas: {most} at most"),
        _ => format!(
            "cannot have {replicas} replicas: there is one on each node, and {most} nodes answer \
             and stay; add nodes first, or start those that are down"
        ),
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownNode(node) => {
                write!(f, "there is no node {node}: the status names those that there are")
            }
            Self::NodeExists(node) => write!(
                f,
                "there is a node {node}: choose another id, or drain that one and remove it first"
            ),
            Self::SharedEndpoint(at) => write!(
                f,
                "another member receives packets at {at}: a node needs its own port per shard"
            ),
            Self::NodeInDelegations(node) => write!(
                f,
                "node {node} may hold the newest writes of hot keys; if it is drained they come \
                 home as soon as the other nodes answer: wait a moment and try again"
            ),
            Self::NodeInUse { node, partitions } => write!(
                f,
                "node {node} has a place in {partitions} partitions: drain it first, and remove it \
                 when it holds none"
            ),
            Self::TooFewNodes { keyspace, replicas, left } => write!(
                f,
                "keyspace {keyspace:?} wants {replicas} replicas and {left} nodes would be left: \
                 add a node first"
            ),
            Self::NoPartition(id) => {
                write!(f, "there is no partition {id}: the status names those that there are")
            }
            Self::Move(partition, why) => write!(f, "partition {partition} {why}"),
            Self::Remake(partition, why) => write!(f, "partition {partition} {why}"),
            Self::UnknownKeyspace(name) => write!(
                f,
                "there is no keyspace {name:?}: `keyway keyspace list` names those that there are"
            ),
            Self::Replicas { keyspace, replicas, most } => {
                write!(f, "keyspace {keyspace:?} {}", why_not_so_many(*replicas, *most))
            }
            Self::NoCaches(keyspace) => write!(f, "keyspace {keyspace:?}: {NO_CACHES}"),
            Self::HotIsOff(keyspace) => write!(
                f,
                "keyspace {keyspace:?} has its hot keys off: they have no copies (to turn them on: \
                 keyway keyspace alter {keyspace} --hot reads)"
            ),
            Self::NothingToAccept(node) => write!(
                f,
                "no partition waits for an older store of node {node} to be believed: the status \
                 names those that do"
            ),
            Self::KeyTooLong(length) => {
                write!(f, "the key has {length} bytes, and a key has {} at most", wire::KEY_MAX)
            }
            Self::PinsFull => write!(f, "{PINS_MAX} keys are pinned: unpin some first"),
            Self::PinnedTwin(twin) => write!(
                f,
                "the pinned key \"{}\" has the same keyhash, and a switch knows but one key of \
                 a hash: unpin that one first",
                twin.escape_ascii()
            ),
            Self::NotPinned => f.write_str("this key is not pinned"),
            Self::Foreign(member) => write!(
                f,
                "{member} follows a controller that is not this one, or was: see its status"
            ),
            Self::Unsound(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}
