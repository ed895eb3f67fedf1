//! What the controller's thread does: feeds the machine, saves, sends.

mod passes;
mod saving;

use super::handle::{Change, ControllerMail};
use super::keys::KeyOffice;
use super::{ControllerError, ControllerPlan};
use crate::clock::Clock;
use crate::driver::alert::Listener;
use crate::driver::delivery::{Courier, Line, Undelivered, over_http};
use crate::identity::Security;
use crate::store::{Leadership, MapStore};
use cluster::{Member, NodeSpec, Report, Term};
use controller::election::{DOUBT_WAIT, SAVE_AGAIN};
use controller::{
    AwaitedStatus, CommandError, Controller, CreateError, Decision, HotEffect, HotNews,
    KeyspaceSpec, Saved, Status,
};
use machine::Instant;
use passes::Wish;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;
use wire::Revision;

pub(super) struct Thread {
    controller: Controller,
    store: Box<dyn MapStore>,
    clock: Clock,
    couriers: BTreeMap<Member, Courier>,
    /// Who waits for alerts of nodes.
    listeners: BTreeMap<Member, Listener>,
    /// Where they put what they bring.
    post: Post,
    /// The keys of envelopes, if packets have some.
    keys: Option<KeyOffice>,
    /// Passes that are asked for, and by whom; at most `WAITING_MAX`.
    wishes: Vec<Wish>,
    /// Keyspaces of the configuration that may still have to be created.
    wanted: Vec<Wanted>,
    /// Who waits for the cluster to be ready; at most `WAITING_MAX`.
    waiting: Vec<SyncSender<()>>,
    /// What is being saved: its revision.
    saving: Option<Revision>,
    /// What could not be saved for now, and when that is tried again.
    unsaved: Option<Saved>,
    save_at: Instant,
    /// Why it could not.
    trouble: Option<String>,
    /// Answers that are given once it is saved; at most `WAITING_MAX`.
    parked: Vec<Box<dyn FnOnce() + Send>>,
    /// Decisions that are in the log.
    logged: u64,
    /// Why the last order to a member was not carried out, if it was not.
    failures: BTreeMap<Member, String>,
    security: Security,
}

/// A keyspace of the configuration that is not there yet.
struct Wanted {
    spec: KeyspaceSpec,
    /// Why it was refused last, so that it is logged once.
    refused: Option<CreateError>,
    is_there: bool,
}

impl Wanted {
    fn new(spec: KeyspaceSpec) -> Self {
        Self { spec, refused: None, is_there: false }
    }
}

/// Where a controller's couriers and its store leave what they have for it.
#[derive(Clone)]
pub(super) struct Post {
    mail: SyncSender<ControllerMail>,
    /// Which time as a leader this is: answers to earlier orders are told apart by it.
    generation: u64,
    /// The highest term that a member was heard to obey. Who has the store goes above it, whatever
    /// the store says: that may be an old copy.
    heard: Term,
}

impl Post {
    pub(super) fn new(mail: SyncSender<ControllerMail>, generation: u64, heard: Term) -> Self {
        Self { mail, generation, heard }
    }
}

/// Why a controller's time as a leader has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was told to stop.
    Stopped,
    /// Somebody else leads, or may do so: in this term, if a member has said so.
    Deposed(Term),
}

impl Thread {
    /// Loads what was saved, and connects all members.
    pub(super) fn begin(
        plan: ControllerPlan,
        mut store: Box<dyn MapStore>,
        post: Post,
    ) -> Result<Self, ControllerError> {
        let ControllerPlan { mut config, keyspaces, members, security, keys } = plan;
        let saved = store.load()?.map(|saved| saved.above(post.heard));
        let mut clock = Clock::new();
        config.overlap = store.overlap();
        let mut controller = Controller::new(config, saved, clock.now())?;
        let keys = keys.map(KeyOffice::new);
        controller.name_classes(clock.now(), keys.iter().flat_map(KeyOffice::class_names));
        let wake = post.mail.clone();
        // If there is no room for it, there is mail that wakes the thread as well.
        store.wake_with(Arc::new(move || drop(wake.try_send(ControllerMail::Wake))));
        let mut thread = Self {
            controller,
            store,
            clock,
            couriers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            post,
            keys,
            wishes: Vec::new(),
            wanted: keyspaces.into_iter().map(Wanted::new).collect(),
            waiting: Vec::new(),
            saving: None,
            unsaved: None,
            save_at: Instant(0),
            trouble: None,
            parked: Vec::new(),
            logged: 0,
            failures: BTreeMap::new(),
            security,
        };
        for (member, line) in members {
            thread.connect(member, line).map_err(ControllerError::Thread)?;
        }
        thread.follow_the_map().map_err(ControllerError::Thread)?;
        Ok(thread)
    }

