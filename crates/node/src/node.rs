//! The node of one shard: checks what every packet needs and hands it to its replica.

use crate::counters::Counters;
use crate::directory::Directory;
use crate::engine::{Engine, EngineError};
use crate::expiry::Due;
use crate::plant::Plant;
use crate::read::handle_mget;
use crate::replica::{Context, Replica, Timers, take_due};
use crate::reply::{refuse, reply_header, send};
use cluster::{
    Assignment, Keyspace, KeyspaceId, KeyspaceKind, Match, NodeReport, PartitionId, RangeTable,
};
use machine::{Datagram, Instant, Outbox};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::{Body, Code, DescribeReplyBody, DropReason, Endpoint, Header, Op, Packet};

/// What a shard needs to know before any assignment.
#[derive(Clone, Copy, Debug)]
pub struct NodeConfig {
    /// This shard's index.
    pub shard: u16,
    /// Shards of the node. Partition p belongs to shard `p mod shards`.
    pub shards: u16,
}

/// A storage node, or one shard of it.
///
/// The driver feeds it datagrams and the passing of time, calls [`flush`](Self::flush) once per
/// batch, then sends what [`poll_transmit`](Self::poll_transmit) gives.
#[derive(Debug)]
pub struct Node<E> {
    config: NodeConfig,
    engine: E,
    directory: Option<Directory>,
    replicas: BTreeMap<PartitionId, Replica>,
    /// Where match values of this shard's partitions lie.
    ranges: BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
    timers: Timers,
    next_sweep: Instant,
    next_quiet: Instant,
    /// Whether anything was handled since the last flush.
    dirty: bool,
    held: Outbox,
    ready: Outbox,
    counters: Counters,
    plant: Option<Plant>,
    scratch: Vec<u8>,
}

/// The replicas as an MGET looks its keys up in them.
pub(crate) struct Lookup<'a> {
    replicas: &'a BTreeMap<PartitionId, Replica>,
    ranges: &'a BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
}

impl Lookup<'_> {
    /// The replica that holds this match value, if this node is its tail.
    pub(crate) fn tail_of(&self, keyspace: KeyspaceId, at: Match) -> Option<&Replica> {
        let partition = self.ranges.get(&keyspace)?.find(at)?;
        self.replicas.get(partition).filter(|replica| replica.is_tail())
    }
}

impl<E: Engine> Node<E> {
    /// A node that serves nothing until it is given an assignment.
    pub fn new(config: NodeConfig, engine: E, now: Instant) -> Self {
        Self {
            config,
            engine,
            directory: None,
            replicas: BTreeMap::new(),
            ranges: BTreeMap::new(),
            timers: Timers::new(),
            next_sweep: now + SWEEP_EVERY,
            next_quiet: now + QUIET_EVERY,
            dirty: false,
            held: Outbox::default(),
            ready: Outbox::default(),
            counters: Counters::default(),
            plant: None,
            scratch: Vec::new(),
        }
    }

    /// Takes what the controller says this node is to serve. One that is not newer than the
    /// installed one changes nothing.
    pub fn install(&mut self, now: Instant, assignment: &Assignment) {
        if self.directory.as_ref().is_some_and(|d| d.revision >= assignment.revision) {
            return;
        }
        let directory = Directory::new(assignment);
        let mut old = std::mem::take(&mut self.replicas);
        let mut rows: BTreeMap<KeyspaceId, Vec<_>> = BTreeMap::new();
        for partition in &assignment.partitions {
            let id = partition.id;
            if id.0 % u32::from(self.config.shards) != u32::from(self.config.shard) {
                continue;
            }
            rows.entry(partition.keyspace).or_default().push((partition.first, partition.last, id));
            let ordered = directory.keyspace(partition.keyspace).is_some_and(Keyspace::is_ordered);
            let replica = match old.remove(&id) {
                Some(mut replica) => {
                    replica.adopt(partition.clone(), directory.me);
                    replica
                }
                None => Replica::open(
                    partition.clone(),
                    directory.me,
                    ordered,
                    now,
                    &self.engine,
                    &mut self.timers,
                ),
            };
            self.replicas.insert(id, replica);
        }
        self.timers.retain(|(_, partition, _)| self.replicas.contains_key(partition));
        self.ranges = rows.into_iter().map(|(id, rows)| (id, RangeTable::new(rows))).collect();
        self.directory = Some(directory);
        self.dirty = true;
    }

