//! Housekeeping that time brings: values expire, tombstones are collected, idle sessions end.

use crate::engine::Engine;
use crate::node::Node;
use crate::replica::Replica;
use crate::replica::write::PENDING_MAX;
use crate::shard::context::Context;
use cluster::{ClockAhead, ClockOrder, MaybeMutant, Mutant};
use machine::{Instant, UnixMs};
use wire::big::time_of;
use wire::{ChainWriteBody, Effect, Header, Op, PartKey};

/// What time it is in the cluster, of whose clock the node was told how far it is ahead. Nobody has
/// a lease who was not told.
pub(crate) fn time(told: Option<ClockAhead>, mutant: MaybeMutant, now: Instant) -> UnixMs {
    let own = mutant.is(Mutant::OwnClock);
    told.filter(|_| !own).unwrap_or_default().time(now)
}

impl<E: Engine> Node<E> {
    /// Takes what time it is by the cluster's clock, which values expire by, if that is said to
    /// this incarnation.
    pub fn set_clock(&mut self, told: &ClockOrder) {
        let ClockOrder { incarnation, ahead } = *told;
        if incarnation == self.tenure.incarnation() {
            self.ahead = Some(ahead);
            self.engine.set_clock(ahead);
        }
    }

    /// What it was told of that in this incarnation.
    pub fn clock(&self) -> Option<ClockAhead> {
        self.ahead
    }
}

/// A record whose time has come.
pub(crate) struct Due {
    pub(crate) key: Vec<u8>,
    pub(crate) version: u64,
    pub(crate) tombstone: bool,
}

impl Replica {
    /// Deals with one due record: the head turns a value into a tombstone, every member collects
    /// a tombstone once no older write of its key can still be on the way.
    pub(crate) fn handle_due<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        header: &Header,
        due: &Due,
    ) {
        if due.tombstone {
            let collectable = due.version <= self.history.stable()
                && self.caught_up
                && !self.tells_of_parts(ctx, &due.key);
            if collectable && self.newest_pending(&due.key).is_none() {
                ctx.engine.remove(&self.key_ref(header, &due.key));
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
        let now_ms = ctx.time.0;
        let over = ctx.engine.read(&self.key_ref(header, key), |record| {
            record.is_some_and(|r| {
                r.version == header.object_version
                    && !r.tombstone
                    && (1..=now_ms).contains(&time_of(r.expiry_ms))
            })
        });
        if over && self.may_expire(key) {
            self.expire(ctx, header, key, header.object_version);
        }
    }

    fn may_expire(&self, key: &[u8]) -> bool {
        let room = self.newest_pending(key).is_none() && self.pending.len() < PENDING_MAX;
        self.is_head() && self.partition.open && room
    }

    /// Writes a tombstone over a value whose time has come: a delete that no client asked for.
    pub(crate) fn expire<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        at: &Header,
        key: &[u8],
        base: u64,
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
        base: u64,
        effect: Effect,
        value: &[u8],
    ) {
        let header = self.own_header(at, key);
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

    /// The header of a write that no client asked for.
    pub(crate) fn own_header(&self, at: &Header, key: &[u8]) -> Header {
        Header {
            keyspace: self.partition.keyspace.0,
            key_len: u16::try_from(key.len()).expect("keys are at most KEY_MAX long"),
            match_value: at.match_value,
            keyhash: at.keyhash,
            ..Header::default()
        }
    }
}
