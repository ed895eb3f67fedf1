//! How much room there is for new data, here and in the chain, and what is refused when there is
//! little (section 4 of `spec/protocol.md`, "Room").
//!
//! The head alone refuses, by the least room of its chain as far as it has heard, and what it
//! refuses is an outcome like any other. A member takes whatever comes down the chain: for that,
//! and for deletes, is the reserve.

use machine::Instant;
use std::time::Duration;
use wire::{Op, Room, STORE_WORDS_MAX};

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

impl MemoryLimit {
    /// That of a node which may hold so many bytes, with the usual shares of them for the rest.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self { bytes, reserve: bytes / RESERVE_SHARE, uploads: bytes / UPLOADS_SHARE }
    }
}

/// One part in so many of the memory is kept for what has to be taken when there is no room.
const RESERVE_SHARE: u64 = 16;

/// And so much may be parts of big values that are none yet.
const UPLOADS_SHARE: u64 = 4;

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

    /// Bytes of parts of unfinished uploads that there is room for.
    pub(crate) fn uploads_free(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.uploads.saturating_sub(self.uploads))
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

    /// The store has refused what the turn has changed, and said why.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.refusal = Some(why.into());
    }

    /// The store has taken what it had refused; says whether it had refused anything.
    pub(crate) fn take_up(&mut self) -> bool {
        self.refusal.take().is_some()
    }

    pub(crate) fn limit(&mut self, limit: Option<MemoryLimit>) {
        self.limit = limit;
    }

    pub(crate) fn set_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    /// What the store has room for, and whether nothing can be written at all.
    pub(crate) fn set_store(&mut self, room: Room, frozen: bool) {
        (self.store, self.frozen) = (room, frozen);
    }

    /// Takes what was counted: bytes held besides what the engine holds, and of parts.
    pub(crate) fn count(&mut self, held: u64, uploads: u64) {
        (self.held, self.uploads) = (held, uploads);
    }

    /// The most that may be held, if there is a limit; what is held besides what the engine holds;
    /// and of parts.
    pub(crate) fn counted(&self) -> (Option<u64>, u64, u64) {
        (self.limit.map(|limit| limit.bytes), self.held, self.uploads)
    }

    /// What clients are told whose writes are not taken.
    pub(crate) fn words(&self) -> &str {
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
    pub(crate) fn room(self, now: Instant) -> Room {
        if now.since(self.heard_at) < HEED { self.room } else { Room::Plenty }
    }
}

/// Room is *tight* from where one part in so many of what may be taken is left: what is under way
/// of big values and copies then still fits, and small values go on for a while.
const TIGHT_SHARE: u64 = 16;

/// How long the word of a successor counts. While writes are refused for it each one brings it
/// anew, as an outcome that goes down the chain; after that the next write finds out.
const HEED: Duration = Duration::from_secs(1);
