//! How much room there is for new data, here and in the chain, and what is refused when there is
//! little (section 4 of `spec/protocol.md`, "Room").
//!
//! The head alone refuses, by the least room of its chain as far as it has heard, and what it
//! refuses is an outcome like any other. A member takes whatever comes down the chain: for that,
//! and for deletes, is the reserve.

use crate::engine::Engine;
use crate::node::{Node, context};
use crate::replica::Replica;
use crate::replica::head::State;
use crate::replica::write::{Pending, Write};
use crate::shard::context::Context;
use crate::shard::reply::{reply_header, send};
use cluster::{Mutant, PartitionId, Resources};
use machine::Instant;
use std::time::Duration;
use wire::big::time_of;
use wire::{Body, Code, DropReason, Endpoint, Header, Op, Room, STORE_WORDS_MAX};

/// The most that a node may hold in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes, of all shards of the node together.
    pub bytes: u64,
    /// So many of them are for what has to be taken: writes that are on their way when there is no
    /// more room, tombstones, outcomes.
    pub reserve: u64,
    /// Bytes of parts that are no value's, or not yet.
    pub uploads: u64,
}

/// What a shard knows of its own room.
#[derive(Debug)]
pub(crate) struct Stock {
    limit: Option<MemoryLimit>,
    /// Bytes that other shards of the node hold.
    elsewhere: u64,
    /// What the store below has room for, whatever is in memory.
    store: Room,
    /// Nothing can be written at all.
    frozen: bool,
    /// What the store said that takes no changes, with those of an earlier turn still to be taken.
    refusal: Option<Box<str>>,
    /// Bytes held besides what the engine holds, as of the last count.
    held: u64,
    /// Bytes of parts of unfinished uploads, as of the last count.
    uploads: u64,
}

impl Default for Stock {
    fn default() -> Self {
        let (elsewhere, held, uploads) = (0, 0, 0);
        let (store, frozen, refusal) = (Room::Plenty, false, None);
        Self { limit: None, elsewhere, store, frozen, refusal, held, uploads }
    }
}

impl Default for Behind {
    fn default() -> Self {
        Self { room: Room::Plenty, heard_at: Instant(0) }
    }
}

impl Stock {
    /// The room that is left when the engine holds so much.
    pub(crate) fn room(&self, engine_bytes: u64) -> Room {
        let Some(MemoryLimit { bytes, reserve, .. }) = self.limit else { return self.store };
        let used = engine_bytes.saturating_add(self.held).saturating_add(self.elsewhere);
        let full = bytes.saturating_sub(reserve);
        let in_memory = match used {
            _ if used >= full => Room::Full,
            _ if used >= full.saturating_sub(full / TIGHT_SHARE) => Room::Tight,
            _ => Room::Plenty,
        };
        in_memory.max(self.store)
    }

    /// Whether no part of an upload is taken, because there are enough of those already.
    pub(crate) fn uploads_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.uploads >= limit.uploads)
    }

    /// Whether this can be dealt with though nothing may be written.
    pub(crate) fn admits(&self, op: Op) -> bool {
        !self.is_frozen() || matches!(op, Op::Get | Op::Mget | Op::Range | Op::Describe)
    }

    /// Whether nothing can be written at all.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen || self.refusal.is_some()
    }

    /// Whether changes of an earlier turn are still to be taken by the store.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// What clients are told whose writes are not taken.
    fn words(&self) -> &str {
        let words = self.refusal.as_deref().unwrap_or("there is no room on its disk");
        words.get(..words.floor_char_boundary(STORE_WORDS_MAX)).unwrap_or_default()
    }
}

/// The room of the members behind this one, as they last said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behind {
    room: Room,
    heard_at: Instant,
}

impl Behind {
    /// The successor has said so, with something else.
    pub(crate) fn hear(&mut self, now: Instant, room: u8) {
        if let Some(room) = Room::from_wire(room) {
            *self = Self { room, heard_at: now };
        }
    }

    /// What counts of it now.
    fn room(self, now: Instant) -> Room {
        if now.since(self.heard_at) < HEED { self.room } else { Room::Plenty }
    }
}

impl Pending {
    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        let write = self.write();
        (PENDING_BYTES + write.key.len() + write.value.len()) as u64
    }
}

impl Replica {
    /// The least room of this member and those behind it.
    pub(crate) fn room<E>(&self, ctx: &Context<'_, E>) -> Room {
        ctx.room.max(self.behind.room(ctx.now))
    }

    /// Whether the chain has no room for what a write would leave of a key.
    pub(crate) fn lacks_room<E>(
        &self,
        ctx: &Context<'_, E>,
        state: &State,
        value_len: usize,
        expiry_ms: u64,
    ) -> bool {
        match self.room(ctx) {
            Room::Plenty | Room::Tight => false,
            Room::Full => state.would_grow(value_len, expiry_ms),
            Room::Shut => true,
        }
    }

    /// Whether the chain has room for a part of a big value.
    pub(crate) fn has_room_for_parts<E>(&self, ctx: &Context<'_, E>) -> bool {
        self.room(ctx) == Room::Plenty && !ctx.uploads_full
    }

