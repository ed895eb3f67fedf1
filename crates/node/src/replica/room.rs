//! How much room the chain has for new data, as far as this member has heard.

use crate::replica::Replica;
use crate::replica::head::KeyState;
use crate::shard::context::Context;
use wire::Room;
use wire::big::time_of;

impl Replica {
    /// The least room of this member and those behind it.
    pub(crate) fn room<E>(&self, ctx: &Context<'_, E>) -> Room {
        ctx.room.max(self.behind.room(ctx.now))
    }

    /// Whether the chain has no room for what a write would leave of a key.
    pub(crate) fn lacks_room<E>(
        &self,
        ctx: &Context<'_, E>,
        state: &KeyState,
        value_len: usize,
        expiry_ms: u64,
    ) -> bool {
        match self.room(ctx) {
            Room::Plenty | Room::Tight => false,
            Room::Full => state.would_grow(value_len, expiry_ms),
            Room::Shut => true,
        }
    }

    /// Whether the chain has room for a part of a big value, and this client may have it.
    pub(crate) fn has_room_for_parts<E>(&self, ctx: &Context<'_, E>, client: u64) -> bool {
        self.room(ctx) == Room::Plenty && self.uploads.may_send(client, ctx.uploads_free)
    }

    /// Bytes that it holds besides what is in the engine, about.
    pub(crate) fn held_bytes(&self) -> u64 {
        let uploads = self.strays_of_uploads() as u64 * UPLOAD_BYTES;
        self.pending.bytes() + self.sessions.bytes() + uploads
    }
}

impl KeyState {
    /// Whether a value of this length and expiry takes more room than what is there.
    fn would_grow(&self, value_len: usize, expiry_ms: u64) -> bool {
        let Some(old) = &self.value else { return true };
        let begins_to_expire = time_of(expiry_ms) != 0 && time_of(self.expiry_ms) == 0;
        value_len > old.len() || begins_to_expire
    }
}

/// What is known of an unfinished upload.
const UPLOAD_BYTES: u64 = 250;
