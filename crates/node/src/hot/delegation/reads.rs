//! The tail of a key that is delegated: what it can still answer (section 9 of `spec/protocol.md`).

use crate::engine::Engine;
use crate::hot::copies::answer_copy;
use crate::replica::Replica;
use crate::shard::context::Context;
use crate::shard::reply::{reply_header, send};
use cluster::{KeyspaceId, Mutant};
use wire::{Code, Header, HotGet, KeyReply, Op, Version, flag, hop_flag};

impl Replica {
    /// Answers a GET of a key that is delegated, of which the tail holds at most a copy: what it
    /// took of the delegation itself, or what was newest when the key left. Says whether
    /// that is all; if not, the tail answers as it does of other keys.
    pub(crate) fn answer_delegated<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        request: &Header,
        key: &[u8],
    ) -> bool {
        if ctx.mutant.is(Mutant::ProveDelegated) {
            return false;
        }
        let keyspace = self.member.partition.keyspace;
        let direct = request.hop_flags & hop_flag::DIRECT != 0;
        let hot = request.hop_flags & hop_flag::HOT != 0 && !direct;
        let floor = if hot { HotGet::of(request).floor } else { Version::ABOVE_ALL };
        if hot && answer_copy(ctx, request, keyspace, key, floor) {
            return true;
        }
        let version = self.left_behind(ctx, request, key);
        if version >= floor {
            return false;
        }
        let mut header = reply_header(ctx, request, Op::Get, Code::NotHere);
        if floor != Version::ABOVE_ALL {
            see_missed_read(ctx, request, keyspace, key);
        } else if hot
            && self.registrations.get(key).is_some_and(|registration| {
                registration.generation == HotGet::of(request).generation
            })
        {
            // Nothing that was shown before the key left is newer than what is here: that proves an
            // entry that came before, and the client asks again.
            header.hop_flags |= hop_flag::NEWEST;
            KeyReply { version }.put(&mut header);
        }
        send(ctx, &header, &[]);
        true
    }

    /// The version of what is at home of a key that is delegated: none that was shown before it
    /// left is newer, and all of its delegation are.
    pub(crate) fn left_behind<E: Engine>(
        &self,
        ctx: &Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> Version {
        let version =
            ctx.engine.read(&self.member.key_ref(at, key), |record| record.map(|r| r.version));
        version.unwrap_or_else(|| self.absent_version(key))
    }
}

/// Counts a read that found its key delegated and nobody else to answer it, if that was so when it
/// came before, too: one alone may have met a registration that was just taken away.
pub(crate) fn see_missed_read<E>(
    ctx: &mut Context<'_, E>,
    request: &Header,
    keyspace: KeyspaceId,
    key: &[u8],
) {
    if request.flags & flag::AT_HOME != 0 {
        ctx.heat.see_missed(keyspace, key);
    }
}
