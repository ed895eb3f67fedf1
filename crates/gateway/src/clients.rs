//! Who is connected, as all connections see each other.

use crate::resp::Version;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Notify;

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    all: Mutex<BTreeMap<u64, Arc<Entry>>>,
    last_id: AtomicU64,
    /// ClientInfo when a connection has ended.
    pub(crate) left: Notify,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    /// Since the server's start.
    pub(crate) since: Duration,
    /// When its last command was whole, or done, in milliseconds since the server's start.
    active_ms: AtomicU64,
    /// When the command began that is not whole yet, in the same way; [`NEVER`] without one.
    coming_ms: AtomicU64,
    /// Bytes of it that have come.
    coming_bytes: AtomicU64,
    /// Whether it has not shown who it is.
    stranger: AtomicBool,
    /// Bytes that it holds, of commands and replies.
    pub(crate) held: AtomicUsize,
    /// Those of them that were counted when it had not shown who it is.
    pub(crate) held_as_stranger: AtomicUsize,
    /// Number of its last command.
    pub(crate) command: AtomicU32,
    /// Bytes that were read and not understood yet.
    pub(crate) input: AtomicUsize,
    /// Bytes that could not be written yet.
    pub(crate) output: AtomicUsize,
    /// Commands that are under way.
    pub(crate) running: AtomicUsize,
    /// Whether a command is whole and waits to be started.
    pub(crate) waiting: AtomicBool,
    /// Commands that wait for EXEC; below 0 without MULTI.
    pub(crate) queued: AtomicI64,
    /// Bytes of their arguments.
    pub(crate) queued_bytes: AtomicUsize,
    /// Keys that are watched.
    pub(crate) watched: AtomicUsize,
    signals: AtomicU8,
    /// Wakes the connection's task.
    pub(crate) waker: AtomicWaker,
    told: Mutex<ClientInfo>,
}

/// What a client has told about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientInfo {
    pub(crate) user: String,
    pub(crate) name: Bytes,
    pub(crate) lib_name: Bytes,
    pub(crate) lib_version: Bytes,
    pub(crate) protocol: Version,
    /// The database that is selected.
    pub(crate) database: u8,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
}

/// Its task is to end at once.
const KILL: u8 = 1;
/// Its task is to end when what is under way is done.
const DRAIN: u8 = 2;
/// Commands need not wait any more for the end of a pause.
const RESUME: u8 = 4;
/// Its task is to end because of what it holds.
const EVICT: u8 = 8;

/// A time that does not come.
const NEVER: u64 = u64::MAX;

impl Entry {
    pub(crate) fn told(&self) -> MutexGuard<'_, ClientInfo> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kill(&self) {
        self.signals.fetch_or(KILL, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(crate) fn drain(&self) {
        self.signals.fetch_or(DRAIN, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(crate) fn evict(&self) {
        self.signals.fetch_or(EVICT, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & EVICT != 0
    }

    /// Notes whether it has shown who it is, or need not.
    pub(crate) fn note_user(&self, known: bool) {
        self.stranger.store(!known, Ordering::Relaxed);
    }

    pub(crate) fn is_stranger(&self) -> bool {
        self.stranger.load(Ordering::Relaxed)
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & KILL != 0
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & DRAIN != 0
    }

    /// Waits until the connection is to end, one way or the other.
    pub(crate) async fn dismissed(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.is_killed() || self.is_draining() || self.is_evicted() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    pub(crate) fn note_unpaused(&self) {
        self.signals.fetch_or(RESUME, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Whether a pause has been ended since this was asked.
    pub(crate) fn takes_resumed(&self) -> bool {
        self.signals.load(Ordering::Relaxed) & RESUME != 0
            && self.signals.fetch_and(!RESUME, Ordering::Relaxed) & RESUME != 0
    }

    pub(crate) fn note_active(&self, now: Duration) {
        self.active_ms.store(millis(now), Ordering::Relaxed);
    }

    pub(crate) fn active_ms(&self) -> u64 {
        self.active_ms.load(Ordering::Relaxed)
    }

    /// Notes that a command has begun to come, or that none has.
    pub(crate) fn note_coming(&self, now: Duration, is_coming: bool) {
        if !is_coming {
            self.coming_ms.store(NEVER, Ordering::Relaxed);
        } else if self.coming_ms.load(Ordering::Relaxed) == NEVER {
            self.coming_bytes.store(0, Ordering::Relaxed);
            self.coming_ms.store(millis(now), Ordering::Relaxed);
        }
    }

    pub(crate) fn note_come(&self, bytes: u64) {
        self.coming_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether it waits for the gateway, and not the gateway for it.
    pub(crate) fn is_served(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0 || self.waiting.load(Ordering::Relaxed)
    }

    /// For how long the command has been coming that is not whole yet, and how much of it has come
    /// since.
    pub(crate) fn coming(&self, now: Duration) -> Option<(Duration, u64)> {
        let began = self.coming_ms.load(Ordering::Relaxed);
        let time = Duration::from_millis(millis(now).saturating_sub(began));
        (began != NEVER).then(|| (time, self.coming_bytes.load(Ordering::Relaxed)))
    }

    pub(crate) fn idle(&self, now: Duration) -> Duration {
        let active = self.active_ms.load(Ordering::Relaxed);
        Duration::from_millis(millis(now).saturating_sub(active))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Clients {
    /// Makes a connection known.
    pub(crate) fn enter(
        &self,
        peer: SocketAddr,
        local: SocketAddr,
        now: Duration,
        user: &str,
    ) -> Arc<Entry> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let told = ClientInfo { user: user.to_owned(), ..ClientInfo::default() };
        let entry = Arc::new(Entry {
            id,
            peer,
            local,
            since: now,
            active_ms: AtomicU64::new(millis(now)),
            coming_ms: AtomicU64::new(NEVER),
            coming_bytes: AtomicU64::new(0),
            stranger: AtomicBool::new(true),
            held: AtomicUsize::new(0),
            held_as_stranger: AtomicUsize::new(0),
            command: AtomicU32::new(u32::MAX),
            input: AtomicUsize::new(0),
            output: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            waiting: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            queued_bytes: AtomicUsize::new(0),
            watched: AtomicUsize::new(0),
            signals: AtomicU8::new(0),
            waker: AtomicWaker::new(),
            told: Mutex::new(told),
        });
        self.lock().insert(id, Arc::clone(&entry));
        entry
    }

    pub(crate) fn leave(&self, id: u64) {
        self.lock().remove(&id);
        self.left.notify_waiters();
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Everybody who is connected now, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Entry>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Entry>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
