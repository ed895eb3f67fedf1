//! What the blocking and the async face have in common: replies as callers want them, and the
//! [`Driver`] that hands them to the machine and outcomes to whoever waits.

use crate::clock::Clock;
use crate::held::{Held, NextPut, NumberedWaiter};
use crate::mailbox::Mailbox;
use crate::options::Options;
use crate::owned::OwnedRequest;
use crate::present::Present;
use crate::service::Services;
use crate::unsent::Unsent;
use crate::{
    BatchReply, CasReply, Client, ClientConfig, DelReply, IncrReply, KeyCount, NotDone, Outcome,
    Refusal, Reply, Request, StartError, Ticket, Tickets, UnknownReason, Value,
};
use cluster::Keyspace;
use envelope::Seat;
use machine::{Instant, Rng};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::{UploadBody, Version};

/// Why a keyspace could not be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// There is none of that name.
    NoSuchKeyspace(String),
    /// The question was not answered.
    NotDone(NotDone),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchKeyspace(name) => write!(f, "there is no keyspace {name:?}"),
            Self::NotDone(NotDone::Refused(why)) => write!(f, "keyspace lookup refused: {why}"),
            Self::NotDone(NotDone::Unknown(why)) => write!(
                f,
                "keyspace lookup: {why}; is the service address right and the cluster up?"
            ),
        }
    }
}

impl std::error::Error for LookupError {}

/// What a caller wants to know.
#[derive(Debug)]
pub(crate) enum Question {
    Describe(String),
    Of(Arc<Keyspace>, OwnedRequest),
}

/// The way back to whoever waits for an outcome.
pub(crate) type Deliver = Box<dyn FnOnce(Outcome<Reply>) + Send>;

/// A question and who asks it.
pub(crate) struct Command {
    pub(crate) question: Question,
    pub(crate) deliver: Deliver,
}

/// Commands on their way to the machine; callers beyond wait.
pub(crate) const COMMANDS_MAX: usize = 1024;

/// Who waits for an outcome.
enum Waiter {
    /// Somebody with one question.
    Caller(Deliver),
    /// Somebody with many, of which this is the one with that number.
    Numbered(NumberedWaiter),
    /// The same of a PUT; with where to find those that are held meanwhile.
    Put(NumberedWaiter, u64),
    /// The same of a PUT that answers for others, which were held.
    Puts(Vec<NumberedWaiter>, u64),
}

impl Waiter {
    fn deliver(self, outcome: Outcome<Reply>) {
        match self {
            Self::Caller(deliver) => deliver(outcome),
            Self::Numbered((mailbox, number)) | Self::Put((mailbox, number), _) => {
                mailbox.put(number, outcome);
            }
            Self::Puts(waiters, _) => put_all(waiters, &outcome),
        }
    }

    /// Where to find what is held for it.
    fn holds(&self) -> Option<u64> {
        match self {
            Self::Put(_, keyhash) | Self::Puts(_, keyhash) => Some(*keyhash),
            Self::Caller(_) | Self::Numbered(_) => None,
        }
    }

    /// Whoever waits, of those who have many.
    fn numbered(self) -> Vec<NumberedWaiter> {
        match self {
            Self::Caller(_) => Vec::new(),
            Self::Numbered(waiter) | Self::Put(waiter, _) => vec![waiter],
            Self::Puts(waiters, _) => waiters,
        }
    }
}

fn put_all(waiters: Vec<NumberedWaiter>, outcome: &Outcome<Reply>) {
    for (mailbox, number) in waiters {
        mailbox.put(number, outcome.clone());
    }
}

/// The machine with its clock and those who wait. It has no socket.
pub(crate) struct Driver {
    pub(crate) machine: Client,
    clock: Clock,
    waiting: Tickets<Waiter>,
    /// Reads that others may share, and those who do.
    unsent: Unsent,
    sharers: BTreeMap<Ticket, Vec<NumberedWaiter>>,
    /// PUTs that wait for others of their key.
    held: Held,
    /// Commands that found the machine busy. While any is here, no more are taken.
    backlog: VecDeque<Command>,
}

