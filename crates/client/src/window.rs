//! The table of requests that wait for an answer: a window of sequence numbers, and their timers.
//!
//! Sequence numbers are dense, so that the table is a ring indexed by them, and the low-water mark
//! is its front. Timers sit in a heap whose entries are not taken out when they are put off or
//! their request ends: an entry counts only if the request still names its instant.

use crate::many::Part;
use crate::pace::{Path, Region, Way};
use crate::scan::Ask;
use crate::{IN_FLIGHT_MAX, StoreWords, Ticket};
use cluster::{ContentRouting, KeyspaceId, Match};
use machine::Instant;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use wire::{ContentClass, Endpoint, Fields as _, HEADER_LEN, Op, SinceBody, Version, flag};

/// One datagram that waits for its answer.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Whose request it is.
    pub(crate) owner: Owner,
    /// Its operation.
    pub(crate) op: Op,
    /// The bytes; sequence number, `lag`, bitmap and tag are set anew for each copy.
    pub(crate) datagram: Vec<u8>,
    /// Copies sent under this sequence number.
    pub(crate) copies: u32,
    /// Waits for an answer that were in vain.
    pub(crate) backoff: u32,
    /// Ask-again answers in a row.
    pub(crate) agains: u32,
    /// Why the next copy will leave.
    pub(crate) next: Cause,
    /// Whether the last answer was that a node has too much to do.
    pub(crate) overloaded: bool,
    /// What the last answer said of a store that refuses changes, and how often that was said.
    pub(crate) store_refuses: Option<Box<(StoreWords, u32)>>,
    /// Whether its last copy passed no switch.
    pub(crate) past: bool,
    /// Whether it goes by the service address, whoever coordinates.
    pub(crate) by_service: bool,
    /// Where the content addresses of its keyspace are, if it goes to that of its key.
    content: Option<ContentRouting>,
    /// Whether it was told that its key is delegated, and asked again at once.
    asked_delegated: bool,
    /// Retries granted although the budget was empty.
    pub(crate) granted: u32,
    /// When it was numbered.
    pub(crate) started_at: Instant,
    /// When the last copy left.
    pub(crate) sent_at: Instant,
    /// When the next copy is due.
    pub(crate) resend_at: Instant,
    /// When it is given up, unless its owner says later.
    pub(crate) deadline: Instant,
    timer: Instant,
}

/// Copies that go to the content address of a key before one goes to the service address.
const ADDRESS_TRIES: u32 = 2;

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No answer has come to the last copy.
    Silence,
    /// An answer said so. Further ones to the same copy change nothing.
    AskAgain,
    /// An answer said that a node has too much to do.
    Overloaded,
}

/// Whose request a datagram is.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The whole request of this ticket.
    Single(Ticket),
    /// DESCRIBE, with the name asked for.
    Describe(Ticket, String),
    /// Some keys of a request for many.
    Many(Ticket, Part),
    /// An interval of a scan.
    Scan(Ticket, Box<Ask>),
}

impl Pending {
    pub(crate) fn new(owner: Owner, op: Op, datagram: Vec<u8>) -> Self {
        let never = Instant::default();
        Self {
            owner,
            op,
            datagram,
            copies: 0,
            backoff: 0,
            agains: 0,
            next: Cause::Silence,
            overloaded: false,
            store_refuses: None,
            past: false,
            by_service: false,
            content: None,
            asked_delegated: false,
            granted: 0,
            started_at: never,
            sent_at: never,
            resend_at: never,
            deadline: never,
            timer: never,
        }
    }

    /// The same for one that goes to the content address of its key, if there are any.
    pub(crate) fn by_address(self, content: Option<ContentRouting>) -> Self {
        Self { content, ..self }
    }

    /// Whether it goes to the content address of its key.
    pub(crate) fn has_address(&self) -> bool {
        self.content.is_some()
    }

