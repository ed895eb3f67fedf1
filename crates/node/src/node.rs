//! The node of one shard: checks what every packet needs and hands it to its replica.

mod announce;
mod assign;
mod gauges;
mod report;
mod tidy;

use crate::engine::{Engine, EngineError, Record};
use crate::heat::Heat;
use crate::hot::Hot;
use crate::hot::copies::{handle_hot_copy, is_for_reader, read_copy};
use crate::hot::delegation::writes::{
    DelegatedWrites, handle_commit, handle_delegated, handle_end, handle_fetch, is_passed_on,
};
use crate::node::assign::sweep;
use crate::replica::Replica;
use crate::replica::big::PartTimes;
use crate::replica::copy::{Budget, Copy};
use crate::replica::read::handle_mget;
use crate::replica::serve::{describe, serve};
use crate::replica::sessions::table::SESSIONS_MAX;
use crate::shard::cluster_view::ClusterView;
use crate::shard::context::Context;
use crate::shard::counters::Counters;
use crate::shard::replica_records::ReplicaRecords;
use crate::shard::reply::refuse;
use crate::shard::room::Stock;
use crate::shard::timers::{Timers, take_due};
use crate::shard::turn::Turn;
use crate::verify::Verifier;
use cluster::{
    ClockAhead, Incarnation, KeyspaceId, Lease, Match, MaybeMutant, Mutant, PartitionId,
    RangeTable, Tenure,
};
use machine::{Datagram, Instant, Outbox};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Body, Code, DropReason, Endpoint, Header, Op, Packet, Revision, hop_flag};

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
}

/// A storage node, or one shard of it.
///
/// The driver feeds it datagrams and the passing of time, calls [`flush`](Self::flush) once per
/// batch, then sends what [`poll_transmit`](Self::poll_transmit) gives.
#[derive(Debug)]
pub struct Node<E: Engine> {
    pub(crate) config: NodeConfig,
    pub(crate) tenure: Tenure,
    /// How far the cluster's clock is ahead of this node's; `None` until it was told.
    pub(crate) ahead: Option<ClockAhead>,
    pub(crate) engine: E,
    pub(crate) replica_records: ReplicaRecords,
    pub(crate) directory: Option<ClusterView>,
    pub(crate) replicas: BTreeMap<PartitionId, Replica>,
    /// Copies that this shard gives, as a tail with a learner behind it.
    pub(crate) copies: BTreeMap<PartitionId, Copy<E::Cursor>>,
    pub(crate) copy_budget: Budget,
    pub(crate) verifier: Verifier,
    /// Where match values of this shard's partitions lie.
    pub(crate) ranges: BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
    pub(crate) timers: Timers,
    next_sweep: Instant,
    pub(crate) next_quiet: Instant,
    /// When the next piece of what is held without a replica record may be forgotten.
    pub(crate) next_vacating: Instant,
    pub(crate) next_listing: Instant,
    /// When parts that go, and what an earlier incarnation has left, are looked after.
    pub(crate) next_tidy: Instant,
    /// The replica that was looked after last when there was more to do.
    pub(crate) tidied: PartitionId,
    /// Whether replica records were given or taken since the last flush.
    pub(crate) unsynced_replicas: bool,
    /// Whether anything was handled since the last flush.
    pub(crate) dirty: bool,
    pub(crate) held: Outbox,
    pub(crate) ready: Outbox,
    /// What rests on changes that the engine has refused so far.
    pub(crate) put_off: Outbox,
    pub(crate) counters: Counters,
    pub(crate) heat: Heat,
    pub(crate) hot: Hot,
    pub(crate) part_times: PartTimes,
    pub(crate) sessions_max: usize,
    pub(crate) turn: Turn,
    pub(crate) stock: Stock,
    pub(crate) mutant: MaybeMutant,
    pub(crate) scratch: Vec<u8>,
}

/// The replicas as an MGET looks its keys up in them.
pub(crate) struct Lookup<'a> {
    pub(crate) replicas: &'a BTreeMap<PartitionId, Replica>,
    pub(crate) ranges: &'a BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
}

