//! One partition on this node: its place in the chain, its pending writes, its sessions.
//!
//! What it knows stands in parts that own it. What takes several of them is a file for each thing
//! that a replica does.

pub(crate) mod aside;
pub(crate) mod asked;
pub(crate) mod batch;
pub(crate) mod big;
pub(crate) mod chain;
pub(crate) mod change;
pub(crate) mod copy;
pub(crate) mod digest;
pub(crate) mod durable;
pub(crate) mod expiry;
pub(crate) mod head;
pub(crate) mod heritage;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod learn;
pub(crate) mod lookup;
pub(crate) mod member;
pub(crate) mod notes;
pub(crate) mod numbers;
pub(crate) mod pending;
pub(crate) mod places;
pub(crate) mod range;
pub(crate) mod read;
pub(crate) mod restore;
pub(crate) mod room;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shares;
pub(crate) mod stored;
pub(crate) mod totals;
pub(crate) mod unite;
pub(crate) mod write;

use crate::engine::Engine;
use crate::hot::delegation::recall::Recalls;
use crate::hot::delegation::records::DelegationTable;
use crate::hot::propagation::Propagations;
use crate::hot::registrations::Registrations;
use crate::lending::loans::Loans;
use crate::replica::asked::Asked;
use crate::replica::big::uploads::Uploads;
use crate::replica::digest::Digest;
use crate::replica::history::History;
use crate::replica::member::Member;
use crate::replica::notes::pending_name;
use crate::replica::pending::{Aside, PendingWrites};
use crate::replica::places::{EarlySyncs, Union};
use crate::replica::sessions::clients::Writes;
use crate::replica::sessions::table::Sessions;
use crate::replica::totals::Totals;
use crate::replica::write::{Pending, Write};
use crate::shard::context::Context;
use crate::shard::room::Behind;
use crate::shard::timers::Timers;
use crate::shard::waits::Waits;
use cluster::{Match, Mutant, NodeCount, NodeId, Partition, RECORDS_PER_REQUEST};
use machine::{Instant, Retransmissions, RttEstimator};
use std::time::Duration;
use wire::Version;

/// One partition on this node.
#[derive(Debug)]
pub(crate) struct Replica {
    /// This node's place in the chain.
    pub(crate) member: Member,
    /// Whether all that was written before this node came has been copied to it.
    pub(crate) caught_up: bool,
    /// Closed, and nothing is pending in the whole chain.
    pub(crate) settled: bool,
    /// If this node was a member in an earlier incarnation and has not been compared with the
    /// others since: every version up to this one is certainly here.
    pub(crate) base: Option<Version>,
    /// The newest version that this node has seen; a head gives out those above.
    pub(crate) last_version: Version,
    /// Which writes are committed here.
    pub(crate) history: History,
    /// The newest version of any tombstone collected here.
    pub(crate) collected: Version,
    /// What is held here, in a number; `None` while it has not gone through what it was made of.
    pub(crate) digest: Option<Digest>,
    pub(crate) pending: PendingWrites,
    pub(crate) aside: Aside,
    /// As the last of the chain: which of them are on whose disks already.
    pub(crate) told: EarlySyncs,
    /// How far a closed chain has united what is pending.
    pub(crate) union: Union,
    pub(crate) behind: Behind,
    pub(crate) sessions: Sessions,
    /// Which keys are hot.
    pub(crate) registrations: Registrations,
    /// Those of them that this node propagates, as the tail.
    pub(crate) propagations: Propagations,
    /// On which keys writes go anywhere, or did lately.
    pub(crate) delegations: DelegationTable,
    /// Those of them that this node, as the head, brings home.
    pub(crate) recalls: Recalls,
    /// What it lends to caches, as the tail.
    pub(crate) loans: Loans,
    /// Parts of big values without a manifest.
    pub(crate) uploads: Uploads,
    /// How many keys have a value.
    pub(crate) totals: Totals,
    /// Which of them are asked for.
    pub(crate) asked: Asked,
    /// What was asked of it that no switch counts.
    pub(crate) count: NodeCount,
    /// Until the successor acknowledges, and until it says committed.
    pub(crate) acknowledge_rtt: RttEstimator,
    pub(crate) commit_rtt: RttEstimator,
    /// Writes that were sent more than once: how long the first answer took.
    pub(crate) twice: Retransmissions<Duration>,
    /// If it began again and notes of the time before are left: those from this name on.
    pub(crate) stale_notes: Option<Vec<u8>>,
    /// CHAIN_STABLE still to be sent for the present `stable`.
    pub(crate) announcements_left: u8,
}

/// What a request has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Bytes of the request, and of the answer that it was given at once.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Records that it examined as a scan.
    pub(crate) scanned: u64,
}

impl Replica {
    /// A replica that knows nothing yet.
    ///
    /// # Panics
    ///
    /// If `me` is not in the chain: the assignment names only partitions that it is in.
    pub(crate) fn new(partition: Partition, me: NodeId, ordered: bool, caught_up: bool) -> Self {
        Self {
            asked: Asked::new(partition.id),
            count: NodeCount::new(partition.id),
            member: Member::new(partition, me, ordered),
            caught_up,
            settled: false,
            base: None,
            last_version: Version::NONE,
            history: History::default(),
            collected: Version::NONE,
            digest: Some(Digest::default()),
            pending: PendingWrites::default(),
            aside: Aside::default(),
            told: EarlySyncs::default(),
            union: Union::default(),
            behind: Behind::default(),
            sessions: Sessions::default(),
            registrations: Registrations::default(),
            propagations: Propagations::default(),
            delegations: DelegationTable::default(),
            recalls: Recalls::default(),
            loans: Loans::default(),
            uploads: Uploads::default(),
            totals: Totals::default(),
            acknowledge_rtt: RttEstimator::new(RESEND_MIN, RESEND_FIRST, RESEND_MAX),
            commit_rtt: RttEstimator::new(RESEND_MIN, COMMIT_FIRST, RESEND_MAX),
            twice: Retransmissions::default(),
            stale_notes: None,
            announcements_left: 0,
        }
    }

