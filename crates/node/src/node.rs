//! The node of one shard: its replicas, what they share, and when something is due.

mod announce;
mod assign;
mod gauges;
mod hot_order;
mod making;
mod packets;
mod report;
mod room;
mod samples;
mod sync;
mod syncs;
mod tidy;
mod verify;

use crate::engine::Engine;
use crate::lending::tracker::TrackerConfig;
use crate::node::syncs::Syncs;
use crate::replica::Replica;
use crate::replica::big::parts::PartTimes;
use crate::replica::copy::{Budget, Copy};
use crate::replica::expiry::sweep;
use crate::shard::cluster_view::ClusterView;
use crate::shard::context::Shard;
use crate::shard::replica_records::ReplicaRecords;
use crate::shard::timers::take_due;
use crate::verify::Verifier;
use cluster::{
    ClockAhead, ClockOrder, Incarnation, KeyspaceId, Lease, MaybeMutant, Mutant, PartitionId,
    RangeTable,
};
use machine::{Datagram, Instant, Outbox};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a shard needs to know before any assignment.
#[derive(Clone, Copy, Debug)]
pub struct NodeConfig {
    /// This shard's index.
    pub shard: u16,
    /// Shards of the node. Partition p belongs to shard `p mod shards`.
    pub shards: u16,
    /// Which incarnation of the node this is, the same for all of its shards.
    pub incarnation: Incarnation,
    /// Requests per second that the node can serve, with all its shards, which its replies say to
    /// the switch; 0 if that is not known.
    pub rate: u32,
    /// Which keys it tells its cache of.
    pub tracker: TrackerConfig,
}

/// A storage node, or one shard of it.
///
/// The driver feeds it datagrams and the passing of time, calls [`flush`](Self::flush) once per
/// batch, then sends what [`poll_transmit`](Self::poll_transmit) gives.
#[derive(Debug)]
pub struct Node<E: Engine> {
    pub(crate) config: NodeConfig,
    /// What the replicas share.
    pub(crate) shard: Shard<E>,
    pub(crate) replica_records: ReplicaRecords,
    pub(crate) directory: Option<ClusterView>,
    pub(crate) replicas: BTreeMap<PartitionId, Replica>,
    /// Copies that this shard gives, as a tail with a learner behind it.
    pub(crate) copies: BTreeMap<PartitionId, Copy<E::Cursor>>,
    pub(crate) copy_budget: Budget,
    pub(crate) verifier: Verifier,
    /// Where match values of this shard's partitions lie.
    pub(crate) ranges: BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
    next_sweep: Instant,
    pub(crate) next_quiet: Instant,
    /// When the next piece of what is held without a replica record, or of notes, may be forgotten.
    pub(crate) next_vacating: Instant,
    /// Replicas that began again and have not forgotten all that they had noted before.
    pub(crate) forgetting: BTreeSet<PartitionId>,
    pub(crate) next_listing: Instant,
    /// When parts that go, and what an earlier incarnation has left, are looked after.
    pub(crate) next_tidy: Instant,
    /// The replica that was looked after last when there was more to do.
    pub(crate) tidied: PartitionId,
    /// Whether anything was handled since the last flush.
    pub(crate) dirty: bool,
    /// Whether the map closes one of its partitions, or has it learn one.
    pub(crate) is_changing: bool,
    pub(crate) syncs: Syncs,
    pub(crate) ready: Outbox,
    /// What rests on changes that the engine has refused so far.
    pub(crate) put_off: Outbox,
}

impl<E: Engine> Node<E> {
    /// A node that serves nothing until it is given an assignment and a lease.
    pub fn new(config: NodeConfig, mut engine: E, now: Instant) -> Self {
        let mut node = Self {
            config,
            replica_records: ReplicaRecords::begin(&mut engine, config.incarnation),
            shard: Shard::new(now, engine, config.incarnation, config.rate, &config.tracker),
            directory: None,
            replicas: BTreeMap::new(),
            copies: BTreeMap::new(),
            copy_budget: Budget::new(now),
            verifier: Verifier::default(),
            ranges: BTreeMap::new(),
            next_sweep: now + SWEEP_EVERY,
            next_quiet: now + QUIET_EVERY,
            next_vacating: now,
            forgetting: BTreeSet::new(),
            next_listing: now,
            next_tidy: now,
            tidied: PartitionId::default(),
            dirty: true,
            is_changing: false,
            syncs: Syncs::default(),
            ready: Outbox::default(),
            put_off: Outbox::default(),
        };
        // What an earlier incarnation has left is durable.
        node.syncs.said = node.statement();
        node
    }

    /// Takes a lease, if it is for this incarnation and for what is installed, and of the cluster
    /// whose data this node holds.
    pub fn renew(&mut self, lease: &Lease) {
        let installed = self.installed_revision();
        self.shard.tenure.renew(self.replica_records.cluster, installed, lease);
    }

