//! How others reach the controller's thread.

use super::keys::{PassError, PassWish};
use crate::driver::delivery::Undelivered;
use crate::mailbox::{ANSWER_WAIT_MAX, MailError, answer};
use cluster::{KeyspaceId, Map, Member, NodeId, NodeSpec, PartitionId, Report};
use controller::{Alteration, CommandError, CreateError, KeyspaceSpec, Status};
use envelope::Pass;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How others reach the controller; outlives it without harm.
#[derive(Clone, Debug)]
pub struct ControllerHandle {
    mail: SyncSender<ControllerMail>,
    position: Arc<Position>,
}

/// Whether a controller leads and, if it does not, who does.
#[derive(Debug, Default)]
pub struct Position {
    leads: AtomicBool,
    waits: Mutex<Waits>,
}

/// What one that stands by knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Waits {
    leader: Option<SocketAddr>,
    trouble: Option<String>,
}

impl Position {
    pub(super) fn leading() -> Arc<Self> {
        let position = Self::standing_by();
        position.leads();
        position
    }

    pub(super) fn standing_by() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn leads(&self) {
        self.leads.store(true, Ordering::Release);
    }

    /// Another one leads, or nobody as far as it knows, because the store is in trouble.
    pub(super) fn waits(&self, leader: Option<SocketAddr>, trouble: Option<String>) {
        self.leads.store(false, Ordering::Release);
        let now = Waits { leader, trouble };
        let before = std::mem::replace(&mut *self.lock(), now.clone());
        if before.trouble.is_none()
            && let Some(why) = now.trouble
        {
            tracing::warn!(why, "cannot see who leads");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key as people name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedKey {
    /// The name of its keyspace.
    pub keyspace: String,
    /// The key, byte by byte.
    pub key: Vec<u8>,
}

/// A change of the cluster that an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Make a node known; it is given partitions once it answers.
    AddNode {
        /// Which, and where clients' packets reach it.
        node: NodeSpec,
        /// Where orders reach it.
        control: SocketAddr,
    },
    /// Alter a keyspace.
    AlterKeyspace {
        /// Its name.
        keyspace: String,
        /// What is to be otherwise.
        alteration: Alteration,
    },
    /// Replace a node in all its chains.
    DrainNode(NodeId),
    /// Cancel that: the node keeps what it still holds.
    KeepNode(NodeId),
    /// Believe what a node holds although its store is an older copy.
    AcceptLoss(NodeId),
    /// Forget a node that holds nothing.
    RemoveNode(NodeId),
    /// Let running copies stand still, and begin none.
    PauseCopies,
    /// Go on copying.
    ResumeCopies,
    /// Change nothing because of the load.
    PausePlacement,
    /// Have placement follow the load again.
    ResumePlacement,
    /// Move a replica.
    MoveReplica {
        /// Of which partition.
        partition: PartitionId,
        /// Which node gives it up.
        from: NodeId,
        /// Which node gets it.
        to: NodeId,
    },
    /// Split a partition.
    Split {
        /// Which.
        partition: PartitionId,
        /// The first key of the second part, whether there is such a key or not; the middle if
        /// there is none.
        at: Option<Vec<u8>>,
    },
    /// Make one of two neighbouring partitions.
    Merge {
        /// Which.
        partition: PartitionId,
        /// And which other.
        with: PartitionId,
    },
    /// Let a key be hot whatever is asked of it.
    PinKey(NamedKey),
    /// Cancel that.
    UnpinKey(NamedKey),
    /// Compare replicas while they serve.
    Verify {
        /// Of this partition; of all if there is none.
        partition: Option<PartitionId>,
        /// Whether what is certainly wrong is to be made right.
        mend: bool,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddNode { node, control } => {
                let NodeSpec { id, endpoint, shards } = node;
                write!(f, "add node {id} at {endpoint}, {shards} shards, control {control}")
            }
            Self::AlterKeyspace { keyspace, alteration: Alteration { replicas, hot } } => {
                write!(f, "alter keyspace {keyspace}")?;
                if let Some(replicas) = replicas {
                    write!(f, ", replicas {replicas}")?;
                }
                hot.map_or(Ok(()), |hot| write!(f, ", hot {hot:?}"))
            }
            Self::DrainNode(id) => write!(f, "drain node {id}"),
            Self::KeepNode(id) => write!(f, "keep node {id}"),
            Self::AcceptLoss(id) => write!(f, "accept loss of node {id}"),
            Self::RemoveNode(id) => write!(f, "remove node {id}"),
            Self::PauseCopies => f.write_str("pause copies"),
            Self::ResumeCopies => f.write_str("resume copies"),
            Self::PausePlacement => f.write_str("pause placement"),
            Self::ResumePlacement => f.write_str("resume placement"),
            Self::MoveReplica { partition, from, to } => {
                write!(f, "move partition {partition} from node {from} to node {to}")
            }
            Self::Split { partition, at: None } => write!(f, "split partition {partition}"),
            Self::Split { partition, at: Some(key) } => {
                write!(f, "split partition {partition} at {}", key.escape_ascii())
            }
            Self::Merge { partition, with } => {
                write!(f, "merge partitions {partition} and {with}")
            }
            Self::PinKey(NamedKey { keyspace, key }) => {
                write!(f, "pin key {} of {keyspace}", key.escape_ascii())
            }
            Self::UnpinKey(NamedKey { keyspace, key }) => {
                write!(f, "unpin key {} of {keyspace}", key.escape_ascii())
            }
            Self::Verify { partition, mend } => {
                let verb = if *mend { "verify and mend" } else { "verify" };
                match partition {
                    Some(partition) => write!(f, "{verb} partition {partition}"),
                    None => write!(f, "{verb} all partitions"),
                }
            }
        }
    }
}

/// Why something asked for was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError<E: Error> {
    /// The controller says no.
    #[error("{0}")]
    Refused(E),
    /// The controller was not reached, or has not answered in time: it may have been done or not,
    /// the status says so.
    #[error("the controller cannot be reached: {0}")]
    Unreached(MailError),
}

