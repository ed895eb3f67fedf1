//! Creating a keyspace: checks, cutting the match space, placing chains. And what can be altered of
//! one.

use crate::saved::Saved;
use cluster::{
    ContentRouting, Epoch, HotPolicy, Keyspace, KeyspaceId, KeyspaceKind, Match, Member,
    NoAddresses, NodeId, Partition,
};
use cluster::{MapError, PartitionId};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A keyspace as somebody wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyspaceSpec {
    /// 1 to `wire::NAME_MAX` letters, digits, `_`, `-` or `.`.
    pub name: String,
    /// Hash or range, with the prefix.
    #[serde(flatten)]
    pub kind: KeyspaceKind,
    /// How many partitions; at least 1.
    pub partitions: u32,
    /// Nodes in each chain; 1 to `wire::CHAIN_MAX`.
    pub replicas: u8,
    /// Range keyspaces: the first key of every partition but the first, in order, one fewer than
    /// partitions. Empty: the 16 bytes after the prefix are cut evenly, which suits keys that
    /// are spread evenly there, and no others: decimal numbers, say, would all lie in a few.
    #[serde(default)]
    pub splits: Vec<Vec<u8>>,
    /// What becomes of its hot keys.
    #[serde(default)]
    pub hot: HotPolicy,
}

impl KeyspaceSpec {
    /// How many partitions a keyspace begins with if nobody says so. Keys that are kept in order
    /// lie nobody knows where, so there it is one, or as many as keys were given to cut it at.
    #[must_use]
    pub fn usual_partitions(ordered: bool, splits: usize) -> u32 {
        if ordered { u32::try_from(splits + 1).unwrap_or(u32::MAX) } else { PARTITIONS }
    }
}

/// Partitions of a hash keyspace, unless it is said: enough that each is a small part of a node's
/// load in clusters of up to dozens.
pub const PARTITIONS: u32 = 128;

/// What is to be altered of a keyspace. What is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alteration {
    /// Nodes in each chain; 1 to `wire::CHAIN_MAX`.
    pub replicas: Option<u8>,
    /// What becomes of its hot keys.
    pub hot: Option<HotPolicy>,
}

