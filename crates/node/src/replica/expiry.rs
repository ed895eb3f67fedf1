//! Housekeeping that time brings: values expire, tombstones are collected, idle sessions end.

use crate::engine::Engine;
use crate::replica::Replica;
use crate::replica::totals::Surveyed;
use crate::shard::context::Context;
use cluster::{KeyspaceId, PartitionId, RangeTable};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wire::big::time_of;
use wire::{ChainExpire, ChainWriteBody, Effect, Header, Op, PartKey, Version};

/// A record whose time has come.
struct Due {
    key: Vec<u8>,
    version: Version,
    tombstone: bool,
}

impl Replica {
    /// Deals with one due record: the head turns a value into a tombstone, every member collects
    /// a tombstone once no older write of its key can still be on the way.
    fn handle_due<E: Engine>(&mut self, ctx: &mut Context<'_, E>, header: &Header, due: &Due) {
        if due.tombstone {
            let collectable = due.version <= self.history.stable()
                && self.caught_up
                && !self.tells_of_parts(ctx, &due.key);
            if collectable && self.pending.newest(&due.key).is_none() {
                ctx.engine.remove(&self.member.key_ref(header, &due.key));
                self.collected = self.collected.max(due.version);
                self.note_counters(ctx.engine);
                ctx.counters.collected += 1;
            }
        } else if self.may_expire(&due.key) {
            self.expire(ctx, header, &due.key, due.version);
        }
    }

    /// The tail says that somebody asked for a value whose time has come by its clock; or a member,
    /// that it has a part of a big value that nobody will ask for.
    pub(crate) fn handle_expire<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        key: &[u8],
    ) {
        if let Some(part) = PartKey::parse(key) {
            self.handle_stray(ctx, part);
            return;
        }
        let ChainExpire { version } = ChainExpire::of(header);
        let now_ms = ctx.time.0;
        let over = ctx.engine.read(&self.member.key_ref(header, key), |record| {
            record.is_some_and(|r| {
                r.version == version && !r.tombstone && (1..=now_ms).contains(&time_of(r.expiry_ms))
            })
        });
        if over && self.may_expire(key) {
            self.expire(ctx, header, key, version);
        }
    }

    fn may_expire(&self, key: &[u8]) -> bool {
        let room = self.pending.newest(key).is_none() && self.pending.has_room_for(1);
        self.member.is_head() && self.member.partition.open && room
    }

    /// Writes a tombstone over a value whose time has come: a delete that no client asked for.
    pub(crate) fn expire<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        base: Version,
    ) {
        ctx.counters.expired += 1;
        self.order_unasked(ctx, at, key, base, Effect::Delete, &[]);
    }

    /// Orders upon `base` that something goes of which no client asked for the end.
    pub(crate) fn order_unasked<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        base: Version,
        effect: Effect,
        value: &[u8],
    ) {
        let header = self.member.own_header(at, key);
        let fixed = ChainWriteBody {
            base,
            stable: self.history.stable(),
            origin: Op::Del as u8,
            effect: effect as u8,
            ordered: 1,
            ..ChainWriteBody::default()
        };
        self.order(ctx, &header, fixed, key, value);
    }

    /// What an earlier incarnation has left here is gone through.
    pub(crate) fn begin_survey(&mut self) {
        self.totals.begin(self.member.partition.first);
    }

    /// Goes through so many records of an earlier incarnation, if there are any.
    pub(crate) fn survey<E: Engine>(&mut self, ctx: &mut Context<'_, E>, left: &mut usize) {
        let keyspace = ctx.directory.keyspace(self.member.partition.keyspace);
        let Some(keyspace) = keyspace else { return };
        while *left > 0
            && let Some(come) = self.totals.survey(ctx.engine, keyspace, &self.member, left)
        {
            match come {
                Surveyed::Paused => {}
                Surveyed::Part(key) => {
                    PartKey::parse(&key).into_iter().for_each(|part| self.found_part(ctx, part));
                }
                Surveyed::Through(digest) if Some(digest) != self.digest => {
                    self.digest = Some(digest);
                    self.note_counters(ctx.engine);
                }
                Surveyed::Through(_) => {}
            }
        }
    }
}

/// Looks for records whose time has come; a bounded number each time.
pub(crate) fn sweep<E: Engine>(
    ctx: &mut Context<'_, E>,
    replicas: &mut BTreeMap<PartitionId, Replica>,
    ranges: &BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
) {
    let mut found: Vec<(KeyspaceId, Due)> = Vec::new();
    ctx.engine.due(ctx.time.0, |keyspace, key, record| {
        let due = Due { key: key.to_vec(), version: record.version, tombstone: record.tombstone };
        found.push((keyspace, due));
        if found.len() < SWEEP_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    for (id, due) in &found {
        let Some(keyspace) = ctx.directory.keyspace(*id) else { continue };
        let at = keyspace.match_value(&due.key);
        let partition = ranges.get(id).and_then(|table| table.find(at));
        let Some(replica) = partition.and_then(|p| replicas.get_mut(p)) else { continue };
        let keyhash = keyspace.keyhash(&due.key);
        let header = Header { match_value: at.0, keyhash, ..Header::default() };
        replica.handle_due(ctx, &header, due);
    }
}

/// Records per sweep: 10,000 a second, and a sweep of a few milliseconds at most.
const SWEEP_MAX: usize = 1_000;
