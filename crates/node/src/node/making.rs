//! Partitions that were made of others, by a split or a merge: what a node held of those becomes
//! what it holds of them.

use crate::engine::{Area, Engine};
use crate::node::Node;
use crate::replica::Replica;
use crate::shard::cluster_view::ClusterView;
use crate::shard::replica_records::ReplicaRecord;
use cluster::{Mutant, Partition, PartitionId};
use machine::Instant;
use std::collections::BTreeMap;
use wire::Revision;

impl<E: Engine> Node<E> {
    /// Makes replicas of those partitions that it has none of, as far as it holds all that they
    /// were made of. All of it becomes durable at once.
    ///
    /// What is left of those others (notes, and match values that went to nobody here) is forgotten
    /// like any that it has lost.
    pub(crate) fn make_of_others(
        &mut self,
        now: Instant,
        directory: &ClusterView,
        mine: &[&Partition],
    ) {
        let mut parents = BTreeMap::new();
        for partition in mine {
            let Some(origins) = self.held_origins(directory, partition) else { continue };
            for record in &origins {
                let id = record.area.partition;
                let parent = parents.remove(&id);
                let parent = parent.or_else(|| self.parent(now, directory, record));
                parents.extend(parent.map(|parent| (id, parent)));
            }
            let of = origins.iter().filter_map(|it| parents.get(&it.area.partition));
            let of: Vec<&Replica> = of.collect();
            self.make_replica(now, directory, (partition, &of));
        }
    }

    /// What it has on record of all that a partition was made of; `None` if it lacks some of it, if
    /// the partition was made of nothing, or is there already.
    fn held_origins(
        &self,
        directory: &ClusterView,
        partition: &Partition,
    ) -> Option<Vec<ReplicaRecord>> {
        let made = partition.made.as_ref()?;
        if self.replica_records.get(partition.id).is_some() {
            return None;
        }
        let held = |(id, since): (PartitionId, Revision)| {
            let record = self.replica_records.get(id)?;
            (record.since == since && record.caught_up).then_some(*record)
        };
        let found: Vec<ReplicaRecord> = partition.origins(directory.me).filter_map(held).collect();
        (!found.is_empty() && found.len() == made.origins.len()).then_some(found)
    }

    /// The replica that this incarnation has of a partition, or what an earlier one has left on
    /// record.
    fn parent(
        &mut self,
        now: Instant,
        directory: &ClusterView,
        record: &ReplicaRecord,
    ) -> Option<Replica> {
        let Area { keyspace, partition, ordered, first, last } = record.area;
        let known = self.replicas.remove(&partition);
        if known.is_some() {
            return known;
        }
        let alone = Partition {
            id: partition,
            keyspace,
            first,
            last,
            epoch: record.epoch,
            chain: vec![directory.me],
            since: vec![record.since],
            ..Partition::default()
        };
        let mut replica = Replica::new(alone, directory.me, ordered, record.caught_up);
        replica.begin_above(E::FOUND);
        let mut ctx = self.shard.context(directory, now, 0);
        ctx.counters.notes_ignored += replica.restore(now, ctx.engine, ctx.timers);
        replica.come_back(&mut ctx, record);
        Some(replica)
    }

    fn make_replica(
        &mut self,
        now: Instant,
        directory: &ClusterView,
        (partition, parents): (&Partition, &[&Replica]),
    ) {
        let mut ctx = self.shard.context(directory, now, 0);
        let made = Replica::made_of(&mut ctx, partition.clone(), parents);
        let Some(mut replica) = made else { return };
        let area = replica.member.area();
        for parent in parents {
            ctx.engine.inherit(parent.member.id(), area.partition);
        }
        replica.enter(&mut ctx);
        if !ctx.mutant.is(Mutant::ForgetOrigin) {
            for parent in parents {
                self.replica_records.give_away(&mut self.shard.engine, parent.member.id(), &area);
            }
        }
        let since = partition.since(directory.me).unwrap_or_default();
        let (epoch, base) = (partition.epoch, replica.base);
        let record = ReplicaRecord { area, since, caught_up: true, epoch, base };
        self.replica_records.take(&mut self.shard.engine, record);
        self.replicas.insert(area.partition, replica);
    }
}