#[derive(Debug)]
pub(super) enum ControllerMail {
    /// In that time as a leader; later than it, it is of no use.
    Answer(u64, Member, Box<Result<Report, Undelivered>>),
    Alert(NodeId),
    /// There is news of the store.
    Wake,
    Status(SyncSender<Status>),
    Map(SyncSender<Map>),
    Ready(SyncSender<()>),
    Create(KeyspaceSpec, SyncSender<Result<KeyspaceId, CreateError>>),
    Change(Change, SyncSender<Result<(), CommandError>>),
    Pass(PassWish, SyncSender<Result<Option<Pass>, PassError>>),
    Stop,
}

impl ControllerHandle {
    pub(super) fn new(mail: SyncSender<ControllerMail>, position: Arc<Position>) -> Self {
        Self { mail, position }
    }

    /// Whether it is the one that decides. One that stands by answers nothing else.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.position.leads.load(Ordering::Acquire)
    }

    /// Where the admin server of the one that leads is, if this one stands by and knows.
    #[must_use]
    pub fn leader(&self) -> Option<SocketAddr> {
        self.position.lock().leader
    }

    /// Why one that stands by cannot see who leads, if it cannot.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.position.lock().trouble.clone()
    }

    /// Waits until it leads, or knows who does or why that cannot be known; not longer than that.
    pub(crate) fn wait_settled(&self, patience: Duration) {
        let mut left = patience;
        let is_settled = || self.is_active() || *self.position.lock() != Waits::default();
        while !is_settled() && !left.is_zero() {
            std::thread::park_timeout(LOOK_EVERY);
            left = left.saturating_sub(LOOK_EVERY);
        }
    }

    /// How everything stands.
    ///
    /// # Errors
    ///
    /// If the controller does not answer.
    pub fn status(&self) -> Result<Status, MailError> {
        self.ask(ControllerMail::Status)
    }

    /// The map as decided.
    ///
    /// # Errors
    ///
    /// If the controller does not answer.
    pub fn map(&self) -> Result<Map, MailError> {
        self.ask(ControllerMail::Map)
    }

    /// Waits until every member has installed the present map, all keyspaces of the configuration
    /// included.
    ///
    /// # Errors
    ///
    /// If that is not so within `patience`, or the controller has ended.
    pub fn wait_ready(&self, patience: Duration) -> Result<(), MailError> {
        self.ask_for(patience, ControllerMail::Ready)
    }

    /// Creates a keyspace; when this returns, it is there for good.
    ///
    /// # Errors
    ///
    /// If the controller refuses or cannot be reached.
    pub fn create_keyspace(
        &self,
        spec: KeyspaceSpec,
    ) -> Result<KeyspaceId, RequestError<CreateError>> {
        let created = self.ask(|sender| ControllerMail::Create(spec, sender));
        created.map_err(RequestError::Unreached)?.map_err(RequestError::Refused)
    }

    /// Changes the cluster. When this returns, the decision is there for good; carrying it out
    /// takes its time, and the status says how far it has come.
    ///
    /// # Errors
    ///
    /// If the controller refuses or cannot be reached.
    pub fn change(&self, change: Change) -> Result<(), RequestError<CommandError>> {
        let changed = self.ask(|sender| ControllerMail::Change(change, sender));
        changed.map_err(RequestError::Unreached)?.map_err(RequestError::Refused)
    }

    /// Gives a client's process a pass, or renews it; none where packets are in no envelopes.
    ///
    /// # Errors
    ///
    /// If the controller refuses or cannot be reached.
    pub fn pass(&self, wish: PassWish) -> Result<Option<Pass>, RequestError<PassError>> {
        let granted = self.ask_for(PASS_WAIT_MAX, |sender| ControllerMail::Pass(wish, sender));
        granted.map_err(RequestError::Unreached)?.map_err(RequestError::Refused)
    }

    /// Asks the thread to end. It may have done so already.
    pub(super) fn stop(&self) {
        drop(self.mail.send(ControllerMail::Stop));
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(SyncSender<T>) -> ControllerMail,
    ) -> Result<T, MailError> {
        self.ask_for(ANSWER_WAIT_MAX, question)
    }

    fn ask_for<T>(
        &self,
        patience: Duration,
        question: impl FnOnce(SyncSender<T>) -> ControllerMail,
    ) -> Result<T, MailError> {
        let (sender, answer) = answer();
        self.post(question(sender))?;
        answer.wait_for(patience)
    }

    fn post(&self, mail: ControllerMail) -> Result<(), MailError> {
        if !self.is_active() {
            return Err(MailError::StandsBy { leader: self.leader() });
        }
        self.mail.try_send(mail).map_err(|error| match error {
            TrySendError::Full(_) => MailError::Full,
            TrySendError::Disconnected(_) => MailError::Ended,
        })
    }
}

/// How often it is looked whether a controller has found its place.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long a pass is waited for: longer than a controller that begins takes to find out what time
/// it is.
const PASS_WAIT_MAX: Duration = Duration::from_secs(6);
