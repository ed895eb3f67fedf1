//! A storage node: one machine, one engine, one port and one thread per shard.

use crate::event_loop::{Driven, Worker, spawn};
use crate::mailbox::{MailError, Mailbox, answer};
use crate::net::{Overflow, Received, Socket};
use crate::store::FjallEngine;
use cluster::{Assignment, NodeId, NodeReport, NodeSpec, StoreId};
use machine::{Datagram, Instant, mix};
use node::engine::memory::MemoryEngine;
use node::engine::{Engine, EngineError};
use node::{Counters, Node, NodeConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// A running node. Dropping it ends its threads after the batch in hand.
#[derive(Debug)]
pub struct NodeDriver {
    spec: NodeSpec,
    store: StoreId,
    workers: Vec<Worker<Command>>,
    overflow: Overflow,
}

/// How the control plane reaches a node; outlives it without harm.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    spec: NodeSpec,
    store: StoreId,
    mailboxes: Vec<Mailbox<Command>>,
    overflow: Overflow,
}

/// How a node is.
#[derive(Clone, Debug)]
pub struct NodeSnapshot {
    /// For the controller, over all shards.
    pub report: NodeReport,
    /// Of each shard, in order.
    pub shards: Vec<ShardSnapshot>,
}

/// How a shard is.
#[derive(Clone, Debug)]
pub struct ShardSnapshot {
    /// For the controller.
    pub report: NodeReport,
    /// What was counted since the start.
    pub counters: Counters,
    /// Client sessions held.
    pub sessions: usize,
    /// Partitions it has a role in.
    pub partitions: usize,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
}

#[derive(Debug)]
enum Command {
    Assign(Arc<Assignment>),
    Report(SyncSender<ShardSnapshot>),
}

impl NodeDriver {
    /// Starts a node on bound sockets, one for each shard, on consecutive ports in that order, with
    /// one engine each.
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
        sockets: Vec<Socket>,
        engines: Vec<E>,
    ) -> io::Result<Self> {
        assert_eq!(sockets.len(), engines.len(), "one engine for each shard");
        let endpoint = sockets.first().expect("a node has a shard").local().into();
        let shards = u16::try_from(sockets.len()).expect("there are fewer ports");
        let spec = NodeSpec { id, endpoint, shards };
        let store = joint_store(engines.iter().map(Engine::store_id));
        let overflow = Overflow::of(&sockets)?;
        let mut workers = Vec::new();
        for (shard, (socket, engine)) in (0..).zip(sockets.into_iter().zip(engines)) {
            assert_eq!(Some(socket.local().into()), endpoint.with_port_offset(shard));
            let name = format!("node-{id}-{shard}");
            let config = NodeConfig { shard, shards };
            workers.push(spawn(&name, socket, move |now| {
                let node = Node::new(config, engine, now);
                Shard { node, persist_at: None, unsent: 0 }
            })?);
        }
        Ok(Self { spec, store, workers, overflow })
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
            store: self.store,
            mailboxes,
            overflow: self.overflow.clone(),
        }
    }

    /// Binds the sockets of a node: `shards` consecutive ports from `listen` on, or wherever there
    /// is room if its port is 0.
    ///
    /// # Errors
    ///
    /// If a port is taken or does not exist.
    pub fn bind(listen: SocketAddr, shards: u16) -> io::Result<Vec<Socket>> {
        let mut tries = if listen.port() == 0 { FREE_PORT_TRIES_MAX } else { 1 };
        loop {
            tries -= 1;
            match bind_consecutive(listen, shards) {
                Err(error) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                outcome => return outcome,
            }
        }
    }
}

/// Tries to find room for a node's shards: a machine with so few free ports in a row is not one to
/// run a cluster on.
const FREE_PORT_TRIES_MAX: u32 = 100;