impl Lookup<'_> {
    /// The replica that serves reads of this match value, if this node does.
    pub(crate) fn tail_of(&self, keyspace: KeyspaceId, at: Match) -> Option<&Replica> {
        let partition = self.ranges.get(&keyspace)?.find(at)?;
        let replica = self.replicas.get(partition)?;
        (replica.is_tail() && replica.partition.open).then_some(replica)
    }
}

/// The parts of a node that its replicas work with, and those that they are kept in. A macro, so
/// that the borrows stay apart.
macro_rules! context {
    ($node:ident, $directory:ident, $now:expr, $load:expr) => {{
        let room = $node.stock.room($node.engine.usage());
        Context {
            now: $now,
            time: crate::replica::expiry::time($node.ahead, $node.mutant, $now),
            load: $load,
            rate: $node.config.rate,
            leased: $node.tenure.holds($now) || $node.mutant.is(cluster::Mutant::IgnoreLease),
            engine: &mut $node.engine,
            out: &mut $node.held,
            timers: &mut $node.timers,
            counters: &mut $node.counters,
            heat: &mut $node.heat,
            hot: &mut $node.hot,
            directory: $directory,
            part_times: $node.part_times,
            sessions_max: $node.sessions_max,
            turn: &mut $node.turn,
            room,
            uploads_full: $node.stock.uploads_full(),
            mutant: $node.mutant,
            scratch: &mut $node.scratch,
        }
    }};
}
pub(crate) use context;