    /// Bytes that it holds besides what is in the engine, about.
    fn held_bytes(&self) -> u64 {
        let uploads = self.strays_of_uploads() as u64 * UPLOAD_BYTES;
        self.pending_bytes + self.sessions.bytes() + uploads
    }
}

impl State {
    /// Whether a value of this length and expiry takes more room than what is there.
    fn would_grow(&self, value_len: usize, expiry_ms: u64) -> bool {
        let Some(old) = &self.value else { return true };
        let begins_to_expire = time_of(expiry_ms) != 0 && time_of(self.expiry_ms) == 0;
        value_len > old.len() || begins_to_expire
    }
}

impl<E: Engine> Node<E> {
    /// How much memory the node may take; without a limit as much as there is.
    pub fn limit_memory(&mut self, limit: Option<MemoryLimit>) {
        self.stock.limit = limit;
    }

    /// What other shards of this node hold in memory.
    pub fn set_elsewhere(&mut self, bytes: u64) {
        self.stock.elsewhere = bytes;
    }

    /// The engine has refused what the turn has changed, and said why: what rests on that waits
    /// until it takes it ([`take_up`](Self::take_up)). Meanwhile the node answers reads, and the
    /// engine shows them what was so before.
    pub fn put_off(&mut self, why: &str) {
        if !self.stock.is_refused() {
            self.put_off.append(&mut self.held);
        }
        self.stock.refusal = Some(why.into());
    }

    /// The engine has taken what it had refused.
    pub fn take_up(&mut self) {
        if self.stock.refusal.take().is_some() {
            self.synced();
            self.ready.append(&mut self.put_off);
        }
    }

    /// All that was changed is durable.
    pub(crate) fn synced(&mut self) {
        (self.unsynced_replicas, self.counters.syncs) = (false, self.counters.syncs + 1);
        self.replica_records.synced();
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
                    let id = replica.predecessor().filter(|_| replica.epoch().0 == header.epoch);
                    directory.endpoint(id?, replica.id())
                });
                let asked = write.outcome().filter(|_| header.client != 0);
                asked.filter(|_| predecessor == Some(from)).map(|outcome| outcome.origin)
            }
            _ => op.is_answered().then_some(op),
        };
        if let Some(op) = asked {
            let mut ctx = context!(self, directory, now, 0);
            let header = reply_header(&ctx, header, op, Code::StoreRefuses);
            send(&mut ctx, &header, &[self.stock.words().as_bytes()]);
        }
        Err(DropReason::NoRoom)
    }

    /// What the store below has room for. If it is `frozen` nothing can be written at all: until
    /// that is over the node answers reads, and turns everything else delegated.
    pub fn set_store_room(&mut self, room: Room, frozen: bool) {
        self.stock.store = room;
        self.stock.frozen = frozen;
    }

    /// Bytes that this shard holds in memory, about.
    pub fn memory_used(&self) -> u64 {
        self.engine.usage().saturating_add(self.stock.held)
    }

    /// Bytes of parts that are no value's, or not yet.
    pub fn upload_bytes(&self) -> u64 {
        self.stock.uploads
    }

    /// How much room there is.
    pub fn room(&self) -> Room {
        self.stock.room(self.engine.usage())
    }

    /// What it takes of its machine; of the disk only who runs it knows.
    pub(crate) fn resources(&self) -> Resources {
        let memory_max = self.stock.limit.map(|limit| limit.bytes);
        let (room, memory) = (self.room(), self.memory_used());
        Resources { room, memory, memory_max, ..Resources::default() }
    }

    /// Counts what is not counted as it comes and goes. When there is little room, copies of other
    /// nodes' keys are the first to go: those keys have a home.
    pub(crate) fn take_stock(&mut self) {
        let room = self.room();
        self.hot.copies.limit(room == Room::Plenty);
        let held: u64 = self.replicas.values().map(Replica::held_bytes).sum();
        self.stock.held = held + self.hot.copies.bytes() + self.hot.delegated.bytes();
        self.stock.uploads = self.replicas.values_mut().map(Replica::upload_bytes).sum();
    }
}

impl<E> Context<'_, E> {
    /// Whether this member is to take no piece of a copy.
    pub(crate) fn refuses_copies(&self) -> bool {
        self.room != Room::Plenty
    }

    /// Whether a member that has no room refuses what comes down the chain, which it must not.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.mutant.is(Mutant::MembersRefuse) && self.room >= Room::Full
    }
}

/// Room is *tight* from where one part in so many of what may be taken is left: what is under way
/// of big values and copies then still fits, and small values go on for a while.
const TIGHT_SHARE: u64 = 16;

/// How long the word of a successor counts. While writes are refused for it each one brings it
/// anew, as an outcome that goes down the chain; after that the next write finds out.
const HEED: Duration = Duration::from_secs(1);

/// What is known of an unfinished upload.
const UPLOAD_BYTES: u64 = 250;

/// What a pending write takes in memory beside key and value: itself, and its places in the maps
/// of keys, requests and timers.
const PENDING_BYTES: usize = 512;