fn bind_consecutive(listen: SocketAddr, shards: u16) -> io::Result<Vec<Socket>> {
    let first = Socket::bind(listen)?;
    let base = first.local();
    let mut sockets = vec![first];
    for shard in 1..shards {
        let port = base.port().checked_add(shard);
        let port = port.ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse))?;
        sockets.push(Socket::bind(SocketAddr::new(base.ip(), port))?);
    }
    Ok(sockets)
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

    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// Gives every shard its assignment. Whether they took it, the next report says.
    ///
    /// # Errors
    ///
    /// If a shard cannot be reached; others may have it then.
    pub(super) fn assign(&self, assignment: Assignment) -> Result<(), MailError> {
        let assignment = Arc::new(assignment);
        self.mailboxes.iter().try_for_each(|it| it.post(Command::Assign(Arc::clone(&assignment))))
    }

    /// How the node is.
    ///
    /// # Errors
    ///
    /// If a shard does not answer.
    pub fn snapshot(&self) -> Result<NodeSnapshot, MailError> {
        let ask = |mailbox: &Mailbox<Command>| {
            let (sender, answer) = answer();
            mailbox.post(Command::Report(sender))?;
            Ok(answer)
        };
        // All are asked before the first is waited for.
        let answers: Vec<_> = self.mailboxes.iter().map(ask).collect::<Result<_, MailError>>()?;
        let shards = answers.into_iter().map(|answer| answer.wait());
        let shards: Vec<ShardSnapshot> = shards.collect::<Result<_, MailError>>()?;
        Ok(NodeSnapshot { report: sum(&shards), shards })
    }
}

/// The report of the whole node: it has installed what all of its shards have.
fn sum(shards: &[ShardSnapshot]) -> NodeReport {
    let reports = || shards.iter().map(|shard| shard.report);
    NodeReport {
        revision: reports().map(|report| report.revision).min().unwrap_or(0),
        store: joint_store(reports().map(|report| report.store)),
        requests: reports().map(|report| report.requests).sum(),
        pending: reports().map(|report| report.pending).sum(),
    }
}

/// Identity of the memory of all shards together, so that one shard without its memory shows.
fn joint_store(stores: impl Iterator<Item = StoreId>) -> StoreId {
    StoreId(stores.fold(0, |hash, store| mix(hash ^ store.0)))
}

/// An engine as a shard's thread needs it.
pub trait ShardEngine: Engine + Send + 'static {
    /// Does what is due at the disk by now, and says when to call again; called after every batch.
    ///
    /// # Errors
    ///
    /// As for [`Engine::sync`].
    fn persist_due(&mut self, now: Instant) -> Result<Option<Instant>, EngineError>;
}

impl ShardEngine for MemoryEngine {
    fn persist_due(&mut self, _now: Instant) -> Result<Option<Instant>, EngineError> {
        Ok(None)
    }
}

impl ShardEngine for FjallEngine {
    fn persist_due(&mut self, now: Instant) -> Result<Option<Instant>, EngineError> {
        Self::persist_due(self, now)
    }
}

/// The machine of one shard.
struct Shard<E> {
    node: Node<E>,
    persist_at: Option<Instant>,
    unsent: u64,
}

impl<E: ShardEngine> Driven for Shard<E> {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Assign(assignment) => self.node.install(now, &assignment),
            Command::Report(sender) => {
                let snapshot = ShardSnapshot {
                    report: self.node.report(),
                    counters: self.node.counters().clone(),
                    sessions: self.node.sessions(),
                    partitions: self.node.partitions(),
                    unsent: self.unsent,
                };
                // Whoever asked may have given up waiting; then nobody needs the answer.
                drop(sender.try_send(snapshot));
            }
        }
    }

    fn handle_datagram(&mut self, now: Instant, received: Received<'_>) {
        self.node.handle_packet(now, received.from, received.waiting, received.payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.node.poll_timeout().is_some_and(|at| at <= now) {
            self.node.handle_timeout(now);
        }
    }

    fn flush(&mut self, now: Instant) -> Result<(), String> {
        self.try_flush(now).map_err(|error| error.to_string())
    }

    fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.node.poll_transmit()
    }

    fn count_unsent(&mut self, datagrams: u64) {
        self.unsent += datagrams;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.poll_timeout().into_iter().chain(self.persist_at).min()
    }
}

impl<E: ShardEngine> Shard<E> {
    fn try_flush(&mut self, now: Instant) -> Result<(), EngineError> {
        self.node.flush()?;
        self.persist_at = self.node.engine_mut().persist_due(now)?;
        Ok(())
    }
}
