//! The gateway: listens, lets clients in, and ends in good order.

use crate::acl::Acl;
use crate::budget::Budget;
use crate::clients::{Clients, Entry};
use crate::connection::Connection;
use crate::cursors::Cursors;
use crate::databases::{Database, Served, Stores};
use crate::guesses::Guesses;
use crate::metrics;
use crate::multi::Multi;
use crate::pause::Pause;
use crate::script::Scripts;
use crate::settings::{Fixed, KEEPALIVE, Settings};
use crate::shared::Shared;
use crate::siblings::Siblings;
use crate::slots::Cluster;
use crate::slowlog::SlowLog;
use crate::stats::{Overdue, Stats};
use crate::store::{Room, Spaces, Store};
use crate::stream::Stream;
use crate::tls::{self, TlsError, TlsFiles};
use crate::tracking::Tracking;
use crate::workers::Workers;
use client::asynchronous::Client;
use client::{LookupError, Services};
use envelope::Passes;
use runtime::clock::Clock;
use runtime::entropy;
use runtime::files::{self, Reserve};
use runtime::metrics::Source;
use socket2::{SockRef, TcpKeepalive};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// What a gateway needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// Service addresses of the cluster.
    pub services: Vec<SocketAddr>,
    /// The pass of this process, where packets are in envelopes.
    pub passes: Option<Passes>,
    /// By name, the passes by which it acts for each user that can log in; if there are none, what
    /// all users ask for it asks by its own.
    pub user_passes: BTreeMap<String, Passes>,
    /// What clients see: each number once, and 0 among them.
    pub databases: Vec<Database>,
    /// What clients of Redis Cluster are told; `None`: that there is no cluster.
    pub cluster: Option<Cluster>,
    /// What EXEC does with what cannot change together.
    pub multi: Multi,
    /// What acknowledged writes are safe from, as INFO tells it: a word without spaces.
    pub sync: String,
    /// How long the cluster may take to answer.
    pub deadline: Duration,
    /// Where clients connect; port 0 for any.
    pub listen: SocketAddr,
    /// Threads, each with a socket towards the cluster.
    pub workers: usize,
    /// Most clients at once.
    pub maxclients: usize,
    /// How long a client may go without a whole command; zero: for ever. Whole seconds.
    pub idle_timeout: Duration,
    /// TLS, if clients are to speak it.
    pub tls: Option<TlsFiles>,
    /// Who may do what.
    pub acl: Acl,
}

/// Most clients at once unless somebody says otherwise: what Redis takes.
pub const MAXCLIENTS: u32 = 10_000;
/// Descriptors of a worker: its socket towards the cluster, and what it waits with.
const FILES_OF_WORKER: u64 = 8;
/// The same, for each user for whom it acts: one more socket.
const FILES_OF_USER: u64 = 1;
/// Connections that the kernel completes while none is accepted: what Redis asks for.
const BACKLOG: u32 = 511;
/// How long a TLS handshake may take.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long connections may take to end when the gateway ends: a little more than the cluster may
/// take to answer what is under way, and clients to read it.
const STOP_TIME_MAX: Duration = Duration::from_secs(11);
/// How long nobody is let in after the system had no file left for a connection.
const FILES_WAIT: Duration = Duration::from_millis(100);

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It would be open to a network.
    #[error(
        "{0} can be reached from other machines, and nobody would be asked for a password: listen \
         at a loopback address, or name a password file or a file of users in which `default` has \
         a password or is off"
    )]
    Unprotected(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen at {at}: {why}; is another process there?")]
    Bind {
        /// Which.
        at: SocketAddr,
        /// What the system says.
        why: io::Error,
    },
    /// A thread or a socket cannot be had.
    #[error("cannot start the gateway: {0}")]
    System(#[from] io::Error),
    /// The cluster does not answer, or has no such keyspace.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A running gateway. Dropping it ends it in good order.
#[derive(Debug)]
pub struct Gateway {
    workers: Workers,
    shared: Arc<Shared>,
}

impl Gateway {
    /// Starts a gateway and waits until clients can connect.
    ///
    /// # Errors
    ///
    /// If it would be open to everybody, an address is taken, or the cluster does not answer.
    ///
    /// # Panics
    ///
    /// In the context of an asynchronous runtime: it blocks.
    pub fn start(options: Options) -> Result<Self, StartError> {
        if !options.listen.ip().is_loopback() && options.acl.is_open() {
            return Err(StartError::Unprotected(options.listen));
        }
        let acceptor = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let workers = Workers::start(options.workers)?;
        let handles = workers.handles();
        let first = workers.first();
        let (shared, listener) = first.block_on(open(options, &handles, acceptor.is_some()))?;
        first.spawn(accept(Arc::clone(&shared), handles, listener, acceptor));
        first.spawn(tick(Arc::clone(&shared)));
        if let Some(siblings) = &shared.cluster {
            for index in 0..siblings.count() {
                first.spawn(Arc::clone(siblings).watch(index));
            }
        }
        Ok(Self { workers, shared })
    }

    /// Where clients connect, with the port that was given if none was asked for.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.shared.listen
    }

    /// What it counts, for `/metrics`.
    #[must_use]
    pub fn metrics(&self) -> Source {
        metrics::source(&self.shared)
    }

    /// Ends it: what is under way is finished and answered first, within some seconds.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let shared = &self.shared;
        self.workers.first().block_on(async {
            let all = async {
                loop {
                    let left = shared.clients.left.notified();
                    let entries = shared.clients.list();
                    if entries.is_empty() {
                        return;
                    }
                    // Again and again: some may just have been let in.
                    entries.iter().for_each(|entry| entry.drain());
                    drop(timeout(FILES_WAIT, left).await);
                }
            };
            if timeout(STOP_TIME_MAX, all).await.is_err() {
                tracing::warn!(clients = shared.clients.count(), "not all clients ended in time");
            }
        });
    }
}

