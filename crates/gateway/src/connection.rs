//! One connection: reads commands, carries them out, and writes the replies in their order.
//!
//! Commands of a pipeline may overlap: those about single keys are under way together, and wait for
//! each other if they are about the same key; GETs of one key overlap, too. Every other command
//! waits for those before it and is waited for by those behind it. Whatever overlaps, replies have
//! the order of commands, and no GET shows an older state of its key than one before.
//!
//! Nothing is read while a command waits to be started or replies wait to be written, so a client
//! that sends more than it reads holds up nobody but itself.

mod account;
mod bracket;
mod event;
mod events;
mod guess;
mod held;
mod long;
mod overlap;
mod pressure;
mod transaction;

use crate::acl::{CHECKED_KEYS_MAX, Denied};
use crate::clients::Entry;
use crate::command::{self, Found, Keyed, Run, Session};
use crate::resp::{Limits, Parser, encode};
use crate::session::{self, Answer, Peer, Replies};
use crate::shared::Shared;
use crate::stats::HeldBack;
use crate::store::{Incoming, Seen, Watched};
use crate::stream::Stream;
use crate::{Reply, Store};
use bracket::Bracket;
use bytes::{Bytes, BytesMut};
use event::Event;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use held::{UNDER_WAY_BYTES_MAX, give_back, held_by};
use overlap::{Kind, Overlap, Turn, UnderWay, Verdict};
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
/// Bytes of replies beyond which no command is started. One reply may be longer.
const OUTPUT_MAX: usize = 256 << 10;
/// Commands under way at once whose places are kept for the next.
const KEPT_COMMANDS_MAX: usize = 16;
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
    running: FuturesOrdered<BoxFuture<'static, Ended>>,
    /// The same commands, in the same order.
    under_way: UnderWay,
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

/// A command that was carried out.
struct Ended {
    reply: Reply,
    number: usize,
    began: Instant,
    args: Vec<Bytes>,
    /// What a GET tells of its key.
    seen: Seen,
    /// Keys that are watched from now on.
    watched: Option<Watched>,
}

impl Ended {
    /// A command that is begun now.
    fn new(reply: Reply, number: usize, args: Vec<Bytes>) -> Self {
        Self { reply, number, began: Instant::now(), args, seen: Seen::Nothing, watched: None }
    }

