//! Requests for many keys, as one: what is asked of each, and what came of it.
//!
//! Each distinct key is asked for once, whatever its places. Reads go out with as many keys to a
//! datagram as fit, writes one by one. A read's datagram is done when the union of the bits that
//! its replies answer covers its keys, however many replies that takes. Keys that are answered
//! late wait aside, so that they delay no others; the request ends when every key has its answer.

mod apart;
mod assist;
mod drive;
mod flight;
mod keys;

use crate::config::ClientConfig;
use crate::coordination::{Coordination, Home};
use crate::{
    DelReply, Expiry, MANY_KEYS_MAX, NotDone, Outcome, Refusal, Reply, Request, StartError,
    UnknownReason, Value, encode,
};
use cluster::Keyspace;
use flight::{Flight, SHARES, WRITE_SHARES};
use keys::Keys;
use machine::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::{Code, FILL_MAX, HEADER_LEN, Header, MGET_KEYS_MAX, MgetEntries, Op, Version};

/// A request for any number of keys.
#[derive(Debug)]
pub(crate) struct Many {
    keyspace: Arc<Keyspace>,
    keys: Keys,
    work: Work,
    /// The first key that has not been put into a datagram.
    next: usize,
    flight: Flight,
    /// Sequence numbers that wait for an answer.
    pub(crate) in_flight: BTreeSet<u64>,
    /// Datagrams among them that are answered late.
    late: usize,
    /// Bytes that the values found take.
    bytes: usize,
    bytes_max: usize,
    /// Who sends each node its own keys, if it reads.
    coordination: Coordination,
    /// Of each key, by number, who has it by the map that the client goes by; empty without one.
    homes: Vec<Home>,
    /// Given up at this time unless there is progress.
    progress_by: Instant,
    /// Ended at this time, with what there is.
    end_at: Instant,
}

/// What is done with each key, and what came of it, by the key's number.
#[derive(Debug)]
enum Work {
    Get(Vec<Outcome<Option<Value>>>),
    Put { values: Values, expiry: Expiry, began: Instant, outcomes: Vec<Outcome<Version>> },
    Del(Vec<Outcome<DelReply>>),
}

/// Values to write, by the key's number.
#[derive(Debug)]
struct Values {
    bytes: Vec<u8>,
    /// Where each begins and ends.
    ranges: Vec<(u32, u32)>,
}

/// The keys of one datagram: which they are, and which have no answer yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Number of its first key.
    first: usize,
    /// How many there are.
    keys: u32,
    /// How much room it takes while none has an answer.
    whole: u32,
    /// Bit i stands for key `first + i`.
    pub(crate) missing: u32,
    /// Whether others have stopped waiting for it.
    late: bool,
    /// Entries taken: what no decision may rest on.
    entries: u32,
}

/// What one reply changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answered {
    /// Keys that are decided now and were not before.
    pub(crate) decided: u32,
    /// Keys that are to be asked for again.
    pub(crate) again: u32,
    /// Those of them whose copy was no good, or that the switch does not know the newest of yet.
    pub(crate) not_here: u32,
    /// Whether a node said overloaded.
    pub(crate) overloaded: bool,
    /// Whether one said that it does not have a key.
    pub(crate) elsewhere: bool,
}

/// Datagrams of one request that may be late before it goes no further: bounds what it holds. With
/// one slow node of eight that is the keys of 131,072.
const LATE_MAX: usize = 4096;

/// What a value takes besides its bytes.
const VALUE_OVERHEAD: usize = size_of::<Outcome<Option<Value>>>();

/// What has not been sent will not be.
const NOT_SENT: Refusal = Refusal::NotInTime;

/// How a request for many keys is limited.
#[derive(Clone, Copy, Debug)]
struct Limits {
    now: Instant,
    /// Ended after this time, with what there is.
    within: Option<Duration>,
    /// Ended after this time without progress.
    deadline: Duration,
    datagrams_max: usize,
    bytes_max: usize,
}

impl Limits {
    fn new(config: &ClientConfig, now: Instant, within: Option<Duration>) -> Self {
        Self {
            now,
            within,
            deadline: config.deadline,
            datagrams_max: config.aggregate_in_flight_max,
            bytes_max: config.result_bytes_max,
        }
    }
}