async fn open(
    options: Options,
    workers: &[Handle],
    tls: bool,
) -> Result<(Arc<Shared>, TcpListener), StartError> {
    let Options { services, passes, user_passes, mut databases, deadline, listen, .. } = options;
    databases.sort_by_key(|it| it.number);
    let files = FILES_OF_WORKER + FILES_OF_USER * user_passes.len() as u64;
    let reserve = Reserve::new(files * workers.len() as u64);
    let connect = |passes| {
        let client_options = client::Options { deadline, passes, ..client::Options::default() };
        reach(&services, client_options, &databases, workers)
    };
    let own = connect(passes.clone()).await?;
    let mut of_users = BTreeMap::new();
    for (user, passes) in &user_passes {
        of_users.insert(user.clone(), connect(Some(passes.clone())).await?);
    }
    let listener = listen_at(listen)?;
    let listen = listener.local_addr()?;
    let clients_max = usize::try_from(files::left()).unwrap_or(usize::MAX).max(1);
    if clients_max < options.maxclients {
        let (wanted, possible) = (options.maxclients, clients_max);
        tracing::warn!(wanted, possible, "the limit of open files (ulimit -n) bounds maxclients");
    }
    let highest = databases.last().map_or(0, |it| it.number);
    let databases_max = u16::from(highest) + 1;
    let (workers, cluster) = (workers.len(), options.cluster.is_some());
    let (room, scripts): (Room, Arc<Scripts>) = Default::default();
    let fixed = Fixed { listen, tls, cluster, workers, databases: databases_max, clients_max };
    let (maxclients, idle) = (options.maxclients, options.idle_timeout);
    let settings = Settings::new(maxclients, idle, fixed, Arc::clone(&scripts));
    let serve = |it| serve_database(it, (&own, &of_users), (&room, &scripts));
    let shared = Shared {
        databases: databases.into_iter().map(serve).collect(),
        workers,
        cluster: options.cluster.map(Siblings::new).map(Arc::new),
        multi: options.multi,
        sync: options.sync,
        services,
        passes: passes.into_iter().chain(user_passes.into_values()).collect(),
        tracking: Tracking::default(),
        listen,
        acl: options.acl,
        settings,
        scripts,
        clients: Clients::default(),
        budget: Budget::default(),
        guesses: Guesses::default(),
        stats: Stats::new(),
        slowlog: SlowLog::default(),
        pause: Pause::default(),
        started: Instant::now(),
        run_id: run_id()?,
        clock: Mutex::new(Clock::new()),
        _reserve: reserve,
    };
    Ok((Arc::new(shared), listener))
}

