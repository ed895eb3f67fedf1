//! The user-space switch: one pipeline per thread, all with the same tables.
//!
//! Each thread has a socket of its own on the service address; the kernel spreads clients over
//! them. Nothing is shared between them but the compiled tables, which never change.

use crate::event_loop::{Driven, Worker, spawn};
use crate::mailbox::{MailError, Mailbox, answer};
use crate::net::{Overflow, Received, Socket};
use cluster::{InstallError, SwitchControl, SwitchCounters, SwitchTables};
use machine::{Datagram, Instant, Outbox};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use switch::{Counters, Pipeline, Tables};

/// A running switch. Dropping it ends its threads.
#[derive(Debug)]
pub struct SwitchDriver {
    workers: Vec<Worker<Command>>,
    service: SocketAddr,
    overflow: Overflow,
}

/// How the control plane reaches a switch; outlives it without harm.
#[derive(Clone, Debug)]
pub struct SwitchHandle {
    mailboxes: Vec<Mailbox<Command>>,
    overflow: Overflow,
}

/// What a switch has done since it started.
#[derive(Clone, Debug)]
pub struct SwitchSnapshot {
    /// Revision of the tables that all threads have installed; 0 for none.
    pub revision: u64,
    /// Sum over the threads.
    pub counters: Counters,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
}

#[derive(Debug)]
enum Command {
    Install(Arc<Tables>),
    Count(SyncSender<SwitchSnapshot>),
}

impl SwitchDriver {
    /// Starts a switch at the service address, with this many threads (at least one).
    ///
    /// # Errors
    ///
    /// If the address cannot be bound or a thread not be started.
    pub fn start(service: SocketAddr, threads: usize) -> io::Result<Self> {
        let sockets = Socket::bind_group(service, threads)?;
        let local = sockets.first().expect("a group has a member").local();
        let overflow = Overflow::of(&sockets)?;
        let workers = sockets.into_iter().enumerate().map(|(index, socket)| {
            let name = format!("switch-{index}");
            spawn(&name, socket, |_| Thread::default())
        });
        Ok(Self { workers: workers.collect::<io::Result<_>>()?, service: local, overflow })
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
        SwitchHandle { mailboxes, overflow: self.overflow.clone() }
    }
}

impl SwitchHandle {
    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// What the switch has done so far.
    ///
    /// # Errors
    ///
    /// If a thread does not answer.
    pub fn snapshot(&self) -> Result<SwitchSnapshot, MailError> {
        let ask = |mailbox: &Mailbox<Command>| {
            let (sender, answer) = answer();
            mailbox.post(Command::Count(sender))?;
            Ok(answer)
        };
        // All are asked before the first is waited for.
        let answers: Vec<_> = self.mailboxes.iter().map(ask).collect::<Result<_, MailError>>()?;
        let mut sum: Option<SwitchSnapshot> = None;
        for answer in answers {
            let one = answer.wait()?;
            match &mut sum {
                None => sum = Some(one),
                Some(sum) => {
                    sum.revision = sum.revision.min(one.revision);
                    sum.counters.merge(&one.counters);
                    sum.unsent += one.unsent;
                }
            }
        }
        sum.ok_or(MailError::Ended)
    }
}

impl SwitchControl for SwitchHandle {
    /// Compiles once; each thread changes over between two of its batches. Commands are carried out
    /// in order, so counters asked for later come from a thread that has changed over.
    fn install(&mut self, tables: &SwitchTables) -> Result<(), InstallError> {
        let compiled = Arc::new(Tables::compile(tables)?);
        for mailbox in &self.mailboxes {
            if let Err(error) = mailbox.post(Command::Install(Arc::clone(&compiled))) {
                // The thread keeps its old tables, the report says so, and the controller asks
                // again: nothing is lost but time.
                let revision = tables.revision;
                tracing::warn!(revision, %error, "a switch thread took no tables");
            }
        }
        Ok(())
    }

    fn counters(&self) -> SwitchCounters {
        match self.snapshot() {
            Ok(SwitchSnapshot { revision, counters, .. }) => counters.report(revision),
            Err(error) => {
                tracing::warn!(%error, "a switch thread gave no counters");
                SwitchCounters::default()
            }
        }
    }
}

/// The pipeline of one thread.
#[derive(Default)]
struct Thread {
    pipeline: Pipeline,
    out: Outbox,
    unsent: u64,
}

impl Driven for Thread {
    type Command = Command;

    fn handle_command(&mut self, _now: Instant, command: Command) {
        match command {
            Command::Install(tables) => self.pipeline.install_compiled(tables),
            Command::Count(sender) => {
                let revision = self.pipeline.revision();
                let counters = self.pipeline.counters_ref().clone();
                // Whoever asked may have given up waiting; then nobody needs the answer.
                let unsent = self.unsent;
                drop(sender.try_send(SwitchSnapshot { revision, counters, unsent }));
            }
        }
    }

    fn handle_datagram(&mut self, _now: Instant, received: Received<'_>) {
        let processed = self.pipeline.process(received.from, received.payload, &mut self.out);
        if let Err(reason) = processed {
            tracing::trace!(from = %received.from, reason = reason.name(), "dropped");
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