/// Why a keyspace was not created. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// The name has another form than a keyspace's.
    Name,
    /// There is one of that name.
    Exists,
    /// The prefix is longer than `wire::PREFIX_MAX`.
    Prefix,
    /// No partitions, or more than there is room for.
    Partitions {
        /// How many there could be.
        room: usize,
    },
    /// No replicas, or more than `wire::CHAIN_MAX` or the nodes that can take partitions.
    Replicas {
        /// The most there could be.
        most: usize,
    },
    /// No more keyspaces fit into the cluster.
    Keyspaces,
    /// Caches are to hold its hot keys, and there is none.
    NoCaches,
    /// Split keys of a hash keyspace, which has no order to split.
    SplitsOfHash,
    /// One split key fewer than partitions is needed.
    SplitCount {
        /// How many there are.
        found: usize,
    },
    /// This split key (counted from 0) lacks the prefix, or is not after the one before it in
    /// the 16 bytes that follow the prefix.
    Split {
        /// Which.
        index: usize,
    },
    /// These nodes have never been heard of, and the controller has begun only now: they may be
    /// about to start. A keyspace that is created a little later does without them.
    NodesUnknown(Vec<NodeId>),
    /// This member follows another controller, or an older incarnation of this one; what the
    /// controller knows may be out of date, so it changes nothing.
    Foreign(Member),
    /// Keys have content addresses, and those of this keyspace could have none.
    NoAddresses(NoAddresses),
    /// The map would be unsound.
    Unsound(MapError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => write!(
                f,
                "a keyspace's name is 1 to {} letters, digits, '_', '-' or '.'",
                wire::NAME_MAX
            ),
            Self::Exists => f.write_str("there is a keyspace of that name"),
            Self::Prefix => write!(f, "the prefix is over {} bytes", wire::PREFIX_MAX),
            Self::Partitions { room } => {
                write!(f, "a keyspace has 1 partition or more; there is room for {room}")
            }
            Self::Replicas { most } => {
                write!(f, "a keyspace has 1 replica or more; here {most} at most, one on each node")
            }
            Self::Keyspaces => write!(f, "there are {} keyspaces already", wire::KEYSPACES_MAX),
            Self::NoCaches => f.write_str(NO_CACHES),
            Self::SplitsOfHash => f.write_str("a hash keyspace is split evenly, not at keys"),
            Self::SplitCount { found } => {
                write!(f, "{found} split keys make {} partitions", found + 1)
            }
            Self::Split { index } => write!(
                f,
                "split key {index} must begin with the prefix and come after the one before it \
                 within the 16 bytes that follow the prefix"
            ),
            Self::NodesUnknown(nodes) => {
                let ids: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "not heard of yet: node {}; start it, or ask again in a little while",
                    ids.join(", node ")
                )
            }
            Self::Foreign(member) => write!(
                f,
                "{member} follows a controller that is not this one, or was: see its status"
            ),
            Self::NoAddresses(why) => why.fmt(f),
            Self::Unsound(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

/// What to do where caches are to hold hot keys, and there is none.
pub(crate) const NO_CACHES: &str = "there is no cache to hold its hot keys: add a [[cache]] to the \
                                    configuration and start it, or choose another hot";

/// Adds the keyspace to the state, its partitions on so many nodes, which come in these turns
/// (those of one speed in the order of their ids).
///
/// Partition ids run on from keyspace to keyspace, and partition i has the chain i-1, i, i+1, ...
/// modulo the turns (TurboKV section 8): so over all keyspaces together each node is head, middle
/// and tail of equally many for what it bears, give or take one. They send writes on before
/// these are on their disks if all nodes can. Its keys have content addresses, if any have
/// and they are in no order.
pub(crate) fn create(
    state: &mut Saved,
    spec: KeyspaceSpec,
    (nodes, turns): (usize, &[NodeId]),
    (sends_early, content): (bool, Option<ContentRouting>),
    now: Instant,
) -> Result<KeyspaceId, CreateError> {
    check(state, &spec, nodes)?;
    let keyspace = Keyspace {
        id: KeyspaceId(state.next_keyspace),
        name: spec.name.clone(),
        kind: spec.kind.clone(),
        seed: state.seed,
        replicas: spec.replicas,
        hot: spec.hot,
        content: content.filter(|_| spec.kind == KeyspaceKind::Hash),
    };
    let firsts = firsts(&keyspace, &spec)?;
    let ends = firsts.iter().skip(1).map(|next| Match(next.0.saturating_sub(1)));
    let lasts: Vec<Match> = ends.chain([Match::MAX]).collect();
    let mut map = state.map.clone();
    let length = usize::from(spec.replicas);
    let since = vec![state.next_revision(now); length];
    for ((id, first), last) in (state.next_partition..).zip(&firsts).zip(lasts) {
        let turn = usize::try_from(id - 1).expect("ids have 32 bits");
        map.partitions.push(Partition {
            opened: Epoch(1),
            returned: Vec::new(),
            sends_early,
            resumes: None,
            away: Vec::new(),
            made: None,
            grown: false,
            id: PartitionId(id),
            keyspace: keyspace.id,
            first: *first,
            last,
            epoch: Epoch(1),
            chain: chain(turns, turn, length),
            since: since.clone(),
            has_learner: false,
            open: true,
        });
    }
    let id = keyspace.id;
    map.keyspaces.push(keyspace);
    map.check().map_err(CreateError::Unsound)?;
    state.map = map;
    state.next_keyspace += 1;
    state.next_partition += spec.partitions;
    Ok(id)
}

/// The nodes of so many turns from this one on, each of them once.
fn chain(turns: &[NodeId], turn: usize, length: usize) -> Vec<NodeId> {
    let mut chain = Vec::with_capacity(length);
    for node in turns.iter().cycle().skip(turn % turns.len()).take(turns.len()) {
        if chain.len() < length && !chain.contains(node) {
            chain.push(*node);
        }
    }
    chain
}

fn check(state: &Saved, spec: &KeyspaceSpec, nodes: usize) -> Result<(), CreateError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !(1..=wire::NAME_MAX).contains(&spec.name.len()) || !spec.name.bytes().all(plain) {
        return Err(CreateError::Name);
    }
    if state.map.keyspace(&spec.name).is_some() {
        return Err(CreateError::Exists);
    }
    if state.map.keyspaces.len() >= wire::KEYSPACES_MAX || state.next_keyspace == u16::MAX {
        return Err(CreateError::Keyspaces);
    }
    if matches!(&spec.kind, KeyspaceKind::Range { prefix } if prefix.len() > wire::PREFIX_MAX) {
        return Err(CreateError::Prefix);
    }
    let room = wire::PARTITIONS_MAX.saturating_sub(state.map.partitions.len());
    let wanted = usize::try_from(spec.partitions).unwrap_or(usize::MAX);
    let ids_left = state.next_partition.checked_add(spec.partitions).is_some();
    if !(1..=room).contains(&wanted) || !ids_left {
        return Err(CreateError::Partitions { room });
    }
    let most = nodes.min(wire::CHAIN_MAX);
    if !(1..=most).contains(&usize::from(spec.replicas)) {
        return Err(CreateError::Replicas { most });
    }
    if spec.hot.caches() && state.map.caches.is_empty() {
        return Err(CreateError::NoCaches);
    }
    Ok(())
}

/// The first match value of each partition.
fn firsts(keyspace: &Keyspace, spec: &KeyspaceSpec) -> Result<Vec<Match>, CreateError> {
    if spec.splits.is_empty() {
        return Ok((0..spec.partitions).map(|i| even(i, spec.partitions)).collect());
    }
    let KeyspaceKind::Range { prefix } = &spec.kind else {
        return Err(CreateError::SplitsOfHash);
    };
    if u32::try_from(spec.splits.len() + 1) != Ok(spec.partitions) {
        return Err(CreateError::SplitCount { found: spec.splits.len() });
    }
    let mut firsts = vec![Match::MIN];
    for (index, key) in spec.splits.iter().enumerate() {
        let at = keyspace.match_value(key);
        if !key.starts_with(prefix) || firsts.last().is_some_and(|before| at <= *before) {
            return Err(CreateError::Split { index });
        }
        firsts.push(at);
    }
    Ok(firsts)
}

/// Where part `index` of `parts` begins: 2^128 * index / parts, rounded down.
fn even(index: u32, parts: u32) -> Match {
    let (index, parts) = (u128::from(index), u128::from(parts));
    // 2^128 itself does not fit: it is quotient * parts + remainder + 1.
    let (quotient, remainder) = (u128::MAX / parts, u128::MAX % parts);
    Match(quotient * index + (remainder + 1) * index / parts)
}
