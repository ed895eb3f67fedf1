//! The controller's thread: owns the machine and its store, sends orders through couriers.

mod handle;
mod keys;
mod thread;

pub use handle::{Change, ControllerHandle, NamedKey, Position, RequestError};
pub use keys::{ClassRights, KeyPlan, PassError, PassWish};

use super::delivery::Line;
use crate::fatal;
use crate::identity::Security;
use crate::store::{MapStore, StoreError};
use cluster::{Member, Term};
use controller::election::{STAND_AGAIN, STAND_EVERY};
use controller::{ConfigError, ControllerConfig, KeyspaceSpec};
use handle::ControllerMail;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use thread::{Ended, Post, Thread};

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
    /// What it shows the others over HTTP, and asks of them.
    pub security: Security,
    /// What the keys of envelopes are made of, if packets are to have some.
    pub keys: Option<KeyPlan>,
}

/// Mail that waits at most: one answer from each of the most members that a cluster can have would
/// still fit, and a courier that finds no room waits.
const MAIL_MAX: usize = 2048;

impl ControllerDriver {
    /// Starts the controller with what its store holds.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the configuration does not go with what it holds.
    pub fn start(plan: ControllerPlan, store: Box<dyn MapStore>) -> Result<Self, ControllerError> {
        let (mail, inbox) = sync_channel(MAIL_MAX);
        let state = Thread::begin(plan, store, Post::new(mail.clone(), 0, Term::default()))?;
        Self::spawn(mail, Position::leading(), move |_| match state.run(&inbox)? {
            Ended::Stopped => Ok(()),
            Ended::Deposed(newest) => Err(format!(
                "a member obeys a controller of term {newest}, which is newer than this one: \
                 another one runs with a store of its own, or this store is an old copy and this \
                 clock is behind"
            )),
        })
    }

    /// Starts a controller that leads whenever `stand` gives it the store, by a new plan each time,
    /// and stands by else. If the store cannot be used then, the process ends.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn stand_by(
        mut plan: impl FnMut() -> io::Result<ControllerPlan> + Send + 'static,
        mut stand: impl FnMut() -> Result<Stand, StoreError> + Send + 'static,
    ) -> Result<Self, ControllerError> {
        let (mail, inbox) = sync_channel(MAIL_MAX);
        let post = mail.clone();
        Self::spawn(mail, Position::standing_by(), move |position| {
            let (mut generation, mut heard) = (0, Term::default());
            loop {
                let Some(store) = wait_for_store(&mut stand, &inbox, position)? else {
                    return Ok(());
                };
                generation += 1;
                let plan = plan().map_err(|error| format!("cannot make a plan: {error}"))?;
                let post = Post::new(post.clone(), generation, heard);
                match lead(plan, store, post, position, &inbox)? {
                    Ended::Stopped => return Ok(()),
                    Ended::Deposed(newest) => heard = heard.max(newest),
                }
                tracing::warn!("this controller leads no more, and stands by");
                match inbox.recv_timeout(STAND_AGAIN) {
                    Ok(ControllerMail::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                }
            }
        })
    }

    fn spawn(
        mail: SyncSender<ControllerMail>,
        position: Arc<Position>,
        work: impl FnOnce(&Position) -> Result<(), String> + Send + 'static,
    ) -> Result<Self, ControllerError> {
        let handle = ControllerHandle::new(mail, Arc::clone(&position));
        let thread = Builder::new().name("controller".into()).spawn(move || {
            let _guard = fatal::EndOnPanic;
            if let Err(why) = work(&position) {
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

/// How an attempt to lead ended.
pub enum Stand {
    /// This process has the store.
    Leads(Box<dyn MapStore>),
    /// Another one has it, whose admin server is there, as far as that is known.
    Waits(Option<SocketAddr>),
}

/// Waits until the store is this process's; `None` if the wait is to end.
fn wait_for_store(
    stand: &mut impl FnMut() -> Result<Stand, StoreError>,
    inbox: &Receiver<ControllerMail>,
    position: &Position,
) -> Result<Option<Box<dyn MapStore>>, String> {
    loop {
        let (leader, trouble, pause) = match stand() {
            Ok(Stand::Leads(store)) => return Ok(Some(store)),
            Ok(Stand::Waits(leader)) => (leader, None, STAND_EVERY),
            // It may come back, and others may lead meanwhile.
            Err(error @ StoreError::Etcd { .. }) => (None, Some(error.to_string()), STAND_AGAIN),
            Err(error) => return Err(error.to_string()),
        };
        position.waits(leader, trouble);
        match inbox.recv_timeout(pause) {
            Ok(ControllerMail::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
            // Handles do not send anything else yet; what comes late is of a time that is over.
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Leads until told to stop, or until another controller does.
fn lead(
    plan: ControllerPlan,
    store: Box<dyn MapStore>,
    post: Post,
    position: &Position,
    inbox: &Receiver<ControllerMail>,
) -> Result<Ended, String> {
    tracing::info!("the store is this controller's: it leads");
    let thread = match Thread::begin(plan, store, post) {
        Ok(thread) => thread,
        Err(ControllerError::Store(error @ StoreError::Etcd { .. })) => {
            tracing::warn!(%error, "cannot load the map");
            return Ok(Ended::Deposed(Term::default()));
        }
        Err(error) => return Err(error.to_string()),
    };
    position.leads();
    let ended = thread.run(inbox);
    position.waits(None, None);
    ended
}