    /// Runs until told to stop.
    pub(super) fn run(mut self, inbox: &Receiver<ControllerMail>) -> Result<Ended, String> {
        loop {
            // After every call into the machine: it counts on that.
            self.create_wanted();
            self.grant_passes()?;
            self.save()?;
            if self.is_deposed() {
                return Ok(Ended::Deposed(self.controller.deposed_by().unwrap_or_default()));
            }
            self.send_orders();
            self.log_decisions();
            self.answer_waiting();
            let mail = match inbox.try_recv() {
                Err(TryRecvError::Empty) => self.wait(inbox),
                mail => mail.map_err(|_| RecvTimeoutError::Disconnected),
            };
            match mail {
                Ok(ControllerMail::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Ended::Stopped);
                }
                Ok(mail) => self.handle_mail(mail)?,
                // Only once all that has arrived was heard, so that nobody is taken to be silent
                // because this thread was slow.
                Err(RecvTimeoutError::Timeout) => self.controller.handle_timeout(self.clock.now()),
            }
        }
    }

    /// Waits for mail until the machine wants to be called.
    fn wait(
        &mut self,
        inbox: &Receiver<ControllerMail>,
    ) -> Result<ControllerMail, RecvTimeoutError> {
        let now = self.clock.now();
        let wait = self.controller.poll_timeout().map_or(IDLE_WAIT, |at| at.since(now));
        let wait = if self.unsaved.is_some() { wait.min(SAVE_AGAIN) } else { wait };
        // Orders that are due do not leave meanwhile.
        let leads = self.store.leadership() == Leadership::Certain;
        let wait = if leads { wait } else { wait.max(DOUBT_WAIT) };
        inbox.recv_timeout(wait)
    }

    fn handle_mail(&mut self, mail: ControllerMail) -> Result<(), String> {
        // Read after the mail was taken: leases count from when a report was heard.
        let now = self.clock.now();
        // Whoever asked may have given up waiting; then nobody needs the answer.
        match mail {
            ControllerMail::Answer(generation, member, answer) => {
                if generation == self.post.generation {
                    self.take_answer(member, *answer);
                }
            }
            ControllerMail::Wake => {}
            ControllerMail::Alert(node) => self.controller.handle_alert(self.clock.now(), node),
            ControllerMail::Status(sender) => drop(sender.try_send(self.status(now))),
            ControllerMail::Map(sender) => drop(sender.try_send(self.controller.map().clone())),
            ControllerMail::Ready(sender) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push(sender)
            }
            // The answer never comes, which who waits sees at once.
            ControllerMail::Ready(sender) => drop(sender),
            ControllerMail::Create(spec, sender) => {
                let created = self.controller.order_keyspace(now, spec);
                self.save()?;
                self.answer_saved(move || drop(sender.try_send(created)));
            }
            ControllerMail::Change(change, sender) => {
                let changed = self.change(change);
                self.save()?;
                self.follow_the_map().map_err(|error| format!("cannot start a thread: {error}"))?;
                self.answer_saved(move || drop(sender.try_send(changed)));
            }
            ControllerMail::Pass(wish, sender) => self.wish_for_pass(wish, sender),
            ControllerMail::Stop => {}
        }
        Ok(())
    }

    fn take_answer(&mut self, member: Member, answer: Result<Report, Undelivered>) {
        let now = self.clock.now();
        match answer {
            Ok(report) => {
                self.failures.remove(&member);
                if let Some(keys) = &mut self.keys {
                    keys.hear(member, report.keys);
                }
                self.controller.handle_report(now, member, report);
            }
            Err(Undelivered::Deposed(newest)) => {
                tracing::warn!(%member, %newest, "a member obeys a leader of a newer term");
                self.controller.handle_deposed(now, member, newest);
            }
            Err(Undelivered::Failed(why)) => {
                // Said once, for it is asked again many times a second.
                if self.failures.get(&member) != Some(&why) {
                    tracing::debug!(%member, why, "an order was not carried out");
                    self.failures.insert(member, why);
                }
                self.controller.handle_silence(now, member);
            }
        }
    }

    fn change(&mut self, change: Change) -> Result<(), CommandError> {
        let now = self.clock.now();
        match change {
            Change::AddNode { node, control } => self.controller.add_node(now, node, control),
            Change::AlterKeyspace { keyspace, alteration } => {
                self.controller.alter_keyspace(now, &keyspace, alteration)
            }
            Change::DrainNode(id) => self.controller.drain_node(now, id),
            Change::KeepNode(id) => self.controller.keep_node(now, id),
            Change::AcceptLoss(id) => self.controller.accept_loss(now, id),
            Change::RemoveNode(id) => self.controller.remove_node(now, id),
            Change::PinKey(it) => self.controller.pin(now, &it.keyspace, &it.key),
            Change::UnpinKey(it) => self.controller.unpin(now, &it.keyspace, &it.key),
            Change::Verify { partition, mend } => {
                self.controller.verify(now, partition, mend).map(|_| ())
            }
            Change::PauseCopies => {
                self.controller.pause_copies(now);
                Ok(())
            }
            Change::ResumeCopies => {
                self.controller.resume_copies(now);
                Ok(())
            }
            Change::PausePlacement => {
                self.controller.pause_placement(now);
                Ok(())
            }
            Change::ResumePlacement => {
                self.controller.resume_placement(now);
                Ok(())
            }
            Change::MoveReplica { partition, from, to } => {
                self.controller.move_replica(now, partition, (from, to))
            }
            Change::Merge { partition, with } => self.controller.merge(now, (partition, with)),
            Change::Split { partition, at } => self.controller.split(now, partition, at.as_deref()),
        }
    }

    fn log_decisions(&mut self) {
        let decisions = self.controller.decisions_since(self.logged);
        for Decision { saw, did, changed, trouble, .. } in decisions {
            if *trouble {
                tracing::warn!(saw, did, "decided");
            } else {
                tracing::info!(saw, did, changed, "decided");
            }
        }
        self.logged = self.controller.decisions_noted();
        while let Some(news) = self.controller.poll_hot_news() {
            log_hot_news(&news);
        }
    }

    fn send_orders(&mut self) {
        // Looked at after the reports were heard that leases rest on: whoever leads after this one
        // counts every lease that was given for them.
        if self.store.leadership() != Leadership::Certain {
            return;
        }
        while let Some((member, mut order)) = self.controller.poll_order() {
            // Without the time there are no leases either: nobody needs keys.
            if let Some(keys) = &mut self.keys
                && let Some(time) = self.controller.cluster_time(self.clock.now())
            {
                let (map, classes) = (self.controller.map(), self.controller.classes());
                order.keys = keys.for_member(member, map, classes, time);
            }
            if let Some(install) = &order.install {
                tracing::debug!(%member, revision = %install.revision(), "sending an order");
            }
            let taken = self.couriers.get(&member).is_some_and(|courier| courier.take(order));
            if !taken {
                self.controller.handle_silence(self.clock.now(), member);
            }
        }
    }

    /// Connects nodes that were added, and no longer those that were removed.
    fn follow_the_map(&mut self) -> io::Result<()> {
        let nodes = self.controller.map().nodes.iter().map(|node: &NodeSpec| node.id);
        let nodes: BTreeSet<Member> = nodes.map(Member::Node).collect();
        let comes_and_goes = |member: &Member| matches!(member, Member::Node(_));
        let stays = |member: &Member| !comes_and_goes(member) || nodes.contains(member);
        self.couriers.retain(|member, _| stays(member));
        self.listeners.retain(|member, _| stays(member));
        let controls = self.controller.controls().clone();
        for (id, control) in controls {
            let member = Member::Node(id);
            if nodes.contains(&member) && !self.couriers.contains_key(&member) {
                self.connect(member, over_http(member, control, &self.security))?;
            }
        }
        Ok(())
    }

    /// Starts who carries orders to a member, and who hears its alerts.
    fn connect(&mut self, member: Member, line: Line) -> io::Result<()> {
        let Line { deliver, listen } = line;
        // Nobody takes mail once the controller has ended.
        let Post { mail: answers, generation, .. } = self.post.clone();
        let courier = Courier::start(member, deliver, move |answer| {
            drop(answers.send(ControllerMail::Answer(generation, member, Box::new(answer))));
        })?;
        self.couriers.insert(member, courier);
        if let (Member::Node(node), Some(listen)) = (member, listen) {
            let alerts = self.post.mail.clone();
            let listener = Listener::start(node, listen, move || {
                drop(alerts.send(ControllerMail::Alert(node)));
            })?;
            self.listeners.insert(member, listener);
        }
        Ok(())
    }

    fn answer_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let now = self.clock.now();
        let status = self.status(now);
        if status.ready && status.covered {
            for sender in self.waiting.drain(..) {
                // Whoever asked may have given up waiting.
                let _ = sender.try_send(());
            }
        }
    }

    /// Creates keyspaces of the configuration that are not there, once that is possible. One that
    /// is refused is asked for again: what was in its way may have gone.
    fn create_wanted(&mut self) {
        for index in 0..self.wanted.len() {
            let Some(Wanted { spec, .. }) = self.wanted.get(index) else { return };
            let (spec, name, now) = (spec.clone(), spec.name.clone(), self.clock.now());
            let is_there = self.controller.map().keyspace(&name).is_some();
            let created = if is_there {
                Err(CreateError::Exists)
            } else {
                self.controller.create_keyspace(now, spec)
            };
            let why = match created {
                Ok(id) => {
                    tracing::info!(name, %id, "created a keyspace of the configuration");
                    None
                }
                // It was there before, or somebody else was faster.
                Err(CreateError::Exists) => None,
                Err(why) => Some(why),
            };
            let Some(wanted) = self.wanted.get_mut(index) else { return };
            wanted.is_there = why.is_none();
            let Some(why) = why else { continue };
            let waits = is_in_the_way_for_now(&why);
            if wanted.refused.as_ref() != Some(&why) {
                if waits {
                    tracing::info!(name, %why, "a keyspace of the configuration has to wait");
                } else {
                    tracing::error!(name, %why, "cannot create a keyspace of the configuration");
                }
                wanted.refused = Some(why);
            }
            if waits {
                // The first is created first.
                break;
            }
        }
        self.wanted.retain(|wanted| !wanted.is_there);
    }

    /// How everything stands; it is not ready before all keyspaces of the configuration are there.
    fn status(&self, now: Instant) -> Status {
        let mut status = self.controller.status(now);
        status.ready &= self.wanted.is_empty();
        let awaited = |it: &Wanted| AwaitedStatus {
            name: it.spec.name.clone(),
            why: it.refused.as_ref().map_or_else(String::new, ToString::to_string),
        };
        status.awaited = self.wanted.iter().map(awaited).collect();
        status.store = self.store.status();
        status.security = self.security.protection();
        status.envelopes = self.keys.is_some();
        status.trouble = self.trouble.clone().or_else(|| status.store.trouble.clone());
        status
    }
}

