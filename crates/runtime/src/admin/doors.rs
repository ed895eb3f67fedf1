//! Who is let in to an admin server: how many connections it has, and for how long each of them may
//! say nothing.
//!
//! A connection that asks nothing makes way for one that comes, the one that has never asked
//! anything first. So those who open connections and leave it at that keep nobody out, least of all
//! the controller, whose connections have places of their own.

mod guest;

use super::refusals::{Refusals, Refused};
use crate::files::{self, Reserve};
use crate::identity::{Role, Security};
use crate::metrics::{Sample, Samples, Source};
use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use guest::Guest;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use wire::layout::metric;

/// Connections of an admin server, those of controllers aside. They are of people, scrapers and
/// scripts, which are few; a machine with few descriptors has fewer.
const CONNECTIONS_MAX: usize = 128;
/// And as many there are at least.
const CONNECTIONS_MIN: usize = 8;
/// The share of the descriptors that are left which connections may have.
const CONNECTIONS_SHARE: u64 = 8;
/// Connections by which orders come, and alerts go: two controllers have two each, and a few more
/// are of controllers that have just ended.
const CONTROL_CONNECTIONS_MAX: usize = 16;
/// How long a TLS handshake may take: it is two packets each way.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a connection may go without a whole head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a connection may go without a request that is worked on, the time to take the last
/// reply included.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a request may take, with its body. The longest ask all threads, which have
/// five seconds each.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);
/// How long nobody is let in after the system had no descriptor left.
const FILES_WAIT: Duration = Duration::from_millis(100);

/// The connections of an admin server.
#[derive(Debug)]
pub(super) struct Doors {
    most: usize,
    places: Mutex<Places>,
    /// Connections that were refused, or ended to make way.
    turned_away: AtomicU64,
    /// Connections that were ended because they took too long.
    slow: AtomicU64,
    /// What is shown to those who come, and asked of them.
    security: Security,
    refusals: Arc<Refusals>,
    _reserve: Reserve,
}

#[derive(Debug, Default)]
struct Places {
    all: BTreeMap<u64, Admitted>,
    last_id: u64,
}

#[derive(Debug)]
struct Admitted {
    kind: Kind,
    busy: bool,
    /// When it came, or its last request ended.
    since: Instant,
    close: Arc<Notify>,
}

/// Who is at the other end, as far as that shows. Those that come first make way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Somebody who has not asked anything.
    New,
    /// Somebody who has.
    Known,
    /// A controller.
    Control,
}

impl Doors {
    pub(super) fn new(security: Security) -> Arc<Self> {
        let share = usize::try_from(files::left() / CONNECTIONS_SHARE).unwrap_or(usize::MAX);
        let most = share.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
        let reserved = u64::try_from(most + CONTROL_CONNECTIONS_MAX).unwrap_or(u64::MAX);
        Arc::new(Self {
            most,
            places: Mutex::default(),
            turned_away: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            security,
            refusals: Arc::default(),
            _reserve: Reserve::new(reserved),
        })
    }

    /// Where it is counted who was refused, here and later.
    pub(super) fn refusals(&self) -> &Arc<Refusals> {
        &self.refusals
    }

    /// Tells what is counted here as long as this is there.
    pub(super) fn source(self: &Arc<Self>) -> Source {
        let doors = Arc::downgrade(self);
        Arc::new(move |samples| {
            if let Some(doors) = doors.upgrade() {
                doors.fill(samples);
            }
        })
    }