    /// Counts a request that came to the address of a key, if it is this node's to answer: whoever
    /// else gets it refuses it, and it comes again.
    pub(crate) fn count_by_address(&mut self, writes: bool) {
        let Self { member, count, .. } = self;
        count.writes += u64::from(writes && member.is_head());
        count.reads += u64::from(!writes && member.is_tail());
    }

    /// Counts what a request has cost. In the sample of what is asked for a scan stands for as many
    /// requests as it has cost.
    pub(crate) fn count_cost(&mut self, now: Instant, at: Match, cost: Cost) {
        let Cost { bytes_in, bytes_out, scanned } = cost;
        self.count.bytes_in += bytes_in;
        self.count.bytes_out += bytes_out;
        self.count.scanned += scanned;
        (0..scanned / RECORDS_PER_REQUEST).for_each(|_| self.asked.see(now, at));
    }

    /// Takes it that every version up to this one was there before anything was written.
    pub(crate) fn begin_above(&mut self, version: Version) {
        (self.last_version, self.history) = (version, History::up_to(version, 0));
    }

    /// Whether this version is known here, pending or committed.
    pub(crate) fn knows(&self, version: Version) -> bool {
        self.is_committed(version) || self.pending.contains(version)
    }

    pub(crate) fn is_committed(&self, version: Version) -> bool {
        self.history.holds(version)
    }

    /// What became of its clients' writes, and what it knows of writes otherwise.
    pub(crate) fn sessions(&mut self) -> (&mut Sessions, Writes<'_>) {
        let Self { member, sessions, pending, history, last_version, .. } = self;
        let (id, stable, last_version) = (member.id(), history.stable(), *last_version);
        (sessions, Writes { id, pending, stable, last_version })
    }

    /// Whether there is room for one more outcome of this client.
    pub(crate) fn makes_room<E: Engine>(&mut self, ctx: &mut Context<'_, E>, client: u64) -> bool {
        let (sessions, writes) = self.sessions();
        sessions.makes_room(ctx, &writes, client)
    }

    /// Records a write as pending, in memory and as a note.
    pub(crate) fn pend<E: Engine>(&mut self, ctx: &mut Context<'_, E>, write: &Write<'_>) {
        let mut note = Vec::new();
        write.emit(&mut note);
        ctx.engine.note(self.member.id(), &pending_name(write.version()), Some(&note));
        let due = ctx.now + self.acknowledge_rtt.timeout(0);
        self.insert_pending(ctx.now, write, due, ctx.timers);
        if let Some(noted) = &mut ctx.noted {
            noted.pending.push((self.member.id(), write.version()));
            self.pending.get_mut(write.version()).expect("it was inserted").on_disk = false;
        }
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
        if write.header.client != 0 {
            self.sessions.raise_floor(now, write.header.client, write.floor());
        }
        timers.insert((due, self.member.partition.id, version));
        self.pending.insert(Pending { due, ..write.to_pending(now) });
    }

    /// Takes a write out of the pending ones, because it is committed now.
    pub(crate) fn unpend<E: Engine>(
        &mut self,
        ctx: &mut Context<'_, E>,
        version: Version,
    ) -> Option<Pending> {
        let pending = self.pending.remove(version)?;
        ctx.timers.remove(&(pending.due, self.member.partition.id, version));
        ctx.engine.note(self.member.id(), &pending_name(version), None);
        self.union.see(version);
        Some(pending)
    }

    /// Sends a pending write to the successor, if it may go on; commits it if there is nobody else.
    /// While syncs go on apart it leaves at once, and else when it is durable.
    pub(crate) fn send_on<E: Engine>(&mut self, ctx: &mut Context<'_, E>, version: Version) {
        if !ctx.leased || !self.may_go_on(ctx, version) {
            return;
        }
        if self.union.is_to_offer(version) {
            self.offer(ctx, version);
            return;
        }
        let Some((next, successor)) = self.member.successor() else {
            if self.member.is_head() {
                self.commit_ready(ctx);
            }
            return;
        };
        let (early, mine) = (self.goes_early() && ctx.free.is_some(), self.own_bit());
        let based = self.is_sent_as_based(version);
        let Some(to) = ctx.directory.endpoint(successor, self.member.partition.id) else { return };
        let Some(pending) = self.pending.get_mut(version) else { return };
        if early && !pending.on_disk {
            pending.went_early = true;
            let told = !ctx.mutant.is(Mutant::HideUnsynced);
            pending.set_unsynced(pending.unsynced() | if told { mine } else { 0 });
        }
        pending.set_based(based);
        pending.fixed.stable = self.history.stable();
        self.member.address(ctx, &mut pending.header, next);
        let waits = Waits::unless(early);
        ctx.outbox(waits).push(to, |out| pending.write().emit(out));
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