    /// The content address that its next copy goes to. `None` if it has none, or when it is the
    /// turn of the service address: if two copies were in vain, of every other one. Routes may be
    /// wrong for long, and the switch know better; or be there without it.
    pub(crate) fn next_address(&self) -> Option<Endpoint> {
        let tries = self.backoff.saturating_add(self.agains);
        let is_turn_of_service = tries >= ADDRESS_TRIES && tries.is_multiple_of(2);
        let content = self.content.filter(|_| !is_turn_of_service && !self.by_service)?;
        let header = self.datagram.first_chunk::<HEADER_LEN>()?;
        let class = ContentClass::of(self.op, header.flags())?;
        content.endpoint(class, KeyspaceId(header.keyspace()), Match(header.match_value()))
    }

    /// What its time depends on.
    pub(crate) fn way(&self) -> Way {
        let path = if self.op.is_write() { Path::Write } else { Path::Read };
        let somewhere = !matches!(self.op, Op::Mget | Op::Range | Op::Describe);
        let header = self.datagram.first_chunk::<HEADER_LEN>().filter(|_| somewhere);
        Way { path, region: header.map(|it| Region::of(it.match_value())) }
    }

    /// Its key is delegated: says whether it has not been told so before.
    pub(crate) fn ask_delegated(&mut self) -> bool {
        !std::mem::replace(&mut self.asked_delegated, true)
    }

    /// Whether its copies say since when the client is known.
    pub(crate) fn says_since(&self) -> bool {
        let header = self.datagram.first_chunk::<HEADER_LEN>();
        self.op.is_write() && header.is_some_and(|it| it.flags() & flag::SINCE != 0)
    }

    /// Makes its next copies say since when the client is known, as NO_SESSION has told it; says
    /// whether those before did not.
    pub(crate) fn say_since(&mut self, version: Version, next: u64) -> bool {
        let header = self.datagram.first_chunk_mut::<HEADER_LEN>();
        let header = header.expect("every request was emitted with a header");
        let flags = header.flags();
        let len = usize::from(header.payload_len()) + SinceBody::LEN;
        let news = self.op.is_write() && flags & flag::SINCE == 0;
        if let Ok(len) = u16::try_from(len)
            && news
        {
            header.set_flags(flags | flag::SINCE);
            header.set_payload_len(len);
            self.datagram.extend_from_slice(&SinceBody { since: version, next }.to_bytes());
        }
        news
    }

    /// Makes its next copies ask for hot keys at home; says whether those before did not.
    pub(crate) fn ask_at_home(&mut self) -> bool {
        let header = self.datagram.first_chunk_mut::<HEADER_LEN>();
        let header = header.expect("every request was emitted with a header");
        let flags = header.flags();
        let news = flags & flag::AT_HOME == 0 && matches!(self.op, Op::Get | Op::Mget);
        if news {
            header.set_flags(flags | flag::AT_HOME);
        }
        news
    }
}

/// Requests by sequence number.
#[derive(Debug)]
pub(crate) struct Window {
    /// Sequence number of the front slot: the low-water mark. Numbers start at 1.
    first: u64,
    /// The front one is always taken.
    slots: VecDeque<Option<Pending>>,
    live: usize,
    timers: BinaryHeap<Reverse<(Instant, u64)>>,
}

/// Timers beyond four for each request are swept: at most that many are outdated.
const TIMERS_SPARE: usize = 1024;

impl Window {
    pub(crate) fn new() -> Self {
        Self { first: 1, slots: VecDeque::new(), live: 0, timers: BinaryHeap::new() }
    }

