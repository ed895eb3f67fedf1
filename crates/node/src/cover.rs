//! Covers: which versions the switch is known to have let no reader answer below.
//!
//! The switch looks into replies about one key. What MGET and RANGE show passes it unseen, and so
//! does that a key has no value when a write is told so with version 0. Such answers wait until
//! HOT_COVER has come back through the switch.

use crate::engine::{Engine, Interval, Record};
use crate::replica::{Context, Replica};
use cluster::{PartitionId, Plant};
use machine::Instant;
use std::collections::BTreeMap;
use wire::{Header, Op};

/// What has come back, by partition and keyhash: the directory knows keys by no more.
#[derive(Debug, Default)]
pub(crate) struct Covers {
    table: BTreeMap<(PartitionId, u64), Cover>,
}

#[derive(Debug, Default)]
struct Cover {
    version: u64,
    asked: Option<Asked>,
}

/// A HOT_COVER under way.
#[derive(Debug)]
struct Asked {
    version: u64,
    since: Instant,
    /// Whether an earlier one may still come back as well.
    again: bool,
}

impl Covers {
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.table.retain(|(id, _), _| keep(*id));
    }

    pub(crate) fn forget(&mut self, partition: PartitionId, keyhash: u64) {
        self.table.remove(&(partition, keyhash));
    }

    pub(crate) fn is_covered(&self, partition: PartitionId, keyhash: u64, version: u64) -> bool {
        let known = self.table.get(&(partition, keyhash));
        known.map_or(0, |cover| cover.version) >= version
    }
}

impl Replica {
    /// Whether the newest version of a hot key is covered. If it is not, HOT_COVER is sent for it,
    /// unless one is under way.
    pub(crate) fn covers<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        version: u64,
    ) -> bool {
        let place = (self.id(), at.keyhash);
        let cover = ctx.hot.covers.table.entry(place).or_default();
        if cover.version >= version {
            return true;
        }
        let patience = ctx.hot.rtt.timeout(0);
        if !ctx.leased || cover.asked.as_ref().is_some_and(|it| ctx.now < it.since + patience) {
            return false;
        }
        let Some(me) = ctx.directory.endpoint(ctx.directory.me, self.id()) else { return false };
        let again = cover.asked.is_some();
        cover.asked = Some(Asked { version, since: ctx.now, again });
        let header = Header {
            op: Op::HotCover as u8,
            object_version: version,
            reply_addr: me.addr,
            reply_port: me.port,
            ..self.hot_header(ctx, at)
        };
        ctx.out.push(ctx.directory.switch, |out| {
            wire::emit(out, &header, &[]);
        });
        false
    }

    /// HOT_COVER has come back through the switch.
    pub(crate) fn handle_covered<E: Engine>(&mut self, ctx: &mut Context<'_, E>, header: &Header) {
        let place = (self.id(), header.keyhash);
        let Some(cover) = ctx.hot.covers.table.get_mut(&place) else { return };
        cover.version = cover.version.max(header.object_version);
        let back = cover.asked.take_if(|asked| asked.version <= cover.version);
        if let Some(asked) = back.filter(|asked| !asked.again) {
            ctx.hot.rtt.sample(ctx.now.since(asked.since), 1);
        }
        for key in self.marks.with_hash(header.keyhash) {
            self.release(ctx, &key);
        }
        self.let_batches_go(ctx);
    }

    /// Whether a read that the switch does not look into may show what is committed of a key.
    pub(crate) fn may_show<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> bool {
        let Some(newest) = self.newest_spread(key) else { return true };
        ctx.plant == Some(Plant::ShowUncovered) || self.covers(ctx, at, newest)
    }

    /// The same for all keys of an interval: also for those that have no value. Nor may a value be
    /// left out because its time has come, before a tombstone says so; nor may anything be said of
    /// a key that is away, which therefore is to come home.
    pub(crate) fn may_show_all<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        interval: &Interval<'_>,
    ) -> bool {
        let mut barred = 0;
        for (key, mark) in self.marks.iter().filter(|(key, it)| interval.holds(it.match_value, key))
        {
            if self.trips.present(key).is_some() {
                ctx.heat.see_bound(self.partition.keyspace, key);
                barred += 1;
                continue;
            }
            let at = mark.header();
            let ignores = ctx.plant == Some(Plant::ShowUncovered);
            let over = self.ask_if_over(ctx, &at, key) && !ignores;
            if !self.may_show(ctx, &at, key) || over {
                barred += 1;
            }
            if barred == ASKED_AT_ONCE {
                break;
            }
        }
        barred == 0
    }

    /// Whether keys of an interval may be counted. What counts is what is committed here, whatever
    /// copies show. A key that is away has a value if it had one when it left, for only writes of
    /// values may go anywhere; if it had none, it has to come home to be counted.
    pub(crate) fn may_count_all<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        interval: &Interval<'_>,
    ) -> bool {
        let mut unknown = 0;
        for (key, mark) in self.marks.iter().filter(|(key, it)| interval.holds(it.match_value, key))
        {
            let place = mark.header();
            let has_value = |record: Option<Record<'_>>| record.is_some_and(|it| !it.tombstone);
            if self.trips.present(key).is_some()
                && !ctx.engine.read(&self.key_ref(&place, key), has_value)
            {
                ctx.heat.see_bound(self.partition.keyspace, key);
                unknown += 1;
            }
        }
        unknown == 0
    }

    /// Whether the client may be told how its write ended. That there is no value is said with
    /// version 0, which tells the switch nothing: so of a hot key it is only said once that is
    /// covered which took the value away.
    pub(crate) fn may_tell_absence<E: Engine>(
        &self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
    ) -> bool {
        let version = ctx.engine.read(&self.key_ref(at, key), |r| r.map(|r| r.version));
        let version = version.unwrap_or_else(|| self.absent_version(key));
        self.covers(ctx, at, version)
    }
}

/// Covers that one RANGE asks for: so many keys of a piece were written since they were last shown,
/// and each would have cost the client another try.
const ASKED_AT_ONCE: usize = 16;
