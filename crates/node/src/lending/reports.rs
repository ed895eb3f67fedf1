//! Caches are told which keys clients ask for most: regularly, and at once of those that are asked
//! for much all of a sudden (SwitchKV section 3.2).

use crate::engine::Engine;
use crate::heat::ALERT_REST;
use crate::lending::REPORT_EVERY;
use crate::node::Node;
use cluster::{HotKey, HotPolicy, cache_of};
use machine::Instant;
use wire::{CacheReportBody, CacheReports, Header, Op};

impl<E: Engine> Node<E> {
    /// Tells this node's cache, if it has one and it is time to.
    pub(crate) fn report_to_cache(&mut self, now: Instant) {
        let bursts = self.shard.heat.alerts();
        let lending = &mut self.shard.lending;
        let sudden =
            bursts != lending.bursts && now + REPORT_EVERY >= lending.next_report + ALERT_REST;
        if now < lending.next_report && !sudden {
            return;
        }
        (lending.next_report, lending.bursts) = (now + REPORT_EVERY, bursts);
        let Some(directory) = &self.directory else { return };
        let Some(cache) = cache_of(directory.caches(), directory.me).copied() else { return };
        let hot = self.shard.heat.hot(now);
        let hot = hot.iter().filter(|key| key.reads > 0);
        let placed: Vec<_> = hot.filter_map(|key| Some((self.placed(key)?, &key.key))).collect();
        let ctx = self.shard.context(directory, now, 0);
        if !ctx.leased || placed.is_empty() {
            return;
        }
        let (op, node) = (Op::CacheReport as u8, directory.me.0);
        let header = Header { op, node, load: ctx.load, ..Header::default() };
        let mut payloads = Vec::new();
        placed.iter().for_each(|(fixed, key)| CacheReports::add(&mut payloads, fixed, key));
        for payload in &payloads {
            ctx.out.push(cache.endpoint, |out| {
                wire::emit(out, &header, &[payload]);
            });
        }
    }

    /// Where a key lies that a cache may hold; `None` if this node is not its tail.
    fn placed(&self, key: &HotKey) -> Option<CacheReportBody> {
        let keyspace = self.directory.as_ref()?.keyspace(key.keyspace)?;
        let at = keyspace.match_value(&key.key);
        let id = self.ranges.get(&key.keyspace)?.find(at)?;
        let replica = self.replicas.get(id)?;
        let serves = replica.member.is_tail() && replica.member.partition.open;
        (serves && keyspace.hot == HotPolicy::Cache).then(|| CacheReportBody {
            keyspace: keyspace.id.0,
            partition: id.0,
            epoch: replica.member.epoch().0,
            match_value: at.0,
            keyhash: keyspace.keyhash(&key.key),
            rate: u32::try_from(key.reads).unwrap_or(u32::MAX),
            key_len: 0,
        })
    }
}
