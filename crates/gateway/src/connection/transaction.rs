//! MULTI, EXEC and their kin: what a connection queues, and what it watches.

use super::Connection;
use super::bracket::{Bracket, QUEUE_FULL, QUEUED_BYTES_MAX, QUEUED_MAX, Queue, WATCHED_MAX};
use super::call::{Call, Completion};
use crate::Reply;
use crate::command::{
    Client, Config, Found, HotKeysCommand, Keys, Latency, Run, Script, Session, Slowlog,
    Transaction,
};
use crate::lookups::Lookups;
use crate::multi::Multi;
use crate::session::Response;
use crate::shared::Shared;
use crate::store::{self, Queued, Ran, Store, Undone, Watched};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

/// A command of a transaction, or what comes of one that is not about keys.
enum Slot {
    Keyed(Queued),
    Ready(Ran),
    Later(BoxFuture<'static, Reply>),
}

/// Whether a command is carried out at once, also within a transaction.
fn is_never_queued(run: Run) -> bool {
    let Run::Session(session) = run else { return false };
    match session {
        Session::Quit | Session::Reset => true,
        Session::Transaction(step) => step != Transaction::Unwatch,
        _ => false,
    }
}

/// Why a command cannot be part of a transaction.
fn why_not(found: Found) -> Option<Reply> {
    match found.spec.run {
        Run::Keyed(_) if matches!(found.spec.keys, Keys::None) => {
            let name = found.spec.name;
            let text = format!("ERR '{name}' is about all keys, and no part of a transaction here");
            Some(Reply::Error(text.into()))
        }
        Run::Session(command) if !only_tells(command) => {
            Some(Reply::error("ERR Command not allowed inside a transaction"))
        }
        Run::Keyed(_) | Run::Session(_) => None,
    }
}

/// Whether a command changes nothing, so that no harm is done if the transaction is not.
fn only_tells(command: Session) -> bool {
    match command {
        Session::Acl(_)
        | Session::Anywhere
        | Session::Client(Client::GetName | Client::Id | Client::Info | Client::List)
        | Session::Cluster(_)
        | Session::Command(_)
        | Session::Config(Config::Get)
        | Session::Container
        | Session::Echo
        | Session::FunctionFlush
        | Session::Help
        | Session::HotKeys(HotKeysCommand::Get)
        | Session::Info
        | Session::Latency(Latency::Histogram | Latency::Latest)
        | Session::Ping
        | Session::Script(Script::Exists)
        // Another database is not selected.
        | Session::Select
        | Session::Slowlog(Slowlog::Get | Slowlog::Len)
        | Session::Time
        // What it has watched is forgotten in any case.
        | Session::Transaction(Transaction::Unwatch)
        | Session::Wait => true,
        Session::Auth
        | Session::Client(_)
        | Session::Config(_)
        | Session::DebugSleep
        | Session::Hello
        | Session::HotKeys(_)
        | Session::Latency(_)
        | Session::Quit
        | Session::Reset
        | Session::Script(_)
        | Session::Slowlog(_)
        | Session::Transaction(_) => false,
    }
}

impl Connection {
    /// Queues a command if a transaction is open and it is to be part of it; else gives its
    /// arguments back. The caller has seen that nothing is under way.
    pub(super) fn queue(&mut self, found: Found, args: Vec<Bytes>) -> Option<Vec<Bytes>> {
        if !self.bracket.is_open() || is_never_queued(found.spec.run) {
            return Some(args);
        }
        let unfit = why_not(found).or_else(|| self.why_stay(found, &args));
        let Some(queue) = self.bracket.queue.as_mut() else { return Some(args) };
        queue.bytes += args.iter().map(Bytes::len).sum::<usize>();
        let full = queue.commands.len() == QUEUED_MAX || queue.bytes > QUEUED_BYTES_MAX;
        let refused = self.incoming.take().and_then(Result::err);
        if let Some(reply) = refused.or(unfit).or(full.then_some(QUEUE_FULL)) {
            self.reject(&args, Some(found.number), reply);
        } else {
            // EXEC of a broken one carries nothing out. Copies do not hold on to all that was read
            // with the arguments.
            if !queue.broken {
                let copies = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
                queue.commands.push((found, copies));
            }
            self.reply(&Reply::Status("QUEUED".into()));
        }
        self.tell_bracket();
        None
    }

    /// Lets CLIENT LIST see what is queued and watched.
    fn tell_bracket(&self) {
        let (queue, entry) = (self.bracket.queue.as_ref(), &self.peer.entry);
        let queued = queue.map_or(-1, |it| i64::try_from(it.commands.len()).unwrap_or(i64::MAX));
        entry.queued.store(queued, Ordering::Relaxed);
        entry.queued_bytes.store(queue.map_or(0, |it| it.bytes), Ordering::Relaxed);
        entry.watched.store(self.bracket.watched.len(), Ordering::Relaxed);
    }

    /// Keys are watched from now on.
    pub(super) fn watches(&mut self, read: Watched) {
        self.bracket.watch(read);
        self.tell_bracket();
    }

    /// There is no transaction, and nothing is watched.
    pub(super) fn forget_bracket(&mut self) {
        self.bracket = Bracket::default();
        self.tell_bracket();
    }

