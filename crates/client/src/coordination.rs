//! Who takes multigets apart: the switch, perhaps with hints from the client, or (to compare with)
//! the client, or a coordinator.

use cluster::{KeyspaceId, Map, Match, PartitionId, RangeTable};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::{CHAIN_MAX, Endpoint, Fields, HEADER_LEN, hop_flag};

/// Who takes multigets apart. Everything else goes to a service address either way.
#[derive(Clone, Debug, Default)]
pub enum Coordination {
    /// The switch sends each node its keys.
    #[default]
    Switch,
    /// The switch too, but the client sorts keys by node and says where each node's end: a switch
    /// that cannot loop over keys goes by that. What it says may be old or wrong: that costs time,
    /// and no answer.
    Assisted(Arc<Routes>),
    /// The client sends each node its keys, past the switch, and is answered past it.
    Client(Arc<Routes>),
    /// A [`Coordinator`](crate::Coordinator) at this address takes whole multigets.
    Coordinator(Endpoint),
}

impl Coordination {
    /// The map that the client goes by.
    pub(crate) fn directory(&self) -> Option<&Arc<Routes>> {
        match self {
            Self::Switch | Self::Coordinator(_) => None,
            Self::Assisted(directory) | Self::Client(directory) => Some(directory),
        }
    }

    /// Goes by the map of another one of its kind from now on.
    pub(crate) fn follow(&mut self, other: &Self) {
        match (self, other) {
            (Self::Assisted(mine), Self::Assisted(new))
            | (Self::Client(mine), Self::Client(new)) => {
                *mine = Arc::clone(new);
            }
            _ => {}
        }
    }
}

/// What one must know to send each node its own keys, or to say which those are.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Where answers go.
    reply_to: Endpoint,
    partitions: BTreeMap<KeyspaceId, RangeTable<(Tail, PartitionId)>>,
}

/// A node that answers reads of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tail {
    /// Of the shard that has the partition.
    pub(crate) endpoint: Endpoint,
    node: u16,
}

/// Who answers reads of a key, and in which partition it lies; `None` if nobody does.
pub(crate) type Home = Option<(Tail, PartitionId)>;

/// First and last match value of a partition, who answers reads of it, and its id.
type Row = (Match, Match, (Tail, PartitionId));

impl Routes {
    /// What this map says, for one who receives at `reply_to`; where the switch is asked, answers
    /// come back that way, and this address is of no use.
    #[must_use]
    pub fn new(map: &Map, reply_to: Endpoint) -> Self {
        let mut rows: BTreeMap<KeyspaceId, Vec<Row>> = BTreeMap::new();
        for partition in &map.partitions {
            let node = map.nodes.iter().find(|node| Some(node.id) == partition.tail());
            let Some(node) = node else { continue };
            let tail = Tail { endpoint: node.endpoint_of(partition.id), node: node.id.0 };
            let of_keyspace = rows.entry(partition.keyspace).or_default();
            of_keyspace.push((partition.first, partition.last, (tail, partition.id)));
        }
        let partitions = rows.into_iter().map(|(id, rows)| (id, RangeTable::new(rows))).collect();
        Self { reply_to, partitions }
    }

    /// Who answers for this match value, if anybody does.
    pub(crate) fn tail(&self, keyspace: KeyspaceId, at: u128) -> Option<Tail> {
        self.find(keyspace, at).map(|(tail, _)| tail)
    }

    /// The same, and for which partition.
    pub(crate) fn find(&self, keyspace: KeyspaceId, at: u128) -> Home {
        self.partitions.get(&keyspace)?.find(Match(at)).copied()
    }

    /// Stamps an MGET as a switch would.
    pub(crate) fn stamp(&self, header: &mut [u8; HEADER_LEN], tail: Tail) {
        let mut chain = [0; 2 * CHAIN_MAX];
        if let Some(first) = chain.first_chunk_mut() {
            *first = tail.node.to_be_bytes();
        }
        header.set_chain(chain);
        header.set_chain_len(1);
        header.set_hop_flags(hop_flag::DIRECT);
        header.set_reply_addr(self.reply_to.addr);
        header.set_reply_port(self.reply_to.port);
    }
}
