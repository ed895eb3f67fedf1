//! Publications: which versions the switch is known to have let no reader answer below.
//!
//! The switch looks into replies about one key. What MGET and RANGE show passes it unseen, and so
//! does that a key has no value when a write is told so with version 0. Such answers wait until
//! HOT_PUBLISH has come back through the switch.
//!
//! It says to the switch what a GET would be told. So a key that is read by multigets alone is
//! proven by it, and a reader that has lost its copy says so.

use crate::engine::{Engine, Interval, Record};
use crate::hot::deferred::{self, Unpublished};
use crate::replica::Replica;
use crate::shard::context::Context;
use cluster::{KeyspaceId, Mutant, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use wire::{Code, Generation, Header, MgetKey, Op, hop_flag};

/// Which key of a shard: its partition, keyhash and match value. The directory knows keys by no
/// more, and keeps those apart that have only the keyhash in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DirectoryKey {
    partition: PartitionId,
    keyhash: u64,
    match_value: u128,
}

impl DirectoryKey {
    pub(crate) fn new(partition: PartitionId, at: &Header) -> Self {
        Self { partition, keyhash: at.keyhash, match_value: at.match_value }
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }
}

/// What has come back.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    table: BTreeMap<DirectoryKey, Publication>,
}

#[derive(Debug, Default)]
struct Publication {
    version: u64,
    /// The newest that somebody waits for.
    wanted: u64,
    /// The generation in which this tail vouches for `wanted`; 0 for none.
    generation: Generation,
    /// Whether the switch has heard that.
    proven: bool,
    asked: Option<Asked>,
}

/// A HOT_PUBLISH under way.
#[derive(Debug)]
struct Asked {
    version: u64,
    since: Instant,
    /// Whether an earlier one may still come back as well.
    again: bool,
}

impl Publication {
    fn is_wanted(&self) -> bool {
        self.wanted > self.version || !self.generation.is_none() && !self.proven
    }
}

impl Publications {
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.table.retain(|place, _| keep(place.partition));
    }

    pub(crate) fn forget(&mut self, place: DirectoryKey) {
        self.table.remove(&place);
    }

    pub(crate) fn is_published(&self, place: DirectoryKey, version: u64) -> bool {
        self.table.get(&place).map_or(0, |publish| publish.version) >= version
    }
}

