//! What an assignment makes of a node's replicas.

use crate::engine::{Area, Engine};
use crate::node::{Node, SETTLE_EVERY};
use crate::replica::Replica;
use crate::replica::copy::Copy;
use crate::shard::cluster_view::ClusterView;
use crate::shard::replica_records::ReplicaRecord;
use cluster::{Assignment, Keyspace, KeyspaceId, Mutant, Partition, PartitionId, RangeTable};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Room, Version};

impl<E: Engine> Node<E> {
    /// Takes what the controller says this node is to serve. One that is not newer than the
    /// installed one changes nothing, nor does one that is older than what an earlier incarnation
    /// installed, or one of another cluster than that whose data is held here.
    ///
    /// # Panics
    ///
    /// If a partition has this node neither in its chain nor away from it: whoever hands it in has
    /// checked that.
    pub fn install(&mut self, now: Instant, assignment: &Assignment) {
        let foreign =
            self.replica_records.cluster.is_some_and(|cluster| cluster != assignment.cluster);
        let newest = self.installed_revision();
        let overtaken =
            newest >= assignment.revision || self.replica_records.revision > assignment.revision;
        let for_another = assignment
            .incarnation
            .is_some_and(|incarnation| incarnation != self.config.incarnation);
        if foreign || overtaken || for_another || self.shard.stock.is_frozen() {
            return;
        }
        self.dirty = true;
        if self.waits_for_loans(now, assignment) {
            return;
        }
        self.replica_records.belong_to(&mut self.shard.engine, assignment.cluster);
        let mut mine: Vec<&Partition> =
            assignment.partitions.iter().filter(|p| self.is_mine(p)).collect();
        self.replica_records.follow(
            &mut self.shard.engine,
            (assignment, &mine),
            self.config.incarnation,
        );
        let installed = self.shard.hot.revision();
        self.shard.hot.orders.age(&mut self.shard.engine, assignment.aged, installed);
        self.copy_budget.bytes_per_s = assignment.copy_bytes_per_s;
        for keyspace in &assignment.keyspaces {
            self.shard.engine.meet_keyspace(keyspace);
        }
        let directory = ClusterView::new(assignment, self.config.shard);
        let kept = mine.extract_if(.., |it| it.kept_since(assignment.node).is_some()).collect();
        self.make_of_others(now, &directory, &mine);
        self.forget_others(now, &directory, &mine, kept);
        let mut rows: BTreeMap<KeyspaceId, Vec<_>> = BTreeMap::new();
        for partition in &mine {
            let Partition { id, keyspace, first, last, .. } = **partition;
            rows.entry(keyspace).or_default().push((first, last, id));
        }
        self.ranges = rows.into_iter().map(|(id, rows)| (id, RangeTable::new(rows))).collect();
        for partition in mine {
            self.take_replica_record(now, &directory, partition);
        }
        for copy in self.copies.values_mut() {
            copy.wake(now);
        }
        self.directory = Some(directory);
        let changes =
            |replica: &Replica| !replica.member.partition.open || replica.member.is_learner();
        self.is_changing = self.replicas.values().any(changes);
        self.next_quiet = self.next_quiet.min(now + SETTLE_EVERY);
        self.find_work(now);
        self.find_what_to_verify(now);
    }

    fn is_mine(&self, partition: &Partition) -> bool {
        partition.id.0 % u32::from(self.config.shards) == u32::from(self.config.shard)
    }

    /// Drops every partition that is not assigned any more, or that is assigned anew: what lies
    /// here of an earlier generation is no longer what the others have. It is forgotten piece by
    /// piece, but where the node has a replica record again already: there it has to be gone before
    /// the first packet, or old and new could not be told apart, however long that takes. A
    /// controller gives no such replica record before the node has forgotten.
    fn forget_others(
        &mut self,
        now: Instant,
        directory: &ClusterView,
        mine: &[&Partition],
        kept: Vec<&Partition>,
    ) {
        let mine_by_id: BTreeMap<PartitionId, &Partition> =
            mine.iter().map(|p| (p.id, *p)).collect();
        let stays = |replica_record: &ReplicaRecord| {
            let partition = mine_by_id.get(&replica_record.area.partition);
            partition.is_some_and(|partition| {
                partition.since(directory.me) == Some(replica_record.since)
                    && replica_record.can_resume(partition, directory.me)
            })
        };
        // What it has left for a while it keeps as it is, and serves it no more.
        let kept: BTreeMap<PartitionId, &Partition> = kept.into_iter().map(|p| (p.id, p)).collect();
        let rests = |replica_record: &ReplicaRecord| {
            let partition = kept.get(&replica_record.area.partition);
            let since = partition.and_then(|partition| partition.kept_since(directory.me));
            since == Some(replica_record.since)
        };
        let keeps = self.shard.mutant.is(Mutant::KeepLeftovers);
        let replica_records = &self.replica_records;
        self.replicas.retain(|id, _| replica_records.get(*id).is_some_and(stays));
        let replicas = &self.replicas;
        self.shard.timers.retain(|(_, id, _)| replicas.contains_key(id));
        self.shard.hot.retain(|id| replicas.contains_key(&id));
        self.copies.retain(|id, _| replicas.contains_key(id));
        self.replica_records.vacate(|record| keeps || stays(record) || rests(record));
        for partition in mine {
            let Partition { id, keyspace, first, last, .. } = **partition;
            let ordered = directory.keyspace(keyspace).is_some_and(Keyspace::is_ordered);
            let area = Area { keyspace, partition: id, ordered, first, last };
            self.replica_records.forget_all(&mut self.shard.engine, &area);
        }
        self.next_vacating = self.next_vacating.max(now);
        self.syncs.see_replicas();
        self.shard.rests_on_replicas = true;
    }

