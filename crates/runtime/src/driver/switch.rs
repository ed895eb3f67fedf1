//! The switch: one user-space pipeline per thread, all with the same tables, and perhaps a fast
//! path in the kernel before them.
//!
//! Each thread has a socket of its own on the service address; the kernel spreads clients over
//! them. Nothing is shared between them but the compiled tables, which never change, and the
//! directory of hot keys, with what the nodes report. With a fast path the sockets get only what
//! that leaves to them, and the directory is the kernel's: they note there what passes them.

use super::content::{ContentAgent, ContentSnapshot};
use super::fast_path::{FastPath, FastPathError, InKernel};
use super::leaving::Leaving;
use super::obedience::Obedience;
use super::orders::OrderError;
use crate::clock::Clock;
use crate::event_loop::{Driven, Gate, Worker, spawn};
use crate::keyring::Keyring;
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, Mailbox, Reply, ask_all};
use crate::net::{Overflow, Received, Socket};
use cluster::{
    CacheId, ClusterId, EnvelopeOrder, HotOrder, Incarnation, InstallError, KeyspaceId, Lease,
    Match, SwitchControl, SwitchTables,
};
use envelope::MemberRole;
use machine::{Datagram, Instant, Outbox};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use switch::{Counters, Directory, HotExplanation, Pipeline, Tables};
use wire::{EnvelopeRefusal, Revision};

/// A running switch. Dropping it ends its threads.
#[derive(Debug)]
pub struct SwitchDriver {
    incarnation: Incarnation,
    workers: Vec<Worker<Command>>,
    service: SocketAddr,
    overflow: Overflow,
    fast_path: Option<FastPath>,
    content: Option<ContentAgent>,
    /// With a fast path, which has its own, it only says which cluster the switch follows.
    directory: Arc<Directory>,
    refused: Arc<Refused>,
    obedience: Obedience,
    leaving: Leaving,
    keyring: Option<Keyring>,
}

/// How the control plane reaches a switch; outlives it without harm.
#[derive(Clone, Debug)]
pub struct SwitchHandle {
    incarnation: Incarnation,
    mailboxes: Vec<Mailbox<Command>>,
    overflow: Overflow,
    fast_path: Option<FastPath>,
    content: Option<ContentAgent>,
    directory: Arc<Directory>,
    refused: Arc<Refused>,
    obedience: Obedience,
    leaving: Leaving,
    keyring: Option<Keyring>,
}

/// Why the last order of hot keys was not taken, if it was not; logged when it changes, for there
/// may be many orders a second.
type Refused = Mutex<Option<InstallError>>;

/// What a switch has done since it started.
#[derive(Clone, Debug)]
pub struct SwitchSnapshot {
    /// When the first of the threads said this, by its clock.
    pub at: Instant,
    /// The cluster that it follows, if it was given tables.
    pub cluster: Option<ClusterId>,
    /// Revision of the tables that all threads, and the kernel, have installed; 0 for none.
    pub revision: Revision,
    /// Revision of the hot keys that all threads have installed; 0 for none.
    pub hot_revision: Revision,
    /// Keys whose reads go to caches.
    pub cache_rules: u64,
    /// Sum over the threads and the kernel.
    pub counters: Counters,
    /// Whether all threads have a lease.
    pub leased: bool,
    /// Datagrams that the fast path in the kernel dealt with.
    pub in_kernel: u64,
    /// Datagrams that the kernel refused to send.
    pub unsent: u64,
    /// How the content table stands that it keeps, if it keeps one.
    pub content: Option<ContentSnapshot>,
}

/// What a thread is to take, in this order. Hot keys come last: tables say whether the switch is
/// the active one, and a lease may find that there was a time without one, in which others may have
/// forwarded.
#[derive(Clone, Debug, Default)]
struct Wanted {
    tables: Option<Arc<Tables>>,
    lease: Option<Lease>,
    hot: Option<Arc<HotOrder>>,
}

/// What there is to do; then the answer.
#[derive(Debug)]
struct Command {
    wanted: Wanted,
    answer: Reply<SwitchSnapshot>,
}

/// What works beside the threads of a switch.
#[derive(Default)]
struct Beside {
    fast_path: Option<FastPath>,
    content: Option<ContentAgent>,
    by_hints: bool,
    keyring: Option<Keyring>,
}

impl SwitchDriver {
    /// Starts a switch at the service address, with this many threads (at least one), in this
    /// incarnation, and perhaps with a fast path in the kernel. With a keyring it lets nothing
    /// through but what is in envelopes.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound or a thread not be started.
    pub fn start(
        service: SocketAddr,
        threads: usize,
        incarnation: Incarnation,
        fast_path: Option<FastPath>,
        keyring: Option<Keyring>,
    ) -> io::Result<Self> {
        let beside = Beside { fast_path, keyring, ..Beside::default() };
        Self::start_threads(service, threads, incarnation, beside)
    }

