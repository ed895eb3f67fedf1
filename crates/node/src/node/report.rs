//! How a node is: for the controller, and for those who watch.

use crate::engine::Engine;
use crate::node::Node;
use crate::node::syncs::Statement;
use crate::replica::Replica;
use crate::replica::copy::Copy;
use crate::shard::cluster_view::ClusterView;
use crate::shard::counters::Counters;
use cluster::{NodeCount, NodeReport, PartitionId, ShardRecord, Stored, Volume};
use machine::Instant;
use wire::Revision;

impl<E: Engine> Node<E> {
    /// How the node is, for the controller. What is not yet durable is not said to be settled,
    /// whole, vacated or installed.
    pub fn report(&self, now: Instant) -> NodeReport {
        let progress = |(id, copy): (&PartitionId, &Copy<E::Cursor>)| {
            Some(copy.progress(&self.shard.engine, self.replicas.get(id)?))
        };
        let durable = self.durable_statement();
        NodeReport {
            revision: durable.revision,
            store: self.shard.engine.store_id(),
            cluster: durable.on_record.cluster,
            past: durable.on_record.past,
            recorded: durable.on_record.revision,
            settled: durable.settled,
            caught_up: durable.caught_up,
            copies: self.copies.iter().filter_map(progress).collect(),
            vacating: durable.vacating,
            verify: self.verifier.number(),
            verified: self.verifier.report(),
            hot: self.shard.heat.hot(now),
            hot_revision: durable.hot_revision,
            hot_known: durable.hot_known,
            recall: durable.recall,
            requests: self.shard.counters.work_total(),
            rate: self.config.rate,
            pending: self.pending() as u64,
            waiting: 0,
            busy_us: 0,
            resources: self.resources(),
            stored: self.stored(),
            samples: self.samples(now),
            counts: self.counts(),
            clock: self.shard.ahead,
            asked_directly: self.shard.direct.is_asked(now) || self.has_addresses(),
            // Whoever runs the node says so.
            leaving: false,
        }
    }

    /// What was asked of its partitions that no switch counts, where anything was.
    fn counts(&self) -> Vec<NodeCount> {
        let counts = self.replicas.values().map(|replica| replica.count);
        counts.filter(|it| *it != NodeCount::new(it.partition)).collect()
    }

    /// Whether keys have content addresses, so that it is asked past the switch at any time.
    fn has_addresses(&self) -> bool {
        self.directory.as_ref().is_some_and(ClusterView::has_addresses)
    }

    /// What it says of itself once the turns that have ended are durable.
    pub(crate) fn statement(&self) -> Statement {
        let durable = || self.replicas.values().filter(|_| !self.dirty);
        let place = |replica: &Replica| (replica.member.id(), replica.member.epoch());
        Statement {
            revision: self.installed_revision(),
            settled: durable().filter(|r| r.settled).map(Replica::as_settled).collect(),
            caught_up: durable()
                .filter(|r| r.member.is_learner() && r.caught_up)
                .map(place)
                .collect(),
            vacating: self.replica_records.vacating(),
            hot_revision: self.shard.hot.revision(),
            hot_known: self.hot_known(),
            recall: self.recall(),
            on_record: self.replica_records.on_record(),
        }
    }

    /// Revision of the map that it follows.
    pub(crate) fn installed_revision(&self) -> Revision {
        self.directory.as_ref().map_or(Revision::NONE, |directory| directory.revision)
    }

    /// What it has on record of the map, as far as that is durable; with an engine that does not
    /// sync apart, of what was installed since the last flush it is not yet.
    #[must_use]
    pub fn on_record(&self) -> ShardRecord {
        self.durable_statement().on_record
    }

    /// How often there was something that the controller should hear of at once: when this has
    /// grown, it is time for a [report](Self::report).
    #[must_use]
    pub fn alerts(&self) -> u64 {
        self.shard.heat.alerts() + self.shard.direct.alerts()
    }

    /// The highest revision of an order of hot keys that is on record, here or with the delegations
    /// of a partition, whose writes need an order that is not older.
    fn hot_known(&self) -> Revision {
        let of_delegations =
            self.replicas.values().map(|replica| replica.delegations.newest_order());
        of_delegations.max().unwrap_or_default().max(self.shard.hot.orders.newest())
    }

    /// What is held of each keyspace, if this engine holds values.
    fn stored(&self) -> Vec<Stored> {
        let of = |replica: &Replica| {
            let volume = replica.totals.volume();
            let held = volume.unwrap_or_default();
            let as_tail = if replica.member.is_tail() { held } else { Volume::default() };
            let keyspace = replica.member.partition.keyspace;
            Stored { keyspace, held, as_tail, counted: volume.is_some() }
        };
        Stored::join(self.replicas.values().filter(|_| E::OWNS).map(of))
    }

    /// Keys that are delegated without the order's wish; what is not durable yet counts as well.
    fn recall(&self) -> u64 {
        let count = |replica: &Replica| {
            let strays = replica.delegations.strays(
                &self.shard.hot,
                replica.member.partition.keyspace,
                &replica.pending,
            );
            if self.dirty && !replica.delegations.is_empty() { strays.max(1) } else { strays }
        };
        self.replicas.values().map(count).sum()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.shard.counters
    }

    /// Writes recorded and not yet committed.
    pub fn pending(&self) -> usize {
        self.shard.timers.len()
    }
}