impl Many {
    /// Reads these keys.
    fn get(
        keyspace: &Arc<Keyspace>,
        keys: &[&[u8]],
        coordination: &Coordination,
        limits: Limits,
    ) -> Result<Self, StartError> {
        check_count(keys.len())?;
        keys.iter().try_for_each(|key| encode::check_key(key))?;
        let keys = Keys::new(keyspace, keys.iter().copied());
        let outcomes = vec![Outcome::Unknown(UnknownReason::NoAnswer); keys.len()];
        let mut many = Self::new(keyspace, keys, Work::Get(outcomes), limits);
        many.coordination = coordination.clone();
        if let Some(directory) = coordination.directory() {
            many.sort_by_node(directory);
        }
        Ok(many)
    }

    /// Deletes these keys.
    fn del(keyspace: &Arc<Keyspace>, keys: &[&[u8]], limits: Limits) -> Result<Self, StartError> {
        check_count(keys.len())?;
        keys.iter().try_for_each(|key| encode::check_key(key))?;
        let keys = Keys::new(keyspace, keys.iter().copied());
        let outcomes = vec![Outcome::Refused(NOT_SENT); keys.len()];
        Ok(Self::new(keyspace, keys, Work::Del(outcomes), limits))
    }

    /// Writes these keys. Of one that is there more than once, the last value is written.
    fn put(
        keyspace: &Arc<Keyspace>,
        entries: &[(&[u8], &[u8])],
        expiry: Expiry,
        limits: Limits,
    ) -> Result<Self, StartError> {
        check_count(entries.len())?;
        entries.iter().try_for_each(|(key, value)| encode::check_entry(key, value))?;
        let keys = Keys::new(keyspace, entries.iter().map(|(key, _)| *key));
        let values = Values::last(&keys, entries.iter().map(|(_, value)| *value));
        let outcomes = vec![Outcome::Refused(NOT_SENT); keys.len()];
        let work = Work::Put { values, expiry, began: limits.now, outcomes };
        Ok(Self::new(keyspace, keys, work, limits))
    }

    fn new(keyspace: &Arc<Keyspace>, keys: Keys, work: Work, limits: Limits) -> Self {
        let Limits { now, within, deadline, datagrams_max, bytes_max } = limits;
        Self {
            keyspace: Arc::clone(keyspace),
            keys,
            work,
            next: 0,
            flight: Flight::new(datagrams_max),
            in_flight: BTreeSet::new(),
            late: 0,
            bytes: 0,
            bytes_max,
            coordination: Coordination::Switch,
            homes: Vec::new(),
            progress_by: now + deadline,
            end_at: within.map_or(Instant(u64::MAX), |within| now + within),
        }
    }

    /// When it ends unless something happens.
    pub(crate) fn deadline(&self) -> Instant {
        self.progress_by.min(self.end_at)
    }

    /// Whether every key has its answer.
    fn is_complete(&self) -> bool {
        self.next == self.keys.len() && self.in_flight.is_empty()
    }

    /// Whether the next datagram may leave.
    fn may_send(&self) -> bool {
        let shares = self.work.shares();
        self.next < self.keys.len() && self.flight.has_room(shares) && self.late < LATE_MAX
    }

