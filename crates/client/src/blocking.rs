//! The blocking face: every call waits for its outcome, and any number of threads may call at once
//! over one socket. A thread of its own moves datagrams between the socket and the machine.

use crate::face::{
    self, COMMANDS_MAX, Command, Driver, Known, OwnedRequest, Question, RECEIVE_BATCH_MAX,
};
use crate::{
    CasReply, DelReply, Expect, IncrReply, LookupError, Options, Outcome, PutOptions, Refusal,
    Reply, ScanOptions, Services, UnknownReason, Value,
};
use cluster::Keyspace;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A client of one cluster. Clones share its socket and its thread, which ends with the last one.
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
        let mut socket = UdpSocket::from_std(face::bind(&services)?);
        let driver = Driver::new(services, options);
        let poll = Poll::new()?;
        poll.registry().register(&mut socket, SOCKET, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), COMMANDS)?;
        let (sender, commands) = sync_channel(COMMANDS_MAX);
        let io = Io { driver, socket, poll, commands };
        let thread =
            std::thread::Builder::new().name("keyway-client".into()).spawn(move || io.run())?;
        let known = Known::default();
        let shared = Shared { commands: Some(sender), waker, thread: Some(thread), known };
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
        Ok(Space { client: self.clone(), keyspace })
    }

    fn ask(&self, question: Question) -> Outcome<Reply> {
        let (sender, answer) = sync_channel(1);
        // The caller waits below until it has been sent, so that nobody can have gone away.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        let Some(commands) = &self.shared.commands else {
            return Outcome::Refused(Refusal::Closed);
        };
        if commands.send(Command { question, deliver }).is_err() {
            return Outcome::Refused(Refusal::Closed);
        }
        if self.shared.waker.wake().is_err() {
            return Outcome::Unknown(UnknownReason::Closed);
        }
        answer.recv().unwrap_or(Outcome::Unknown(UnknownReason::Closed))
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
    keyspace: Arc<Keyspace>,
}

impl Space {
    /// What the keyspace is.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Reads a key.
    pub fn get(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.ask(OwnedRequest::Get { key: key.to_vec() }).map(face::get)
    }

    /// Writes a key; gives the version of the new value.
    pub fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Outcome<u64> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.ask(OwnedRequest::Put { key, value, expiry: options.expiry }).map(face::put)
    }

    /// Deletes a key.
    pub fn del(&self, key: &[u8]) -> Outcome<DelReply> {
        self.ask(OwnedRequest::Del { key: key.to_vec() }).map(face::del)
    }

    /// Writes a key if what is there is what is expected.
    pub fn cas(
        &self,
        key: &[u8],
        expect: Expect<'_>,
        value: &[u8],
        options: PutOptions,
    ) -> Outcome<CasReply> {
        let (key, value, expiry) = (key.to_vec(), value.to_vec(), options.expiry);
        let request = OwnedRequest::Cas { key, expect: expect.into(), value, expiry };
        self.ask(request).map(face::cas)
    }

    /// Adds to a decimal number; a missing value counts as 0.
    pub fn incr(&self, key: &[u8], delta: i64) -> Outcome<IncrReply> {
        self.ask(OwnedRequest::Incr { key: key.to_vec(), delta }).map(face::incr)
    }

    /// Reads many keys at once; one outcome for each, in their order.
    pub fn mget<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<Option<Value>>> {
        let owned = keys.iter().map(|key| key.as_ref().to_vec()).collect();
        face::mget(self.ask(OwnedRequest::Mget { keys: owned }), keys.len())
    }

    /// Reads the keys of an interval, in order; for range keyspaces.
    pub fn scan(&self, options: ScanOptions) -> Outcome<Vec<(Vec<u8>, Value)>> {
        self.ask(OwnedRequest::Range(options)).map(face::range)
    }

    fn ask(&self, request: OwnedRequest) -> Outcome<Reply> {
        let outcome = self.client.ask(Question::Of(Arc::clone(&self.keyspace), request));
        self.client.shared.known.check(&self.keyspace, outcome)
    }
}

/// What the thread owns.
struct Io {
    driver: Driver,
    socket: UdpSocket,
    poll: Poll,
    commands: Receiver<Command>,
}

impl Io {
    fn run(mut self) {
        let mut events = Events::with_capacity(2);
        loop {
            let drained = self.receive();
            if !self.take_commands() {
                return;
            }
            self.transmit();
            let wait = if drained { self.driver.idle_time() } else { Some(Duration::ZERO) };
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

    /// A datagram that cannot be sent is as good as lost on the way, and sent again.
    fn transmit(&mut self) {
        while let Some(datagram) = self.driver.machine.poll_transmit() {
            drop(self.socket.send_to(datagram.payload, datagram.to.into()));
        }
    }

    /// Whether all that arrived has been taken.
    fn receive(&mut self) -> bool {
        // One byte more than any of ours, so that longer ones are seen to be too long.
        let mut buffer = [0; wire::DATAGRAM_MAX + 1];
        for _ in 0..RECEIVE_BATCH_MAX {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, from)) => {
                    let now = self.driver.now();
                    let datagram = buffer.get(..len).unwrap_or_default();
                    self.driver.machine.handle_packet(now, from.into(), datagram);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // What the network said about a datagram sent earlier: it will be sent again.
                Err(_) => {}
            }
        }
        false
    }
}
