//! A cache: one thread with a socket and a machine for each shard, which know nothing of each
//! other.

use super::leaving::Leaving;
use super::obedience::Obedience;
use crate::clock::Clock;
use crate::event_loop::{Driven, Gate, Worker, spawn};
use crate::keyring::Keyring;
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, Mailbox, Reply, ask_all};
use crate::net::{Overflow, Received, Socket};
use cache::{Admission, Cache, CacheConfig, RulePace};
use cluster::{CacheId, CacheReport, CacheSpec, CacheTables, Incarnation};
use envelope::MemberRole;
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

impl CacheLimits {
    /// Those of one of so many shards, which are asked for about equally much.
    fn of_shard(self, shards: u16) -> Self {
        let Self { entries, bytes, rules_per_second } = self;
        let shards = shards.max(1);
        Self {
            entries: entries.div_ceil(shards.into()),
            bytes: bytes / u64::from(shards),
            rules_per_second: rules_per_second.div_ceil(shards.into()),
        }
    }
}

/// How long a rule that is of no use may stay at the switch.
const REMOVE_WITHIN: Duration = Duration::from_millis(500);

/// A running cache. Dropping it ends its threads.
#[derive(Debug)]
pub struct CacheDriver {
    _workers: Vec<Worker<Command>>,
    handle: CacheHandle,
}

/// How the control plane reaches a cache; outlives it without harm.
#[derive(Clone, Debug)]
pub struct CacheHandle {
    spec: CacheSpec,
    incarnation: Incarnation,
    mailboxes: Vec<Mailbox<Command>>,
    overflow: Overflow,
    obedience: Obedience,
    leaving: Leaving,
    keyring: Option<Keyring>,
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

impl CacheSnapshot {
    /// This and another shard together.
    fn with(self, other: Self) -> Self {
        let Self { at, report, dropped, unsent } = self;
        let counts = dropped.into_iter().zip(other.dropped);
        Self {
            at: at.min(other.at),
            report: report.with(&other.report),
            dropped: counts.map(|((reason, one), (_, more))| (reason, one + more)).collect(),
            unsent: unsent + other.unsent,
        }
    }
}

#[derive(Debug)]
struct Command {
    install: Option<CacheTables>,
    rules_max: Option<usize>,
    leaves: bool,
    answer: Reply<CacheSnapshot>,
}

impl CacheDriver {
    /// Starts a cache whose shards take datagrams from these sockets, which have consecutive ports.
    /// Each shard has its part of the limits. With a keyring it lets nothing through but what is in
    /// envelopes.
    ///
    /// # Errors
    ///
    /// If a thread cannot be started.
    ///
    /// # Panics
    ///
    /// If there is no socket.
    pub fn start(
        id: CacheId,
        sockets: Vec<Socket>,
        limits: CacheLimits,
        incarnation: Incarnation,
        keyring: Option<Keyring>,
    ) -> io::Result<Self> {
        let shards = u16::try_from(sockets.len()).expect("there are fewer ports");
        let overflow = Overflow::of(&sockets)?;
        let endpoint = sockets.first().expect("a cache has a shard").local().into();
        let spec = CacheSpec { id, endpoint, shards };
        let CacheLimits { entries, bytes, rules_per_second } = limits.of_shard(shards);
        let clock = Clock::new();
        let mut workers = Vec::new();
        for (shard, socket) in (0..).zip(sockets) {
            let config = CacheConfig {
                id,
                shard: (shard, shards),
                incarnation,
                entries_max: entries,
                bytes_max: bytes,
                rule_pace: RulePace { per_second: rules_per_second, remove_within: REMOVE_WITHIN },
                admission: Admission::ByLoad,
                metric: TrackerConfig::default().metric,
            };
            let make = move |now, _| Thread { cache: Cache::new(config, now), unsent: 0 };
            let gate = Gate::of(MemberRole::Cache, keyring.clone());
            let name = format!("cache-{id}-{shard}");
            workers.push(spawn(&name, clock.clone(), socket, gate, make)?);
        }
        let handle = CacheHandle {
            spec,
            incarnation,
            mailboxes: workers.iter().map(Worker::mailbox).collect(),
            overflow,
            obedience: Obedience::default(),
            leaving: Leaving::default(),
            keyring,
        };
        Ok(Self { _workers: workers, handle })
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

    /// The keys of envelopes, if it lets nothing else through.
    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
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
        self.command(None, None, ANSWER_WAIT_MAX)
    }

    /// Gives back all that it was lent, and has the switch send it nothing more.
    pub(crate) fn leave(&self) -> Result<(), MailError> {
        self.leaving.begin();
        self.command(None, None, ANSWER_WAIT_MAX).map(drop)
    }

    /// Gives it these tables, and says how many rules of its own switches take. Says how it is
    /// then.
    pub(super) fn command(
        &self,
        install: Option<CacheTables>,
        rules_max: Option<u64>,
        patience: Duration,
    ) -> Result<CacheSnapshot, MailError> {
        let leaves = self.leaving.is_begun();
        let of_shard = |all| usize::try_from(all / u64::from(self.spec.shards));
        let rules_max = rules_max.map(|all| of_shard(all).unwrap_or(usize::MAX));
        let command = |answer| Command { install: install.clone(), rules_max, leaves, answer };
        let shards = ask_all(&self.mailboxes, patience, command)?;
        shards.into_iter().reduce(CacheSnapshot::with).ok_or(MailError::Ended)
    }
}

struct Thread {
    cache: Cache,
    unsent: u64,
}

impl Driven for Thread {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        let Command { install, rules_max, leaves, answer } = command;
        if let Some(tables) = install {
            self.cache.install(now, &tables);
        }
        if let Some(rules_max) = rules_max {
            self.cache.set_rules_max(rules_max);
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
