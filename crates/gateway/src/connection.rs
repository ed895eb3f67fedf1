//! One connection: reads commands, carries them out, and writes the replies in their order.
//!
//! Commands of a pipeline may overlap: those about single keys, and MGETs and MSETs of a few, are
//! under way together, and wait for each other if they are about the same key; reads of one key
//! overlap, too. Every other command waits for those before it and is waited for by those behind
//! it. Whatever overlaps, replies have the order of commands, and no read shows an older state of a
//! key than one before.
//!
//! Nothing is read while a command waits to be started or replies wait to be written, so a client
//! that sends more than it reads holds up nobody but itself.

mod account;
mod bracket;
mod call;
mod calls;
mod database;
mod event;
mod events;
mod guess;
mod held;
mod long;
mod overlap;
mod pressure;
mod tally;
mod transaction;

use crate::acl::{CHECKED_KEYS_MAX, Denied};
use crate::clients::Entry;
use crate::command::{self, Found, Keyed, Run, Session};
use crate::lookups::Lookups;
use crate::resp::{Limits, Parser, encode};
use crate::session::{self, Peer, Replies, Response};
use crate::shared::Shared;
use crate::stats::HeldBack;
use crate::store::{Incoming, KEYS_MAX};
use crate::stream::Stream;
use crate::{Reply, Store};
use bracket::Bracket;
use bytes::{Bytes, BytesMut};
use call::{Call, CallTally, Done, Slot};
use client::Outcome;
use client::asynchronous::Inbox;
use event::Event;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use held::{UNDER_WAY_BYTES_MAX, give_back, held_by};
use overlap::{NamedKeys, UnderWay};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Commands of one connection that are under way at once. A multiple of what keeps a cluster busy,
/// and little enough that no connection crowds out the others.
const OVERLAP_MAX: usize = 256;
/// Keys of these beyond which none is started: each may be answered with a value. One command may
/// have more.
const OVERLAP_KEYS_MAX: usize = 4 * OVERLAP_MAX;
/// Bytes of replies beyond which no command is started. One reply may be longer.
const OUTPUT_MAX: usize = 256 << 10;
/// How long a connection that is to be closed may take: the cluster to answer what is under way, 5
/// seconds unless somebody says otherwise, and the client to read it.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(10);
/// How long what a client still sends is read and thrown away, so that the last reply is not lost:
/// a socket that is closed with unread bytes resets the connection.
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);

