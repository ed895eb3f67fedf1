//! The room of a node: what its driver says of it, and what is turned away when there is none.

use crate::engine::Engine;
use crate::hot::delegation::writes::is_from_before;
use crate::node::Node;
use crate::replica::Replica;
use crate::replica::write::Write;
use crate::shard::reply::{reply_header, send};
use crate::shard::room::MemoryLimit;
use cluster::{PartitionId, Resources};
use machine::Instant;
use wire::{Body, Code, DropReason, Endpoint, Header, Op, Room};

impl<E: Engine> Node<E> {
    /// How much memory the node may take; without a limit as much as there is.
    pub fn limit_memory(&mut self, limit: Option<MemoryLimit>) {
        self.shard.stock.limit(limit);
    }

    /// What other shards of this node hold in memory.
    pub fn set_elsewhere(&mut self, bytes: u64) {
        self.shard.stock.set_elsewhere(bytes);
    }

    /// The engine has refused what the turn has changed, and said why: what rests on that waits
    /// until it takes it ([`take_up`](Self::take_up)). Meanwhile the node answers reads, and the
    /// engine shows them what was so before.
    pub fn put_off(&mut self, why: &str) {
        if !self.shard.stock.is_refused() {
            self.put_off.append(&mut self.shard.held);
        }
        self.shard.stock.refuse(why);
    }

    /// The engine has taken what it had refused.
    pub fn take_up(&mut self) {
        if self.shard.stock.take_up() {
            self.has_synced();
            self.ready.append(&mut self.put_off);
        }
    }

    /// What comes while nothing can be written and is no read: clients are told why, so that none
    /// waits for nothing. What nodes say to each other they say again.
    pub(crate) fn turn_away(
        &mut self,
        now: Instant,
        from: Endpoint,
        header: &Header,
        (op, body): (Op, &Body<'_>),
    ) -> Result<(), DropReason> {
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let asked = match *body {
            Body::ChainWrite { fixed, key, value } => {
                let write = Write { header: *header, fixed, key, value };
                let replica = self.replicas.get(&PartitionId(header.partition));
                let predecessor = replica.and_then(|replica| {
                    let id = replica
                        .member
                        .predecessor()
                        .filter(|_| replica.member.epoch().0 == header.epoch);
                    directory.endpoint(id?, replica.member.id())
                });
                let asked = write.outcome().filter(|_| header.client != 0);
                asked.filter(|_| predecessor == Some(from)).map(|outcome| outcome.origin)
            }
            Body::DelegationWrite { .. } => {
                is_from_before(directory, from, header).then_some(Op::Put)
            }
            _ => op.is_answered().then_some(op),
        };
        if let Some(op) = asked {
            let words = self.shard.stock.words().to_owned();
            let mut ctx = self.shard.context(directory, now, 0);
            let header = reply_header(&ctx, header, op, Code::StoreRefuses);
            send(&mut ctx, &header, &[words.as_bytes()]);
        }
        Err(DropReason::NoRoom)
    }

    /// What the store below has room for. If it is `frozen` nothing can be written at all: until
    /// that is over the node answers reads, and turns everything else delegated.
    pub fn set_store_room(&mut self, room: Room, frozen: bool) {
        self.shard.stock.set_store(room, frozen);
    }

    /// Bytes that this shard holds in memory, about.
    pub fn memory_used(&self) -> u64 {
        self.shard.engine.usage().saturating_add(self.shard.stock.counted().1)
    }

    /// Bytes of parts that are no value's, or not yet.
    pub fn upload_bytes(&self) -> u64 {
        self.shard.stock.counted().2
    }

    /// How much room there is.
    pub fn room(&self) -> Room {
        self.shard.stock.room(self.shard.engine.usage())
    }

    /// What it takes of its machine; of the disk only who runs it knows.
    pub(crate) fn resources(&self) -> Resources {
        let (memory_max, ..) = self.shard.stock.counted();
        let (room, memory) = (self.room(), self.memory_used());
        Resources { room, memory, memory_max, ..Resources::default() }
    }

    /// Counts what is not counted as it comes and goes. When there is little room, copies of other
    /// nodes' keys are the first to go: those keys have a home.
    pub(crate) fn take_stock(&mut self) {
        let room = self.room();
        self.shard.hot.held.limit(room == Room::Plenty);
        let held: u64 = self.replicas.values().map(Replica::held_bytes).sum();
        let uploads = self.replicas.values().map(Replica::upload_bytes).sum();
        self.shard.stock.count(held + self.shard.hot.held.bytes(), uploads);
    }
}
