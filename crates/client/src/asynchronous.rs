//! The async face, on tokio: every call is a future of its outcome, and any number may be pending
//! over one socket. A task of its own moves datagrams between the socket and the machine.

mod big;
mod io;

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
use io::Io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// A client of one cluster. Clones share its socket and its task, which ends with the last one.
///
/// A future that is dropped before its outcome does not take its request back: a write goes on to
/// its end, and nobody learns how it ended.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    known: Arc<Known>,
    options: Options,
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
    pub async fn connect(services: impl Into<Services>, options: Options) -> std::io::Result<Self> {
        let services = services.into();
        let port = Port::bind(&services)?;
        let socket = UdpSocket::from_std(port.socket()?)?;
        let driver = Driver::new(services, options);
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        tokio::spawn(Io::new(driver, port, socket, commands).run());
        Ok(Self { commands: sender, known: Arc::default(), options })
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
        Ok(Space { client: self.clone(), keyspace, within: None })
    }

    fn ask(&self, question: Question) -> impl Future<Output = Outcome<Reply>> + Send {
        let begun = self.begin(question);
        async move { begun.await.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed)) }
    }

    /// Starts a request; its outcome comes out of what is returned. The question is handed over at
    /// once, so that the future is small; only one that has to wait for its turn is kept.
    #[expect(clippy::async_yields_async, reason = "whoever begins several waits for them later")]
    fn begin(
        &self,
        question: Question,
    ) -> impl Future<Output = oneshot::Receiver<Outcome<Reply>>> + Send {
        let (sender, answer) = oneshot::channel();
        // Who has dropped the future does not want to know.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        let waits = match self.commands.try_send(Command { question, deliver }) {
            Ok(()) => None,
            Err(TrySendError::Full(command)) => Some(Box::pin(self.send(command))),
            Err(TrySendError::Closed(command)) => {
                refuse(command);
                None
            }
        };
        async move {
            if let Some(waits) = waits {
                waits.await;
            }
            answer
        }
    }

    async fn send(&self, command: Command) {
        if let Err(unsent) = self.commands.send(command).await {
            refuse(unsent.0);
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
    pub async fn del(&self, key: &[u8]) -> Outcome<DelReply> {
        self.ask(|| OwnedRequest::Del { key: key.to_vec() }).await.map(face::del)
    }

    /// Adds to a decimal number; a missing value counts as 0.
    pub async fn incr(&self, key: &[u8], delta: i64) -> Outcome<IncrReply> {
        self.ask(|| OwnedRequest::Incr { key: key.to_vec(), delta }).await.map(face::incr)
    }

    /// Writes, deletes or only checks several keys of one partition at once, if each holds what its
    /// step expects; see [`Request::Batch`](crate::Request::Batch).
    pub async fn batch(&self, steps: &[Step<'_>]) -> Outcome<BatchReply> {
        let request = || OwnedRequest::Batch { steps: steps.iter().map(Into::into).collect() };
        self.ask(request).await.map(face::batch)
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
    pub async fn mget<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<Option<Value>>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mget { keys, within })
        };
        self.ask_many(request, face::mget).await
    }

    /// Writes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives for each
    /// the outcome of its own write and the version of the new value, in their order. It is not
    /// atomic: others may see some of the writes before the rest, and some may be done and others
    /// not. Of a key that is there more than once, the last value is written, and no other.
    pub async fn mset<K, V>(&self, entries: &[(K, V)], options: PutOptions) -> Vec<Outcome<u64>>
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
        self.ask_many(request, face::mset).await
    }

    /// Deletes many keys at once, at most [`MANY_KEYS_MAX`](crate::MANY_KEYS_MAX); gives the
    /// outcome for each, in their order. Like [`mset`](Self::mset) it is not atomic. A key that is
    /// there more than once is deleted once.
    pub async fn mdel<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Outcome<DelReply>> {
        let (keys, within) = (face::owned(keys), self.within);
        let request = |which: Option<&[usize]>| {
            let keys = chosen(&keys, which);
            (keys.len(), OwnedRequest::Mdel { keys, within })
        };
        self.ask_many(request, face::mdel).await
    }

    /// Reads about `count` keys (at least 1) of any keyspace, in the order of (match value, key).
    /// Pages that follow each other to the end have every key among them that has a value all the
    /// time, and no key twice unless it was written meanwhile. With `keys_only` values come back
    /// empty.
    pub async fn page(&self, from: &PageStart, count: usize, keys_only: bool) -> Outcome<Page> {
        let request = || page::request(&self.keyspace.get(), from, count, keys_only);
        self.ask(request)
            .await
            .map(|reply| page::cut(&self.keyspace.get(), face::range(reply), count))
    }

    /// Reads all keys with these upper 32 bits of their match value as one page, however many they
    /// are.
    pub async fn page_of(&self, bits: u32, keys_only: bool) -> Outcome<Page> {
        let request = || page::request_all(bits, keys_only);
        self.ask(request).await.map(|reply| page::of_all(bits, face::range(reply)))
    }

    /// Counts the keys of any keyspace that have a value, each as it was at some time
    /// meanwhile. The nodes know: what that takes does not depend on how many there are.
    pub async fn count(&self) -> Outcome<KeyCount> {
        self.ask(|| OwnedRequest::Count).await.map(face::count)
    }

    /// Reads the keys of an interval, in order; for range keyspaces.
    pub async fn scan(&self, options: ScanOptions) -> Outcome<Vec<(Vec<u8>, Value)>> {
        self.ask(|| OwnedRequest::Range(options.clone())).await.map(face::range)
    }

    fn begin(
        &self,
        request: OwnedRequest,
    ) -> impl Future<Output = oneshot::Receiver<Outcome<Reply>>> + Send {
        self.client.begin(Question::Of(self.keyspace.get(), request))
    }

    /// Asks; if the keyspace is not what it was, looks it up and asks once more.
    async fn ask(&self, request: impl Fn() -> OwnedRequest + Send) -> Outcome<Reply> {
        let used = self.keyspace.get();
        let question = Question::Of(Arc::clone(&used), request());
        let outcome = self.client.ask(question).await;
        if !is_outdated(&outcome) || !Box::pin(self.renew(&used)).await {
            return outcome;
        }
        Box::pin(self.client.ask(Question::Of(self.keyspace.get(), request()))).await
    }

    /// The same for many keys, of which those that were refused for that are asked for again. The
    /// request is for those that are named, or all, and says for how many.
    async fn ask_many<T: Clone + Send>(
        &self,
        request: impl Fn(Option<&[usize]>) -> (usize, OwnedRequest) + Send,
        outcomes: fn(Reply) -> Vec<Outcome<T>>,
    ) -> Vec<Outcome<T>> {
        let used = self.keyspace.get();
        let (count, first) = request(None);
        let outcome = self.client.ask(Question::Of(Arc::clone(&used), first)).await;
        let mut all = face::many(outcome, count, outcomes);
        let which = outdated(&all);
        if which.is_empty() || !Box::pin(self.renew(&used)).await {
            return all;
        }
        let (count, again) = request(Some(&which));
        let outcome = self.client.ask(Question::Of(self.keyspace.get(), again)).await;
        put_back(&mut all, &which, face::many(outcome, count, outcomes));
        all
    }

    /// Looks the keyspace up again, unless somebody has just done so; whether it is another one
    /// than the one that was used.
    async fn renew(&self, used: &Arc<Keyspace>) -> bool {
        if self.keyspace.get() == *used {
            let name = used.name.clone();
            let outcome = self.client.ask(Question::Describe(name)).await;
            // If that is refused too, or not answered, what was said first is said.
            drop(self.client.known.learn(&used.name, outcome));
        }
        self.keyspace.get() != *used
    }
}

/// Nobody will ever take the command.
fn refuse(command: Command) {
    (command.deliver)(Outcome::Refused(Refusal::Closed));
}