/// A connection. Its task ends when the client, an operator or the gateway ends it.
pub(crate) struct Connection {
    stream: Stream,
    shared: Arc<Shared>,
    store: Arc<Store>,
    peer: Peer,
    parser: Parser,
    input: BytesMut,
    /// Whether the client will send nothing any more.
    input_ended: bool,
    output: BytesMut,
    /// Whether the stream holds something back.
    unflushed: bool,
    /// A reply whose bytes still come: from where, and how many.
    streaming: Option<(Receiver<Bytes>, u64)>,
    /// The value of a SET that comes, or has come, before the rest of its command.
    incoming: Option<Result<Incoming, Reply>>,
    /// A piece of it that waits for those before it to be taken.
    piece: Option<BoxFuture<'static, ()>>,
    /// A command that cannot be started yet.
    next: Option<Vec<Bytes>>,
    /// Commands that are under way, in their order.
    slots: VecDeque<Slot>,
    /// The same commands, in the same order.
    under_way: UnderWay,
    /// Those of them that a future carries out.
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Numbers of those whose request is to be begun at the end of this turn.
    planned: Vec<u64>,
    /// Where the outcomes of those requests come, and those that are being looked at.
    inbox: Inbox,
    outcomes: Vec<(u64, Outcome<client::Reply>)>,
    tally: CallTally,
    /// Keys that were looked up and are not counted yet.
    lookups: Lookups,
    /// What time it is, as of this turn.
    now: Instant,
    /// Bytes of their arguments.
    under_way_bytes: usize,
    /// When the AUTH or HELLO that waits has its turn, if it has taken one.
    guess_at: Option<Duration>,
    /// Whether what is under way cannot overlap with anything.
    alone: bool,
    bracket: Bracket,
    /// Why nothing is read at the moment, as it was counted.
    held: Option<HeldBack>,
    /// Until when commands wait because of CLIENT PAUSE.
    paused: Option<Pin<Box<Sleep>>>,
    /// No command is started any more; until when the last replies can be written.
    closing: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub(crate) fn new(stream: Stream, shared: Arc<Shared>, entry: Arc<Entry>) -> Self {
        let peer = Peer::new(entry, &shared.acl);
        let store = shared.store(0, peer.entry.id, peer.user.as_deref()).clone();
        let store = Arc::new(store.with_user(peer.user.clone()));
        let inbox = store.inbox();
        Self {
            stream,
            shared,
            store,
            peer,
            parser: Parser::default(),
            input: BytesMut::new(),
            input_ended: false,
            output: BytesMut::new(),
            unflushed: false,
            streaming: None,
            incoming: None,
            piece: None,
            next: None,
            slots: VecDeque::new(),
            under_way: UnderWay::default(),
            running: FuturesUnordered::new(),
            planned: Vec::new(),
            inbox,
            outcomes: Vec::new(),
            tally: CallTally::default(),
            lookups: Lookups::default(),
            now: Instant::now(),
            under_way_bytes: 0,
            guess_at: None,
            alone: false,
            bracket: Bracket::default(),
            held: None,
            paused: None,
            closing: None,
        }
    }

    /// Serves the client to the end.
    pub(crate) async fn run(mut self) {
        loop {
            self.start_commands();
            let understood = self.is_idle() && self.output.len() < OUTPUT_MAX;
            if self.input_ended && self.closing.is_none() && understood {
                self.close();
            }
            if self.closing.is_some() && self.is_idle() && self.is_written() {
                return self.end().await;
            }
            match poll_fn(|context| self.poll_event(context)).await {
                Event::Ended | Event::Read | Event::Wrote => {}
                Event::Resumed => self.paused = None,
                Event::Drain => self.close(),
                Event::Over => return,
                Event::Evicted => return self.end_evicted().await,
            }
        }
    }