    /// Whether the next sequence number is near enough to the oldest that waits.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.len() <= IN_FLIGHT_MAX
    }

    /// The low-water mark: all requests below it have ended.
    pub(crate) fn oldest(&self) -> u64 {
        self.first
    }

    /// The number that the next request will have.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// How many requests wait.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Numbers a request. Its timer is not set.
    ///
    /// # Panics
    ///
    /// Without room.
    pub(crate) fn insert(&mut self, pending: Pending) -> u64 {
        assert!(self.has_room(), "the distance to the low-water mark fits 16 bits");
        self.slots.push_back(Some(pending));
        self.live += 1;
        self.first + self.slots.len() as u64 - 1
    }

    /// How far `seq` is from the low-water mark.
    pub(crate) fn lag(&self, seq: u64) -> u16 {
        u16::try_from(seq.saturating_sub(self.first)).expect("the window is 16 bits wide")
    }

    fn index(&self, seq: u64) -> Option<usize> {
        usize::try_from(seq.checked_sub(self.first)?).ok()
    }

    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut Pending> {
        let index = self.index(seq)?;
        self.slots.get_mut(index)?.as_mut()
    }

    pub(crate) fn get(&self, seq: u64) -> Option<&Pending> {
        self.slots.get(self.index(seq)?)?.as_ref()
    }

    /// The request has ended, or goes on under another number.
    pub(crate) fn remove(&mut self, seq: u64) -> Option<Pending> {
        let index = self.index(seq)?;
        let pending = self.slots.get_mut(index)?.take()?;
        self.live -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        self.settle_timers();
        Some(pending)
    }

    /// Sets the only timer of a request.
    pub(crate) fn arm(&mut self, seq: u64, at: Instant) {
        let Some(pending) = self.get_mut(seq) else { return };
        pending.timer = at;
        self.timers.push(Reverse((at, seq)));
        if self.timers.len() > 4 * self.live + TIMERS_SPARE {
            let mut timers = std::mem::take(&mut self.timers);
            timers.retain(|Reverse((at, seq))| self.counts(*at, *seq));
            self.timers = timers;
        }
        self.settle_timers();
    }

    /// The next instant at which a timer is due.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a request whose timer is due. Its timer must be set again, or it removed.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u64> {
        let Reverse((at, seq)) = *self.timers.peek()?;
        if at > now {
            return None;
        }
        self.timers.pop();
        self.settle_timers();
        Some(seq)
    }

    fn counts(&self, at: Instant, seq: u64) -> bool {
        self.get(seq).is_some_and(|pending| pending.timer == at)
    }

    /// Keeps an outdated timer from being the next.
    fn settle_timers(&mut self) {
        while let Some(Reverse((at, seq))) = self.timers.peek() {
            if self.counts(*at, *seq) {
                return;
            }
            self.timers.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> Pending {
        Pending::new(Owner::Single(Ticket(0)), Op::Get, Vec::new())
    }

    #[test]
    fn the_low_water_mark_is_the_oldest_that_waits() {
        let mut window = Window::new();
        let seqs: Vec<u64> = (0..4).map(|_| window.insert(pending())).collect();
        assert_eq!(seqs, [1, 2, 3, 4]);
        window.remove(2).unwrap();
        assert_eq!(window.lag(4), 3);
        window.remove(1).unwrap();
        assert_eq!(window.lag(4), 1);
        assert!(window.remove(1).is_none() && window.get(2).is_none() && window.get(9).is_none());
        assert_eq!(window.len(), 2);
    }

    #[test]
    fn an_old_request_keeps_the_window_within_sixteen_bits() {
        let mut window = Window::new();
        window.insert(pending());
        let mut last = 1;
        while window.has_room() {
            last = window.insert(pending());
            if last < 65_536 {
                window.remove(last);
            }
        }
        assert_eq!((last, window.lag(last)), (65_536, u16::MAX));
        window.remove(1);
        assert!(window.has_room());
        assert_eq!(window.lag(last), 0);
    }

    #[test]
    fn only_the_last_timer_of_a_request_counts_and_outdated_ones_are_swept() {
        let mut window = Window::new();
        let seq = window.insert(pending());
        for at in 1..100_000 {
            window.arm(seq, Instant(200_000 - at));
        }
        assert!(window.timers.len() <= TIMERS_SPARE + 4);
        assert_eq!(window.next_timer(), Some(Instant(100_001)));
        window.arm(seq, Instant(300_000));
        assert_eq!(window.pop_due(Instant(299_999)), None);
        assert_eq!(window.pop_due(Instant(300_000)), Some(seq));
        assert_eq!(window.next_timer(), None);
    }
}
