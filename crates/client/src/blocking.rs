//! The blocking face: every call waits for its outcome, and any number of threads may call at once
//! over one socket. A thread of its own moves datagrams between the socket and the machine.

mod big;

pub use big::{Download, Upload};

use crate::face::{self, COMMANDS_MAX, Command, Driver, Known, OwnedRequest, Question};
use crate::page;
use crate::port::Port;
use crate::present::{Present, chosen, is_outdated, outdated, put_back};
use crate::{
    BatchReply, DelReply, IncrReply, KeyCount, LookupError, Options, Outcome, Page, PageStart,
    PutOptions, Refusal, Reply, ScanOptions, Services, Step, UnknownReason, Value,
};
use cluster::Keyspace;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A client of one cluster. Clones share its socket and its thread, which ends with the last one:
/// it tells the cluster so, and waits for nothing.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Taken only when the last client is dropped.
    commands: Option<SyncSender<Command>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    known: Known,
    options: Options,
}

const SOCKET: Token = Token(0);
const COMMANDS: Token = Token(1);

impl Client {
    /// Opens a socket and starts the thread that serves it. Nothing is sent yet: whether anybody
    /// answers, the first request will tell.
    ///
    /// # Errors
    ///
    /// If the system has no socket or no thread left, and `InvalidInput` if there is no service
    /// address, more than [`SERVICES_MAX`](crate::SERVICES_MAX), or IPv4 and IPv6 among them.
    ///
    /// # Panics
    ///
    /// If the options are outside the bounds that they state.
    pub fn connect(services: impl Into<Services>, options: Options) -> io::Result<Self> {
        let services = services.into();
        let port = Port::bind(&services)?;
        let driver = Driver::new(services, options);
        let poll = Poll::new()?;
        let socket = port.as_raw_fd();
        poll.registry().register(&mut SourceFd(&socket), SOCKET, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), COMMANDS)?;
        let (sender, commands) = sync_channel(COMMANDS_MAX);
        let io = Io { driver, port, poll, commands };
        let thread =
            std::thread::Builder::new().name("keyway-client".into()).spawn(move || io.run())?;
        let known = Known::default();
        let shared = Shared { commands: Some(sender), waker, thread: Some(thread), known, options };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Looks a keyspace up by name. Asks the cluster the first time only.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or nobody answers.
    pub fn keyspace(&self, name: &str) -> Result<Space, LookupError> {
        let known = &self.shared.known;
        let keyspace = match known.get(name) {
            Some(keyspace) => keyspace,
            None => known.learn(name, self.ask(Question::Describe(name.to_owned())))?,
        };
        Ok(Space { client: self.clone(), keyspace, within: None })
    }

    fn ask(&self, question: Question) -> Outcome<Reply> {
        self.begin(question).recv().unwrap_or(Outcome::Unknown(UnknownReason::Closed))
    }

    /// Starts a request; its outcome comes out of what is returned.
    fn begin(&self, question: Question) -> Receiver<Outcome<Reply>> {
        let (sender, answer) = sync_channel(1);
        let closed = sender.clone();
        // Who does not want to know any more has dropped the other end.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        let sent = match &self.shared.commands {
            Some(commands) => commands.send(Command { question, deliver }).is_ok(),
            None => false,
        };
        if !sent {
            drop(closed.send(Outcome::Refused(Refusal::Closed)));
        } else if self.shared.waker.wake().is_err() {
            drop(closed.try_send(Outcome::Unknown(UnknownReason::Closed)));
        }
        answer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.commands = None;
        let woken = self.waker.wake();
        if let (Ok(()), Some(thread)) = (woken, self.thread.take()) {
            // A panic of that thread has been printed; there is nobody left to tell.
            drop(thread.join());
        }
    }
}

/// The keys of one keyspace.
#[derive(Clone, Debug)]
pub struct Space {
    client: Client,
    keyspace: Arc<Present>,
    /// How long its requests for many keys may take.
    within: Option<Duration>,
}

impl Space {
    /// What the keyspace is at present: if the cluster was made anew, it may be another one than it
    /// was.
    #[must_use]
    pub fn keyspace(&self) -> Arc<Keyspace> {
        self.keyspace.get()
    }

    /// Deletes a key.
    pub fn del(&self, key: &[u8]) -> Outcome<DelReply> {
        self.ask(|| OwnedRequest::Del { key: key.to_vec() }).map(face::del)
    }

    /// Adds to a decimal number; a missing value counts as 0.
    pub fn incr(&self, key: &[u8], delta: i64) -> Outcome<IncrReply> {
        self.ask(|| OwnedRequest::Incr { key: key.to_vec(), delta }).map(face::incr)
    }

    /// Writes, deletes or only checks several keys of one partition at once, if each holds what its
    /// step expects; see [`Request::Batch`](crate::Request::Batch).
    pub fn batch(&self, steps: &[Step<'_>]) -> Outcome<BatchReply> {
        let request = || OwnedRequest::Batch { steps: steps.iter().map(Into::into).collect() };
        self.ask(request).map(face::batch)
    }

    /// The same keys for one who has only so much time: its requests for many keys ([`mget`],
    /// [`mset`], [`mdel`]) end after that with what there is. Otherwise they go on as long as there
    /// is progress.
    ///
    /// [`mget`]: Self::mget
    /// [`mset`]: Self::mset
    /// [`mdel`]: Self::mdel
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        Self { within: Some(time), ..self.clone() }
    }