    /// Writes the next datagram.
    fn deal(&mut self, out: &mut Vec<u8>, now: Instant, client: u64) -> (Op, Part) {
        let first = self.next;
        let count = match &self.work {
            Work::Get(_) => self.readable(first),
            Work::Put { .. } | Work::Del(_) => 1,
        };
        let Self { keyspace, keys, work, next, .. } = self;
        let write = |out: &mut Vec<u8>, request: Request<'_>| {
            let op = encode::single(out, client, keyspace, &request);
            op.expect("keys and values were checked before the first was sent")
        };
        let op = match work {
            Work::Get(_) => {
                let named = (first..first + count).map(|number| keys.named(number));
                let keyspace = keyspace.id.0;
                let bitmap = all(count);
                let op = Op::Mget as u8;
                let header = Header { op, keyspace, client, bitmap, ..Header::default() };
                wire::emit_mget(out, &header, named);
                Op::Mget
            }
            Work::Put { values, expiry, began, .. } => {
                let (key, value) = (keys.key(first), values.get(first));
                // However late a key's turn comes, its time counts from the start of the request.
                let expiry = match *expiry {
                    Expiry::In(after) => Expiry::In(after.saturating_sub(now.since(*began))),
                    other => other,
                };
                write(out, Request::Put { key, value, expiry })
            }
            Work::Del(_) => write(out, Request::Del { key: keys.key(first) }),
        };
        *next += count;
        if let (Op::Mget, Coordination::Assisted(_)) = (op, &self.coordination) {
            self.hint(out, first..first + count);
        }
        let whole = self.work.shares();
        self.flight.sent(whole);
        let missing = all(count);
        (op, Part { first, whole, keys: missing.count_ones(), missing, late: false, entries: 0 })
    }

    /// How many keys the next datagram of an MGET asks for.
    fn readable(&self, first: usize) -> usize {
        let lens = (first..self.keys.len()).map(|number| self.keys.key(number).len());
        self.whole_groups(first, fitting(lens.take(self.beside(first))))
    }

    /// Takes the entries of an MGET's reply. A key that has its answer keeps it.
    fn take_entries(&mut self, part: &mut Part, entries: &MgetEntries<'_>) -> Answered {
        let Work::Get(outcomes) = &mut self.work else { return Answered::default() };
        let mut answered = Answered::default();
        for (index, code, entry) in entries.iter() {
            part.entries += 1;
            let bit = 1u32.checked_shl(index.into()).unwrap_or_default() & part.missing;
            let slot = outcomes.get_mut(part.first + usize::from(index));
            let (true, Some(slot)) = (bit != 0, slot) else { continue };
            *slot = match Code::from_wire(code) {
                Some(Code::Ok) => {
                    let places = self.keys.places_of(part.first + usize::from(index));
                    let bytes = self.bytes + (entry.value.len() + VALUE_OVERHEAD) * places;
                    if bytes <= self.bytes_max {
                        self.bytes = bytes;
                        Outcome::Done(Some(entry.into()))
                    } else {
                        Outcome::Refused(Refusal::ResultTooLarge { bytes_max: self.bytes_max })
                    }
                }
                Some(Code::NotFound) => Outcome::Done(None),
                Some(code) if code.is_ask_again() => {
                    answered.again |= bit;
                    answered.not_here |= if code == Code::NotHere { bit } else { 0 };
                    answered.overloaded |= code == Code::Overloaded;
                    answered.elsewhere |= code == Code::NotOwner;
                    continue;
                }
                // A code that no read can have is as good as no answer.
                Some(code) => match Refusal::from_code(code) {
                    Some(refusal) => Outcome::Refused(refusal),
                    None => continue,
                },
                None => continue,
            };
            answered.decided |= bit;
        }
        self.answered(part, answered.decided);
        answered
    }

    /// Takes the answer to a write.
    fn take_write(&mut self, part: &mut Part, reply: Reply) -> Answered {
        match (&mut self.work, reply) {
            (Work::Put { outcomes, .. }, Reply::Put { version }) => {
                set(outcomes, part.first, Outcome::Done(version));
            }
            (Work::Del(outcomes), Reply::Del(reply)) => {
                set(outcomes, part.first, Outcome::Done(reply));
            }
            _ => return Answered::default(),
        }
        let decided = part.missing;
        self.answered(part, decided);
        Answered { decided, ..Answered::default() }
    }

    /// A node refused these keys altogether, or nobody knows how they ended.
    fn fail(&mut self, part: &mut Part, bitmap: u32, why: NotDone) -> Answered {
        let decided = part.missing & bitmap;
        for index in (0..MGET_KEYS_MAX).filter(|index| decided & (1 << index) != 0) {
            self.end_key(part.first + index, why);
        }
        self.answered(part, decided);
        Answered { decided, ..Answered::default() }
    }

    /// How a key ended that was not done.
    fn end_key(&mut self, number: usize, why: NotDone) {
        match &mut self.work {
            Work::Get(outcomes) => set(outcomes, number, why.into()),
            Work::Put { outcomes, .. } => set(outcomes, number, why.into()),
            Work::Del(outcomes) => set(outcomes, number, why.into()),
        }
    }

    /// These keys have their answers: there is room for others.
    fn answered(&mut self, part: &mut Part, decided: u32) {
        let before = part.shares();
        part.missing &= !decided;
        if !part.late {
            self.flight.answered(before - part.shares());
        }
    }

    /// The keys without an answer delay no others from now on.
    fn set_aside(&mut self, part: &mut Part, congested: bool) {
        if part.late {
            return;
        }
        part.late = true;
        self.late += 1;
        self.flight.set_aside(part.shares());
        if congested {
            self.flight.shrink(part.shares());
        }
    }

    /// A part is done.
    fn end_part(&mut self, seq: u64, part: Part) {
        self.in_flight.remove(&seq);
        self.late -= usize::from(part.late);
    }

    /// The mutant: whoever counts entries, and not the keys that they are of, thinks that keys
    /// without an answer are not there.
    fn complete_by_count(&mut self, part: &mut Part) -> u32 {
        let Work::Get(outcomes) = &mut self.work else { return 0 };
        let missing = if part.entries >= part.keys { part.missing } else { 0 };
        for index in (0..MGET_KEYS_MAX).filter(|index| missing & (1 << index) != 0) {
            set(outcomes, part.first + index, Outcome::Done(None));
        }
        self.answered(part, missing);
        missing
    }

    /// One outcome for each key, in the order of the request.
    fn finish(self) -> Reply {
        let Self { keys, work, .. } = self;
        match work {
            Work::Get(outcomes) => Reply::Mget(in_places(&keys, outcomes)),
            Work::Put { outcomes, .. } => Reply::Mset(in_places(&keys, outcomes)),
            Work::Del(outcomes) => Reply::Mdel(in_places(&keys, outcomes)),
        }
    }
}