impl Driver {
    /// With a seat, the client's id is that of the seat.
    pub(crate) fn new(services: Services, options: &Options, seat: Option<&Seat>) -> Self {
        let client_id = seat.map_or_else(|| random().max(1), Seat::client);
        let config = ClientConfig {
            deadline: options.deadline,
            in_flight_max: options.in_flight_max,
            result_bytes_max: options.result_bytes_max,
            ..ClientConfig::new(services, client_id)
        };
        Self {
            machine: Client::new(config, Rng::new(random())),
            clock: Clock::new(),
            waiting: Tickets::new(),
            unsent: Unsent::default(),
            sharers: BTreeMap::new(),
            held: Held::default(),
            backlog: VecDeque::new(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Whether commands may be handed in.
    pub(crate) fn takes_commands(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Starts a request, or keeps it until the machine has room.
    pub(crate) fn submit(&mut self, now: Instant, command: Command) {
        match self.start(now, &command.question) {
            Ok(ticket) => {
                self.waiting.insert(ticket, Waiter::Caller(command.deliver));
            }
            Err(StartError::Busy) => self.backlog.push_back(command),
            Err(error) => (command.deliver)(Outcome::Refused(Refusal::NotSent(error))),
        }
    }

    /// Starts a request of one who has many and gives each a number. Reads of one key that were not
    /// sent yet are one; so are PUTs that wait for one of their key.
    ///
    /// # Errors
    ///
    /// As [`Client::start`]: `Busy` also if others wait for room. There is no outcome then.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        keyspace: &Arc<Keyspace>,
        request: Request<'_>,
        (mailbox, number): (&Arc<Mailbox>, u64),
    ) -> Result<(), StartError> {
        if !self.takes_commands() {
            return Err(StartError::Busy);
        }
        let waiter = (Arc::clone(mailbox), number);
        if let Request::Get { key } = request
            && let Some(ticket) = self.unsent.find(keyspace, key)
        {
            self.sharers.entry(ticket).or_default().push(waiter);
            return Ok(());
        }
        if let Request::Put { key, value, expiry } = request
            && self.held.hold(keyspace, key, (value, expiry), &waiter)
        {
            return Ok(());
        }
        let ticket = self.machine.start(now, keyspace, request)?;
        let waiter = match request {
            Request::Put { key, .. } => Waiter::Put(waiter, self.held.note(keyspace, key, ticket)),
            _ => Waiter::Numbered(waiter),
        };
        self.waiting.insert(ticket, waiter);
        if let Request::Get { key } = request {
            self.unsent.note(keyspace, key, ticket);
        }
        Ok(())
    }

    /// A PUT has ended: sends the one that has waited for it.
    fn go_on(&mut self, ticket: Ticket, keyhash: u64) {
        let Some((place, next)) = self.held.end(keyhash, ticket) else { return };
        let (now, NextPut { value, expiry, waiters }) = (self.now(), next);
        let request = Request::Put { key: &place.key, value: &value, expiry };
        match self.machine.start(now, &place.keyspace, request) {
            Ok(ticket) => {
                let keyhash = self.held.note(&place.keyspace, &place.key, ticket);
                self.waiting.insert(ticket, Waiter::Puts(waiters, keyhash));
            }
            Err(StartError::Busy) => {
                let request = OwnedRequest::Put { key: place.key.into(), value, expiry };
                let question = Question::Of(place.keyspace, request);
                let deliver = Box::new(move |outcome| put_all(waiters, &outcome));
                self.backlog.push_back(Command { question, deliver });
            }
            Err(error) => put_all(waiters, &Outcome::Refused(Refusal::NotSent(error))),
        }
    }

    /// Lets the machine act on the time, hands out outcomes, and starts what had to wait for them.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        while self.deliver() {
            for command in std::mem::take(&mut self.backlog) {
                self.submit(now, command);
            }
        }
    }

    /// Hands out the outcomes that are there; whether there were any.
    fn deliver(&mut self) -> bool {
        let mut any = false;
        while let Some((ticket, outcome)) = self.machine.poll_outcome() {
            any = true;
            if !self.sharers.is_empty() {
                for (mailbox, number) in self.sharers.remove(&ticket).unwrap_or_default() {
                    mailbox.put(number, outcome.clone());
                }
            }
            if let Some(waiter) = self.waiting.take(ticket) {
                if let Some(keyhash) = waiter.holds() {
                    self.go_on(ticket, keyhash);
                }
                waiter.deliver(outcome);
            }
        }
        any
    }

    /// Nobody has the client any more.
    pub(crate) fn say_goodbye(&mut self) {
        self.deliver();
        self.machine.say_goodbye(self.now());
    }

    /// Everything that the machine has to say is sent now.
    pub(crate) fn note_sent(&mut self) {
        self.unsent.clear();
    }

    /// Nobody will be answered any more. Callers see that by themselves.
    pub(crate) fn close(self) {
        let numbered = self.waiting.into_notes().flat_map(Waiter::numbered);
        let others = self.sharers.into_values().flatten().chain(self.held.into_waiters());
        put_all(numbered.chain(others).collect(), &Outcome::Unknown(UnknownReason::Closed));
    }

    /// How long nothing needs to happen unless something arrives; `None` for ever.
    pub(crate) fn idle_time(&self, now: Instant) -> Option<Duration> {
        self.machine.poll_timeout().map(|at| at.since(now))
    }

    fn start(&mut self, now: Instant, question: &Question) -> Result<Ticket, StartError> {
        let (keyspace, request) = match question {
            Question::Describe(name) => return self.machine.describe(now, name),
            Question::Of(keyspace, request) => (keyspace, request),
        };
        request.lend(|request| self.machine.start(now, keyspace, request))
    }
}

/// A name for an upload that no other has.
pub(crate) fn upload_id() -> UploadBody {
    UploadBody { client: random(), number: random() }
}

/// 64 bits that no other client has drawn: the standard library seeds its hash keys from the
/// system's randomness.
fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Keyspaces that have been looked up, by name. Bounded by `wire::KEYSPACES_MAX`.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<BTreeMap<String, Arc<Present>>>);

