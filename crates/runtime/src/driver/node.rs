//! A storage node: one machine, one engine, one port and one thread per shard.

mod engine;
mod limits;
mod refusing;
mod snapshot;
mod syncer;
mod waiting;

pub use engine::ShardEngine;
pub use limits::NodeLimits;
pub use snapshot::{NodeSnapshot, ShardSnapshot};

use super::alert::{Bell, Ear};
use super::latency::Latencies;
use super::leaving::Leaving;
use super::obedience::Obedience;
use super::turn_watch::TurnWatch;
use crate::clock::Clock;
use crate::disk::DiskRoom;
use crate::event_loop::{Driven, Gate, Worker, spawn};
use crate::keyring::Keyring;
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, Mailbox, Reply, ask_all, await_all};
use crate::net::{Overflow, Received, Socket};
use cluster::{
    Assignment, ClockOrder, HotOrder, Incarnation, Lease, NodeId, NodeRecord, NodeSpec,
    ShardRecord, StoreId, VerifyOrder,
};
use envelope::MemberRole;
use limits::Memory;
use machine::{Datagram, Full, Instant, Served, Service, Work, mix};
use node::engine::{Engine, EngineError};
use node::{Node, NodeConfig, TrackerConfig};
use refusing::Refusing;
use snapshot::join;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use syncer::Syncer;
use waiting::{Asked, Syncing};
use wire::{DropReason, Endpoint, Op, Packet};

/// A running node. Dropping it ends its threads after the batch in hand.
#[derive(Debug)]
pub struct NodeDriver {
    spec: NodeSpec,
    incarnation: Incarnation,
    store: StoreId,
    store_format: u32,
    workers: Vec<Worker<Command>>,
    ear: Ear,
    bell: Bell,
    obedience: Obedience,
    leaving: Leaving,
    overflow: Overflow,
    keyring: Option<Keyring>,
}

/// How the control plane reaches a node; outlives it without harm.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    spec: NodeSpec,
    incarnation: Incarnation,
    store: StoreId,
    store_format: u32,
    mailboxes: Vec<Mailbox<Command>>,
    ear: Ear,
    bell: Bell,
    obedience: Obedience,
    leaving: Leaving,
    overflow: Overflow,
    keyring: Option<Keyring>,
}

/// What a shard is to take, in this order.
#[derive(Clone, Debug, Default)]
pub(super) struct ShardOrders {
    pub(super) install: Option<Arc<Assignment>>,
    pub(super) clock: Option<ClockOrder>,
    pub(super) lease: Option<Lease>,
    pub(super) direct: Option<Lease>,
    pub(super) hot: Option<Arc<HotOrder>>,
    pub(super) verify: Option<VerifyOrder>,
}

/// What there is to do; then the answer.
#[derive(Debug)]
struct Command {
    wanted: ShardOrders,
    answer: Reply<ShardSnapshot>,
}

impl NodeDriver {
    /// Starts a node in this incarnation on bound sockets, one for each shard, on consecutive ports
    /// in that order, with one engine each. With a keyring it lets nothing through but what is in
    /// envelopes.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    ///
    /// # Panics
    ///
    /// If there are no sockets, not as many engines as sockets, or ports that do not follow each
    /// other.
    pub fn start<E: ShardEngine>(
        id: NodeId,
        incarnation: Incarnation,
        sockets: Vec<Socket>,
        engines: Vec<E>,
        limits: NodeLimits,
        keyring: Option<Keyring>,
    ) -> io::Result<Self> {
        assert_eq!(sockets.len(), engines.len(), "one engine for each shard");
        let endpoint = sockets.first().expect("a node has a shard").local().into();
        let shards = u16::try_from(sockets.len()).expect("there are fewer ports");
        let spec = NodeSpec { id, endpoint, shards };
        let store = joint_store(engines.iter().map(Engine::store_id));
        let store_format = engines.iter().map(ShardEngine::format).max().unwrap_or(0);
        let overflow = Overflow::of(&sockets)?;
        let (bell, ear) = Bell::new();
        let clock = Clock::new();
        // A switch sends to nodes: how they deal it out to their shards it does not reckon with.
        let rate = limits.rate.map_or(0, |each| each.get().saturating_mul(shards.into()));
        let memory = Arc::new(Memory::of(shards));
        let mut workers = Vec::new();
        for (shard, (socket, engine)) in (0..).zip(sockets.into_iter().zip(engines)) {
            assert_eq!(Some(socket.local().into()), endpoint.with_port_offset(shard));
            let name = format!("node-{id}-{shard}");
            let config =
                NodeConfig { shard, shards, incarnation, rate, tracker: TrackerConfig::default() };
            let (bell, memory) = (bell.clone(), Arc::clone(&memory));
            let syncer = engine.syncs_apart().then(|| Syncer::start(&name)).transpose()?;
            let node = move |now| {
                let mut node = Node::new(config, engine, now);
                node.limit_memory(limits.memory());
                node
            };
            let gate = Gate::of(MemberRole::Node, keyring.clone());
            workers.push(spawn(&name, clock.clone(), socket, gate, move |now, waker| Shard {
                node: node(now),
                syncing: Syncing::new(syncer, waker),
                service: limits.rate.map(Service::new),
                shard,
                memory,
                disk: None,
                looked: false,
                asked: Vec::new(),
                bell,
                alerts: 0,
                persist_at: None,
                unsent: 0,
                watch: TurnWatch::new(id, shard),
                refusing: None,
                said: None,
                latencies: Latencies::default(),
                waiting: 0,
            })?);
        }
        let (obedience, leaving) = (Obedience::default(), Leaving::default());
        Ok(Self {
            spec,
            incarnation,
            store,
            store_format,
            workers,
            ear,
            bell,
            obedience,
            leaving,
            overflow,
            keyring,
        })
    }

