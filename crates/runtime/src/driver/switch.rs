//! The switch: one user-space pipeline per thread, all with the same tables, and perhaps a fast
//! path in the kernel before them.
//!
//! Each thread has a socket of its own on the service address; the kernel spreads clients over
//! them. Nothing is shared between them but the compiled tables, which never change. With a fast
//! path the sockets get only what that leaves to them.

use super::fast_path::{FastPath, FastPathError};
use super::orders::OrderError;
use crate::clock::Clock;
use crate::event_loop::{Driven, Worker, spawn};
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, Mailbox, ask_all};
use crate::net::{Overflow, Received, Socket};
use cluster::{Lease, Life, SwitchControl, SwitchTables};
use machine::{Datagram, Instant, Outbox};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use switch::{Counters, Pipeline, Tables};

/// A running switch. Dropping it ends its threads.
#[derive(Debug)]
pub struct SwitchDriver {
    life: Life,
    workers: Vec<Worker<Command>>,
    service: SocketAddr,
    overflow: Overflow,
    fast_path: Option<FastPath>,
}

/// How the control plane reaches a switch; outlives it without harm.
#[derive(Clone, Debug)]
pub struct SwitchHandle {
    life: Life,
    mailboxes: Vec<Mailbox<Command>>,
    overflow: Overflow,
    fast_path: Option<FastPath>,
}

/// What a switch has done since it started.
#[derive(Clone, Debug)]
pub struct SwitchSnapshot {
    /// When the first of the threads said this, by its clock.
    pub at: Instant,
    /// Revision of the tables that all threads, and the kernel, have installed; 0 for none.
    pub revision: u64,
    /// Sum over the threads and the kernel.
    pub counters: Counters,
    /// Whether all threads have a lease.
    pub leased: bool,
    /// Datagrams that the fast path in the kernel dealt with.
    pub in_kernel: u64,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
}

/// What there is to do, in this order; then the answer.
#[derive(Debug)]
struct Command {
    install: Option<Arc<Tables>>,
    lease: Option<Lease>,
    answer: SyncSender<SwitchSnapshot>,
}

impl SwitchDriver {
    /// Starts a switch at the service address, with this many threads (at least one), in this life,
    /// and perhaps with a fast path in the kernel.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound or a thread not be started.
    pub fn start(
        service: SocketAddr,
        threads: usize,
        life: Life,
        fast_path: Option<FastPath>,
    ) -> io::Result<Self> {
        let sockets = Socket::bind_group(service, threads)?;
        let local = sockets.first().expect("a group has a member").local();
        let overflow = Overflow::of(&sockets)?;
        let clock = Clock::new();
        let workers = sockets.into_iter().enumerate().map(|(index, socket)| {
            let name = format!("switch-{index}");
            spawn(&name, clock.clone(), socket, move |_| Thread::new(life))
        });
        let workers = workers.collect::<io::Result<_>>()?;
        Ok(Self { life, workers, service: local, overflow, fast_path })
    }

    /// The service address, with the port that was given if none was asked for.
    #[must_use]
    pub fn service(&self) -> SocketAddr {
        self.service
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> SwitchHandle {
        let mailboxes = self.workers.iter().map(Worker::mailbox).collect();
        let (overflow, fast_path) = (self.overflow.clone(), self.fast_path.clone());
        SwitchHandle { life: self.life, mailboxes, overflow, fast_path }
    }
}

impl SwitchHandle {
    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// Which life of the switch this is.
    pub(super) fn life(&self) -> Life {
        self.life
    }

    /// Puts the program in the kernel, if there is one, in the place of itself.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it; the present one then goes on.
    pub fn reload(&self) -> Result<(), FastPathError> {
        self.fast_path.as_ref().map_or(Ok(()), FastPath::reload)
    }

    /// What the switch has done so far.
    ///
    /// # Errors
    ///
    /// If a thread does not answer, or the kernel does not say.
    pub fn snapshot(&self) -> Result<SwitchSnapshot, MailError> {
        let mut snapshot = self.ask(None, None, ANSWER_WAIT_MAX)?;
        if let Some(fast_path) = &self.fast_path {
            fast_path.add_to(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// Gives the kernel and every thread these tables, then the lease; each changes over between
    /// two packets or batches. Says how the switch is afterwards.
    ///
    /// # Errors
    ///
    /// If the tables are not sound, or somebody does not do as it is told in time; others may have
    /// both then.
    pub(super) fn command(
        &self,
        install: Option<&SwitchTables>,
        lease: Option<Lease>,
        patience: Duration,
    ) -> Result<SwitchSnapshot, OrderError> {
        let compiled = install.map(Tables::compile).transpose()?.map(Arc::new);
        if let Some(fast_path) = &self.fast_path {
            fast_path.command(install, lease.as_ref())?;
        }
        let mut snapshot = self.ask(compiled, lease, patience)?;
        if let Some(fast_path) = &self.fast_path {
            fast_path.add_to(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// The same for the threads alone.
    fn ask(
        &self,
        install: Option<Arc<Tables>>,
        lease: Option<Lease>,
        patience: Duration,
    ) -> Result<SwitchSnapshot, MailError> {
        let command = |answer| Command { install: install.clone(), lease, answer };
        let answers = ask_all(&self.mailboxes, patience, command)?;
        answers.into_iter().reduce(SwitchSnapshot::join).ok_or(MailError::Ended)
    }
}

impl SwitchSnapshot {
    /// Of two threads together.
    fn join(mut self, other: Self) -> Self {
        self.at = self.at.min(other.at);
        self.revision = self.revision.min(other.revision);
        self.counters.merge(&other.counters);
        self.leased &= other.leased;
        self.unsent += other.unsent;
        self
    }
}

/// The pipeline of one thread.
struct Thread {
    pipeline: Pipeline,
    out: Outbox,
    unsent: u64,
}

impl Thread {
    fn new(life: Life) -> Self {
        Self { pipeline: Pipeline::new(life), out: Outbox::default(), unsent: 0 }
    }
}

impl Driven for Thread {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        let Command { install, lease, answer } = command;
        if let Some(tables) = install {
            self.pipeline.install_compiled(tables);
        }
        if let Some(lease) = lease {
            self.pipeline.renew(&lease);
        }
        let snapshot = SwitchSnapshot {
            at: now,
            revision: self.pipeline.revision(),
            counters: self.pipeline.counters_ref().clone(),
            leased: self.pipeline.is_leased(now),
            unsent: self.unsent,
            in_kernel: 0,
        };
        // Whoever asked may have given up waiting; then nobody needs the answer.
        drop(answer.try_send(snapshot));
    }

    fn handle_datagram(&mut self, now: Instant, received: Received<'_>) {
        let Received { from, payload, .. } = received;
        if let Err(reason) = self.pipeline.process(now, from, payload, &mut self.out) {
            tracing::trace!(%from, reason = reason.name(), "dropped");
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn flush(&mut self, _now: Instant) -> Result<(), String> {
        Ok(())
    }

    fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.out.pop()
    }

    fn count_unsent(&mut self, datagrams: u64) {
        self.unsent += datagrams;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
