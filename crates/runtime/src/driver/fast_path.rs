//! The switch's fast path in the kernel, and the thread that looks after it.

use super::SwitchSnapshot;
use crate::clock::Clock;
use crate::mailbox::MailError;
use cluster::{
    CacheId, EnvelopeOrder, HotOrder, Incarnation, InstallError, KeyspaceId, Lease, Match,
    SwitchControl as _, SwitchTables,
};
use envelope::{Counts, Ring};
use machine::Instant;
use serde::{Deserialize, Serialize};
use std::net::SocketAddrV4;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};
use switch::HotExplanation;
use wire::{Op, Revision};
use xdp::{Fate, Mode, Plane};

/// A handle to a switch program that is attached to interfaces. The last one to go detaches it; if
/// the process ends in any other way, the kernel does.
#[derive(Clone)]
pub struct FastPath {
    plane: Arc<Mutex<OwnPlane>>,
    // The thread ends when nobody holds this any more.
    _looked_after: mpsc::SyncSender<()>,
}

type OwnPlane = Plane<Box<dyn FnMut() -> Instant + Send>>;

impl fmt::Debug for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastPath").finish_non_exhaustive()
    }
}

/// Why there is no fast path.
#[derive(Debug, thiserror::Error)]
pub enum FastPathError {
    /// The kernel does not take the program, or does not attach it.
    #[error(transparent)]
    Kernel(#[from] xdp::Error),
    /// There is no thread to look after it.
    #[error("cannot start the thread that keeps the switch's ways: {0}")]
    Thread(io::Error),
}

/// What the program does with requests for one match value, as its tables say at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InKernel {
    /// Revision of the tables.
    pub revision: Revision,
    /// With a GET.
    pub read: Fate,
    /// With a PUT; DEL, CAS and INCR go the same way.
    pub write: Fate,
}

impl FastPath {
    /// Loads the switch program for a service address and attaches it to these interfaces: the one
    /// that opens and seals envelopes, if it is `sealed`.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it, or one of the interfaces does not.
    pub fn start(
        service: SocketAddrV4,
        incarnation: Incarnation,
        ports: &[String],
        sealed: bool,
    ) -> Result<Self, FastPathError> {
        let mut clock = Clock::new();
        let clock: Box<dyn FnMut() -> Instant + Send> = Box::new(move || clock.now());
        let load = if sealed { Plane::load_sealed } else { Plane::load };
        let mut plane = load(service, incarnation, clock)?;
        for port in ports {
            match plane.attach(port)? {
                Mode::Native => tracing::info!(%port, "the switch is in the driver"),
                Mode::Generic => tracing::warn!(
                    %port,
                    "ONLY GENERIC XDP: the driver of this port cannot run the switch, so the \
                     kernel does it later and most of the gain is lost; `keyway doctor` says why"
                ),
            }
        }
        let plane = Arc::new(Mutex::new(plane));
        let (looked_after, ends) = mpsc::sync_channel::<()>(0);
        let weak = Arc::downgrade(&plane);
        let look_after = move || {
            while ends.recv_timeout(WAYS_EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(plane) = weak.upgrade() else { return };
                let mut plane = lock(&plane);
                if let Err(why) = plane.find_ways() {
                    tracing::warn!(%why, "the ways to the nodes are not known");
                }
                if let Err(why) = plane.sweep(Clock::new().now()) {
                    tracing::warn!(%why, "grants of delegated writes are kept for longer");
                }
            }
        };
        let builder = thread::Builder::new().name("switch-ways".into());
        builder.spawn(look_after).map_err(FastPathError::Thread)?;
        Ok(Self { plane, _looked_after: looked_after })
    }

    /// Puts the program in the place of itself, as after an update: tables, lease and counters
    /// stay, and no packet is lost.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it; the present one then goes on.
    pub fn reload(&self) -> Result<(), FastPathError> {
        // Whoever renews the lease needs the lock, and does not wait until a program is verified.
        let loader = lock(&self.plane).loader();
        let next = loader.spare()?;
        Ok(lock(&self.plane).replace(next)?)
    }