impl<E: Engine> Node<E> {
    /// A node that serves nothing until it is given an assignment and a lease.
    pub fn new(config: NodeConfig, mut engine: E, now: Instant) -> Self {
        Self {
            config,
            tenure: Tenure::new(config.incarnation),
            ahead: None,
            replica_records: ReplicaRecords::begin(&mut engine, config.incarnation),
            hot: Hot::new(now, DelegatedWrites::restore(now, &engine)),
            engine,
            directory: None,
            replicas: BTreeMap::new(),
            copies: BTreeMap::new(),
            copy_budget: Budget::new(now),
            verifier: Verifier::default(),
            ranges: BTreeMap::new(),
            timers: Timers::new(),
            next_sweep: now + SWEEP_EVERY,
            next_quiet: now + QUIET_EVERY,
            next_vacating: now,
            next_listing: now,
            next_tidy: now,
            tidied: PartitionId::default(),
            unsynced_replicas: false,
            dirty: true,
            held: Outbox::default(),
            ready: Outbox::default(),
            put_off: Outbox::default(),
            counters: Counters::default(),
            heat: Heat::new(now, config.rate),
            part_times: PartTimes::default(),
            sessions_max: SESSIONS_MAX,
            turn: Turn::default(),
            stock: Stock::default(),
            mutant: MaybeMutant::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes a lease, if it is for this incarnation and for what is installed, and of the cluster
    /// whose data this node holds.
    pub fn renew(&mut self, lease: &Lease) {
        let installed = self.directory.as_ref().map_or(Revision::NONE, |d| d.revision);
        self.tenure.renew(self.replica_records.cluster, installed, lease);
    }

    /// Whether it has a lease at `now`.
    pub fn is_leased(&self, now: Instant) -> bool {
        self.tenure.holds(now)
    }

    /// Takes one datagram. `waiting` is how many the driver found queued, for the load report.
    /// `now` must have been read after the datagram was received: the lease is held against it.
    pub fn handle_packet(&mut self, now: Instant, from: Endpoint, waiting: u16, datagram: &[u8]) {
        self.dirty = true;
        if let Err(reason) = self.try_packet(now, from, waiting, datagram) {
            self.counters.count_drop(reason);
        }
    }

    /// Counts a datagram that the driver has dropped, so that all are counted in one place.
    pub fn count_drop(&mut self, reason: DropReason) {
        self.counters.count_drop(reason);
    }

    fn try_packet(
        &mut self,
        now: Instant,
        from: Endpoint,
        load: u16,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let packet = Packet::parse(datagram)?;
        let (op, header) = (packet.op(), Header::read(packet.header()));
        if op.is_reply() && !matches!(op, Op::HotCopied | Op::HotPublish) {
            return Err(DropReason::BadOp);
        }
        let body = packet.body();
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let mut ctx = context!(self, directory, now, load);
        if !ctx.leased {
            return Err(DropReason::NoLease);
        }
        let header = answered_to(from, op, header);
        let direct = header.hop_flags & hop_flag::DIRECT != 0 && !op.is_reply();
        let straight = op.is_chain() || direct || is_passed_on(&packet, &header);
        if !straight && from != directory.switch {
            return Err(DropReason::NotFromSwitch);
        }
        ctx.counters.count_request(op);
        let body = match body {
            Err(DropReason::BadBody) if !op.is_chain() && !op.is_reply() => {
                refuse(&mut ctx, &header, op, Code::BadRequest);
                return Ok(());
            }
            body => body?,
        };
        if !self.stock.admits(op) {
            return self.turn_away(now, from, &header, (op, &body));
        }
        if let Body::Describe { name } = body {
            describe(&mut ctx, &header, name);
            return Ok(());
        }
        if op.is_chain() || op.is_reply() {
            return self.handle_message(now, load, from, &header, &body);
        }
        let Some(keyspace) = directory.keyspace(KeyspaceId(header.keyspace)) else {
            // Not a refusal: the keyspace may be newer than this node's assignment.
            refuse(&mut ctx, &header, op, Code::NotOwner);
            return Ok(());
        };
        if let Body::Mget(keys) = body {
            let lookup = Lookup { replicas: &self.replicas, ranges: &self.ranges };
            handle_mget(&mut ctx, &lookup, &header, keyspace, &keys);
            return Ok(());
        }
        if let Body::Put { key, value, .. } = body
            && header.hop_flags & (hop_flag::GRANTED | hop_flag::DIRECT) == hop_flag::GRANTED
        {
            return handle_delegated(&mut ctx, from, keyspace, &packet, &header, (key, value));
        }
        let replica = self.replicas.get_mut(&PartitionId(header.partition));
        if let Body::Get { key } = body
            && is_for_reader(&header, replica.as_deref())
        {
            read_copy(&mut ctx, keyspace, &header, key);
            return Ok(());
        }
        let Some(replica) = replica else {
            refuse(&mut ctx, &header, op, Code::NotOwner);
            return Ok(());
        };
        serve(replica, &mut ctx, keyspace, &packet, &header, &body)
    }

    /// A message of another node: about a hot key, or of another member of a chain. What that does
    /// to the copy of the partition, if there is one, or to the record of what is held here, is the
    /// node's part.
    fn handle_message(
        &mut self,
        now: Instant,
        load: u16,
        from: Endpoint,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let mut ctx = context!(self, directory, now, load);
        match *body {
            Body::HotCopy { absent, expiry_ms, key, value } => {
                let version = header.object_version;
                let record = Record { version, expiry_ms, tombstone: absent, value };
                return handle_hot_copy(&mut ctx, from, header, key, &record);
            }
            Body::DelegationFetch { fixed, key } => {
                return handle_fetch(&mut ctx, from, header, fixed, key);
            }
            Body::DelegationEnd { delegation, key } => {
                return handle_end(&mut ctx, from, header, (delegation, key));
            }
            Body::DelegationCommit { delegation, key } => {
                return handle_commit(&mut ctx, from, header, (delegation, key));
            }
            // What this reader has said to the switch, as it came back.
            Body::Refusal(Code::NotHere) if header.op == Op::HotPublish as u8 => return Ok(()),
            Body::Refusal(_) => return Err(DropReason::BadBody),
            _ => {}
        }
        let id = PartitionId(header.partition);
        let Some(replica) = self.replicas.get_mut(&id) else {
            // Whoever copies what it took under a delegation has no use for the answer.
            let copied = matches!(body, Body::HotCopied);
            return if copied { Ok(()) } else { Err(DropReason::NotFromMember) };
        };
        if matches!(body, Body::HotCopied | Body::HotPublish) {
            replica.check_numbers(now, header, body)?;
        }
        match body {
            Body::HotCopied => replica.handle_copied(&mut ctx, header),
            Body::HotPublish => replica.handle_published(&mut ctx, header),
            Body::DelegationFound { delegation, found, key } => {
                replica.handle_found(&mut ctx, from, header, (*delegation, key), *found)?;
            }
            _ => replica.handle_chain(&mut ctx, from, header, body)?,
        }
        match body {
            Body::ChainCopied => {
                let copy = self.copies.get_mut(&id).filter(|c| c.epoch() == replica.epoch());
                if let Some(copy) = copy {
                    copy.handle_copied(now, header);
                    copy.go_on(&mut ctx, replica, &mut self.copy_budget);
                }
            }
            Body::ChainVerified { fixed, last } => self.take_verified(now, header, fixed, last)?,
            Body::ChainCopy(_) => self.replica_records.note_caught_up(&mut self.engine, replica),
            _ => {}
        }
        Ok(())
    }

    /// The instant named by [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.dirty = true;
        if self.stock.is_frozen() {
            self.next_sweep = now + SWEEP_EVERY;
            return;
        }
        if now >= self.next_sweep {
            self.take_stock();
        }
        let Some(directory) = &self.directory else { return };
        let mut ctx = context!(self, directory, now, 0);
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
                replica.handle_propagation_due(&mut ctx, &key);
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
            let closed = self.replicas.values().any(|replica| !replica.partition.open);
            self.next_quiet = now + if closed { SETTLE_EVERY } else { QUIET_EVERY };
            for replica in self.replicas.values_mut() {
                replica.handle_quiet(&mut ctx);
            }
        }
        if now >= self.hot.next_work {
            self.reconcile(now);
        }
        if now >= self.next_tidy {
            self.tidy_up(now);
        }
        self.vacate_on(now);
        self.list_on(now);
        self.verify_on(now);
    }