    fn fill(&self, samples: &mut Samples) {
        let (mut control, mut others) = (0, 0);
        for place in self.lock().all.values() {
            *if place.kind == Kind::Control { &mut control } else { &mut others } += 1;
        }
        let rows = [("control", control), ("other", others)];
        let rows = rows.map(|(kind, count)| Sample::labelled([kind], count));
        samples.add(&metric::ADMIN_CONNECTIONS, rows);
        let most = [("control", CONTROL_CONNECTIONS_MAX), ("other", self.most)];
        let most = most.map(|(kind, count)| Sample::labelled([kind], count as u64));
        samples.add(&metric::ADMIN_CONNECTIONS_MAX, most);
        let away = [("full", &self.turned_away), ("slow", &self.slow)];
        let away = away.map(|(why, count)| Sample::labelled([why], count.load(Ordering::Relaxed)));
        samples.add(&metric::ADMIN_TURNED_AWAY, away);
        self.refusals.fill(samples);
        let credentials = self.security.credentials();
        let left = credentials.map(|it| Sample::plain(it.left().as_secs()));
        samples.add(&metric::CERTIFICATE_LEFT_SECONDS, left);
        samples.add(&metric::FILES_OPEN, [Sample::plain(files::open())]);
        samples.add(&metric::FILES_RESERVED, [Sample::plain(files::reserved())]);
        samples.add(&metric::FILES_MAX, [Sample::plain(files::limit())]);
    }

    /// A place for one that comes, for which another one may have to go.
    fn enter(self: &Arc<Self>) -> Option<Seat> {
        let mut places = self.lock();
        if places.count(|kind| kind != Kind::Control) >= self.most {
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            places.make_way(|kind| kind != Kind::Control)?;
        }
        places.last_id += 1;
        let (id, close) = (places.last_id, Arc::new(Notify::new()));
        let (kind, busy, since) = (Kind::New, false, Instant::now());
        places.all.insert(id, Admitted { kind, busy, since, close: Arc::clone(&close) });
        Some(Seat { doors: Arc::clone(self), id, close })
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn count(&self, of: impl Fn(Kind) -> bool) -> usize {
        self.all.values().filter(|place| of(place.kind)).count()
    }

    /// Ends the connection that can best be spared; none if all of these are worked for.
    fn make_way(&mut self, of: impl Fn(Kind) -> bool) -> Option<()> {
        let idle = self.all.iter().filter(|(_, place)| of(place.kind) && !place.busy);
        let (&id, _) = idle.min_by_key(|(_, place)| (place.kind, place.since))?;
        // It counts no more from here on, and its descriptor is closed a moment later.
        let place = self.all.remove(&id)?;
        place.close.notify_one();
        Some(())
    }
}

/// A connection's place.
struct Seat {
    doors: Arc<Doors>,
    id: u64,
    close: Arc<Notify>,
}

impl Seat {
    /// A request is worked on from now on; false if there is no place for one of that kind.
    fn begin(&self, kind: Kind) -> bool {
        let mut places = self.doors.lock();
        let Some(before) = places.all.get(&self.id).map(|place| place.kind) else { return true };
        if kind == Kind::Control
            && before != Kind::Control
            && places.count(|kind| kind == Kind::Control) >= CONTROL_CONNECTIONS_MAX
            && places.make_way(|kind| kind == Kind::Control).is_none()
        {
            self.doors.turned_away.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if let Some(place) = places.all.get_mut(&self.id) {
            (place.busy, place.kind) = (true, before.max(kind));
        }
        true
    }

    fn finish(&self) {
        if let Some(place) = self.doors.lock().all.get_mut(&self.id) {
            (place.busy, place.since) = (false, Instant::now());
        }
    }

    /// Waits until it has been idle for too long.
    async fn grow_old(&self) {
        loop {
            let idle_since = match self.doors.lock().all.get(&self.id) {
                Some(place) if place.busy => Instant::now(),
                Some(place) => place.since,
                None => return,
            };
            let until = idle_since + IDLE_TIME_MAX;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.doors.lock().all.remove(&self.id);
    }
}

/// Lets connections in until told to stop.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    doors: &Arc<Doors>,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut failed = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // An error means that the server's owner has dropped it.
            _ = &mut stopped => return Ok(()),
        };
        match accepted {
            Ok((stream, address)) => let_in(doors, stream, address, router.clone()),
            Err(error) => {
                // Said once, for it is tried again many times a second.
                if !failed {
                    tracing::warn!(%error, "the admin server cannot accept connections");
                }
                failed = true;
                sleep(FILES_WAIT).await;
                continue;
            }
        }
        failed = false;
    }
}

