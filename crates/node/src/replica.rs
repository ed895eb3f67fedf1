//! One partition on this node: its place in the chain, its pending writes, its sessions.

pub(crate) mod batch;
pub(crate) mod big;
pub(crate) mod chain;
pub(crate) mod change;
pub(crate) mod copy;
pub(crate) mod digest;
pub(crate) mod expiry;
pub(crate) mod head;
pub(crate) mod history;
pub(crate) mod notes;
pub(crate) mod numbers;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod totals;
pub(crate) mod write;

use crate::engine::{Area, Engine, KeyRef};
use crate::hot::delegation::recall::Recalls;
use crate::hot::delegation::records::DelegationTable;
use crate::hot::propagation::Propagations;
use crate::hot::registrations::Registrations;
use crate::replica::big::Uploads;
use crate::replica::digest::Digest;
use crate::replica::history::History;
use crate::replica::notes::pending_name;
use crate::replica::sessions::table::Sessions;
use crate::replica::totals::Totals;
use crate::replica::write::{Pending, Write, changes_registration, changes_state};
use crate::shard::context::Context;
use crate::shard::room::Behind;
use crate::shard::timers::Timers;
use cluster::{Epoch, NodeId, Partition, PartitionId};
use machine::{Instant, Retransmissions, RttEstimator};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::{Effect, Header};

/// One partition on this node.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) partition: Partition,
    pub(crate) ordered: bool,
    /// This node's index in the chain.
    position: usize,
    /// Whether all that was written before this node came has been copied to it.
    pub(crate) caught_up: bool,
    /// Closed, and nothing is pending in the whole chain.
    pub(crate) settled: bool,
    /// If this node was a member in an earlier incarnation and has not been compared with the
    /// others since: every version up to this one is certainly here.
    pub(crate) base: Option<u64>,
    /// The newest version that this node has seen; a head gives out those above.
    pub(crate) last_version: u64,
    /// Which writes are committed here.
    pub(crate) history: History,
    /// The newest version of any tombstone collected here.
    pub(crate) collected: u64,
    /// What is held here, in a number.
    pub(crate) digest: Digest,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Versions pending per key, ascending.
    by_key: BTreeMap<Box<[u8]>, Vec<u64>>,
    pub(crate) pending_bytes: u64,
    pub(crate) behind: Behind,
    /// Version pending per request id.
    pub(crate) by_request: BTreeMap<(u64, u64), u64>,
    /// Batches among the pending writes.
    pub(crate) batches: BTreeSet<u64>,
    /// What this node, as the head, keeps back until the switch knows of it.
    pub(crate) kept_back: BTreeSet<u64>,
    pub(crate) sessions: Sessions,
    /// Which keys are hot.
    pub(crate) registrations: Registrations,
    /// Those of them that this node propagations, as the tail.
    pub(crate) propagations: Propagations,
    /// On which keys writes go anywhere, or did lately.
    pub(crate) delegations: DelegationTable,
    /// Those of them that this node, as the head, brings home.
    pub(crate) recalls: Recalls,
    /// Parts of big values without a manifest.
    pub(crate) uploads: Uploads,
    /// How many keys have a value.
    pub(crate) totals: Totals,
    /// Until the successor acknowledges, and until it says committed.
    pub(crate) acknowledge_rtt: RttEstimator,
    pub(crate) commit_rtt: RttEstimator,
    /// Writes that were sent more than once: how long the first answer took.
    pub(crate) twice: Retransmissions<Duration>,
    /// CHAIN_STABLE still to be sent for the present `stable`.
    pub(crate) announcements_left: u8,
}

impl Replica {
    /// A replica that knows nothing yet.
    ///
    /// # Panics
    ///
    /// If `me` is not in the chain: the assignment names only partitions that it is in.
    pub(crate) fn new(partition: Partition, me: NodeId, ordered: bool, caught_up: bool) -> Self {
        let mut replica = Self {
            position: 0,
            partition: Partition::default(),
            ordered,
            caught_up,
            settled: false,
            base: None,
            last_version: 0,
            history: History::default(),
            collected: 0,
            digest: Digest::default(),
            pending: BTreeMap::new(),
            by_key: BTreeMap::new(),
            pending_bytes: 0,
            behind: Behind::default(),
            by_request: BTreeMap::new(),
            batches: BTreeSet::new(),
            kept_back: BTreeSet::new(),
            sessions: Sessions::default(),
            registrations: Registrations::default(),
            propagations: Propagations::default(),
            delegations: DelegationTable::default(),
            recalls: Recalls::default(),
            uploads: Uploads::default(),
            totals: Totals::default(),
            acknowledge_rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            commit_rtt: RttEstimator::new(RESEND_MIN, COMMIT_FIRST, RESEND_MAX),
            twice: Retransmissions::default(),
            announcements_left: 0,
        };
        replica.take_place(partition, me);
        replica
    }