/// Whether a refusal is about the present state of members, and not about what was asked for.
fn is_in_the_way_for_now(why: &CreateError) -> bool {
    match why {
        CreateError::NodesUnknown(_) | CreateError::Foreign(_) | CreateError::Replicas { .. } => {
            true
        }
        CreateError::Name
        | CreateError::Exists
        | CreateError::Prefix
        | CreateError::Partitions { .. }
        | CreateError::Keyspaces
        | CreateError::NoCaches
        | CreateError::SplitsOfHash
        | CreateError::SplitCount { .. }
        | CreateError::Split { .. }
        | CreateError::NoAddresses(_)
        | CreateError::Unsound(_) => false,
    }
}

/// Writes into the log which key it is, what was decided, why and where, and what came of it.
fn log_hot_news(news: &HotNews) {
    let (HotNews::Decided(it) | HotNews::CameOf(it)) = news;
    let (keyspace, key, did) = (it.name.keyspace, it.name.key.escape_ascii(), it.did);
    let (at_ms, reads, writes) = (it.at_ms, it.reads, it.writes);
    match news {
        HotNews::Decided(it) => {
            let (why, readers, nodes) = (&it.why, it.readers, &it.nodes);
            tracing::info!(
                %keyspace, %key, ?did, at_ms, why, nodes, readers, reads, writes, "decided"
            );
        }
        HotNews::CameOf(it) => {
            let [reads_after, writes_after] = it.effect.rates().unwrap_or_default();
            let HotEffect { counted_ms, spread, home, writes_spread, writes_home } = it.effect;
            tracing::info!(
                %keyspace, %key, ?did, at_ms, counted_ms, spread, home, writes_spread, writes_home,
                reads, reads_after, writes, writes_after, "this came of a decision"
            );
        }
    }
}

/// Who waits for the cluster to be ready is a test or a process that has just started it.
const WAITING_MAX: usize = 64;

/// How long the thread waits when the controller has nothing to wait for.
const IDLE_WAIT: Duration = Duration::from_secs(1);