    /// Takes one datagram. `waiting` is how many the driver found queued, for the load report.
    pub fn handle_packet(&mut self, now: Instant, from: Endpoint, waiting: u16, datagram: &[u8]) {
        self.dirty = true;
        if let Err(reason) = self.try_packet(now, from, waiting, datagram) {
            self.counters.count_drop(reason);
        }
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
        if op.is_reply() {
            return Err(DropReason::BadOp);
        }
        let body = packet.body();
        let Some(directory) = &self.directory else { return Err(DropReason::NotServing) };
        let mut ctx = Context {
            now,
            load,
            engine: &mut self.engine,
            out: &mut self.held,
            timers: &mut self.timers,
            counters: &mut self.counters,
            directory,
            plant: self.plant,
            scratch: &mut self.scratch,
        };
        ctx.counters.count_request(op);
        let body = match body {
            Ok(body) => body,
            Err(DropReason::BadBody) if !op.is_chain() => {
                refuse(&mut ctx, &header, op, Code::BadRequest);
                return Ok(());
            }
            Err(reason) => return Err(reason),
        };
        if let Body::Describe { name } = body {
            describe(&mut ctx, &header, name);
            return Ok(());
        }
        if op.is_chain() {
            let replica = self.replicas.get_mut(&PartitionId(header.partition));
            let replica = replica.ok_or(DropReason::NotFromMember)?;
            return replica.handle_chain(&mut ctx, from, &header, &body);
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
        let Some(replica) = self.replicas.get_mut(&PartitionId(header.partition)) else {
            refuse(&mut ctx, &header, op, Code::NotOwner);
            return Ok(());
        };
        serve(replica, &mut ctx, keyspace, &packet, &header, &body)
    }

    /// The instant named by [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.dirty = true;
        let Some(directory) = &self.directory else { return };
        let mut ctx = Context {
            now,
            load: 0,
            engine: &mut self.engine,
            out: &mut self.held,
            timers: &mut self.timers,
            counters: &mut self.counters,
            directory,
            plant: self.plant,
            scratch: &mut self.scratch,
        };
        for (partition, version) in take_due(ctx.timers, now) {
            if let Some(replica) = self.replicas.get_mut(&partition) {
                replica.handle_overdue(&mut ctx, version);
            }
        }
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_EVERY;
            sweep(&mut ctx, &mut self.replicas, &self.ranges);
        }
        if now >= self.next_quiet {
            self.next_quiet = now + QUIET_EVERY;
            for replica in self.replicas.values_mut() {
                replica.handle_quiet(&mut ctx);
            }
        }
    }

    /// Makes durable whatever was handled since the last flush, and lets its answers go.
    ///
    /// # Errors
    ///
    /// If the engine failed. The node must then stop: its answers stay unsent, and what it holds
    /// in memory may differ from what is on disk.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        if std::mem::take(&mut self.dirty) {
            if self.plant != Some(Plant::AnswerUnsynced) {
                self.engine.sync()?;
            }
            self.counters.syncs += 1;
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
        let resend = self.timers.first().map(|(due, ..)| *due);
        let housekeeping = self.next_sweep.min(self.next_quiet);
        Some(resend.map_or(housekeeping, |due| due.min(housekeeping)))
    }

    /// How the node is, for the controller.
    pub fn report(&self) -> NodeReport {
        NodeReport {
            revision: self.directory.as_ref().map_or(0, |d| d.revision),
            store: self.engine.store_id(),
            requests: self.counters.requests_total(),
            pending: self.pending() as u64,
        }
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Writes recorded and not yet committed.
    pub fn pending(&self) -> usize {
        self.timers.len()
    }

    /// Client sessions held, over all partitions.
    pub fn sessions(&self) -> usize {
        self.replicas.values().map(|replica| replica.sessions.len()).sum()
    }

    /// Partitions of this shard that the node has a role in.
    pub fn partitions(&self) -> usize {
        self.replicas.len()
    }

    /// Breaks a rule on purpose, for the simulator to notice.
    pub fn plant(&mut self, plant: Plant) {
        self.plant = Some(plant);
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

impl Replica {
    /// Whether this replica may serve a request at all: its role and the epoch.
    fn admit(&self, op: Op, packet: &Packet<'_>, header: &Header) -> Result<(), Code> {
        let role = if op.is_write() { self.is_head() } else { self.is_tail() };
        if header.epoch != self.epoch().0 {
            return Err(Code::StaleEpoch);
        }
        if !role || packet.chain().len() == 0 {
            return Err(Code::NotOwner);
        }
        Ok(())
    }

    /// Whether the stamped chain is what the switch stamps in this epoch.
    fn stamped_rightly(&self, op: Op, packet: &Packet<'_>) -> bool {
        if op.is_write() {
            packet.chain().eq(self.partition.chain.iter().map(|id| id.0))
        } else {
            packet.chain().eq(self.partition.tail().map(|id| id.0))
        }
    }
}

/// Hands a request for one partition to its replica, if that may serve it as it is stamped.
fn serve<E: Engine>(
    replica: &mut Replica,
    ctx: &mut Context<'_, E>,
    keyspace: &Keyspace,
    packet: &Packet<'_>,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), DropReason> {
    let op = packet.op();
    if let Err(code) = replica.admit(op, packet, header) {
        let epoch = replica.epoch().0;
        refuse(ctx, &Header { epoch, ..*header }, op, code);
        return Ok(());
    }
    if !replica.stamped_rightly(op, packet) {
        return Err(DropReason::BadChain);
    }
    if let Err(code) = looks_right(keyspace, replica, header, body) {
        refuse(ctx, header, op, code);
        return Ok(());
    }
    match *body {
        Body::Get { key } => replica.handle_get(ctx, header, key),
        Body::Range { limit, start, end } => {
            replica.handle_range(ctx, header, keyspace, limit, (start, end));
        }
        _ => return replica.handle_write(ctx, op, header, body),
    }
    Ok(())
}

/// Whether match value and keyhash are those of the key, and belong here.
fn looks_right(
    keyspace: &Keyspace,
    replica: &Replica,
    header: &Header,
    body: &Body<'_>,
) -> Result<(), Code> {
    let partition = &replica.partition;
    let at = Match(header.match_value);
    let key = match body {
        Body::Get { key }
        | Body::Put { key, .. }
        | Body::Del { key }
        | Body::Cas { key, .. }
        | Body::Incr { key, .. } => *key,
        _ => {
            let last = Match(header.match_end());
            let inside = partition.holds(at) && partition.holds(last) && at <= last;
            return match keyspace.kind {
                KeyspaceKind::Hash => Err(Code::NotOrdered),
                KeyspaceKind::Range { .. } if !inside => Err(Code::NotOwner),
                KeyspaceKind::Range { .. } => Ok(()),
            };
        }
    };
    if keyspace.match_value(key) != at || keyspace.keyhash(key) != header.keyhash {
        return Err(Code::BadMatch);
    }
    if partition.keyspace != keyspace.id || !partition.holds(at) {
        return Err(Code::NotOwner);
    }
    Ok(())
}

fn describe<E: Engine>(ctx: &mut Context<'_, E>, request: &Header, name: &[u8]) {
    let Some(keyspace) = ctx.directory.keyspace_named(name) else {
        refuse(ctx, request, Op::Describe, Code::UnknownKeyspace);
        return;
    };
    let (kind, prefix) = match &keyspace.kind {
        KeyspaceKind::Hash => (0, &[][..]),
        KeyspaceKind::Range { prefix } => (1, prefix.as_slice()),
    };
    let fixed = DescribeReplyBody { seed: keyspace.seed, id: keyspace.id.0, kind };
    let header = reply_header(ctx, request, Op::Describe, Code::Ok);
    send(ctx, &header, &[&fixed.to_bytes(), prefix]);
}

/// Looks for records whose time has come; a bounded number each time.
fn sweep<E: Engine>(
    ctx: &mut Context<'_, E>,
    replicas: &mut BTreeMap<PartitionId, Replica>,
    ranges: &BTreeMap<KeyspaceId, RangeTable<PartitionId>>,
) {
    let mut found: Vec<(KeyspaceId, Due)> = Vec::new();
    ctx.engine.due(ctx.now.unix_ms(), |keyspace, key, record| {
        let due = Due { key: key.to_vec(), version: record.version, tombstone: record.tombstone };
        found.push((keyspace, due));
        if found.len() < SWEEP_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    for (id, due) in &found {
        let Some(keyspace) = ctx.directory.keyspace(*id) else { continue };
        let at = keyspace.match_value(&due.key);
        let partition = ranges.get(id).and_then(|table| table.find(at));
        let Some(replica) = partition.and_then(|p| replicas.get_mut(p)) else { continue };
        let keyhash = keyspace.keyhash(&due.key);
        let header = Header { match_value: at.0, keyhash, ..Header::default() };
        replica.handle_due(ctx, &header, due);
    }
}

/// How often records are expired and collected. Reads and updates see an expiry to the millisecond
/// whatever this is; it only bounds how long the memory stays taken.
const SWEEP_EVERY: Duration = Duration::from_millis(100);
/// Records per sweep: 10,000 a second, and a sweep of a few milliseconds at most.
const SWEEP_MAX: usize = 1_000;
/// How often a quiet partition is looked after.
const QUIET_EVERY: Duration = Duration::from_secs(1);