    /// Waits until it may be carried out, which is no part of the time that it takes. Returns the
    /// value of its key, if that is known then.
    async fn await_turn(&mut self, turn: Option<Turn>) -> Option<Bytes> {
        // Only a connection that ends, and with it this command, lets go of the other end.
        let value = turn?.await.unwrap_or(None);
        self.began = Instant::now();
        value
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, shared: Arc<Shared>, entry: Arc<Entry>) -> Self {
        let store = Arc::new(shared.store(entry.id).clone());
        let peer = Peer::new(entry, &shared.acl);
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
            running: FuturesOrdered::new(),
            under_way: UnderWay::default(),
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
        self.running.is_empty() && self.next.is_none() && self.streaming.is_none()
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
        while self.closing.is_none()
            && self.paused.is_none()
            && !self.alone
            && self.streaming.is_none()
            && self.running.len() < OVERLAP_MAX
            && self.under_way_bytes < UNDER_WAY_BYTES_MAX
            && self.output.len() < OUTPUT_MAX
        {
            let Some(args) = self.next.take().or_else(|| self.read_command()) else { break };
            if let Some(args) = self.start(args) {
                self.next = Some(args);
                break;
            }
        }
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
                    let now = self.shared.now();
                    self.peer.entry.note_active(now);
                    self.peer.entry.note_coming(now, false);
                } else if let Some((key, len)) = self.parser.begin_long_set(&mut self.input) {
                    self.begin_value(key, len);
                    return if self.feed() { self.read_command() } else { None };
                }
                args
            }
            Err(error) => {
                self.shared.stats.protocol_errors.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(peer = %self.peer.entry.peer, %error, "ending a connection");
                // Behind the replies of what is under way.
                let text = format!("ERR {error}");
                let ended = Ended::new(Reply::Error(text.into()), usize::MAX, Vec::new());
                self.push(Box::pin(std::future::ready(ended)));
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
        if !self.running.is_empty() && !found.as_ref().is_ok_and(|it| self.overlaps(*it, &args)) {
            return Some(args);
        }
        let found = match self.admit(found, &args) {
            Ok(found) => found,
            Err(_) if !self.running.is_empty() => return Some(args),
            Err((number, reply)) => {
                self.reject(&args, number, reply);
                return None;
            }
        };
        let now = self.shared.now();
        let held = self.shared.pause.holds(found.spec, now).or_else(|| self.pauses_exec(found));
        if let Some(until) = held {
            self.paused = Some(Box::pin(sleep(until.saturating_sub(now))));
            return Some(args);
        }
        let args = self.wait_to_guess(found, args)?;
        let overlaps = self.overlaps(found, &args);
        let key = if overlaps { found.spec.only_key(&args).cloned() } else { None };
        let args = self.queue(found, args)?;
        let number = u32::try_from(found.number).unwrap_or(u32::MAX);
        self.peer.entry.command.store(number, Ordering::Relaxed);
        let ended = Ended::new(Reply::Null, found.number, args);
        self.under_way_bytes += held_by(&ended.args);
        match (found.spec.run, key) {
            (Run::Keyed(Keyed::Get), Some(key)) => self.start_get(key, ended),
            (Run::Keyed(command), key) => self.start_keyed(command, key, ended),
            (Run::Session(command), _) => self.start_session(command, ended),
        }
        None
    }

    fn start_get(&mut self, key: Bytes, ended: Ended) {
        let (place, turn) = self.under_way.push(key, Kind::Get);
        let alone = !matches!(place, Overlap::Beside(_));
        self.running.push_back(self.get(ended, turn, alone));
    }

    /// A GET. If it is not alone with its key, it reads no value that streams.
    fn get(&self, mut ended: Ended, turn: Option<Turn>, alone: bool) -> BoxFuture<'static, Ended> {
        let store = Arc::clone(&self.store);
        Box::pin(async move {
            if let Some(value) = ended.await_turn(turn).await {
                ended.reply = Reply::Bulk(value);
                return ended;
            }
            let key = ended.args.get(1).expect("a GET has a key");
            (ended.reply, ended.seen) = store.get_and_tell(key, alone).await;
            ended
        })
    }

    fn start_keyed(&mut self, command: Keyed, key: Option<Bytes>, mut ended: Ended) {
        self.alone = key.is_none();
        let kind = self.kind(command, &ended.args);
        let (_, turn) = self.under_way.push(key.unwrap_or_default(), kind);
        let store = Arc::clone(&self.store);
        let incoming = self.incoming.take();
        self.running.push_back(Box::pin(async move {
            drop(ended.await_turn(turn).await);
            ended.reply = match incoming {
                None => store.run(command, &ended.args).await,
                Some(Ok(value)) => Box::pin(store.set_incoming(value, &ended.args)).await,
                Some(Err(why)) => why,
            };
            ended
        }));
    }

    fn kind(&self, command: Keyed, args: &[Bytes]) -> Kind {
        match (command, args) {
            (Keyed::Set, [_, _, value]) if self.incoming.is_none() => Kind::Set(value.clone()),
            _ => Kind::Other,
        }
    }

    fn start_session(&mut self, command: Session, mut ended: Ended) {
        if let Session::Transaction(step) = command {
            return self.bracket(step, ended);
        }
        match self.peer.run(&self.shared, command, &ended.args) {
            Answer::Now(reply) => {
                if command == Session::Reset {
                    self.forget_bracket();
                }
                self.finish_now(Ended { reply, ..ended });
            }
            Answer::Last(reply) => {
                self.finish_now(Ended { reply, ..ended });
                self.close();
            }
            Answer::Later(reply) => {
                self.alone = true;
                let run = async move {
                    ended.reply = reply.await;
                    ended
                };
                self.push(Box::pin(run));
            }
        }
    }

    /// Whether a command may be under way together with others: it is about one key.
    fn overlaps(&self, found: Found, args: &[Bytes]) -> bool {
        let is_keyed = matches!(found.spec.run, Run::Keyed(_));
        is_keyed && !self.bracket.is_open() && found.spec.only_key(args).is_some()
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

    /// Something that overlaps with nothing is under way.
    fn push(&mut self, run: BoxFuture<'static, Ended>) {
        self.under_way.push(Bytes::new(), Kind::Other);
        self.running.push_back(run);
    }

    /// What was under way first is done.
    fn finish(&mut self, mut ended: Ended) {
        match self.under_way.finish(&mut ended.reply, ended.seen) {
            Verdict::Again => return self.running.push_front(self.get(ended, None, true)),
            Verdict::Answer => {}
        }
        self.alone = false;
        self.forget(&ended);
        if self.running.is_empty() && self.under_way.capacity() > KEPT_COMMANDS_MAX {
            // What they have grown to is not kept for a client that may never need it again.
            self.running = FuturesOrdered::new();
            self.under_way = UnderWay::default();
        }
        if let Some(watched) = ended.watched.take() {
            self.watches(watched);
        }
        self.note(&ended);
        self.reply(&ended.reply);
    }

    fn finish_now(&mut self, ended: Ended) {
        self.forget(&ended);
        self.note(&ended);
        self.reply(&ended.reply);
    }

    /// A command is under way no more, and has its reply.
    fn forget(&mut self, ended: &Ended) {
        self.under_way_bytes = self.under_way_bytes.saturating_sub(held_by(&ended.args));
        self.peer.entry.note_active(self.shared.now());
    }

    fn note(&self, ended: &Ended) {
        let took = ended.began.elapsed();
        self.shared.stats.note_call(ended.number, took, ended.reply.error_text());
        let slow = self.shared.settings.slower_than();
        // What everybody may use has passwords among its arguments.
        let is_slow = slow.is_some_and(|slow| took >= slow);
        let spec = command::numbered().get(ended.number).filter(|_| is_slow);
        if spec.is_some_and(|spec| !spec.is_for_all()) {
            let (len_max, args) = (self.shared.settings.slowlog_len_max(), &ended.args);
            let unix_seconds = self.shared.time_of_day().as_secs();
            self.shared.slowlog.note(unix_seconds, took, args, &self.peer.entry, len_max);
        }
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
