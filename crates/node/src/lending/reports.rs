//! Caches are told which keys clients read most: regularly, and at once of those that are read much
//! all of a sudden (SwitchKV section 3.2).
//!
//! No value goes with a report: a lease counts from when the cache has asked for it, and here
//! nobody has asked.

use crate::engine::Engine;
use crate::node::Node;
use crate::replica::Replica;
use crate::shard::cluster_view::ClusterView;
use crate::shard::context::Context;
use crate::shard::waits::Waits;
use cluster::{CacheSpec, HotKey, Keyspace, Match, cache_of};
use machine::Instant;
use std::collections::BTreeMap;
use wire::{CacheReportBody, CacheReports, Header, Op, flag, hop_flag};

impl<E: Engine> Node<E> {
    /// Tells this node's cache, if it has one and it is time to.
    pub(crate) fn report_to_cache(&mut self, now: Instant) {
        if !self.shard.lending.tracker.end_segment(now) {
            return;
        }
        let Some(directory) = &self.directory else { return };
        let Some(cache) = own_cache(directory).copied() else { return };
        let mut payloads: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
        for key in self.shard.lending.tracker.hot().iter().filter(|key| key.reads > 0) {
            if let Some(fixed) = self.placed(directory, key) {
                let of_shard = payloads.entry(cache.shard_of(fixed.keyhash)).or_default();
                CacheReports::add(of_shard, &fixed, &key.key);
            }
        }
        let mut ctx = self.shard.context(directory, now, 0);
        for (shard, payloads) in &payloads {
            payloads.iter().for_each(|payload| send_report(&mut ctx, (&cache, *shard), payload));
        }
    }

    /// When that is next.
    pub(crate) fn report_due(&self) -> Option<Instant> {
        own_cache(self.directory.as_ref()?)?;
        self.shard.lending.tracker.due()
    }

    /// Where a key lies that a cache may hold; `None` if this node is not its tail.
    fn placed(&self, directory: &ClusterView, key: &HotKey) -> Option<CacheReportBody> {
        let keyspace = directory.keyspace(key.keyspace)?;
        let at = keyspace.match_value(&key.key);
        let replica = self.replicas.get(self.ranges.get(&key.keyspace)?.find(at)?)?;
        let serves = replica.member.is_tail() && replica.member.partition.open;
        let of = (keyspace, at, keyspace.keyhash(&key.key));
        let lends = keyspace.hot.caches() && !replica.is_hot(&key.key);
        (serves && lends).then(|| replica.report_of(of, key.reads))
    }
}

impl Replica {
    /// A client has read a key here, at the tail. If its cache could have answered it, it may hear
    /// of it at once.
    pub(crate) fn see_read<E>(
        &self,
        ctx: &mut Context<'_, E>,
        keyspace: &Keyspace,
        header: &Header,
        key: &[u8],
    ) {
        let past = header.hop_flags & wire::CONTENT_HOP_FLAGS == hop_flag::DIRECT;
        let to_tail = header.flags & flag::AT_HOME != 0 || past;
        if !keyspace.hot.caches() || to_tail || self.is_hot(key) {
            return;
        }
        let Some(cache) = own_cache(ctx.directory).copied() else { return };
        let name = (keyspace.id, header.keyhash, key);
        let Some(rate) = ctx.lending.tracker.see(ctx.now, ctx.load, name) else { return };
        let mut payload = Vec::new();
        let of = (keyspace, Match(header.match_value), header.keyhash);
        CacheReports::push(&mut payload, &self.report_of(of, rate), key);
        send_report(ctx, (&cache, cache.shard_of(header.keyhash)), &payload);
    }

    /// What is said of a key of this partition that is read so often per second.
    fn report_of(
        &self,
        (keyspace, match_value, keyhash): (&Keyspace, Match, u64),
        rate: u64,
    ) -> CacheReportBody {
        CacheReportBody {
            keyspace: keyspace.id.0,
            partition: self.member.id().0,
            epoch: self.member.epoch().0,
            match_value: match_value.0,
            keyhash,
            rate: u32::try_from(rate).unwrap_or(u32::MAX),
            key_len: 0,
        }
    }
}

/// The cache that this node tells.
fn own_cache(directory: &ClusterView) -> Option<&CacheSpec> {
    cache_of(directory.caches(), directory.me)
}

/// Sends what is said of some keys to their shard, if this node may say anything.
fn send_report<E>(ctx: &mut Context<'_, E>, (to, shard): (&CacheSpec, u16), payload: &[u8]) {
    let Some(to) = to.endpoint_of(shard).filter(|_| ctx.leased) else { return };
    let (op, node, load) = (Op::CacheReport as u8, ctx.directory.me.0, ctx.load);
    ctx.outbox(Waits::No).push(to, |out| {
        wire::emit(out, &Header { op, node, load, ..Header::default() }, &[payload]);
    });
}