    /// Its place in the cluster.
    #[must_use]
    pub fn spec(&self) -> NodeSpec {
        self.spec
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> NodeHandle {
        let mailboxes = self.workers.iter().map(Worker::mailbox).collect();
        NodeHandle {
            spec: self.spec,
            incarnation: self.incarnation,
            store: self.store,
            store_format: self.store_format,
            mailboxes,
            ear: self.ear.clone(),
            bell: self.bell.clone(),
            obedience: self.obedience.clone(),
            leaving: self.leaving.clone(),
            overflow: self.overflow.clone(),
            keyring: self.keyring.clone(),
        }
    }
}

impl NodeHandle {
    /// Its place in the cluster.
    #[must_use]
    pub fn spec(&self) -> NodeSpec {
        self.spec
    }

    /// Identity of its memory, over all shards.
    #[must_use]
    pub fn store(&self) -> StoreId {
        self.store
    }

    /// Format of its files; 0 if it has none.
    pub(super) fn store_format(&self) -> u32 {
        self.store_format
    }

    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// Waits for an alert of it, or some time, if there have been so many; says how many there have
    /// been.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub(crate) async fn listen(&self, heard: u64) -> Result<u64, MailError> {
        self.ear.listen(heard).await
    }

    /// Asks it to end: its controller is told at once.
    pub(crate) fn leave(&self) {
        self.leaving.begin();
        self.bell.ring();
    }

    /// Whether it has been asked to end.
    pub(crate) fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    /// The keys of envelopes, if it lets nothing else through.
    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
    }

    /// Whom it obeys.
    pub(crate) fn obedience(&self) -> &Obedience {
        &self.obedience
    }

    /// Which incarnation of the node this is.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// How the node is.
    ///
    /// # Errors
    ///
    /// If a shard does not answer.
    pub fn snapshot(&self) -> Result<NodeSnapshot, MailError> {
        let command = |answer| Command { wanted: ShardOrders::default(), answer };
        join(ask_all(&self.mailboxes, ANSWER_WAIT_MAX, command)?)
    }

    /// What the node has on record of the map, all of it durable.
    ///
    /// # Errors
    ///
    /// If a shard does not answer.
    pub fn record(&self) -> Result<NodeRecord, MailError> {
        let shards = self.snapshot()?.shards;
        let leased = shards.iter().any(|shard| shard.leased);
        let records: Vec<ShardRecord> = shards.into_iter().map(|shard| shard.record).collect();
        Ok(NodeRecord::of_shards((self.spec.id, self.store, self.incarnation), leased, &records))
    }

    /// Gives every shard what there is to take. Says how the node is afterwards.
    ///
    /// # Errors
    ///
    /// If a shard does not answer in time; others may have it then.
    pub(super) async fn command(
        &self,
        wanted: &ShardOrders,
        patience: Duration,
    ) -> Result<NodeSnapshot, MailError> {
        let command = |answer| Command { wanted: wanted.clone(), answer };
        join(await_all(&self.mailboxes, patience, command).await?)
    }
}

/// Identity of the memory of all shards together, so that one shard without its memory shows.
pub(crate) fn joint_store(stores: impl Iterator<Item = StoreId>) -> StoreId {
    StoreId(stores.fold(0, |hash, store| mix(hash ^ store.0)))
}

/// The machine of one shard.
struct Shard<E: Engine> {
    node: Node<E>,
    /// Its index.
    shard: u16,
    memory: Arc<Memory>,
    /// What was found of the disk.
    disk: Option<DiskRoom>,
    /// Whether that was found in the batch in hand.
    looked: bool,
    /// What work goes through before the machine gets it, if the rate is limited.
    service: Option<Service<Request>>,
    /// Who waits for a snapshot. It is given after the flush, so that it says nothing that is not
    /// durable.
    asked: Vec<Asked>,
    /// Where its syncs are waited for.
    syncing: Syncing,
    bell: Bell,
    /// Alerts of the machine for which it has rung.
    alerts: u64,
    persist_at: Option<Instant>,
    unsent: u64,
    watch: TurnWatch,
    /// While the store refuses changes.
    refusing: Option<Refusing>,
    /// What it said of itself last that was durable.
    said: Option<ShardSnapshot>,
    latencies: Latencies,
    /// Requests found waiting in the batch in hand.
    waiting: u16,
}

