//! The async face, on tokio: every call is a future of its outcome, and any number may be pending
//! over one socket. A task of its own moves datagrams between the socket and the machine.

use crate::face::{
    self, COMMANDS_MAX, Command, Driver, Known, OwnedRequest, Question, RECEIVE_BATCH_MAX,
};
use crate::{
    CasReply, DelReply, Expect, IncrReply, LookupError, Options, Outcome, PutOptions, Refusal,
    Reply, ScanOptions, Services, UnknownReason, Value,
};
use cluster::Keyspace;
use std::io;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};

/// A client of one cluster. Clones share its socket and its task, which ends with the last one.
///
/// A future that is dropped before its outcome does not take its request back: a write goes on to
/// its end, and nobody learns how it ended.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    known: Arc<Known>,
}

impl Client {
    /// Opens a socket and spawns the task that serves it on the current runtime, whose I/O and time
    /// must be enabled. Nothing is sent yet: whether anybody answers, the first request will tell.
    ///
    /// # Errors
    ///
    /// If the system has no socket left, and `InvalidInput` if there is no service address, more
    /// than [`SERVICES_MAX`](crate::SERVICES_MAX), or IPv4 and IPv6 among them.
    ///
    /// # Panics
    ///
    /// If the options are outside the bounds that they state.
    #[expect(clippy::unused_async, reason = "only inside a runtime can the task be spawned")]
    pub async fn connect(services: impl Into<Services>, options: Options) -> io::Result<Self> {
        let services = services.into();
        let socket = UdpSocket::from_std(face::bind(&services)?)?;
        let driver = Driver::new(services, options);
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        tokio::spawn(Io { driver, socket, commands }.run());
        Ok(Self { commands: sender, known: Arc::default() })
    }

    /// Looks a keyspace up by name. Asks the cluster the first time only.
    ///
    /// # Errors
    ///
    /// If there is none of that name, or nobody answers.
    pub async fn keyspace(&self, name: &str) -> Result<Space, LookupError> {
        let keyspace = match self.known.get(name) {
            Some(keyspace) => keyspace,
            None => {
                let outcome = self.ask(Question::Describe(name.to_owned())).await;
                self.known.learn(name, outcome)?
            }
        };
        Ok(Space { client: self.clone(), keyspace })
    }

    async fn ask(&self, question: Question) -> Outcome<Reply> {
        let (sender, answer) = oneshot::channel();
        // Who has dropped the future does not want to know.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        if self.commands.send(Command { question, deliver }).await.is_err() {
            return Outcome::Refused(Refusal::Closed);
        }
        answer.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed))
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
    pub async fn get(&self, key: &[u8]) -> Outcome<Option<Value>> {
        self.ask(OwnedRequest::Get { key: key.to_vec() }).await.map(face::get)
    }

    /// Writes a key; gives the version of the new value.
    pub async fn put(&self, key: &[u8], value: &[u8], options: PutOptions) -> Outcome<u64> {
        let (key, value) = (key.to_vec(), value.to_vec());
        self.ask(OwnedRequest::Put { key, value, expiry: options.expiry }).await.map(face::put)
    }

    /// Deletes a key.
    pub async fn del(&self, key: &[u8]) -> Outcome<DelReply> {
        self.ask(OwnedRequest::Del { key: key.to_vec() }).await.map(face::del)
    }

    /// Writes a key if what is there is what is expected.
    pub async fn cas(
        &self,
        key: &[u8],
        expect: Expect<'_>,
        value: &[u8],
        options: PutOptions,
    ) -> Outcome<CasReply> {
        let (key, value, expiry) = (key.to_vec(), value.to_vec(), options.expiry);
        let request = OwnedRequest::Cas { key, expect: expect.into(), value, expiry };
        self.ask(request).await.map(face::cas)
    }

    /// Adds to a decimal number; a missing value counts as 0.
    pub async fn incr(&self, key: &[u8], delta: i64) -> Outcome<IncrReply> {
        self.ask(OwnedRequest::Incr { key: key.to_vec(), delta }).await.map(face::incr)
    }

    /// Reads many keys at once; one outcome for each, in their order.
    pub async fn mget<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<Option<Value>>> {
        let owned = keys.iter().map(|key| key.as_ref().to_vec()).collect();
        let count = keys.len();
        face::mget(self.ask(OwnedRequest::Mget { keys: owned }).await, count)
    }

    /// Reads the keys of an interval, in order; for range keyspaces.
    pub async fn scan(&self, options: ScanOptions) -> Outcome<Vec<(Vec<u8>, Value)>> {
        self.ask(OwnedRequest::Range(options)).await.map(face::range)
    }

    async fn ask(&self, request: OwnedRequest) -> Outcome<Reply> {
        let outcome = self.client.ask(Question::Of(Arc::clone(&self.keyspace), request)).await;
        self.client.known.check(&self.keyspace, outcome)
    }
}

/// What the task owns.
struct Io {
    driver: Driver,
    socket: UdpSocket,
    commands: mpsc::Receiver<Command>,
}

impl Io {
    async fn run(mut self) {
        loop {
            let now = self.driver.now();
            self.driver.advance(now);
            self.transmit();
            let idle = self.driver.idle_time();
            let timer = async {
                match idle {
                    Some(idle) => tokio::time::sleep(idle).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                command = self.commands.recv(), if self.driver.takes_commands() => {
                    let Some(command) = command else { return };
                    self.take_commands(command);
                }
                // An error here comes out of the next attempt to receive as well.
                _ = self.socket.readable() => self.receive(),
                () = timer => {}
            }
        }
    }

    /// Hands this command to the machine, and all that wait behind it.
    fn take_commands(&mut self, first: Command) {
        let now = self.driver.now();
        self.driver.submit(now, first);
        while self.driver.takes_commands()
            && let Ok(command) = self.commands.try_recv()
        {
            self.driver.submit(now, command);
        }
    }

    /// A datagram that cannot be sent is as good as lost on the way, and sent again.
    fn transmit(&mut self) {
        while let Some(datagram) = self.driver.machine.poll_transmit() {
            drop(self.socket.try_send_to(datagram.payload, datagram.to.into()));
        }
    }

    fn receive(&mut self) {
        // One byte more than any of ours, so that longer ones are seen to be too long.
        let mut buffer = [0; wire::DATAGRAM_MAX + 1];
        for _ in 0..RECEIVE_BATCH_MAX {
            match self.socket.try_recv_from(&mut buffer) {
                Ok((len, from)) => {
                    let now = self.driver.now();
                    let datagram = buffer.get(..len).unwrap_or_default();
                    self.driver.machine.handle_packet(now, from.into(), datagram);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What the network said about a datagram sent earlier: it will be sent again.
                Err(_) => {}
            }
        }
    }
}