    /// Whether a command that is queued has to wait for CLIENT PAUSE, and until when.
    pub(super) fn pauses_exec(&self, found: Found) -> Option<std::time::Duration> {
        let exec = Run::Session(Session::Transaction(Transaction::Exec));
        let queue = self.bracket.queue.as_ref().filter(|_| found.spec.run == exec)?;
        let now = self.since_start();
        queue.commands.iter().find_map(|(found, _)| self.shared.pause.holds(found.spec, now))
    }

    /// Carries out one of the commands about transactions. Nothing is under way.
    pub(super) fn bracket(&mut self, step: Transaction, call: Call) {
        self.take_step(step, call);
        self.tell_bracket();
    }

    fn take_step(&mut self, step: Transaction, call: Call) {
        let keys = call.args.len().saturating_sub(1);
        let reply = match (step, self.bracket.is_open()) {
            (Transaction::Multi, true) => Reply::error("ERR MULTI calls can not be nested"),
            (Transaction::Multi, false) => {
                self.bracket.queue = Some(Queue::default());
                Reply::OK
            }
            (Transaction::Discard, false) => Reply::error("ERR DISCARD without MULTI"),
            (Transaction::Discard, true) => {
                self.bracket = Bracket::default();
                Reply::OK
            }
            (Transaction::Unwatch, _) => {
                self.bracket.watched = Watched::new();
                Reply::OK
            }
            (Transaction::Watch, true) => Reply::error("ERR WATCH inside MULTI is not allowed"),
            (Transaction::Watch, false) if self.bracket.is_full_with(keys) => {
                let text = format!("ERR a connection watches at most {WATCHED_MAX} keys here");
                Reply::Error(text.into())
            }
            (Transaction::Watch, false) => return self.watch(call),
            (Transaction::Exec, false) => Reply::error("ERR EXEC without MULTI"),
            (Transaction::Exec, true) => match self.take_transaction() {
                Some((slots, watched)) => return self.exec(call, slots, watched),
                None => {
                    let text = "EXECABORT Transaction discarded because of previous errors.";
                    Reply::error(text)
                }
            },
        };
        self.finish_now(&call, &reply);
    }

    /// What is to be done together; `None` if a part of it was refused.
    fn take_transaction(&mut self) -> Option<(Vec<(usize, Slot)>, Watched)> {
        let Bracket { queue, watched } = std::mem::take(&mut self.bracket);
        let queue = queue.filter(|queue| !queue.broken)?;
        let mut slots = Vec::new();
        for (found, args) in queue.commands {
            let began = Instant::now();
            let ready = |reply| Slot::Ready(Ran { reply, took: began.elapsed() });
            let slot = match found.spec.run {
                Run::Keyed(command) => Slot::Keyed((command, args)),
                Run::Session(Session::Transaction(_)) => ready(Reply::OK),
                Run::Session(command) => match self.peer.run(&self.shared, command, &args) {
                    Response::Now(reply) | Response::Last(reply) => ready(reply),
                    Response::Later(reply) => Slot::Later(reply),
                },
            };
            slots.push((found.number, slot));
        }
        Some((slots, watched))
    }

    fn watch(&mut self, call: Call) {
        let (store, args) = (Arc::clone(&self.store), call.args.clone());
        self.run_alone(call, async move {
            match store.watch(args.get(1..).unwrap_or_default()).await {
                Ok(watched) => Completion { watched: Some(watched), ..Completion::from(Reply::OK) },
                Err(error) => error.into(),
            }
        });
    }

    fn exec(&mut self, call: Call, slots: Vec<(usize, Slot)>, watched: Watched) {
        let (store, shared) = (Arc::clone(&self.store), Arc::clone(&self.shared));
        self.run_alone(call, async move {
            let commands: Vec<Queued> = slots
                .iter()
                .filter_map(|(_, slot)| match slot {
                    Slot::Keyed(queued) => Some(queued.clone()),
                    Slot::Ready(_) | Slot::Later(_) => None,
                })
                .collect();
            let reply = match carry_out(&shared, &store, &commands, &watched).await {
                Ok(None) => Reply::NullArray,
                Err(error) => error,
                Ok(Some(ran)) => {
                    let (mut ran, mut replies) = (ran.into_iter(), Vec::new());
                    let mut lookups = Lookups::default();
                    for (number, slot) in slots {
                        let done = match slot {
                            Slot::Keyed((command, args)) => {
                                let done = ran.next().expect("each command was carried out");
                                lookups.add(Lookups::of(command, &args, &done.reply));
                                done
                            }
                            Slot::Ready(done) => done,
                            Slot::Later(reply) => Ran::timed(reply).await,
                        };
                        shared.stats.note_call(number, done.took, done.reply.error_text());
                        replies.push(done.reply);
                    }
                    shared.stats.note_lookups(lookups);
                    Reply::Array(replies)
                }
            };
            reply.into()
        });
    }
}

/// What commands did together, or one after the other if that is how it is to be; `None` if a
/// watched key has changed.
async fn carry_out(
    shared: &Shared,
    store: &Store,
    commands: &[Queued],
    watched: &Watched,
) -> Result<Option<Vec<Ran>>, Reply> {
    // What was watched cannot be checked and still be so while one command after the other is done.
    let may_follow = shared.multi == Multi::Ordered && watched.is_empty();
    if !(may_follow && store::is_wide(commands)) {
        match store.together(commands, watched).await {
            Err(Undone::Apart(_)) if may_follow => {}
            done => return done.map_err(Undone::into_reply),
        }
    }
    shared.stats.ordered.fetch_add(1, Ordering::Relaxed);
    Ok(Some(store.in_order(commands).await))
}
