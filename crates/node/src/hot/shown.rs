//! What a tail may show in answers that the switch does not look into, and what it has to publish
//! first.

use crate::engine::{Engine, Interval, Record};
use crate::hot::deferred::Unpublished;
use crate::hot::publications::DirectoryKey;
use crate::hot::publish::{publishes, take_published, vouches};
use crate::replica::Replica;
use crate::shard::context::Context;
use cluster::Mutant;
use wire::{Header, Version};

impl Replica {
    /// HOT_PUBLISH has come back through the switch.
    pub(crate) fn handle_published<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
    ) {
        if !take_published(ctx, &self.member, header) {
            return;
        }
        let (propagations, tail) = self.as_tail();
        for key in tail.registrations.with_hash(header.keyhash) {
            propagations.release(ctx, &tail, &key);
        }
        self.let_batches_go(ctx);
    }

    /// Whether this version of a key is published, of which this tail vouches for it.
    pub(crate) fn vouches<E>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        version: Version,
    ) -> bool {
        match self.registrations.get(key) {
            Some(it) => vouches(ctx, &self.member, at, version, it.generation),
            None => publishes(ctx, &self.member, at, version),
        }
    }

    /// What of a key a read that the switch does not look into would show unpublished; `None` if it
    /// may show what is committed.
    pub(crate) fn unpublished<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> Option<Unpublished> {
        let version = self.propagations.newest(key)?;
        let shows = ctx.mutant.is(Mutant::ShowUnpublished) || self.vouches(ctx, at, key, version);
        (!shows).then(|| Unpublished { place: DirectoryKey::new(self.member.id(), at), version })
    }

    /// The same for all keys of an interval: also for those that have no value. `None` if it cannot
    /// be said yet: a value must not be left out because its time has come, before a tombstone says
    /// so; nor may anything be said of a key that is delegated, which therefore is to come home.
    pub(crate) fn unpublished_in<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        interval: &Interval<'_>,
    ) -> Option<Vec<Unpublished>> {
        let (mut unpublished, mut barred) = (Vec::new(), false);
        for (key, registration) in
            self.registrations.iter().filter(|(key, it)| interval.holds(it.match_value, key))
        {
            if self.delegations.present(key).is_some() {
                ctx.heat.see_home_only(self.member.partition.keyspace, key);
                barred = true;
                continue;
            }
            let at = registration.header();
            let ignores = ctx.mutant.is(Mutant::ShowUnpublished);
            barred |= self.ask_if_over(ctx, &at, key) && !ignores;
            unpublished.extend(self.unpublished(ctx, &at, key));
            if unpublished.len() > ASKED_AT_ONCE {
                return None;
            }
        }
        (!barred).then_some(unpublished)
    }

    /// Whether keys of an interval may be counted. What counts is what is committed here, whatever
    /// copies show. A key that is delegated has a value if it had one when it left, for only writes
    /// of values may go anywhere; if it had none, it has to come home to be counted.
    pub(crate) fn may_count_all<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        interval: &Interval<'_>,
    ) -> bool {
        let mut unknown = 0;
        for (key, registration) in
            self.registrations.iter().filter(|(key, it)| interval.holds(it.match_value, key))
        {
            let place = registration.header();
            let has_value = |record: Option<Record<'_>>| record.is_some_and(|it| !it.tombstone);
            if self.delegations.present(key).is_some()
                && !ctx.engine.read(&self.member.key_ref(&place, key), has_value)
            {
                ctx.heat.see_home_only(self.member.partition.keyspace, key);
                unknown += 1;
            }
        }
        unknown == 0
    }

    /// Whether the client may be told how its write ended. That there is no value is said with
    /// version 0, which tells the switch nothing: so of a hot key it is only said once that is
    /// published which took the value away.
    pub(crate) fn may_tell_absence<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> bool {
        let version = ctx.engine.read(&self.member.key_ref(at, key), |r| r.map(|r| r.version));
        let version = version.unwrap_or_else(|| self.absent_version(key));
        publishes(ctx, &self.member, at, version)
    }
}

/// Publications that one RANGE asks for, and waits for. There is one such key for each entry that
/// fits an answer, or few more, even if all were written since they were last shown.
const ASKED_AT_ONCE: usize = 256;