    /// What the program does with requests for a match value. Nothing is sent, and nothing counted.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub(super) fn explain(&self, keyspace: KeyspaceId, at: Match) -> Result<InKernel, xdp::Error> {
        let loader = lock(&self.plane).loader();
        let shadow = loader.shadow()?;
        // Tables are not changed meanwhile, so that both answers rest on the same revision.
        let plane = lock(&self.plane);
        let read = shadow.ask(Op::Get, keyspace, at)?;
        let write = shadow.ask(Op::Put, keyspace, at)?;
        Ok(InKernel { revision: plane.revision(), read, write })
    }

    /// What the program knows of a key at that time, if it is hot.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub(super) fn explain_hot(
        &self,
        keyspace: KeyspaceId,
        keyhash: u64,
    ) -> Result<Option<HotExplanation>, xdp::Error> {
        lock(&self.plane).explain_hot(keyspace, keyhash)
    }

    /// The cache that the program sends reads of a key to at that time, if it sends them to one.
    pub(super) fn cached_by(&self, keyspace: KeyspaceId, keyhash: u64) -> Option<CacheId> {
        let now = Clock::new().now();
        lock(&self.plane).cache_rules().find(now, keyspace, keyhash).map(|it| it.cache)
    }

    /// Installs tables, then takes a lease.
    pub(super) fn command(
        &self,
        install: Option<&SwitchTables>,
        lease: Option<&Lease>,
    ) -> Result<(), InstallError> {
        let mut plane = lock(&self.plane);
        if let Some(tables) = install {
            plane.install(tables)?;
        }
        if let Some(lease) = lease {
            plane.renew(Clock::new().now(), lease);
        }
        Ok(())
    }

    /// Takes what envelopes are opened and sealed by.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it.
    pub(super) fn take_keys(&self, order: &EnvelopeOrder) -> Result<(), xdp::Error> {
        let mut plane = lock(&self.plane);
        plane.install_ring(&Ring::new(&order.members, order.content))?;
        plane.install_rights(&order.rights)?;
        plane.install_keys(&order.set)
    }

    /// Datagrams that it has not let through.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub(super) fn refused(&self) -> Result<Counts, xdp::Error> {
        lock(&self.plane).read_envelope_refusals()
    }

    /// How the sockets behind the program take note of replies for hot keys, stamp writes, and
    /// write the rules of caches.
    ///
    /// # Errors
    ///
    /// If the kernel does not take it.
    pub(super) fn kernel_directory(
        &self,
    ) -> Result<Arc<dyn switch::CoherenceDirectory>, xdp::Error> {
        Ok(Arc::new(lock(&self.plane).kernel_directory()?))
    }

    /// Takes hot keys.
    pub(super) fn install_hot(&self, order: &HotOrder) -> Result<(), InstallError> {
        lock(&self.plane).install_hot(order)
    }

    /// Adds what the kernel has to what the threads have.
    pub(super) fn add_to(&self, snapshot: &mut SwitchSnapshot) -> Result<(), MailError> {
        let plane = lock(&self.plane);
        let counters = plane.read_counters().map_err(|why| {
            tracing::error!(%why, "the kernel does not say what it has counted");
            MailError::Ended
        })?;
        snapshot.revision = snapshot.revision.min(plane.revision());
        snapshot.hot_revision = plane.hot_revision();
        snapshot.cache_rules = plane.cache_rules().count();
        snapshot.in_kernel = counters.datagrams();
        snapshot.counters.merge(&counters);
        Ok(())
    }
}

fn lock(plane: &Mutex<OwnPlane>) -> MutexGuard<'_, OwnPlane> {
    plane.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often the kernel is asked how the nodes are reached. Until then, or when it does not know,
/// the packets go through the switch's socket.
const WAYS_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