/// What each worker has of all databases: by a client with these options.
async fn reach(
    services: &[SocketAddr],
    options: client::Options,
    databases: &[Database],
    workers: &[Handle],
) -> Result<Vec<Spaces>, StartError> {
    let mut spaces: Vec<Spaces> = Vec::new();
    for worker in workers {
        let client = Client::connect(Services::from(services), options.clone());
        // The task of the client goes on where it is begun.
        let client = worker.spawn(client).await.expect("nothing in it panics")?;
        let mut own = Vec::new();
        for Database { number, keyspace, .. } in databases {
            own.push((*number, client.keyspace(keyspace).await?));
        }
        spaces.push(own.into());
    }
    Ok(spaces)
}

/// Listens there. Nobody is let in yet.
fn listen_at(listen: SocketAddr) -> Result<TcpListener, StartError> {
    let bind = |why| StartError::Bind { at: listen, why };
    let socket = if listen.is_ipv4() {
        tokio::net::TcpSocket::new_v4()?
    } else {
        tokio::net::TcpSocket::new_v6()?
    };
    // Connections of a gateway that has just ended do not keep the next one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(listen).map_err(bind)?;
    socket.listen(BACKLOG).map_err(bind)
}

/// A database with a store for each worker, given what each worker has of all databases, by the
/// gateway's own right and by that of each user.
fn serve_database(
    database: Database,
    (own, of_users): (&[Spaces], &BTreeMap<String, Vec<Spaces>>),
    (room, scripts): (&Room, &Arc<Scripts>),
) -> Served {
    let cursors: Arc<Cursors> = Arc::default();
    let store = |spaces: &Spaces| {
        let own = spaces.iter().find(|(number, _)| *number == database.number);
        let (_, space) = own.expect("a worker has every database");
        let store = Store::new(space.clone()).with_databases(database.number, Arc::clone(spaces));
        let store = store.with_hot(database.hot.clone()).with_room(room.clone());
        store.with_cursors(Arc::clone(&cursors)).with_scripts(Arc::clone(scripts))
    };
    let stores = |workers: &[Spaces]| workers.iter().map(store).collect();
    let of_users = of_users.iter().map(|(user, workers)| (user.clone(), stores(workers))).collect();
    let stores = Stores { own: stores(own), of_users };
    Served::new(database, stores)
}

fn run_id() -> io::Result<String> {
    let (a, b, c) = (entropy::draw()?, entropy::draw()?, entropy::draw()?);
    Ok(format!("{a:016x}{b:016x}{:08x}", c >> 32))
}

async fn accept(
    shared: Arc<Shared>,
    workers: Vec<Handle>,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
) {
    let mut failed = false;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let_in(&shared, &workers, stream, peer, acceptor.as_ref());
                failed = false;
            }
            Err(error) => {
                // Said once, for it is tried again many times a second.
                if !failed {
                    tracing::warn!(%error, "cannot accept a connection");
                }
                failed = true;
                sleep(FILES_WAIT).await;
            }
        }
    }
}

fn let_in(
    shared: &Arc<Shared>,
    workers: &[Handle],
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<&TlsAcceptor>,
) {
    if shared.clients.count() >= shared.settings.maxclients() {
        shared.stats.rejected.fetch_add(1, Ordering::Relaxed);
        if acceptor.is_none() {
            // If not even that can be sent, the client will see that it is closed.
            drop(stream.try_write(b"-ERR max number of clients reached\r\n"));
        }
        return;
    }
    shared.stats.connections.fetch_add(1, Ordering::Relaxed);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
    // A connection that cannot be tuned serves all the same.
    drop(SockRef::from(&stream).set_tcp_keepalive(&keepalive));
    drop(stream.set_nodelay(true));
    let local = stream.local_addr().unwrap_or(shared.listen);
    let user = crate::acl::DEFAULT_USER;
    let entry = shared.clients.enter(peer, local, shared.now(), user);
    let worker = workers.get(shared.worker(entry.id)).expect("each worker has a store");
    let seat = Seat { shared: Arc::clone(shared), entry };
    let acceptor = acceptor.cloned();
    // It is waited for there and not here from now on.
    let stream = stream.into_std();
    worker.spawn(async move {
        match stream.and_then(TcpStream::from_std) {
            Ok(stream) => serve(seat, stream, acceptor).await,
            Err(error) => tracing::warn!(%peer, %error, "cannot serve a connection"),
        }
    });
}