/// A datagram that waits to be served.
struct Request {
    came: Instant,
    op: Op,
    from: Endpoint,
    payload: Box<[u8]>,
}

impl<E: ShardEngine> Driven for Shard<E> {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        self.look(now);
        let Command { wanted: ShardOrders { install, clock, lease, direct, hot, verify }, answer } =
            command;
        let changes = install.is_some() || hot.is_some() || verify.is_some();
        if let Some(assignment) = install {
            let before = self.node.counters().notes_ignored;
            self.node.install(now, &assignment);
            let ignored = self.node.counters().notes_ignored - before;
            if ignored > 0 {
                tracing::warn!(
                    node = assignment.node.0,
                    ignored,
                    "notes beside the records make no sense and are left out: the store is \
                     damaged; have its partitions compared (keyway cluster verify)"
                );
            }
        }
        if let Some(clock) = clock {
            self.node.set_clock(&clock);
        }
        if let Some(lease) = lease {
            self.node.renew(&lease);
        }
        if let Some(lease) = direct {
            self.node.renew_direct(&lease);
        }
        if let Some(order) = hot {
            self.node.install_hot(now, order);
        }
        if let Some(order) = verify {
            self.node.install_verify(now, &order);
        }
        self.ask(now, changes, answer);
    }

    fn announce<'a>(&mut self, payloads: impl Iterator<Item = &'a [u8]>) {
        // What waits to be served is handed over later, one by one.
        if self.service.is_none() {
            self.node.announce(payloads);
        }
    }

    fn handle_datagram(&mut self, now: Instant, received: Received<'_>) {
        self.look(now);
        self.waiting = self.waiting.max(received.waiting);
        let op = Packet::parse(received.payload).ok().map(|packet| packet.op());
        let work = op.and_then(|op| Some((self.service.as_mut()?, op, Work::of_op(op)?)));
        if let Some((service, op, work)) = work {
            let (from, payload) = (received.from, Box::from(&*received.payload));
            if let Err(Full) = service.take(now, work, Request { came: now, op, from, payload }) {
                self.node.count_drop(DropReason::QueueFull);
            }
            return;
        }
        if let Some(op) = op {
            self.latencies.take(op, now, now);
        }
        self.node.handle_packet(now, received.from, received.waiting, received.payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.look(now);
        while let Some(served) = self.service.as_mut().and_then(|service| service.finish(now)) {
            let Served { request: Request { came, op, from, payload }, waiting } = served;
            self.latencies.take(op, came, now);
            self.node.handle_packet(now, from, waiting, &payload);
        }
        if self.node.poll_timeout().is_some_and(|at| at <= now) {
            self.node.handle_timeout(now);
        }
    }

    fn take_ended(&mut self, now: Instant) -> Result<bool, String> {
        self.take_ended_sync(now).map_err(|error| error.to_string())
    }

    fn wait_for_all(&mut self, now: Instant) -> Result<(), String> {
        self.wait_for_syncs(now).map_err(|error| error.to_string())
    }

    fn release(&mut self) {
        self.node.release();
    }

    fn flush(&mut self, now: Instant) -> Result<(), String> {
        self.try_flush(now).map_err(|error| error.to_string())
    }

    fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.node.poll_transmit()
    }

    fn end_turn(&mut self, began: Instant, worked: Duration, took: Duration) {
        self.watch.see(began, worked, took);
        self.latencies.end_turn(took);
    }

    fn count_unsent(&mut self, datagrams: u64) {
        self.unsent += datagrams;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let served_at = self.service.as_ref().and_then(Service::next_end);
        let try_at = self.refusing.as_ref().map(|refusing| refusing.try_at);
        let due = [self.node.poll_timeout(), self.persist_at, served_at, try_at];
        due.into_iter().flatten().min()
    }
}

impl<E: ShardEngine> Shard<E> {
    /// Before anything is done in a batch: how much room there is for it.
    fn look(&mut self, now: Instant) {
        if std::mem::replace(&mut self.looked, true) {
            return;
        }
        let elsewhere = self.memory.exchange(self.shard, self.node.memory_used());
        self.node.set_elsewhere(elsewhere);
        self.disk = self.node.engine_mut().disk_room(now);
        if let Some(DiskRoom { room, frozen, .. }) = self.disk {
            self.node.set_store_room(room, frozen);
        } else if let Some(room) = self.node.engine_mut().backend_room(now) {
            self.node.set_store_room(room, false);
        }
    }

    fn try_flush(&mut self, now: Instant) -> Result<(), EngineError> {
        self.looked = false;
        self.settle(now)?;
        self.begin_waiting(now);
        self.answer_asked(now);
        let alerts = self.node.alerts();
        if std::mem::replace(&mut self.alerts, alerts) != alerts {
            self.bell.ring();
        }
        self.waiting = 0;
        self.persist_at = self.node.engine_mut().persist_due(now)?;
        Ok(())
    }
}
