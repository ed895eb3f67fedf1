//! This node as a member of a partition's chain: its place there, whom it speaks to, and what
//! every message to them says.

use crate::engine::{Area, KeyRef};
use crate::shard::context::Context;
use cluster::{Epoch, Keyspace, NodeId, Partition, PartitionId};
use wire::{Header, Op};

/// A partition, and this node's place in its chain.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) partition: Partition,
    /// Whether its keyspace is kept in the order of keys.
    pub(crate) ordered: bool,
    /// This node's index in the chain.
    position: usize,
}

impl Member {
    /// # Panics
    ///
    /// If `me` is not in the chain: the assignment names only partitions that it is in.
    pub(crate) fn new(partition: Partition, me: NodeId, ordered: bool) -> Self {
        let mut member = Self { partition: Partition::default(), ordered, position: 0 };
        member.take_place(partition, me);
        member
    }

    /// Follows a change of the partition that keeps this node in its chain.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub(crate) fn take_place(&mut self, partition: Partition, me: NodeId) {
        let position = partition.chain.iter().position(|id| *id == me);
        self.position = position.expect("assigned partitions have this node in their chain");
        self.partition = partition;
    }

    pub(crate) fn id(&self) -> PartitionId {
        self.partition.id
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.partition.epoch
    }

    pub(crate) fn is_head(&self) -> bool {
        self.position == 0
    }

    /// Whether this node answers clients and serves reads.
    pub(crate) fn is_tail(&self) -> bool {
        self.position + 1 == self.partition.members().len()
    }

    /// Whether nobody comes behind: what reaches this node is committed.
    pub(crate) fn is_last(&self) -> bool {
        self.position + 1 == self.partition.chain.len()
    }

    /// Whether this node is behind the tail, and is being copied to or was.
    pub(crate) fn is_learner(&self) -> bool {
        self.position >= self.partition.members().len()
    }

    /// Where the engine keeps it.
    pub(crate) fn area(&self) -> Area {
        let Partition { id, keyspace, first, last, .. } = self.partition;
        Area { keyspace, partition: id, ordered: self.ordered, first, last }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Index and id of the member after this one.
    pub(crate) fn successor(&self) -> Option<(usize, NodeId)> {
        let next = self.position + 1;
        Some((next, *self.partition.chain.get(next)?))
    }

    pub(crate) fn predecessor(&self) -> Option<NodeId> {
        self.partition.chain.get(self.position.checked_sub(1)?).copied()
    }

    pub(crate) fn key_ref<'a>(&self, header: &Header, key: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            keyspace: self.partition.keyspace,
            partition: self.partition.id,
            ordered: self.ordered,
            match_value: cluster::Match(header.match_value),
            keyhash: header.keyhash,
            key,
        }
    }

    /// The member of this id.
    pub(crate) fn member_named(&self, id: u16) -> Option<NodeId> {
        self.partition.members().iter().copied().find(|member| member.0 == id)
    }

    /// The header of a message to the member at `place` of the chain.
    pub(crate) fn message_header<E>(&self, ctx: &Context<'_, E>, place: usize, op: Op) -> Header {
        let (op, keyspace) = (op as u8, self.partition.keyspace.0);
        let mut header = Header { op, keyspace, ..Header::default() };
        self.address(ctx, &mut header, place);
        header
    }

    /// Makes a header that of a message of this epoch to the member at a place of the chain.
    pub(crate) fn address<E>(&self, ctx: &Context<'_, E>, header: &mut Header, place: usize) {
        header.partition = self.id().0;
        header.epoch = self.epoch().0;
        header.node = ctx.directory.me.0;
        header.load = ctx.load;
        header.chain_pos = u8::try_from(place).expect("chains are at most CHAIN_MAX long");
        header.set_chain(self.partition.chain.iter().map(|id| id.0));
    }

    /// What messages about a hot key have in common.
    pub(crate) fn hot_header<E>(&self, ctx: &Context<'_, E>, at: &Header) -> Header {
        Header {
            partition: self.id().0,
            epoch: self.epoch().0,
            node: ctx.directory.me.0,
            load: ctx.load,
            match_value: at.match_value,
            keyhash: at.keyhash,
            keyspace: self.partition.keyspace.0,
            ..Header::default()
        }
    }

    /// What the switch knows a key by.
    pub(crate) fn place_of<E>(&self, ctx: &Context<'_, E>, key: &[u8]) -> Option<Header> {
        let keyspace = ctx.directory.keyspace(self.partition.keyspace)?;
        Some(place(keyspace, key))
    }

    /// The header of a write that no client asked for.
    pub(crate) fn own_header(&self, at: &Header, key: &[u8]) -> Header {
        Header {
            keyspace: self.partition.keyspace.0,
            key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
            match_value: at.match_value,
            keyhash: at.keyhash,
            ..Header::default()
        }
    }
}

/// Where a key lies, as headers say it.
pub(crate) fn place(keyspace: &Keyspace, key: &[u8]) -> Header {
    let match_value = keyspace.match_value(key).0;
    Header { match_value, keyhash: keyspace.keyhash(key), ..Header::default() }
}