/// Serves a client to the end, on the thread of its own store.
async fn serve(seat: Seat, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
    let stream = match acceptor {
        None => Stream::Plain(stream),
        Some(acceptor) => {
            let peer = seat.entry.peer;
            let stream = tokio::select! {
                stream = timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)) => stream,
                () = seat.entry.dismissed() => return,
            };
            match stream {
                Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                Ok(Err(error)) => return tracing::debug!(%peer, %error, "no TLS"),
                Err(_) => return tracing::debug!(%peer, "no TLS in time"),
            }
        }
    };
    let (shared, entry) = (Arc::clone(&seat.shared), Arc::clone(&seat.entry));
    Connection::new(stream, shared, entry).run().await;
}

/// A client's place, from its acceptance on.
struct Seat {
    shared: Arc<Shared>,
    entry: Arc<crate::clients::Entry>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.clients.leave(self.entry.id);
    }
}

/// How long a client may take to show who it is, if it must.
const STRANGER_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a command may come as slowly as it likes.
const COMING_TIME_MAX: Duration = Duration::from_secs(60);
/// Bytes of a command that have to come in a second on average after that; of one that comes as
/// fast as this, nobody says that its client is idle.
const COMING_BYTES_PER_S_MIN: u64 = 4 << 10;

/// Once a second: ends connections that keep a place for nothing, and takes the rate of commands.
async fn tick(shared: Arc<Shared>) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        shared.stats.take_rates();
        let (now, longest) = (shared.now(), shared.settings.timeout());
        for entry in shared.clients.list() {
            if let Some(why) = why_ended(&entry, now, longest) {
                shared.stats.note_overdue(why);
                entry.kill();
            }
        }
    }
}

/// Why a connection is to be ended, if it is. One that waits for the gateway never is.
fn why_ended(entry: &Entry, now: Duration, longest: Option<Duration>) -> Option<Overdue> {
    let strange_for = now.saturating_sub(entry.since);
    if entry.is_stranger() && strange_for > STRANGER_TIME_MAX {
        return Some(Overdue::Stranger);
    }
    if entry.is_served() {
        return None;
    }
    let comes_fast = |(time, bytes): (Duration, u64)| {
        bytes >= time.as_secs().saturating_mul(COMING_BYTES_PER_S_MIN)
    };
    match entry.coming(now) {
        Some(coming) if comes_fast(coming) && coming.1 > 0 => return None,
        Some((time, _)) if time > COMING_TIME_MAX => return Some(Overdue::Slow),
        Some(_) | None => {}
    }
    longest.filter(|longest| entry.idle(now) > *longest).map(|_| Overdue::Idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_the_gateway_is_not_idle_and_who_drips_is() {
        let (clients, at) = (Clients::default(), "127.0.0.1:1".parse().unwrap());
        let seconds = Duration::from_secs;
        let entry = clients.enter(at, at, seconds(0), "default");
        entry.note_user(true);
        let why = |now| why_ended(&entry, seconds(now), Some(seconds(2)));
        assert_eq!((why(2), why(3)), (None, Some(Overdue::Idle)));
        entry.running.store(1, Ordering::Relaxed);
        assert_eq!(why(1_000), None, "a command is under way");
        entry.running.store(0, Ordering::Relaxed);
        entry.note_active(seconds(1_000));
        assert_eq!((why(1_002), why(1_003)), (None, Some(Overdue::Idle)));
        entry.note_coming(seconds(1_001), true);
        entry.note_come(10);
        assert_eq!(why(1_003), Some(Overdue::Idle), "it drips");
        entry.note_come(1 << 20);
        assert_eq!(why(1_100), None, "a long command comes");
        assert_eq!(why_ended(&entry, seconds(2_000), None), Some(Overdue::Slow));
        entry.note_coming(seconds(2_000), false);
        assert_eq!(why_ended(&entry, seconds(9_000), None), None);
        entry.note_user(false);
        assert_eq!(why(31), Some(Overdue::Stranger));
    }
}