fn let_in(doors: &Arc<Doors>, stream: TcpStream, address: SocketAddr, router: Router) {
    let Some(seat) = doors.enter() else {
        // If not even that can be sent, the client will see that it is closed.
        drop(stream.try_write(FULL.as_bytes()));
        return;
    };
    tokio::spawn(async move {
        let seat = Arc::new(seat);
        let Some(credentials) = seat.doors.security.credentials() else {
            return seat.hold(stream, Guest::unknown(address), router).await;
        };
        let generation = seat.doors.security.generation();
        let accepting = TlsAcceptor::from(credentials.server()).accept(stream);
        let accepted = tokio::select! {
            accepted = timeout(HANDSHAKE_TIME_MAX, accepting) => accepted,
            () = seat.close.notified() => return,
        };
        match accepted {
            Ok(Ok(stream)) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let guest = Guest::new(address, chain.to_vec(), generation);
                seat.hold(stream, guest, router).await;
            }
            Ok(Err(error)) => seat.doors.refusals.note(why_not(&error)),
            Err(_) => {
                seat.doors.slow.fetch_add(1, Ordering::Relaxed);
                seat.doors.refusals.note(Refused::Handshake);
            }
        }
    });
}

/// What was wrong with a handshake.
fn why_not(error: &io::Error) -> Refused {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(_)) => Refused::Certificate,
        _ => Refused::Handshake,
    }
}

impl Seat {
    /// Answers one request after the other, until it ends or is to make way.
    async fn hold<S>(self: Arc<Self>, stream: S, guest: Guest, router: Router)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let router = TowerToHyperService::new(router);
        let (for_requests, guest) = (Arc::clone(&self), Arc::new(guest));
        let service = service_fn(move |request| {
            let (router, seat, guest) =
                (router.clone(), Arc::clone(&for_requests), Arc::clone(&guest));
            async move { Ok::<_, Infallible>(answer(&seat, &router, &guest, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let slow = tokio::select! {
            served = pin!(connection) => served.is_err_and(|error| error.is_timeout()),
            () = self.close.notified() => false,
            () = self.grow_old() => true,
        };
        if slow {
            self.doors.slow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What somebody is told for whom there is no place.
const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
                    content-length: 48\r\nconnection: close\r\n\r\n\
                    {\"error\":\"max number of connections is reached\"}";

async fn answer(
    seat: &Seat,
    router: &TowerToHyperService<Router>,
    guest: &Guest,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let security = &seat.doors.security;
    if !guest.is_still_good(security) {
        seat.doors.refusals.note(Refused::Certificate);
        let why = "this certificate is not good any more: connect anew with the present one";
        let mut response = super::refuse(StatusCode::UNAUTHORIZED, why);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    let peer = guest.peer().clone();
    // Where there are certificates, nobody else has a controller's place by asking for it.
    let may_control = match security {
        Security::Loopback | Security::Open => true,
        Security::Tls(_) => peer.role() == Some(Role::Controller),
    };
    let is_control = may_control && CONTROL_PATHS.contains(&request.uri().path());
    request.extensions_mut().insert(peer);
    if !seat.begin(if is_control { Kind::Control } else { Kind::Known }) {
        let why = "as many controllers are connected as may be";
        return super::refuse(StatusCode::SERVICE_UNAVAILABLE, why);
    }
    let answered = timeout(REQUEST_TIME_MAX, router.call(request)).await;
    seat.finish();
    match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => {
            seat.doors.slow.fetch_add(1, Ordering::Relaxed);
            super::refuse(StatusCode::REQUEST_TIMEOUT, "the request took too long")
        }
    }
}

/// What only controllers ask.
const CONTROL_PATHS: [&str; 2] = ["/v1/order", "/v1/alerts"];

#[cfg(test)]
mod tests;