    /// Takes it that every version up to this one was there before anything was written.
    pub(crate) fn begin_above(&mut self, version: u64) {
        (self.last_version, self.history) = (version, History::up_to(version, 0));
    }

    /// Follows a change of the partition that keeps this node in its chain.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub(crate) fn take_place(&mut self, partition: Partition, me: NodeId) {
        let position = partition.chain.iter().position(|id| *id == me);
        self.position = position.expect("assigned partitions have this node in their chain");
        self.partition = partition;
    }

    pub(crate) fn id(&self) -> PartitionId {
        self.partition.id
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.partition.epoch
    }

    pub(crate) fn is_head(&self) -> bool {
        self.position == 0
    }

    /// Whether this node answers clients and serves reads.
    pub(crate) fn is_tail(&self) -> bool {
        self.position + 1 == self.partition.members().len()
    }

    /// Whether nobody comes behind: what reaches this node is committed.
    pub(crate) fn is_last(&self) -> bool {
        self.position + 1 == self.partition.chain.len()
    }

    /// Whether this node is behind the tail, and is being copied to or was.
    pub(crate) fn is_learner(&self) -> bool {
        self.position >= self.partition.members().len()
    }

    /// Where the engine keeps it.
    pub(crate) fn area(&self) -> Area {
        let Partition { id, keyspace, first, last, .. } = self.partition;
        Area { keyspace, partition: id, ordered: self.ordered, first, last }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Index and id of the member after this one.
    pub(crate) fn successor(&self) -> Option<(usize, NodeId)> {
        let next = self.position + 1;
        Some((next, *self.partition.chain.get(next)?))
    }

    pub(crate) fn predecessor(&self) -> Option<NodeId> {
        self.partition.chain.get(self.position.checked_sub(1)?).copied()
    }

    pub(crate) fn key_ref<'a>(&self, header: &Header, key: &'a [u8]) -> KeyRef<'a> {
        KeyRef {
            keyspace: self.partition.keyspace,
            partition: self.partition.id,
            ordered: self.ordered,
            match_value: cluster::Match(header.match_value),
            keyhash: header.keyhash,
            key,
        }
    }

    /// Versions pending of this key, ascending.
    pub(crate) fn versions_pending(&self, key: &[u8]) -> &[u64] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// The newest pending write of this key with an effect on it that `counts`.
    fn newest_pending_with(
        &self,
        key: &[u8],
        counts: impl Fn(Effect) -> bool,
    ) -> Option<Write<'_>> {
        let versions = self.versions_pending(key).iter().rev();
        let pending = versions.filter_map(|version| self.pending.get(version));
        let mut writes = pending.filter_map(|pending| pending.write().on(key));
        writes.find(|write| write.effect().is_some_and(&counts))
    }

    /// The newest pending write of this key that changes its state; of a batch this key's part.
    pub(crate) fn newest_pending(&self, key: &[u8]) -> Option<Write<'_>> {
        self.newest_pending_with(key, changes_state)
    }

    /// A pending change of this key's registration or delegations. The head has at most one of a
    /// key.
    pub(crate) fn pending_registration(&self, key: &[u8]) -> Option<Write<'_>> {
        self.newest_pending_with(key, changes_registration)
    }

    /// The keys that have one.
    pub(crate) fn keys_with_pending_registration(&self) -> impl Iterator<Item = &[u8]> {
        let writes = self.pending.values().map(Pending::write);
        writes
            .filter(|write| write.effect().is_some_and(changes_registration))
            .map(|write| write.key)
    }

    /// The pending writes of this key, the oldest first.
    pub(crate) fn pending_of_key(&self, key: &[u8]) -> impl Iterator<Item = Write<'_>> {
        let versions = self.by_key.get(key).into_iter().flatten();
        versions.filter_map(|version| self.pending.get(version)).map(Pending::write)
    }

    /// Version of the newest pending write of this key, whatever it does.
    pub(crate) fn newest_version_pending(&self, key: &[u8]) -> Option<u64> {
        self.versions_pending(key).last().copied()
    }

    pub(crate) fn pending_of(&self, client: u64, seq: u64) -> Option<u64> {
        self.by_request.get(&(client, seq)).copied()
    }

    /// Whether this version is known here, pending or committed.
    pub(crate) fn knows(&self, version: u64) -> bool {
        self.is_committed(version) || self.pending.contains_key(&version)
    }

    pub(crate) fn is_committed(&self, version: u64) -> bool {
        self.history.holds(version)
    }

    /// Records a write as pending, in memory and as a note.
    pub(crate) fn pend<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let mut note = Vec::new();
        write.emit(&mut note);
        ctx.engine.note(self.id(), &pending_name(write.version()), Some(&note));
        let due = ctx.now + self.acknowledge_rtt.timeout(0);
        self.insert_pending(ctx.now, write, due, ctx.timers);
    }

    pub(crate) fn insert_pending(
        &mut self,
        now: Instant,
        write: &Write<'_>,
        due: Instant,
        timers: &mut Timers,
    ) {
        let version = write.version();
        self.last_version = self.last_version.max(version);
        for key in write.keys() {
            let versions = self.by_key.entry(key.into()).or_default();
            let at = versions.partition_point(|v| *v < version);
            versions.insert(at, version);
        }
        if write.is_batch() {
            self.batches.insert(version);
        }
        if write.header.client != 0 {
            self.by_request.insert((write.header.client, write.header.seq), version);
            self.sessions.raise_floor(now, write.header.client, write.floor());
        }
        timers.insert((due, self.partition.id, version));
        let pending = Pending { due, ..write.to_pending(now) };
        self.pending_bytes += pending.bytes();
        assert!(self.pending.insert(version, pending).is_none(), "a version is recorded once");
    }

    /// Takes a write out of the pending ones, because it is committed now.
    pub(crate) fn unpend<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: u64,
    ) -> Option<Pending> {
        let pending = self.pending.remove(&version)?;
        self.pending_bytes -= pending.bytes();
        ctx.timers.remove(&(pending.due, self.partition.id, version));
        ctx.engine.note(self.id(), &pending_name(version), None);
        self.by_request.remove(&(pending.header.client, pending.header.seq));
        self.batches.remove(&version);
        self.kept_back.remove(&version);
        for key in pending.write().keys() {
            if let Some(versions) = self.by_key.get_mut(key) {
                versions.retain(|v| *v != version);
                if versions.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(pending)
    }

    /// Sends a pending write to the successor, if it may go on; commits it if there is none.
    pub(crate) fn send_on<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: u64) {
        if !ctx.leased || !self.may_go_on(ctx, version) {
            return;
        }
        let Some((next, successor)) = self.successor() else {
            self.commit_ready(ctx);
            return;
        };
        let Some(to) = ctx.directory.endpoint(successor, self.partition.id) else { return };
        let Some(pending) = self.pending.get_mut(&version) else { return };
        pending.fixed.stable = self.history.stable();
        let header = &mut pending.header;
        header.epoch = self.partition.epoch.0;
        header.node = ctx.directory.me.0;
        header.load = ctx.load;
        header.set_chain(self.partition.chain.iter().map(|id| id.0));
        header.chain_pos = u8::try_from(next).expect("chains are at most CHAIN_MAX long");
        ctx.out.push(to, |out| pending.write().emit(out));
    }
}

/// Shorter resends would race the group commit of a successor with a durable engine.
const RESEND_MIN: Duration = Duration::from_millis(5);
/// Before anything is known of the successor.
const RESEND_FIRST: Duration = Duration::from_millis(50);
/// The same for the commit, which waits for the rest of the chain.
const COMMIT_FIRST: Duration = Duration::from_millis(200);
/// A successor that is down is asked this often at least, so that a chain heals soon after it.
const RESEND_MAX: Duration = Duration::from_secs(1);