    /// Reads many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); one outcome for
    /// each, in their order. It is no snapshot: each key is read on its own.
    pub fn mget<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<Option<Value>>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mget { keys, within })
        };
        self.ask_many(request, face::mget)
    }

    /// Writes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives for each
    /// the outcome of its own write and the version of the new value, in their order. It is not
    /// atomic: others may see some of the writes before the rest, and some may be done and others
    /// not. Of a key that is there more than once, the last value is written, and no other.
    pub fn mset<K, V>(&self, entries: &[(K, V)], options: PutOptions) -> Vec<Outcome<u64>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let entries = face::owned_entries(entries);
        let (expiry, within) = (options.expiry, self.within);
        let request = |which: Option<&[usize]>| {
            let entries = chosen(&entries, which);
            (entries.len(), OwnedRequest::Mset { entries, expiry, within })
        };
        self.ask_many(request, face::mset)
    }

    /// Deletes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives the
    /// outcome for each, in their order. Like [`mset`](Self::mset) it is not atomic. A key that is
    /// there more than once is deleted once.
    pub fn mdel<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<DelReply>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mdel { keys, within })
        };
        self.ask_many(request, face::mdel)
    }

    /// Reads about `count` keys (at least 1) of any keyspace, in the order of (match value, key).
    /// Pages that follow each other to the end have every key among them that has a value all the
    /// time, and no key twice unless it was written meanwhile. With `keys_only` values come back
    /// empty.
    pub fn page(&self, from: &PageStart, count: usize, keys_only: bool) -> Outcome<Page> {
        let request = || page::request(&self.keyspace.get(), from, count, keys_only);
        self.ask(request).map(|reply| page::cut(&self.keyspace.get(), face::range(reply), count))
    }

    /// Reads all keys with these upper 32 bits of their match value as one page, however many they
    /// are.
    pub fn page_of(&self, bits: u32, keys_only: bool) -> Outcome<Page> {
        let request = || page::request_all(bits, keys_only);
        self.ask(request).map(|reply| page::of_all(bits, face::range(reply)))
    }

    /// Counts the keys of any keyspace that have a value, each as it was at some time
    /// meanwhile. The nodes know: what that takes does not depend on how many there are.
    pub fn count(&self) -> Outcome<KeyCount> {
        self.ask(|| OwnedRequest::Count).map(face::count)
    }

    /// Reads the keys of an interval, in order; for range keyspaces.
    pub fn scan(&self, options: ScanOptions) -> Outcome<Vec<(Vec<u8>, Value)>> {
        self.ask(|| OwnedRequest::Range(options.clone())).map(face::range)
    }

    fn begin(&self, request: OwnedRequest) -> Receiver<Outcome<Reply>> {
        self.client.begin(Question::Of(self.keyspace.get(), request))
    }

    /// Asks; if the keyspace is not what it was, looks it up and asks once more.
    fn ask(&self, request: impl Fn() -> OwnedRequest) -> Outcome<Reply> {
        let used = self.keyspace.get();
        let question = Question::Of(Arc::clone(&used), request());
        let outcome = self.client.ask(question);
        if !is_outdated(&outcome) || !self.renew(&used) {
            return outcome;
        }
        self.client.ask(Question::Of(self.keyspace.get(), request()))
    }

    /// The same for many keys, of which those that were refused for that are asked for again. The
    /// request is for those that are named, or all, and says for how many.
    fn ask_many<T: Clone>(
        &self,
        request: impl Fn(Option<&[usize]>) -> (usize, OwnedRequest),
        outcomes: fn(Reply) -> Vec<Outcome<T>>,
    ) -> Vec<Outcome<T>> {
        let used = self.keyspace.get();
        let (count, first) = request(None);
        let outcome = self.client.ask(Question::Of(Arc::clone(&used), first));
        let mut all = face::many(outcome, count, outcomes);
        let which = outdated(&all);
        if which.is_empty() || !self.renew(&used) {
            return all;
        }
        let (count, again) = request(Some(&which));
        let outcome = self.client.ask(Question::Of(self.keyspace.get(), again));
        put_back(&mut all, &which, face::many(outcome, count, outcomes));
        all
    }

    /// Looks the keyspace up again, unless somebody has just done so; whether it is another one
    /// than the one that was used.
    fn renew(&self, used: &Arc<Keyspace>) -> bool {
        if self.keyspace.get() == *used {
            let name = used.name.clone();
            let outcome = self.client.ask(Question::Describe(name));
            // If that is refused too, or not answered, what was said first is said.
            drop(self.client.shared.known.learn(&used.name, outcome));
        }
        self.keyspace.get() != *used
    }
}

/// What the thread owns.
struct Io {
    driver: Driver,
    port: Port,
    poll: Poll,
    commands: Receiver<Command>,
}

impl Io {
    fn run(mut self) {
        let mut events = Events::with_capacity(2);
        loop {
            let received = self.port.receive(&mut self.driver);
            if !self.take_commands() {
                self.driver.say_goodbye();
                self.port.transmit(&mut self.driver);
                return;
            }
            self.port.transmit(&mut self.driver);
            let wait = match received {
                // There may be more.
                Ok(()) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.driver.idle_time(),
                // What the network said about a datagram sent earlier: it will be sent again.
                Err(_) => Some(Duration::ZERO),
            };
            match self.poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Without it nobody would ever be answered: those who wait are told so.
                Err(_) => return,
            }
        }
    }

    /// Hands commands to the machine as long as it has room, and outcomes to those who wait; false
    /// once there is nobody left.
    fn take_commands(&mut self) -> bool {
        let now = self.driver.now();
        loop {
            // Outcomes make room for commands, and some commands have their outcome at once.
            self.driver.advance(now);
            if !self.driver.takes_commands() {
                return true;
            }
            match self.commands.try_recv() {
                Ok(command) => self.driver.submit(now, command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}
