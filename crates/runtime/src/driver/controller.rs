//! The controller's thread: owns the machine and its store, sends orders through couriers.

use super::delivery::{Courier, Delivery};
use crate::clock::Clock;
use crate::fatal;
use crate::mailbox::{MailError, answer};
use crate::store::{RedbMapStore, StoreError};
use cluster::{KeyspaceId, Map, Member, Order, Report};
use controller::{
    ConfigError, Controller, ControllerConfig, CreateError, KeyspaceSpec, Saved, Status,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A running controller. Dropping it ends its threads; members go on with what they have.
#[derive(Debug)]
pub struct ControllerDriver {
    handle: ControllerHandle,
    thread: Option<JoinHandle<()>>,
}

/// How others reach the controller; outlives it without harm.
#[derive(Clone, Debug)]
pub struct ControllerHandle {
    mail: SyncSender<Mail>,
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

/// Why a keyspace was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyspaceError {
    /// The controller says no.
    #[error(transparent)]
    Refused(#[from] CreateError),
    /// The controller was not reached, or has not answered in time: the keyspace may be there or
    /// not, the status says so.
    #[error("the controller cannot be reached: {0}")]
    Unreached(#[from] MailError),
}

/// Where the controller keeps what must outlive it.
pub enum MapStore {
    /// Nowhere: the cluster ends with the process.
    Memory,
    /// In a file.
    File(RedbMapStore),
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

#[derive(Debug)]
enum Mail {
    Answer(Member, Result<Report, String>),
    Status(SyncSender<Status>),
    Map(SyncSender<Map>),
    Ready(SyncSender<()>),
    Create(KeyspaceSpec, SyncSender<Result<KeyspaceId, CreateError>>),
    Stop,
}

/// Mail that waits at most: one answer from each of the most members that a cluster can have would
/// still fit, and a courier that finds no room waits.
const MAIL_MAX: usize = 2048;

impl ControllerDriver {
    /// Starts the controller with what its store holds.
    ///
    /// Keyspaces that do not exist yet are created as soon as all nodes have been heard of.
    ///
    /// # Errors
    ///
    /// If the store cannot be read, or the configuration does not go with what it holds.
    pub fn start(
        config: ControllerConfig,
        keyspaces: Vec<KeyspaceSpec>,
        store: MapStore,
        members: Vec<(Member, Delivery)>,
    ) -> Result<Self, ControllerError> {
        let saved = store.load()?;
        let mut clock = Clock::new();
        let controller = Controller::new(config, saved, clock.now())?;
        let (mail, inbox) = sync_channel(MAIL_MAX);
        let mut couriers = BTreeMap::new();
        for (member, deliver) in members {
            let answers = mail.clone();
            let answered = move |answer| {
                // Nobody takes the answer once the controller has ended.
                drop(answers.send(Mail::Answer(member, answer)));
            };
            couriers.insert(
                member,
                Courier::start(member, deliver, answered).map_err(ControllerError::Thread)?,
            );
        }
        // Taken from the end: the first is created first.
        let wanted = keyspaces.into_iter().rev().collect();
        let (refused, waiting) = (None, Vec::new());
        let state = Thread { controller, store, clock, couriers, wanted, refused, waiting };
        let thread = Builder::new().name("controller".into()).spawn(move || {
            let _guard = fatal::EndOnPanic;
            if let Err(why) = state.run(inbox) {
                fatal::end("controller", &why);
            }
        });
        let thread = thread.map_err(ControllerError::Thread)?;
        Ok(Self { handle: ControllerHandle { mail }, thread: Some(thread) })
    }

    /// A handle to it.
    #[must_use]
    pub fn handle(&self) -> ControllerHandle {
        self.handle.clone()
    }
}

impl Drop for ControllerDriver {
    fn drop(&mut self) {
        // Fails only if the thread has ended.
        drop(self.handle.mail.send(Mail::Stop));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the controller's thread ends the process if it panics");
        }
    }
}

impl ControllerHandle {
    /// How everything stands.
    ///
    /// # Errors
    ///
    /// If the controller does not answer.
    pub fn status(&self) -> Result<Status, MailError> {
        self.ask(Mail::Status)
    }

    /// The map as decided.
    ///
    /// # Errors
    ///
    /// If the controller does not answer.
    pub fn map(&self) -> Result<Map, MailError> {
        self.ask(Mail::Map)
    }

    /// Waits until every member has installed the present map, all keyspaces of the configuration
    /// included.
    ///
    /// # Errors
    ///
    /// If that is not so within `patience`, or the controller has ended.
    pub fn wait_ready(&self, patience: Duration) -> Result<(), MailError> {
        let (sender, answer) = answer();
        self.post(Mail::Ready(sender))?;
        answer.wait_for(patience)
    }

    /// Creates a keyspace; when this returns, it is there for good.
    ///
    /// # Errors
    ///
    /// If the controller refuses or cannot be reached.
    pub fn create_keyspace(&self, spec: KeyspaceSpec) -> Result<KeyspaceId, KeyspaceError> {
        Ok(self.ask(|sender| Mail::Create(spec, sender))??)
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Mail) -> Result<T, MailError> {
        let (sender, answer) = answer();
        self.post(question(sender))?;
        answer.wait()
    }

    fn post(&self, mail: Mail) -> Result<(), MailError> {
        self.mail.try_send(mail).map_err(|error| match error {
            TrySendError::Full(_) => MailError::Full,
            TrySendError::Disconnected(_) => MailError::Ended,
        })
    }
}

struct Thread {
    controller: Controller,
    store: MapStore,
    clock: Clock,
    couriers: BTreeMap<Member, Courier>,
    /// Keyspaces of the configuration that may still have to be created.
    wanted: Vec<KeyspaceSpec>,
    /// What was last logged about one of them, so that it is logged once.
    refused: Option<CreateError>,
    /// Who waits for the cluster to be ready; at most `WAITING_MAX`.
    waiting: Vec<SyncSender<()>>,
}

impl Thread {
    /// Runs until told to stop. The inbox goes first then, so that no courier waits for room in it
    /// while it is waited for.
    fn run(mut self, inbox: Receiver<Mail>) -> Result<(), String> {
        loop {
            self.create_wanted();
            self.save()?;
            self.send_orders();
            self.answer_waiting();
            let now = self.clock.now();
            let wait = self.controller.poll_timeout().map_or(IDLE_WAIT, |at| at.since(now));
            match inbox.recv_timeout(wait) {
                Ok(Mail::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(mail) => self.handle_mail(mail)?,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.clock.now();
            if self.controller.poll_timeout().is_some_and(|at| at <= now) {
                self.controller.handle_timeout(now);
            }
        }
    }

    fn handle_mail(&mut self, mail: Mail) -> Result<(), String> {
        let now = self.clock.now();
        // Whoever asked may have given up waiting; then nobody needs the answer.
        match mail {
            Mail::Answer(member, Ok(report)) => self.controller.handle_report(now, member, report),
            Mail::Answer(member, Err(why)) => {
                tracing::debug!(%member, why, "an order was not carried out");
                self.controller.handle_silence(now, member);
            }
            Mail::Status(sender) => drop(sender.try_send(self.controller.status(now))),
            Mail::Map(sender) => drop(sender.try_send(self.controller.map().clone())),
            Mail::Ready(sender) if self.waiting.len() < WAITING_MAX => self.waiting.push(sender),
            // The answer never comes, which who waits sees at once.
            Mail::Ready(sender) => drop(sender),
            Mail::Create(spec, sender) => {
                let created = self.controller.create_keyspace(now, spec);
                self.save()?;
                drop(sender.try_send(created));
            }
            Mail::Stop => {}
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), String> {
        while let Some(saved) = self.controller.poll_save() {
            self.store.save(&saved).map_err(|error| {
                format!("cannot save the cluster map: {error}; restart the controller to recover")
            })?;
            tracing::info!(revision = saved.map.revision, "saved the cluster map");
            self.controller.handle_saved(self.clock.now(), saved.map.revision);
        }
        Ok(())
    }

    fn send_orders(&mut self) {
        while let Some((member, order)) = self.controller.poll_order() {
            if !matches!(order, Order::Report) {
                tracing::info!(%member, "sending an order");
            }
            let taken = self.couriers.get(&member).is_some_and(|courier| courier.take(order));
            if !taken {
                self.controller.handle_silence(self.clock.now(), member);
            }
        }
    }

    fn answer_waiting(&mut self) {
        if self.waiting.is_empty() || !self.wanted.is_empty() {
            return;
        }
        if self.controller.status(self.clock.now()).ready {
            for sender in self.waiting.drain(..) {
                // Whoever asked may have given up waiting.
                let _ = sender.try_send(());
            }
        }
    }

    /// Creates keyspaces of the configuration that are not there, once that is possible.
    fn create_wanted(&mut self) {
        while let Some(spec) = self.wanted.last() {
            let name = spec.name.clone();
            if self.controller.map().keyspace(&name).is_some() {
                self.wanted.pop();
                continue;
            }
            match self.controller.create_keyspace(self.clock.now(), spec.clone()) {
                Ok(id) => tracing::info!(name, %id, "created a keyspace of the configuration"),
                Err(why @ (CreateError::NodesUnknown(_) | CreateError::Foreign(_))) => {
                    if self.refused.as_ref() != Some(&why) {
                        tracing::info!(name, %why, "a keyspace of the configuration has to wait");
                        self.refused = Some(why);
                    }
                    return;
                }
                Err(why) => {
                    tracing::error!(name, %why, "cannot create a keyspace of the configuration");
                }
            }
            self.wanted.pop();
        }
    }
}

/// Who waits for the cluster to be ready is a test or a process that has just started it.
const WAITING_MAX: usize = 64;

/// How long the thread waits when the controller has nothing to wait for.
const IDLE_WAIT: Duration = Duration::from_secs(1);