    /// Makes durable whatever was handled since the last flush, and lets its answers go.
    ///
    /// # Errors
    ///
    /// If the engine failed. The node must then stop: its answers stay unsent, and what it
    /// holds in memory may differ from what is on disk.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.turn.end();
        if self.stock.is_refused() {
            self.ready.append(&mut self.held);
        } else if std::mem::take(&mut self.dirty) {
            if !self.mutant.is(Mutant::AnswerUnsynced) {
                self.engine.sync()?;
            }
            self.synced();
            self.ready.append(&mut self.held);
        }
        Ok(())
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.ready.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if no packet comes first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.directory.as_ref()?;
        if self.stock.is_frozen() {
            return Some(self.next_sweep);
        }
        let resend = self.timers.first().map(|(due, ..)| *due);
        let copies = self.copies.values().filter_map(Copy::due).min();
        let housekeeping = self.next_sweep.min(self.next_quiet).min(self.next_tidy);
        let verifying = self.verifier.due();
        let listing = self.listing_due();
        [
            resend,
            copies,
            self.hot.due(),
            self.vacating_due(),
            listing,
            verifying,
            Some(housekeeping),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// How many clients a partition remembers.
    pub fn set_sessions_max(&mut self, sessions_max: usize) {
        self.sessions_max = sessions_max;
    }

    /// Breaks a rule on purpose, for the simulator to notice.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, for what its owner has to do for it between batches.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// Ends the node and gives its engine back, as a restart does.
    pub fn into_engine(self) -> E {
        self.engine
    }
}

/// Whoever asks without a switch is answered where it asks from, whatever the packet says: else
/// anybody could be sent what he has not asked for.
fn answered_to(from: Endpoint, op: Op, header: Header) -> Header {
    if header.hop_flags & hop_flag::DIRECT == 0 || op.is_chain() || op.is_reply() {
        return header;
    }
    Header { reply_addr: from.addr, reply_port: from.port, ..header }
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
