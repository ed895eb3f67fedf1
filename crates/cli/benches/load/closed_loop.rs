//! A closed loop: so many requests in flight, and a new one for each that is answered; or an open
//! one, in which as many are sent to every store, whatever it answers.

use super::contents::{Contents, KEY_LEN, KEYS};
use super::pace::{Next, Pace};
use super::round::{Meter, Round};
use machine::Rng;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Requests of one system call at most.
pub(crate) const BATCH: usize = 32;

/// A connection to a store as the loop sees it.
pub(crate) trait Connection {
    /// Adds a request to what will be sent.
    fn queue(&mut self, request: &Request<'_>);

    /// Sends what was added, as far as there is room for it.
    fn send(&mut self) -> io::Result<()>;

    /// Whether something was not sent for lack of room.
    fn is_blocked(&self) -> bool;

    /// Takes what has arrived, without waiting, and gives each reply with its request's number.
    fn receive(&mut self, take: &mut dyn FnMut(u64, Reply<'_>)) -> io::Result<()>;

    /// What to wait on.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether an answer may never come, so that the request has to be sent again.
    fn may_lose(&self) -> bool;
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Its number on this connection, from 1; a repetition keeps it.
    pub(crate) seq: u64,
    /// All requests below this number have been answered.
    pub(crate) oldest: u64,
    /// Which key.
    pub(crate) index: usize,
    /// Its name.
    pub(crate) key: &'a [u8; KEY_LEN],
    /// The value to write; `None` reads.
    pub(crate) value: Option<&'a [u8]>,
}

/// A reply.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    /// The value read.
    Value(&'a [u8]),
    /// Written.
    Done,
    /// Anything else, in words; it ends the benchmark.
    Failed(String),
}

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Put,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
        }
    }
}

/// A client of one store over one connection.
pub(crate) struct Client {
    connection: Box<dyn Connection>,
    /// Process ids of the store.
    servers: Vec<u32>,
    rng: Rng,
    /// Number of the next request.
    next: u64,
    /// Number of the oldest request that waits, or of the next one.
    oldest: u64,
    waiting: Vec<Option<Waiting>>,
    in_flight: usize,
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    index: usize,
    /// When it was to be sent; in a closed loop it was.
    due: Instant,
}

/// Requests between the oldest that waits and the newest at most: many times what is in flight, so
/// that one lost datagram does not stop the others before it is sent again.
const WINDOW_MAX: u64 = 16_384;

/// Nothing takes so long on one machine: the datagram is lost.
pub(crate) const RESEND_AFTER: Duration = Duration::from_millis(100);

/// A store that says nothing for so long has failed.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);

impl Client {
    pub(crate) fn new(connection: Box<dyn Connection>, servers: Vec<u32>) -> Self {
        let places = usize::try_from(WINDOW_MAX).expect("a small number");
        Self {
            connection,
            servers,
            rng: Rng::new(1),
            next: 1,
            oldest: 1,
            waiting: vec![None; places],
            in_flight: 0,
            value: Vec::new(),
        }
    }

    /// Writes every key.
    pub(crate) fn load(&mut self, contents: &mut Contents, round: u32) {
        let mut keys = 0..KEYS;
        self.drive(contents, Kind::Put, round, LOAD_IN_FLIGHT, |_, now| {
            keys.next().map_or(Next::Over, |index| Next::Ask { index, due: now })
        });
    }

    /// Asks for keys at random, uniformly, for so long.
    pub(crate) fn run(
        &mut self,
        contents: &mut Contents,
        kind: Kind,
        round: u32,
        pace: Pace,
        length: Duration,
    ) -> Round {
        let begin = now();
        let mut schedule = pace.schedule(begin, begin + length);
        self.drive(contents, kind, round, pace.in_flight_max(), |rng, now| {
            schedule.next(rng, now, |rng| {
                usize::try_from(rng.below(KEYS as u64)).expect("the index of a key")
            })
        })
    }

    /// Keeps requests for the keys that `source` gives in flight until it gives no more and all are
    /// answered.
    fn drive(
        &mut self,
        contents: &mut Contents,
        kind: Kind,
        round: u32,
        in_flight: usize,
        mut source: impl FnMut(&mut Rng, Instant) -> Next,
    ) -> Round {
        let mut meter = Meter::start(&self.servers);
        let mut heard_at = now();
        let mut resend_at = heard_at + RESEND_AFTER;
        loop {
            let due = self.fill(contents, kind, round, in_flight, &mut source);
            if self.in_flight == 0 && due.is_none() {
                break;
            }
            let answered = meter.round.answered;
            self.receive(contents, kind, round, &mut meter.round);
            if meter.round.answered > answered {
                heard_at = now();
                resend_at = heard_at + RESEND_AFTER;
            } else if !self.wait(due.unwrap_or(resend_at).min(resend_at)) && now() >= resend_at {
                assert!(heard_at.elapsed() < SILENCE_MAX, "the store does not answer");
                meter.round.resent += self.resend(contents, kind, round);
                resend_at = now() + RESEND_AFTER;
            }
        }
        meter.stop(&self.servers)
    }