impl Known {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Present>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Takes the answer to a DESCRIBE: all who use the keyspace use what it says from now on.
    pub(crate) fn learn(
        &self,
        name: &str,
        outcome: Outcome<Reply>,
    ) -> Result<Arc<Present>, LookupError> {
        let keyspace = match outcome {
            Outcome::Done(Reply::Describe(keyspace)) => keyspace,
            Outcome::Done(other) => unexpected(&other),
            Outcome::Refused(Refusal::UnknownKeyspace) => {
                return Err(LookupError::NoSuchKeyspace(name.to_owned()));
            }
            Outcome::Refused(why) => return Err(LookupError::NotDone(NotDone::Refused(why))),
            Outcome::Unknown(why) => return Err(LookupError::NotDone(NotDone::Unknown(why))),
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(present) = known.get(name) {
            present.replace(keyspace);
            return Ok(Arc::clone(present));
        }
        let present = Arc::new(Present::new(keyspace));
        if known.len() < wire::KEYSPACES_MAX {
            known.insert(name.to_owned(), Arc::clone(&present));
        }
        Ok(present)
    }
}

fn unexpected(reply: &Reply) -> ! {
    unreachable!("the variant of a reply is that of its request, but here is {reply:?}")
}

pub(crate) fn get(reply: Reply) -> Option<Value> {
    let Reply::Get(found) = reply else { unexpected(&reply) };
    found
}

pub(crate) fn put(reply: Reply) -> Version {
    let Reply::Put { version } = reply else { unexpected(&reply) };
    version
}

pub(crate) fn del(reply: Reply) -> DelReply {
    let Reply::Del(deleted) = reply else { unexpected(&reply) };
    deleted
}

pub(crate) fn cas(reply: Reply) -> CasReply {
    let Reply::Cas(swapped) = reply else { unexpected(&reply) };
    swapped
}

pub(crate) fn incr(reply: Reply) -> IncrReply {
    let Reply::Incr(added) = reply else { unexpected(&reply) };
    added
}

pub(crate) fn batch(reply: Reply) -> BatchReply {
    let Reply::Batch(done) = reply else { unexpected(&reply) };
    done
}

/// One outcome for each of `count` keys, also if the request as a whole was not done.
pub(crate) fn many<T: Clone>(
    outcome: Outcome<Reply>,
    count: usize,
    outcomes: impl FnOnce(Reply) -> Vec<Outcome<T>>,
) -> Vec<Outcome<T>> {
    match outcome {
        Outcome::Done(reply) => outcomes(reply),
        Outcome::Refused(why) => vec![Outcome::Refused(why); count],
        Outcome::Unknown(why) => vec![Outcome::Unknown(why); count],
    }
}

pub(crate) fn mget(reply: Reply) -> Vec<Outcome<Option<Value>>> {
    let Reply::Mget(outcomes) = reply else { unexpected(&reply) };
    outcomes
}

pub(crate) fn mset(reply: Reply) -> Vec<Outcome<Version>> {
    let Reply::Mset(outcomes) = reply else { unexpected(&reply) };
    outcomes
}

pub(crate) fn mdel(reply: Reply) -> Vec<Outcome<DelReply>> {
    let Reply::Mdel(outcomes) = reply else { unexpected(&reply) };
    outcomes
}

/// Copies of keys that a caller has lent.
pub(crate) fn owned<K: AsRef<[u8]>>(keys: &[K]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.as_ref().to_vec()).collect()
}

/// Copies of entries that a caller has lent.
pub(crate) fn owned_entries<K, V>(entries: &[(K, V)]) -> Vec<(Vec<u8>, Vec<u8>)>
where
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    entries.iter().map(|(key, value)| (key.as_ref().to_vec(), value.as_ref().to_vec())).collect()
}

pub(crate) fn range(reply: Reply) -> Vec<(Vec<u8>, Value)> {
    let Reply::Range(entries) = reply else { unexpected(&reply) };
    entries
}

pub(crate) fn count(reply: Reply) -> KeyCount {
    let Reply::Count(counted) = reply else { unexpected(&reply) };
    counted
}

#[cfg(test)]
mod tests;
