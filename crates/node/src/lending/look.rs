//! Which requests would show a key that is held back.

use crate::replica::lookup::Lookup;
use crate::shard::context::Context;
use cluster::{KeyspaceId, Match, Mutant, PartitionId};
use wire::{Body, Header, RangeInterval};

/// Whether a request has to wait: it would show a key that is held back.
pub(crate) fn parks<E>(
    ctx: &mut Context<'_, E>,
    lookup: &mut Lookup<'_>,
    (header, body): (&Header, &Body<'_>),
) -> bool {
    // Mostly nothing is.
    if ctx.lending.busy.is_empty() || ctx.mutant.is(Mutant::ShowHeldBack) {
        return false;
    }
    let id = PartitionId(header.partition);
    let parks = match *body {
        Body::Get { key } => lookup.replicas.get(&id).is_some_and(|it| it.loans.is_held_back(key)),
        Body::Range { .. } => {
            let RangeInterval { first, last } = RangeInterval::of(header);
            let replica = lookup.replicas.get(&id);
            replica.is_some_and(|it| it.loans.holds_back_between(first, last))
        }
        Body::Mget(keys) => (0u8..).zip(keys.iter()).any(|(index, key)| {
            let asked = header.bitmap & 1 << index != 0;
            let keyspace = KeyspaceId(header.keyspace);
            let home = lookup.tail_of(keyspace, Match(key.match_value)).filter(|_| asked);
            home.is_some_and(|it| it.loans.is_held_back(key.key))
        }),
        _ => false,
    };
    ctx.counters.parked += u64::from(parks);
    parks
}