    /// Forgets a piece of what is held without a replica record, and of what a replica had noted
    /// before it began again, if it is time to.
    pub(crate) fn vacate_on(&mut self, now: Instant) {
        if self.vacating_due().is_none_or(|at| at > now) {
            return;
        }
        self.next_vacating = now + VACATE_EVERY;
        self.replica_records.forget_piece(&mut self.shard.engine);
        let (Some(id), Some(directory)) = (self.forgetting.pop_first(), &self.directory) else {
            return;
        };
        if let Some(replica) = self.replicas.get_mut(&id) {
            replica.forget_notes(&mut self.shard.context(directory, now, 0));
            self.forgetting.extend(replica.is_forgetting().then_some(id));
        }
    }

    /// When there is a piece to forget, if there is one; not before it is durable why.
    pub(crate) fn vacating_due(&self) -> Option<Instant> {
        let any = self.replica_records.is_vacating() || !self.forgetting.is_empty();
        (any && self.syncs.has_replicas()).then_some(self.next_vacating)
    }

    /// Makes a replica of a partition, or lets it follow.
    fn take_replica_record(
        &mut self,
        now: Instant,
        directory: &ClusterView,
        partition: &Partition,
    ) {
        let id = partition.id;
        let ordered = directory.keyspace(partition.keyspace).is_some_and(Keyspace::is_ordered);
        let known = self.replicas.remove(&id);
        let is_new = known.is_none() && self.replica_records.get(id).is_none();
        let mut ctx = self.shard.context(directory, now, 0);
        let replica = if let Some(mut replica) = known {
            replica.adopt(&mut ctx, partition.clone());
            replica
        } else {
            let replica_record = self.replica_records.get(id).copied();
            let caught_up = replica_record.is_some_and(|replica_record| replica_record.caught_up);
            let mut replica = Replica::new(partition.clone(), directory.me, ordered, caught_up);
            replica.begin_above(E::FOUND);
            ctx.counters.notes_ignored += replica.restore(now, ctx.engine, ctx.timers);
            if is_new && replica.member.is_learner() {
                ctx.engine.hide_found(id);
            }
            if let Some(replica_record) = replica_record {
                replica.begin_survey();
                replica.come_back(&mut ctx, &replica_record);
            } else if !replica.member.is_learner() && !replica.member.partition.open {
                // It may have had a replica record that the store does not remember, or the
                // partition is new.
                replica.base = Some(Version::NONE);
            }
            replica.enter(&mut ctx);
            replica
        };
        self.forgetting.extend(replica.is_forgetting().then_some(id));
        let since = partition.since(directory.me).unwrap_or_default();
        let area: Area = replica.member.area();
        let (caught_up, epoch, base) = (replica.caught_up, replica.member.epoch(), replica.base);
        self.replica_records
            .take(&mut self.shard.engine, ReplicaRecord { area, since, caught_up, epoch, base });
        let giving =
            self.copies.get(&id).is_some_and(|copy| copy.epoch() == replica.member.epoch());
        if !replica.gives() {
            self.copies.remove(&id);
        } else if !giving {
            let cursor = self.shard.engine.walk(&area);
            self.copies.insert(id, Copy::new(replica.member.epoch(), now, cursor));
        }
        if is_new && !replica.member.is_learner() && !ordered {
            self.shard.engine.begin_listing(id);
        }
        self.replicas.insert(id, replica);
    }

    /// When there is a piece to list of what was in the engine's store before, if there is one.
    /// Nothing is listed while there is no room for what it would add to memory.
    pub(crate) fn listing_due(&self) -> Option<Instant> {
        (self.shard.engine.is_listing() && self.room() < Room::Full).then_some(self.next_listing)
    }

    /// Makes records of a piece of what was in the engine's store before, if it is time to.
    pub(crate) fn list_on(&mut self, now: Instant) {
        if self.listing_due().is_none_or(|at| at > now) {
            return;
        }
        let Some(directory) = &self.directory else { return };
        let hashed = |id: &KeyspaceId| directory.keyspace(*id).filter(|it| !it.is_ordered());
        let keyspaces: Vec<KeyspaceId> = self.ranges.keys().copied().collect();
        let keyspaces: Vec<_> = keyspaces.into_iter().filter(|id| hashed(id).is_some()).collect();
        let ranges = &self.ranges;
        self.shard.engine.list_on(&keyspaces, |id, key| {
            let keyspace = hashed(&id)?;
            let match_value = keyspace.match_value(key);
            let partition = ranges.get(&id)?.find(match_value)?;
            Some((*partition, match_value, keyspace.keyhash(key)))
        });
        self.next_listing = now + LIST_EVERY;
    }
}

/// From one piece that is forgotten to the next: with the durable engine about half of the time is
/// left for all else, and a million records take 20 seconds.
const VACATE_EVERY: Duration = Duration::from_millis(5);

/// From one piece of what was in the store before to the next. A piece takes some milliseconds, of
/// the backend too; a million values take some 10 to 20 seconds.
const LIST_EVERY: Duration = Duration::from_millis(5);