    /// Whether no command is under way or waits.
    fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.next.is_none() && self.streaming.is_none()
    }

    fn is_written(&self) -> bool {
        self.output.is_empty() && !self.unflushed
    }

    /// Starts no more commands; what is under way is finished.
    fn close(&mut self) {
        self.next = None;
        self.closing.get_or_insert_with(|| Box::pin(sleep(CLOSING_TIME_MAX)));
    }

    /// Starts every command that is whole and may be started.
    fn start_commands(&mut self) {
        if self.next.is_some() || !self.input.is_empty() {
            self.now = Instant::now();
        }
        while self.closing.is_none()
            && self.paused.is_none()
            && !self.alone
            && self.streaming.is_none()
            && !self.is_full()
            && self.output.len() < OUTPUT_MAX
        {
            let Some(args) = self.next.take().or_else(|| self.read_command()) else { break };
            if let Some(args) = self.start(args) {
                self.next = Some(args);
                break;
            }
        }
        self.ask();
        give_back(&mut self.input);
        self.peer.entry.input.store(self.input.len(), Ordering::Relaxed);
        self.note_pressure();
        self.note_progress();
        self.account();
    }

    fn read_command(&mut self) -> Option<Vec<Bytes>> {
        if self.parser.is_in_value() {
            if !self.feed() {
                return None;
            }
        } else if self.input.is_empty() {
            return None;
        }
        let limits =
            if self.peer.user.is_some() { self.shared.settings.limits() } else { Limits::STRANGER };
        match self.parser.parse(&mut self.input, &limits) {
            Ok(args) => {
                if args.is_some() {
                    let now = self.since_start();
                    self.peer.entry.note_active(now);
                    self.peer.entry.note_coming(now, false);
                } else if self.may_take_in()
                    && let Some((key, len)) = self.parser.begin_long_set(&mut self.input)
                {
                    self.begin_value(key, len);
                    return if self.feed() { self.read_command() } else { None };
                }
                args
            }
            Err(error) => {
                self.shared.stats.protocol_errors.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(peer = %self.peer.entry.peer, %error, "ending a connection");
                // Behind the replies of what is under way.
                let call = self.call(usize::MAX, Vec::new());
                self.end_behind(call, Reply::Error(format!("ERR {error}").into()));
                self.input.clear();
                self.close();
                None
            }
        }
    }

    /// Starts a command; gives its arguments back if it has to wait.
    fn start(&mut self, args: Vec<Bytes>) -> Option<Vec<Bytes>> {
        let found = command::resolve(&args);
        // What waits for all before it is not looked at again and again.
        if !self.slots.is_empty() && !found.as_ref().is_ok_and(|it| self.overlaps(*it, &args)) {
            return Some(args);
        }
        let found = match self.admit(found, &args) {
            Ok(found) => found,
            Err(_) if !self.slots.is_empty() => return Some(args),
            Err((number, reply)) => {
                self.reject(&args, number, reply);
                return None;
            }
        };
        let now = self.since_start();
        let held = self.shared.pause.holds(found.spec, now).or_else(|| self.pauses_exec(found));
        if let Some(until) = held {
            self.paused = Some(Box::pin(sleep(until.saturating_sub(now))));
            return Some(args);
        }
        let args = self.wait_to_guess(found, args)?;
        let overlaps = self.overlaps(found, &args);
        let keys = if overlaps { keys_of(found, &args) } else { NamedKeys::new() };
        let args = self.queue(found, args)?;
        let number = u32::try_from(found.number).unwrap_or(u32::MAX);
        self.peer.entry.command.store(number, Ordering::Relaxed);
        let call = self.call(found.number, args);
        self.under_way_bytes += held_by(&call.args);
        match found.spec.run {
            Run::Keyed(command) => self.start_keyed(command, keys, call),
            Run::Session(command) => self.start_session(found, command, call),
        }
        None
    }

    /// A command that is begun now.
    fn call(&self, number: usize, args: Vec<Bytes>) -> Call {
        Call { number, args, began: self.now }
    }

    /// What time it is, since the gateway's start.
    fn since_start(&self) -> Duration {
        self.shared.since_start(self.now)
    }

    fn start_session(&mut self, found: Found, command: Session, mut call: Call) {
        call.began = Instant::now();
        if let Session::Transaction(step) = command {
            return self.bracket(step, call);
        }
        if let Some(reply) = self.why_stay(found, &call.args) {
            return self.finish_now(&call, &reply);
        }
        let answer = self.peer.run(&self.shared, command, &call.args);
        self.use_store();
        match answer {
            Response::Now(reply) => {
                if command == Session::Reset {
                    self.forget_bracket();
                }
                self.finish_now(&call, &reply);
            }
            Response::Last(reply) => {
                self.finish_now(&call, &reply);
                self.close();
            }
            Response::Later(reply) => self.run_alone(call, async move { reply.await.into() }),
        }
    }

    /// Whether a command may be under way together with others: it is about one key, or does with
    /// each of a few what others do with one.
    fn overlaps(&self, found: Found, args: &[Bytes]) -> bool {
        let keys_max = match found.spec.run {
            Run::Keyed(Keyed::MGet | Keyed::MSet) => KEYS_MAX,
            Run::Keyed(_) => 1,
            Run::Session(_) => 0,
        };
        let keys = found.spec.key_positions(args).take(keys_max + 1).count();
        !self.bracket.is_open() && (1..=keys_max).contains(&keys)
    }

    /// Whether as many commands are under way as may be.
    fn is_full(&self) -> bool {
        self.slots.len() >= OVERLAP_MAX
            || self.under_way.keys() >= OVERLAP_KEYS_MAX
            || self.under_way_bytes >= UNDER_WAY_BYTES_MAX
    }

    /// What the command is, or why it is not carried out.
    fn admit(
        &self,
        found: Result<Found, Reply>,
        args: &[Bytes],
    ) -> Result<Found, (Option<usize>, Reply)> {
        // One of its commands it is all the same, if only the rest does not fit.
        let named = || command::number_of(command::find(args.first()?)?.name);
        let found = found.map_err(|reply| (named(), reply))?;
        let checked = self.peer.user.as_ref().map(|user| (user, user.check(found, args)));
        let text = match checked {
            _ if !session::is_bounded(found, args) => session::TOO_MANY.to_owned(),
            Some((_, Ok(()))) => return Ok(found),
            _ if found.spec.is_for_all() => return Ok(found),
            None => "NOAUTH Authentication required.".to_owned(),
            Some((user, Err(Denied::Command))) => {
                let (user, command) = (&user.name, found.spec.name);
                format!("NOPERM User {user} has no permissions to run the '{command}' command")
            }
            Some((_, Err(Denied::Key))) => "NOPERM No permissions to access a key".to_owned(),
            Some((_, Err(Denied::Many))) => format!(
                "ERR a user who may not use all keys names at most {CHECKED_KEYS_MAX} in a command \
                 here"
            ),
        };
        Err((Some(found.number), Reply::Error(text.into())))
    }

    fn reject(&mut self, args: &[Bytes], number: Option<usize>, reply: Reply) {
        self.incoming = None;
        let name = args.first().map(Bytes::as_ref).unwrap_or_default();
        // A browser that was talked into sending commands to this port begins with one of these.
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            tracing::warn!(peer = %self.peer.entry.peer, "HTTP on a port for Redis clients");
            self.input.clear();
            self.close();
            return;
        }
        self.bracket.note_refusal();
        if let Reply::Error(text) = &reply {
            self.shared.stats.note_rejection(number, text);
        }
        self.reply(&reply);
    }

    /// A command was carried out at once. Nothing is under way.
    fn finish_now(&mut self, call: &Call, reply: &Reply) {
        self.now = Instant::now();
        self.end_call(call, reply);
        self.count_calls();
        self.peer.entry.note_active(self.since_start());
    }

    fn reply(&mut self, reply: &Reply) {
        match self.peer.replies {
            Replies::On => {
                encode(reply, self.peer.protocol, &mut self.output);
                if let Reply::Long(long) = reply {
                    self.streaming = long.take().map(|pieces| (pieces, long.len()));
                }
            }
            Replies::Off => {}
            Replies::SkipThis => self.peer.replies = Replies::SkipNext,
            Replies::SkipNext => self.peer.replies = Replies::On,
        }
        self.peer.entry.output.store(self.output.len(), Ordering::Relaxed);
    }

    /// Closes the connection so that the last reply gets through.
    async fn end(mut self) {
        if self.input_ended || self.stream.end().await.is_err() {
            return;
        }
        let drained = async {
            let mut thrown = BytesMut::new();
            let read = |stream: &mut Stream, context: &mut Context<'_>, to: &mut BytesMut| {
                to.clear();
                stream.poll_read_to(context, to)
            };
            while let Ok(1..) =
                poll_fn(|context| read(&mut self.stream, context, &mut thrown)).await
            {}
        };
        // Whether it was long enough does not matter any more.
        drop(timeout(LINGER_TIME_MAX, drained).await);
    }
}

/// The keys of a command, in their order.
fn keys_of(found: Found, args: &[Bytes]) -> NamedKeys {
    found.spec.key_positions(args).filter_map(|at| args.get(at).cloned()).collect()
}