impl Replica {
    /// Whether the newest version of a hot key is published. If it is not, HOT_PUBLISH is sent for
    /// it, or will be when the one that is under way has come back.
    pub(crate) fn publishes<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        version: u64,
    ) -> bool {
        let place = DirectoryKey::new(self.id(), at);
        let publish = ctx.hot.publications.table.entry(place).or_default();
        if publish.version >= version {
            return true;
        }
        publish.wanted = publish.wanted.max(version);
        self.ask_to_publish(ctx, at);
        false
    }

    /// The same of a key that this tail vouches for: no version that was shown before its
    /// generation, by its registration, began is above this one. That is said as well, once in each
    /// generation: the switch sees no answers from which it could learn it where a key is read by
    /// multigets alone.
    pub(crate) fn vouches<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        version: u64,
    ) -> bool {
        let Some(registration) = self.registrations.get(key) else {
            return self.publishes(ctx, at, version);
        };
        let publish =
            ctx.hot.publications.table.entry(DirectoryKey::new(self.id(), at)).or_default();
        if publish.generation != registration.generation && !ctx.mutant.is(Mutant::PublishUnproven)
        {
            (publish.generation, publish.proven) = (registration.generation, false);
        }
        publish.wanted = publish.wanted.max(version);
        let is_published = publish.version >= version;
        if publish.is_wanted() {
            self.ask_to_publish(ctx, at);
        }
        is_published
    }

    /// Sends HOT_PUBLISH for the newest version of a key that somebody waits for.
    fn ask_to_publish<E: Engine>(&self, ctx: &mut Context<'_, E>, at: &Header) {
        let place = DirectoryKey::new(self.id(), at);
        let Some(publish) = ctx.hot.publications.table.get_mut(&place) else { return };
        let patience = ctx.hot.rtt.timeout(0);
        if !ctx.leased || publish.asked.as_ref().is_some_and(|it| ctx.now < it.since + patience) {
            return;
        }
        let (version, generation, again) =
            (publish.wanted, publish.generation, publish.asked.is_some());
        publish.asked = Some(Asked { version, since: ctx.now, again });
        let mut header = Header { object_version: version, ..self.hot_header(ctx, at) };
        if !generation.is_none() {
            header.hop_flags = hop_flag::NEWEST;
            header.set_generation(generation);
        }
        tell_switch(ctx, header);
    }

    /// HOT_PUBLISH has come back through the switch.
    pub(crate) fn handle_published<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
    ) {
        let place = DirectoryKey::new(self.id(), header);
        let Some(publish) = ctx.hot.publications.table.get_mut(&place) else { return };
        publish.version = publish.version.max(header.object_version);
        let vouched = header.hop_flags & hop_flag::NEWEST != 0;
        publish.proven |= vouched && header.generation() == publish.generation;
        let back = publish.asked.take_if(|asked| asked.version <= publish.version);
        let (version, more) = (publish.version, publish.is_wanted());
        if let Some(asked) = back.filter(|asked| !asked.again) {
            ctx.hot.rtt.sample(ctx.now.since(asked.since), 1);
        }
        deferred::release(ctx, Unpublished { place, version });
        if more {
            self.ask_to_publish(ctx, header);
        }
        for key in self.registrations.with_hash(header.keyhash) {
            self.release(ctx, &key);
        }
        self.let_batches_go(ctx);
    }

    /// What of a key a read that the switch does not look into would show unpublished; `None` if it
    /// may show what is committed.
    pub(crate) fn unpublished<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> Option<Unpublished> {
        let version = self.newest_propagated(key)?;
        let shows = ctx.mutant.is(Mutant::ShowUnpublished) || self.vouches(ctx, at, key, version);
        (!shows).then(|| Unpublished { place: DirectoryKey::new(self.id(), at), version })
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
                ctx.heat.see_home_only(self.partition.keyspace, key);
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
                && !ctx.engine.read(&self.key_ref(&place, key), has_value)
            {
                ctx.heat.see_home_only(self.partition.keyspace, key);
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
        let version = ctx.engine.read(&self.key_ref(at, key), |r| r.map(|r| r.version));
        let version = version.unwrap_or_else(|| self.absent_version(key));
        self.publishes(ctx, at, version)
    }
}

/// Says to the switch, in the name of this node, what a GET of a key would be told.
fn tell_switch<E>(ctx: &mut Context<'_, E>, header: Header) {
    let here = ctx.directory.here;
    let (op, reply_addr, reply_port) = (Op::HotPublish as u8, here.addr, here.port);
    let mut header = Header { op, reply_addr, reply_port, ..header };
    header.set_rate(ctx.rate);
    ctx.out.push(ctx.directory.switch, |out| {
        wire::emit(out, &header, &[]);
    });
}

/// Says to the switch, which does not look into an answer to MGET, that this reader has no copy of
/// a key that is as new as it was asked for, if that is so: others are to be asked.
pub(crate) fn tell_missed<E>(
    ctx: &mut Context<'_, E>,
    keyspace: KeyspaceId,
    slot: &MgetKey<'_>,
    floor: u64,
) {
    let place = (keyspace, slot.keyhash);
    if ctx.hot.answer(ctx.time, place, slot.key, floor..=u64::MAX).is_some() {
        return;
    }
    let Some(entry) = ctx.hot.entry(keyspace, slot.key) else { return };
    let mut header = Header {
        node: ctx.directory.me.0,
        load: ctx.load,
        code: Code::NotHere as u8,
        keyspace: keyspace.0,
        match_value: entry.match_value.0,
        keyhash: slot.keyhash,
        ..Header::default()
    };
    header.set_generation(entry.generation);
    tell_switch(ctx, header);
}

/// Publications that one RANGE asks for, and waits for. There is one such key for each entry that
/// fits an answer, or few more, even if all were written since they were last shown.
const ASKED_AT_ONCE: usize = 256;
