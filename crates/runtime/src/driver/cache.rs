//! A cache: one thread with a socket and the machine.

use super::leaving::Leaving;
use super::obedience::Obedience;
use crate::clock::Clock;
use crate::event_loop::{Driven, Worker, spawn};
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, Mailbox, Reply, ask_all};
use crate::net::{Overflow, Received, Socket};
use cache::{Admission, Cache, CacheConfig, RulePace};
use cluster::{CacheId, CacheReport, CacheSpec, CacheTables, Incarnation};
use machine::{Datagram, Instant};
use node::TrackerConfig;
use std::io;
use std::time::Duration;
use wire::DropReason;

/// What a cache may hold, and how fast it may have the switch change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Keys at most.
    pub entries: usize,
    /// Bytes of keys and values at most.
    pub bytes: u64,
    /// Rules of the switch that may change in a second.
    pub rules_per_second: u32,
}

impl Default for CacheLimits {
    /// Of a switch in user space. The papers' caches hold 10,000 keys.
    fn default() -> Self {
        Self { entries: 10_000, bytes: 256 << 20, rules_per_second: 12_000 }
    }
}

/// How long a rule that is of no use may stay at the switch.
const REMOVE_WITHIN: Duration = Duration::from_millis(500);

/// A running cache. Dropping it ends its thread.
#[derive(Debug)]
pub struct CacheDriver {
    _worker: Worker<Command>,
    handle: CacheHandle,
}

/// How the control plane reaches a cache; outlives it without harm.
#[derive(Clone, Debug)]
pub struct CacheHandle {
    spec: CacheSpec,
    incarnation: Incarnation,
    mailbox: Mailbox<Command>,
    overflow: Overflow,
    obedience: Obedience,
    leaving: Leaving,
}

/// What a cache has done since it started.
#[derive(Clone, Debug)]
pub struct CacheSnapshot {
    /// When it said this, by its clock.
    pub at: Instant,
    /// How it is.
    pub report: CacheReport,
    /// Datagrams dropped, by reason.
    pub dropped: Vec<(DropReason, u64)>,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
}

#[derive(Debug)]
struct Command {
    install: Option<CacheTables>,
    leaves: bool,
    answer: Reply<CacheSnapshot>,
}

impl CacheDriver {
    /// Starts a cache that takes datagrams from this socket.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        id: CacheId,
        socket: Socket,
        limits: CacheLimits,
        incarnation: Incarnation,
    ) -> io::Result<Self> {
        let overflow = Overflow::of(std::slice::from_ref(&socket))?;
        let spec = CacheSpec { id, endpoint: socket.local().into(), shards: 1 };
        let CacheLimits { entries, bytes, rules_per_second } = limits;
        let config = CacheConfig {
            id,
            incarnation,
            entries_max: entries,
            bytes_max: bytes,
            rule_pace: RulePace { per_second: rules_per_second, remove_within: REMOVE_WITHIN },
            admission: Admission::ByLoad,
            metric: TrackerConfig::default().metric,
        };
        let make = move |now, _| Thread { cache: Cache::new(config, now), unsent: 0 };
        let worker = spawn(&format!("cache-{id}"), Clock::new(), socket, make)?;
        let handle = CacheHandle {
            spec,
            incarnation,
            mailbox: worker.mailbox(),
            overflow,
            obedience: Obedience::default(),
            leaving: Leaving::default(),
        };
        Ok(Self { _worker: worker, handle })
    }

    /// What others are to know of it.
    #[must_use]
    pub fn spec(&self) -> CacheSpec {
        self.handle.spec
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> CacheHandle {
        self.handle.clone()
    }
}

impl CacheHandle {
    /// What others are to know of it.
    #[must_use]
    pub fn spec(&self) -> CacheSpec {
        self.spec
    }

    /// Datagrams that the kernel dropped because the receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// Which incarnation of the cache this is.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Whom it obeys.
    pub(crate) fn obedience(&self) -> &Obedience {
        &self.obedience
    }

    /// Whether it has been asked to end.
    pub(crate) fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    /// What the cache has done so far.
    ///
    /// # Errors
    ///
    /// If its thread does not answer.
    pub fn snapshot(&self) -> Result<CacheSnapshot, MailError> {
        self.command(None, ANSWER_WAIT_MAX)
    }

    /// Gives back all that it was lent, and has the switch send it nothing more.
    pub(crate) fn leave(&self) -> Result<(), MailError> {
        self.leaving.begin();
        self.command(None, ANSWER_WAIT_MAX).map(drop)
    }

    /// Gives it these tables. Says how it is then.
    pub(super) fn command(
        &self,
        install: Option<CacheTables>,
        patience: Duration,
    ) -> Result<CacheSnapshot, MailError> {
        let leaves = self.leaving.is_begun();
        let command = |answer| Command { install: install.clone(), leaves, answer };
        let mailboxes = std::slice::from_ref(&self.mailbox);
        let answers = ask_all(mailboxes, patience, command)?;
        answers.into_iter().next().ok_or(MailError::Ended)
    }
}

struct Thread {
    cache: Cache,
    unsent: u64,
}

impl Driven for Thread {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        let Command { install, leaves, answer } = command;
        if let Some(tables) = install {
            self.cache.install(now, &tables);
        }
        if leaves {
            self.cache.leave(now);
        }
        answer.send(CacheSnapshot {
            at: now,
            report: self.cache.report(),
            dropped: self.cache.dropped().collect(),
            unsent: self.unsent,
        });
    }

    fn handle_datagram(&mut self, now: Instant, received: Received<'_>) {
        let Received { from, waiting, payload } = received;
        self.cache.handle_packet(now, from, waiting, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.cache.handle_timeout(now);
    }

    fn flush(&mut self, _now: Instant) -> Result<(), String> {
        Ok(())
    }

    fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.cache.poll_transmit()
    }

    fn count_unsent(&mut self, datagrams: u64) {
        self.unsent += datagrams;
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.cache.poll_timeout()
    }
}