    /// The same without a fast path; what it forwards by is kept in a content table, too.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_beside(
        service: SocketAddr,
        threads: usize,
        incarnation: Incarnation,
        content: ContentAgent,
        keyring: Option<Keyring>,
    ) -> io::Result<Self> {
        let beside = Beside { content: Some(content), keyring, ..Beside::default() };
        Self::start_threads(service, threads, incarnation, beside)
    }

    /// The same without a fast path; its threads split multigets by clients' hints where they have
    /// any.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_by_hints(
        service: SocketAddr,
        threads: usize,
        incarnation: Incarnation,
        keyring: Option<Keyring>,
    ) -> io::Result<Self> {
        let beside = Beside { by_hints: true, keyring, ..Beside::default() };
        Self::start_threads(service, threads, incarnation, beside)
    }

    fn start_threads(
        service: SocketAddr,
        threads: usize,
        incarnation: Incarnation,
        Beside { fast_path, content, by_hints, keyring }: Beside,
    ) -> io::Result<Self> {
        let mut sockets = Socket::bind_group(service, threads)?;
        if fast_path.is_some() {
            // The program at tc must see each datagram: it knows of no bundles.
            sockets.iter_mut().try_for_each(Socket::receive_apart)?;
        }
        let local = sockets.first().expect("a group has a member").local();
        let overflow = Overflow::of(&sockets)?;
        let clock = Clock::new();
        let keeper = fast_path.as_ref().map(FastPath::kernel_directory).transpose();
        let keeper = keeper.map_err(io::Error::other)?;
        let directory = Arc::new(match &content {
            Some(content) => Directory::watched_by(incarnation, content.watch()),
            None => Directory::new(incarnation),
        });
        let refused = Arc::<Refused>::default();
        let workers = sockets.into_iter().enumerate().map(|(index, socket)| {
            let name = format!("switch-{index}");
            let (directory, refused) = (Arc::clone(&directory), refused.clone());
            let mut pipeline = match &keeper {
                Some(keeper) => Pipeline::behind(incarnation, keeper.clone()),
                None => Pipeline::sharing(incarnation, directory),
            };
            if by_hints {
                pipeline.split_by_hints();
            }
            let thread =
                move |_, _| Thread { pipeline, out: Outbox::default(), unsent: 0, refused };
            let gate = Gate::of(MemberRole::Switch, keyring.clone());
            spawn(&name, clock.clone(), socket, gate, thread)
        });
        let workers = workers.collect::<io::Result<_>>()?;
        let (obedience, leaving) = (Obedience::default(), Leaving::default());
        let service = local;
        Ok(Self {
            incarnation,
            workers,
            service,
            overflow,
            fast_path,
            content,
            directory,
            refused,
            obedience,
            leaving,
            keyring,
        })
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
        SwitchHandle {
            incarnation: self.incarnation,
            mailboxes,
            overflow,
            fast_path,
            content: self.content.clone(),
            directory: Arc::clone(&self.directory),
            refused: self.refused.clone(),
            obedience: self.obedience.clone(),
            leaving: self.leaving.clone(),
            keyring: self.keyring.clone(),
        }
    }
}