    /// Asks for what is due. Gives when the next request will be, if that is known.
    fn fill(
        &mut self,
        contents: &Contents,
        kind: Kind,
        round: u32,
        in_flight: usize,
        source: &mut impl FnMut(&mut Rng, Instant) -> Next,
    ) -> Option<Instant> {
        let now = now();
        let (mut queued, mut later) = (0, None);
        while self.in_flight < in_flight && self.next - self.oldest < WINDOW_MAX {
            let (index, due) = match source(&mut self.rng, now) {
                Next::Ask { index, due } => (index, due),
                Next::Later(due) => {
                    later = Some(due);
                    break;
                }
                Next::Over => break,
            };
            let seq = self.next;
            self.next += 1;
            self.in_flight += 1;
            *self.place(seq) = Some(Waiting { index, due });
            self.queue(contents, kind, round, seq, index);
            queued += 1;
            if queued == BATCH {
                self.connection.send().expect("the store takes requests");
                queued = 0;
            }
        }
        if queued > 0 || self.connection.is_blocked() {
            self.connection.send().expect("the store takes requests");
        }
        later
    }

    fn queue(&mut self, contents: &Contents, kind: Kind, round: u32, seq: u64, index: usize) {
        let value = match kind {
            Kind::Get => None,
            Kind::Put => {
                contents.make_value(index, round, &mut self.value);
                Some(self.value.as_slice())
            }
        };
        let (oldest, key) = (self.oldest, contents.name(index));
        self.connection.queue(&Request { seq, oldest, index, key, value });
    }

    fn receive(&mut self, contents: &mut Contents, kind: Kind, round: u32, out: &mut Round) {
        let (waiting, in_flight) = (&mut self.waiting, &mut self.in_flight);
        let (oldest, next) = (self.oldest, self.next);
        let mut arrived_at = None;
        let mut take = |seq: u64, reply: Reply<'_>| {
            // One reading for what came together.
            let now = *arrived_at.get_or_insert_with(now);
            let place =
                if (oldest..next).contains(&seq) { waiting.get_mut(slot(seq)) } else { None };
            let Some(Waiting { index, due }) = place.and_then(Option::take) else {
                out.strays += 1;
                return;
            };
            match (kind, reply) {
                (Kind::Get, Reply::Value(value)) => {
                    assert!(contents.is_right(index, value), "key {index}: a wrong value");
                }
                (Kind::Put, Reply::Done) => contents.note_written(index, round),
                (_, Reply::Failed(why)) => panic!("key {index}: {} failed: {why}", kind.name()),
                (_, other) => panic!("key {index}: {} was answered by {other:?}", kind.name()),
            }
            out.note_latency(now.duration_since(due));
            out.answered += 1;
            *in_flight -= 1;
        };
        self.connection.receive(&mut take).expect("the store answers");
        while self.oldest < self.next && self.place(self.oldest).is_none() {
            self.oldest += 1;
        }
    }

    /// Waits for an answer until then; `false` if none came.
    fn wait(&self, until: Instant) -> bool {
        let mut events = PollFlags::POLLIN;
        events.set(PollFlags::POLLOUT, self.connection.is_blocked());
        let mut fds = [PollFd::new(self.connection.fd(), events)];
        let left = TimeSpec::from_duration(until.saturating_duration_since(now()));
        ppoll(&mut fds, Some(left), None).is_ok_and(|ready| ready > 0)
    }

    /// Sends again what has waited for too long. Gives the number of such requests.
    fn resend(&mut self, contents: &Contents, kind: Kind, round: u32) -> u64 {
        if !self.connection.may_lose() {
            return 0;
        }
        let mut resent = 0;
        for seq in self.oldest..self.next {
            let Some(Waiting { index, due }) = *self.place(seq) else { continue };
            if due.elapsed() >= RESEND_AFTER {
                self.queue(contents, kind, round, seq, index);
                self.connection.send().expect("the store takes requests");
                resent += 1;
            }
        }
        resent
    }

    fn place(&mut self, seq: u64) -> &mut Option<Waiting> {
        self.waiting.get_mut(slot(seq)).expect("below the length")
    }
}

fn slot(seq: u64) -> usize {
    usize::try_from(seq % WINDOW_MAX).expect("a small number")
}

/// Requests in flight while keys are loaded.
const LOAD_IN_FLIGHT: usize = 64;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time that really passes")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