impl Work {
    /// How much room one of its datagrams takes.
    fn shares(&self) -> u32 {
        match self {
            Self::Get(_) => SHARES,
            Self::Put { .. } | Self::Del(_) => WRITE_SHARES,
        }
    }
}

impl Part {
    /// How much of its datagram has no answer.
    fn shares(&self) -> u32 {
        (self.missing.count_ones() * self.whole).div_ceil(self.keys)
    }
}

impl Values {
    /// For each key its last value.
    fn last<'v>(keys: &Keys, values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut all = Self { bytes: Vec::new(), ranges: vec![(0, 0); keys.len()] };
        let end = |bytes: &Vec<u8>| u32::try_from(bytes.len()).expect("2^20 values of 1280 bytes");
        for (number, value) in keys.places().zip(values) {
            let start = end(&all.bytes);
            all.bytes.extend_from_slice(value);
            set(&mut all.ranges, number, (start, end(&all.bytes)));
        }
        all
    }

    fn get(&self, number: usize) -> &[u8] {
        let range = self.ranges.get(number).map(|(start, end)| *start as usize..*end as usize);
        range.and_then(|range| self.bytes.get(range)).expect("every key has a value")
    }
}

/// The outcomes at all places of the request. They are moved there, but for those of keys that
/// stand at several.
fn in_places<T: Clone>(keys: &Keys, mut outcomes: Vec<Outcome<T>>) -> Vec<Outcome<T>> {
    if keys.are_in_place() {
        return outcomes;
    }
    let mut outcome = |number: usize| {
        let found = outcomes.get_mut(number).expect(NUMBERED);
        match keys.places_of(number) {
            1 => std::mem::replace(found, Outcome::Unknown(UnknownReason::NoAnswer)),
            _ => found.clone(),
        }
    };
    keys.places().map(&mut outcome).collect()
}

const NUMBERED: &str = "every key has an outcome";

fn set<T>(all: &mut [T], number: usize, it: T) {
    *all.get_mut(number).expect(NUMBERED) = it;
}

/// Bits for so many keys of one datagram.
fn all(count: usize) -> u32 {
    u32::MAX >> (u32::BITS as usize - count)
}

fn check_count(count: usize) -> Result<(), StartError> {
    if count > MANY_KEYS_MAX { Err(StartError::TooManyKeys { count }) } else { Ok(()) }
}

/// How many keys of these lengths go into one MGET; at least one does.
fn fitting(key_lens: impl Iterator<Item = usize>) -> usize {
    let mut len = HEADER_LEN;
    let fits = |key_len: &usize| {
        len += wire::mget_len(std::iter::once(*key_len));
        len <= FILL_MAX
    };
    key_lens.take(MGET_KEYS_MAX).take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, KeyspaceId, KeyspaceKind};

    #[test]
    fn keys_are_dealt_to_datagrams_that_hold_them() {
        let (id, hot) = (KeyspaceId(1), HotPolicy::Off);
        let (name, kind) = ("k".into(), KeyspaceKind::Hash);
        let keyspace =
            Arc::new(Keyspace { id, name, kind, seed: 1, replicas: 1, hot, content: None });
        let short: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n]).collect();
        let long: Vec<Vec<u8>> = (0..3).map(|n| vec![n; wire::KEY_MAX]).collect();
        let keys: Vec<&[u8]> = short.iter().chain(&short).chain(&long).map(Vec::as_slice).collect();
        let config = crate::ClientConfig::new(wire::Endpoint::default(), 1);
        let limits = Limits::new(&config, Instant::default(), None);
        let mut many = Many::get(&keyspace, &keys, &Coordination::Switch, limits).unwrap();
        let mut counts = Vec::new();
        while many.may_send() {
            let mut datagram = Vec::new();
            let (op, part) = many.deal(&mut datagram, Instant::default(), 1);
            counts.push(part.missing.count_ones());
            assert!(op == Op::Mget && datagram.len() <= FILL_MAX);
        }
        assert_eq!(counts, [32, 9, 1, 1], "a key that is there twice is asked for once");
    }
}
