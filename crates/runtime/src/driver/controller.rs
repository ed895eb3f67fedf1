//! The controller's thread: owns the machine and its store, sends orders through couriers.

mod handle;
mod thread;

pub use handle::{Change, ControllerHandle, NamedKey, RequestError};

use super::delivery::Line;
use crate::fatal;
use crate::store::{FileMapStore, StoreError};
use cluster::Member;
use controller::{ConfigError, ControllerConfig, KeyspaceSpec, Saved};
use handle::Mail;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use thread::Thread;

/// A running controller. Dropping it ends its thread; members go on until their leases end.
#[derive(Debug)]
pub struct ControllerDriver {
    handle: ControllerHandle,
    thread: Option<JoinHandle<()>>,
}

/// Why a controller did not start.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The configuration is not sound, or does not go with what was saved.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What a controller is to do, and whom it reaches.
pub struct ControllerPlan {
    /// The cluster as configured.
    pub config: ControllerConfig,
    /// Keyspaces to create as soon as all nodes have been heard of, unless they exist.
    pub keyspaces: Vec<KeyspaceSpec>,
    /// How members are reached. Nodes that are not among them are reached over HTTP, where the
    /// controller's record says.
    pub members: Vec<(Member, Line)>,
}

/// Where the controller keeps what must outlive it.
pub enum MapStore {
    /// Nowhere: the cluster ends with the process.
    Memory,
    /// In a file, which is locked as long as this exists.
    File(FileMapStore),
}

impl MapStore {
    fn load(&self) -> Result<Option<Saved>, StoreError> {
        match self {
            Self::Memory => Ok(None),
            Self::File(store) => store.load(),
        }
    }

    fn save(&self, saved: &Saved) -> Result<(), StoreError> {
        match self {
            Self::Memory => Ok(()),
            Self::File(store) => store.save(saved),
        }
    }
}

/// Mail that waits at most: one answer from each of the most members that a cluster can have would
/// still fit, and a courier that finds no room waits.
const MAIL_MAX: usize = 2048;

/// How often one that stands by looks whether the store is free: a small part of a lease, so that
/// members are asked again before theirs end.
const LOCK_POLL: Duration = Duration::from_millis(50);

impl ControllerDriver {
    /// Starts the controller with what its store holds.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the configuration does not go with what it holds.
    pub fn start(plan: ControllerPlan, store: MapStore) -> Result<Self, ControllerError> {
        let (mail, inbox) = sync_channel(MAIL_MAX);
        let state = Thread::begin(plan, store, mail.clone())?;
        Self::spawn(mail, Arc::new(AtomicBool::new(true)), move |_| state.run(&inbox))
    }

    /// Starts a controller that takes over as soon as `open` gives it the store; until then `open`
    /// says that somebody else has it. If the store cannot be used then, the process ends.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn stand_by(
        plan: ControllerPlan,
        open: impl FnMut() -> Result<MapStore, StoreError> + Send + 'static,
    ) -> Result<Self, ControllerError> {
        let (mail, inbox) = sync_channel(MAIL_MAX);
        let answers = mail.clone();
        Self::spawn(mail, Arc::new(AtomicBool::new(false)), move |active| {
            let Some(store) = wait_for_store(open, &inbox)? else { return Ok(()) };
            tracing::info!("the store is free: taking over from the controller that had it");
            let state = Thread::begin(plan, store, answers).map_err(|error| error.to_string())?;
            active.store(true, Ordering::Release);
            state.run(&inbox)
        })
    }

    fn spawn(
        mail: SyncSender<Mail>,
        active: Arc<AtomicBool>,
        work: impl FnOnce(&AtomicBool) -> Result<(), String> + Send + 'static,
    ) -> Result<Self, ControllerError> {
        let handle = ControllerHandle::new(mail, Arc::clone(&active));
        let thread = Builder::new().name("controller".into()).spawn(move || {
            let _guard = fatal::EndOnPanic;
            if let Err(why) = work(&active) {
                fatal::end("controller", &why);
            }
        });
        let thread = thread.map_err(ControllerError::Thread)?;
        Ok(Self { handle, thread: Some(thread) })
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> ControllerHandle {
        self.handle.clone()
    }
}

impl Drop for ControllerDriver {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the controller's thread ends the process if it panics");
        }
    }
}

/// Waits until the store can be opened; `None` if the wait is to end.
fn wait_for_store(
    mut open: impl FnMut() -> Result<MapStore, StoreError>,
    inbox: &Receiver<Mail>,
) -> Result<Option<MapStore>, String> {
    loop {
        match open() {
            Ok(store) => return Ok(Some(store)),
            Err(StoreError::Locked { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
        match inbox.recv_timeout(LOCK_POLL) {
            Ok(Mail::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            // Handles do not send anything else yet.
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