    /// Takes a lease for requests that pass no switch, on the same conditions. Without one it
    /// answers none of them.
    pub fn renew_direct(&mut self, lease: &Lease) {
        let installed = self.installed_revision();
        self.shard.direct.renew(self.replica_records.cluster, installed, lease);
    }

    /// Whether it has a lease at `now`.
    pub fn is_leased(&self, now: Instant) -> bool {
        self.shard.tenure.holds(now)
    }

    /// The instant named by [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.dirty = true;
        self.shard.now = now;
        if self.shard.stock.is_frozen() {
            self.next_sweep = now + SWEEP_EVERY;
            return;
        }
        if now >= self.next_sweep {
            self.take_stock();
        }
        self.look_after_loans(now);
        let Some(directory) = &self.directory else { return };
        let mut ctx = self.shard.context(directory, now, 0);
        for (partition, version) in take_due(ctx.timers, now) {
            if let Some(replica) = self.replicas.get_mut(&partition) {
                replica.handle_overdue(&mut ctx, version);
            }
        }
        for (id, copy) in &mut self.copies {
            // What is not listed yet is not there to be copied.
            let due = copy.due().is_some_and(|at| at <= now) && ctx.engine.is_listed(*id);
            if let Some(replica) = self.replicas.get(id).filter(|_| due) {
                copy.go_on(&mut ctx, replica, &mut self.copy_budget);
            }
        }
        for (id, key) in ctx.hot.take_due(now) {
            if let Some(replica) = self.replicas.get_mut(&id) {
                let (propagations, tail) = replica.as_tail();
                propagations.handle_due(&mut ctx, &tail, &key);
            }
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_EVERY;
            ctx.heat.end_segment(now);
            if ctx.leased {
                sweep(&mut ctx, &mut self.replicas, &self.ranges);
            }
        }
        if now >= self.next_quiet {
            let closed = self.replicas.values().any(|replica| !replica.member.partition.open);
            self.next_quiet = now + if closed { SETTLE_EVERY } else { QUIET_EVERY };
            for replica in self.replicas.values_mut() {
                replica.handle_quiet(&mut ctx);
            }
        }
        self.report_to_cache(now);
        if now >= self.shard.hot.next_work {
            self.reconcile(now);
        }
        if now >= self.next_tidy {
            self.tidy_up(now);
        }
        self.vacate_on(now);
        self.list_on(now);
        self.verify_on(now);
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.ready.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if no packet comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let lending = self.shard.lending.due();
        if self.directory.is_none() {
            return [self.syncs.due(), lending].into_iter().flatten().min();
        }
        if self.shard.stock.is_frozen() {
            return Some(self.next_sweep);
        }
        let resend = self.shard.timers.first().map(|(due, ..)| *due);
        let copies = self.copies.values().filter_map(Copy::due).min();
        let housekeeping = self.next_sweep.min(self.next_quiet).min(self.next_tidy);
        let verifying = self.verifier.due();
        let listing = self.listing_due();
        [
            resend,
            self.syncs.due(),
            copies,
            self.shard.hot.due(),
            self.vacating_due(),
            listing,
            verifying,
            lending,
            self.report_due(),
            Some(housekeeping),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Takes what time it is by the cluster's clock, which values expire by, if that is said to
    /// this incarnation.
    pub fn set_clock(&mut self, told: &ClockOrder) {
        let ClockOrder { incarnation, ahead } = *told;
        if incarnation == self.shard.tenure.incarnation() {
            self.shard.ahead = Some(ahead);
            self.shard.engine.set_clock(ahead);
        }
    }

    /// What it was told of that in this incarnation.
    pub fn clock(&self) -> Option<ClockAhead> {
        self.shard.ahead
    }

    /// How long parts of big values stay that are those of none.
    pub fn set_part_times(&mut self, times: PartTimes) {
        self.shard.part_times = times;
    }

    /// How many clients a partition remembers.
    pub fn set_sessions_max(&mut self, sessions_max: usize) {
        self.shard.sessions_max = sessions_max;
    }

    /// Breaks a rule on purpose, for the simulator to notice.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.shard.mutant = MaybeMutant::of(mutant);
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &E {
        &self.shard.engine
    }

    /// The engine, for what its owner has to do for it between batches.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.shard.engine
    }

    /// Ends the node and gives its engine back, as a restart does.
    pub fn into_engine(self) -> E {
        self.shard.engine
    }
}

/// How often records are expired and collected, and hot keys looked for. Reads and updates see an
/// expiry to the millisecond whatever this is; it only bounds how long the memory stays
/// taken.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// How often a quiet partition is looked after.
const QUIET_EVERY: Duration = Duration::from_secs(1);
/// How often the head of a closed chain says that it has settled, which nobody acknowledges: all
/// its clients wait for it.
pub(crate) const SETTLE_EVERY: Duration = Duration::from_millis(5);