impl SwitchHandle {
    /// Datagrams that the kernel dropped because a socket's receive buffer was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.overflow.count()
    }

    /// Whether it has been asked to end.
    pub(crate) fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    /// Takes other keys of envelopes, in the kernel as well.
    ///
    /// # Errors
    ///
    /// If the kernel does not take them; the ones before are used then.
    pub(super) fn take_keys(&self, order: Arc<EnvelopeOrder>) -> Result<(), xdp::Error> {
        let Some(keyring) = &self.keyring else { return Ok(()) };
        if let Some(fast_path) = &self.fast_path {
            fast_path.take_keys(&order)?;
        }
        keyring.take(order);
        Ok(())
    }

    /// What was not let through because of its envelope, in the kernel as well; nothing if the
    /// switch opens none.
    #[must_use]
    pub fn refused_envelopes(&self) -> Option<Vec<(EnvelopeRefusal, u64)>> {
        let keyring = self.keyring.as_ref()?;
        let kernel = self.fast_path.as_ref().map(FastPath::refused).transpose();
        let kernel = kernel.ok().flatten().unwrap_or_default();
        Some(keyring.refused().map(|(why, count)| (why, count + kernel.of(why))).collect())
    }

    /// The keys of envelopes, if it lets nothing else through.
    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
    }

    /// Whom it obeys.
    pub(crate) fn obedience(&self) -> &Obedience {
        &self.obedience
    }

    /// Which incarnation of the switch this is.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
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
        let mut snapshot = self.ask(&Wanted::default(), ANSWER_WAIT_MAX)?;
        if let Some(fast_path) = &self.fast_path {
            fast_path.add_to(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// What the fast path does with requests for a match value, if there is one.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn explain_in_kernel(
        &self,
        keyspace: KeyspaceId,
        at: Match,
    ) -> Result<Option<InKernel>, xdp::Error> {
        self.fast_path.as_ref().map(|fast_path| fast_path.explain(keyspace, at)).transpose()
    }

    /// What the switch, in the kernel or not, knows of a key at that time, if it is hot.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn explain_hot(
        &self,
        keyspace: KeyspaceId,
        keyhash: u64,
    ) -> Result<Option<HotExplanation>, xdp::Error> {
        match &self.fast_path {
            Some(fast_path) => fast_path.explain_hot(keyspace, keyhash),
            None => Ok(switch::explain_hot(&self.directory, keyspace, keyhash)),
        }
    }

    /// The cache that the switch sends reads of a key to, if it sends them to one.
    #[must_use]
    pub fn explain_cached(&self, keyspace: KeyspaceId, keyhash: u64) -> Option<CacheId> {
        let rules = self.directory.cache_rules();
        let own = || rules.find(Clock::new().now(), keyspace, keyhash).map(|it| it.cache);
        self.fast_path.as_ref().map_or_else(own, |it| it.cached_by(keyspace, keyhash))
    }

    /// Gives the kernel and every thread these tables, then the lease, then the hot keys; each
    /// changes over between two packets or batches. Says how the switch is then. What hot keys
    /// it cannot take, it reads at home.
    ///
    /// # Errors
    ///
    /// If the tables are not sound, or somebody does not do as it is told in time; others may have
    /// both then.
    pub(super) fn command(
        &self,
        install: Option<&SwitchTables>,
        lease: Option<Lease>,
        hot: Option<Arc<HotOrder>>,
        patience: Duration,
    ) -> Result<SwitchSnapshot, OrderError> {
        let tables = install.map(Tables::compile).transpose()?.map(Arc::new);
        // Whom the switch follows is settled once for the kernel and all threads: two clusters'
        // first tables may come at the same time.
        let ours = tables.as_ref().is_none_or(|tables| self.directory.claim(tables.cluster()));
        let (install, tables) = (install.filter(|_| ours), tables.filter(|_| ours));
        if let (Some(content), Some(tables)) = (&self.content, install) {
            content.install(tables);
        }
        let mut wanted = Wanted { tables, lease, hot };
        if let Some(fast_path) = &self.fast_path {
            fast_path.command(install, lease.as_ref())?;
            if let Some(order) = wanted.hot.take() {
                note_refusal(&self.refused, fast_path.install_hot(&order).err());
            }
        }
        let mut snapshot = self.ask(&wanted, patience)?;
        if let Some(fast_path) = &self.fast_path {
            fast_path.add_to(&mut snapshot)?;
        }
        Ok(snapshot)
    }

    /// The same for the threads alone.
    fn ask(&self, wanted: &Wanted, patience: Duration) -> Result<SwitchSnapshot, MailError> {
        let command = |answer| Command { wanted: wanted.clone(), answer };
        let answers = ask_all(&self.mailboxes, patience, command)?;
        let joint = answers.into_iter().reduce(SwitchSnapshot::join);
        let mut joint = joint.ok_or(MailError::Ended)?;
        let cache_rules = self.directory.cache_rules().count();
        let content = self.content.as_ref().map(ContentAgent::snapshot);
        if let Some(content) = &content {
            joint.counters.add_beside(&content.loads);
        }
        Ok(SwitchSnapshot { cluster: self.directory.cluster(), cache_rules, content, ..joint })
    }
}

impl SwitchSnapshot {
    /// Of two threads together.
    fn join(mut self, other: Self) -> Self {
        self.at = self.at.min(other.at);
        self.revision = self.revision.min(other.revision);
        self.hot_revision = self.hot_revision.min(other.hot_revision);
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
    refused: Arc<Refused>,
}

/// Notes what became of an order of hot keys.
fn note_refusal(refused: &Refused, why: Option<InstallError>) {
    let mut last = refused.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = why.as_ref().filter(|why| last.as_ref() != Some(why)) {
        tracing::warn!(%why, "hot keys were not taken: their reads go home, to the tails");
    }
    *last = why;
}

impl Driven for Thread {
    type Command = Command;

    fn handle_command(&mut self, now: Instant, command: Command) {
        let Command { wanted: Wanted { tables, lease, hot }, answer } = command;
        if let Some(tables) = tables {
            self.pipeline.install_compiled(tables);
        }
        if let Some(lease) = lease {
            self.pipeline.renew(now, &lease);
        }
        if let Some(order) = hot {
            note_refusal(&self.refused, self.pipeline.install_hot(&order).err());
        }
        let snapshot = SwitchSnapshot {
            at: now,
            cluster: None,
            revision: self.pipeline.revision(),
            hot_revision: self.pipeline.hot_revision(),
            cache_rules: 0,
            counters: self.pipeline.counters_ref().clone(),
            leased: self.pipeline.is_leased(now),
            unsent: self.unsent,
            in_kernel: 0,
            content: None,
        };
        answer.send(snapshot);
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
