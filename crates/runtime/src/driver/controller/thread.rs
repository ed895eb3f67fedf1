//! What the controller's thread does: feeds the machine, saves, sends.

use super::handle::{Change, Mail};
use super::{ControllerError, ControllerPlan, MapStore};
use crate::clock::Clock;
use crate::driver::alert::Listener;
use crate::driver::delivery::{Courier, Line, over_http};
use cluster::{Member, NodeSpec, Report};
use controller::{
    CommandError, Controller, CreateError, Decision, HotEffect, HotNews, KeyspaceSpec,
    MissingKeyspace, Saved, Status,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

pub(super) struct Thread {
    controller: Controller,
    store: MapStore,
    clock: Clock,
    couriers: BTreeMap<Member, Courier>,
    /// Who waits for alerts of nodes.
    listeners: BTreeMap<Member, Listener>,
    /// Where they put what they bring.
    answers: SyncSender<Mail>,
    /// Keyspaces of the configuration that may still have to be created.
    wanted: Vec<KeyspaceSpec>,
    /// What was last logged about one of them, so that it is logged once.
    refused: Option<CreateError>,
    /// Those that cannot be.
    impossible: Vec<MissingKeyspace>,
    /// Who waits for the cluster to be ready; at most `WAITING_MAX`.
    waiting: Vec<SyncSender<()>>,
    /// What could not be saved because the disk is full, and when that is tried again.
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
}

impl Thread {
    /// Loads what was saved, and connects all members.
    pub(super) fn begin(
        plan: ControllerPlan,
        store: MapStore,
        answers: SyncSender<Mail>,
    ) -> Result<Self, ControllerError> {
        let ControllerPlan { config, keyspaces, members } = plan;
        let saved = store.load()?;
        let mut clock = Clock::new();
        let controller = Controller::new(config, saved, clock.now())?;
        let mut thread = Self {
            controller,
            store,
            clock,
            couriers: BTreeMap::new(),
            listeners: BTreeMap::new(),
            answers,
            // Taken from the end: the first is created first.
            wanted: keyspaces.into_iter().rev().collect(),
            impossible: Vec::new(),
            refused: None,
            waiting: Vec::new(),
            unsaved: None,
            save_at: Instant(0),
            trouble: None,
            parked: Vec::new(),
            logged: 0,
            failures: BTreeMap::new(),
        };
        for (member, line) in members {
            thread.connect(member, line).map_err(ControllerError::Thread)?;
        }
        thread.follow_the_map().map_err(ControllerError::Thread)?;
        Ok(thread)
    }

    /// Runs until told to stop.
    pub(super) fn run(mut self, inbox: &Receiver<Mail>) -> Result<(), String> {
        loop {
            // After every call into the machine: it counts on that.
            self.create_wanted();
            self.save()?;
            self.send_orders();
            self.log_decisions();
            self.answer_waiting();
            let mail = match inbox.try_recv() {
                Err(TryRecvError::Empty) => self.wait(inbox),
                mail => mail.map_err(|_| RecvTimeoutError::Disconnected),
            };
            match mail {
                Ok(Mail::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(mail) => self.handle_mail(mail)?,
                // Only once all that has arrived was heard, so that nobody is taken to be silent
                // because this thread was slow.
                Err(RecvTimeoutError::Timeout) => self.controller.handle_timeout(self.clock.now()),
            }
        }
    }

    /// Waits for mail until the machine wants to be called.
    fn wait(&mut self, inbox: &Receiver<Mail>) -> Result<Mail, RecvTimeoutError> {
        let now = self.clock.now();
        let wait = self.controller.poll_timeout().map_or(IDLE_WAIT, |at| at.since(now));
        let wait = if self.unsaved.is_some() { wait.min(SAVE_AGAIN) } else { wait };
        inbox.recv_timeout(wait)
    }

    fn handle_mail(&mut self, mail: Mail) -> Result<(), String> {
        // Read after the mail was taken: leases count from when a report was heard.
        let now = self.clock.now();
        // Whoever asked may have given up waiting; then nobody needs the answer.
        match mail {
            Mail::Answer(member, answer) => self.take_answer(member, *answer),
            Mail::Alert(node) => self.controller.handle_alert(self.clock.now(), node),
            Mail::Status(sender) => {
                let trouble = self.trouble.clone();
                drop(sender.try_send(Status { trouble, ..self.controller.status(now) }));
            }
            Mail::Map(sender) => drop(sender.try_send(self.controller.map().clone())),
            Mail::Ready(sender) if self.waiting.len() < WAITING_MAX => self.waiting.push(sender),
            // The answer never comes, which who waits sees at once.
            Mail::Ready(sender) => drop(sender),
            Mail::Create(spec, sender) => {
                let created = self.controller.create_keyspace(now, spec);
                self.save()?;
                self.answer_saved(move || drop(sender.try_send(created)));
            }
            Mail::Change(change, sender) => {
                let changed = self.change(change);
                self.save()?;
                self.follow_the_map().map_err(|error| format!("cannot start a thread: {error}"))?;
                self.answer_saved(move || drop(sender.try_send(changed)));
            }
            Mail::Stop => {}
        }
        Ok(())
    }

    fn take_answer(&mut self, member: Member, answer: Result<Report, String>) {
        let now = self.clock.now();
        match answer {
            Ok(report) => {
                self.failures.remove(&member);
                self.controller.handle_report(now, member, report);
            }
            Err(why) => {
                // Said once, for it is asked again many times a second.
                if self.failures.get(&member) != Some(&why) {
                    tracing::info!(%member, why, "an order was not carried out");
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
        }
    }

    fn log_decisions(&mut self) {
        for Decision { saw, did, changed, .. } in self.controller.decisions_since(self.logged) {
            tracing::info!(saw, did, changed, "decided");
        }
        self.logged = self.controller.decisions_noted();
        while let Some(news) = self.controller.poll_hot_news() {
            log_hot_news(&news);
        }
    }

    /// Saves what was decided. On a full disk that is tried again later: what was saved before is
    /// as it was, no order leaves that rests on more, and members have their leases by it.
    fn save(&mut self) -> Result<(), String> {
        loop {
            self.unsaved = self.controller.poll_save().or(self.unsaved.take());
            let Some(saved) = &self.unsaved else { return Ok(()) };
            let now = self.clock.now();
            if now < self.save_at {
                return Ok(());
            }
            let revision = saved.map.revision;
            match self.store.save(saved) {
                Ok(()) => {}
                Err(error) if error.is_full() => {
                    self.save_at = now + SAVE_AGAIN;
                    if self.trouble.is_none() {
                        tracing::error!(
                            "cannot save the cluster map: {error}; nothing is decided until there \
                             is room, and the cluster goes on with what it has"
                        );
                    }
                    self.trouble = Some(format!("cannot save the cluster map: {error}"));
                    return Ok(());
                }
                Err(error) => {
                    return Err(format!(
                        "cannot save the cluster map: {error}; restart the controller to recover"
                    ));
                }
            }
            tracing::debug!(revision, "saved the cluster map");
            (self.unsaved, self.trouble) = (None, None);
            self.controller.handle_saved(self.clock.now(), revision);
            self.parked.drain(..).for_each(|answer| answer());
        }
    }

    /// Answers now, or when what it is about is saved. Who waits may give up before.
    fn answer_saved(&mut self, answer: impl FnOnce() + Send + 'static) {
        if self.unsaved.is_none() {
            answer();
        } else if self.parked.len() < WAITING_MAX {
            self.parked.push(Box::new(answer));
        }
    }

    fn send_orders(&mut self) {
        while let Some((member, order)) = self.controller.poll_order() {
            if let Some(install) = &order.install {
                tracing::debug!(%member, revision = install.revision(), "sending an order");
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
        let stays = |member: &Member| matches!(member, Member::Switch(_)) || nodes.contains(member);
        self.couriers.retain(|member, _| stays(member));
        self.listeners.retain(|member, _| stays(member));
        let controls = self.controller.controls().clone();
        for (id, control) in controls {
            let member = Member::Node(id);
            if nodes.contains(&member) && !self.couriers.contains_key(&member) {
                self.connect(member, over_http(member, control))?;
            }
        }
        Ok(())
    }

    /// Starts who carries orders to a member, and who hears its alerts.
    fn connect(&mut self, member: Member, line: Line) -> io::Result<()> {
        let Line { deliver, listen } = line;
        // Nobody takes mail once the controller has ended.
        let answers = self.answers.clone();
        let courier = Courier::start(member, deliver, move |answer| {
            drop(answers.send(Mail::Answer(member, Box::new(answer))));
        })?;
        self.couriers.insert(member, courier);
        if let (Member::Node(node), Some(listen)) = (member, listen) {
            let alerts = self.answers.clone();
            let listener = Listener::start(node, listen, move || {
                drop(alerts.send(Mail::Alert(node)));
            })?;
            self.listeners.insert(member, listener);
        }
        Ok(())
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

    /// Creates keyspaces of the configuration that are not there, once that is possible, and says
    /// which are missing still.
    fn create_wanted(&mut self) {
        self.try_to_create_wanted();
        let waits = self.refused.as_ref().map_or_else(
            || "it is about to be created".to_owned(),
            |why| format!("it has to wait: {why}"),
        );
        let waiting = self
            .wanted
            .iter()
            .rev()
            .map(|spec| MissingKeyspace { name: spec.name.clone(), why: waits.clone() });
        let missing = waiting.chain(self.impossible.iter().cloned()).collect();
        self.controller.note_missing_keyspaces(missing);
    }

    fn try_to_create_wanted(&mut self) {
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
                    let why = why.to_string();
                    self.impossible.push(MissingKeyspace { name, why });
                }
            }
            self.wanted.pop();
        }
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

/// How often a full disk is tried again.
const SAVE_AGAIN: Duration = Duration::from_millis(500);

/// How long the thread waits when the controller has nothing to wait for.
const IDLE_WAIT: Duration = Duration::from_secs(1);
