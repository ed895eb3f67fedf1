//! The client machine: requests in, datagrams out, replies in, outcomes out.
//!
//! A request becomes one datagram, or (scans, and requests for many keys) several, each under a
//! sequence number of its own in the [`Window`]. Every datagram is sent again until it is answered,
//! or its request is given up. What a reply means is for [`answer`], [`many`](crate::many) and
//! [`scan`](crate::scan); this file decides when something is sent and when a request has ended.

use crate::config::ClientConfig;
use crate::counters::Counters;
use crate::homes::Homes;
use crate::interval::Interval;
use crate::many::Many;
use crate::pace::{Pacer, Path, Way};
use crate::scan::{Scan, Shows, Terms};
use crate::service::Route;
use crate::window::{Cause, Owner, Pending, Window};
use crate::{Outcome, Reply, Request, StartError, Ticket, encode};
use cluster::{ContentRouting, Keyspace, Match, MaybeMutant, Mutant};
use machine::{Datagram, Instant, Outbox, Retransmissions, Rng};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use wire::{DirectoryClock, Endpoint, Op};

/// The client machine. It follows the contract of all [`machine`]s.
#[derive(Debug)]
pub struct Client {
    pub(crate) config: ClientConfig,
    pub(crate) window: Window,
    /// Requests that were asked more than once: how they went, and how long the first took.
    pub(crate) twice: Retransmissions<(Way, Duration)>,
    pub(crate) pacer: Pacer,
    pub(crate) route: Route,
    pub(crate) many: BTreeMap<Ticket, Many>,
    pub(crate) scans: BTreeMap<Ticket, Scan>,
    /// Scans and requests for many keys that have something to ask but found the window full.
    starved: BTreeSet<Ticket>,
    pub(crate) outbox: Outbox,
    outcomes: VecDeque<(Ticket, Outcome<Reply>)>,
    pub(crate) counters: Counters,
    pub(crate) mutant: MaybeMutant,
    next_ticket: u64,
    pub(crate) homes: Homes,
    /// Whether the map that it coordinates by has turned out to be old.
    pub(crate) outdated: bool,
    /// The latest clock of a switch that any reply has told.
    pub(crate) told: DirectoryClock,
    /// Requests whose outcome has not been polled.
    open: usize,
    /// Buffers of datagrams that were answered, for those to come.
    pub(crate) buffers: Vec<Vec<u8>>,
}

/// Buffers kept for use again: as many as a busy client has in flight.
const BUFFERS_MAX: usize = 1024;

/// Retries of one request that need no budget, spread over the time to its deadline: whatever
/// other requests use up, each is asked for this often.
const RETRIES_GRANTED: u32 = 3;

/// Reads moved out of the way of one new request at most: bounds its work.
const MOVED_MAX: usize = 32;

impl Client {
    /// A client that has asked nothing yet.
    ///
    /// # Panics
    ///
    /// If the configuration is outside the bounds that its fields state.
    #[must_use]
    pub fn new(config: ClientConfig, rng: Rng) -> Self {
        config.check();
        Self {
            window: Window::new(),
            twice: Retransmissions::default(),
            pacer: Pacer::new(&config, rng),
            route: Route::new(config.services.clone()),
            many: BTreeMap::new(),
            scans: BTreeMap::new(),
            starved: BTreeSet::new(),
            outbox: Outbox::default(),
            outcomes: VecDeque::new(),
            counters: Counters::default(),
            mutant: MaybeMutant::default(),
            next_ticket: 0,
            homes: Homes::default(),
            outdated: false,
            told: DirectoryClock::NONE,
            open: 0,
            buffers: Vec::new(),
            config,
        }
    }

    /// Starts a request. Its outcome comes from [`poll_outcome`](Self::poll_outcome) under this
    /// ticket, exactly once and no later than its deadline.
    ///
    /// # Errors
    ///
    /// If the request cannot be sent as it is, or too many wait; nothing was sent then.
    pub fn start(
        &mut self,
        now: Instant,
        keyspace: &Arc<Keyspace>,
        request: Request<'_>,
    ) -> Result<Ticket, StartError> {
        if self.open >= self.config.in_flight_max {
            return Err(StartError::Busy);
        }
        request.check_keys()?;
        match request {
            Request::PutParts { .. }
            | Request::GetParts { .. }
            | Request::Mget { .. }
            | Request::Mset { .. }
            | Request::Mdel { .. } => self.start_many(now, keyspace, request),
            Request::Range { start, end, reverse, limit, keys_only } => {
                let terms = Terms { reverse, limit, shows: Shows::keys_only(keys_only) };
                self.start_range(now, keyspace, (start, end), terms)
            }
            Request::Scan { first, last, after, limit, keys_only } => {
                let terms = Terms { reverse: false, limit, shows: Shows::keys_only(keys_only) };
                let interval = Interval::of_matches(first, last, after);
                Ok(self.start_scan(now, keyspace, interval, terms))
            }
            Request::Count => {
                let terms = Terms { reverse: false, limit: None, shows: Shows::Count };
                let all = Interval::of_matches(Match::MIN, Match::MAX, None);
                Ok(self.start_scan(now, keyspace, all, terms))
            }
            Request::Get { .. }
            | Request::Put { .. }
            | Request::Del { .. }
            | Request::Cas { .. }
            | Request::Seal { .. }
            | Request::Incr { .. }
            | Request::Batch { .. } => {
                let client = self.config.client_id;
                self.start_single(now, Owner::Single, self.content_of(keyspace), |out| {
                    encode::single(out, client, keyspace, &request)
                })
            }
        }
    }

    /// Asks what a keyspace name means; the reply is [`Reply::Describe`].
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn describe(&mut self, now: Instant, name: &str) -> Result<Ticket, StartError> {
        if self.open >= self.config.in_flight_max {
            return Err(StartError::Busy);
        }
        let client = self.config.client_id;
        let owner = |ticket| Owner::Describe(ticket, name.to_owned());
        self.start_single(now, owner, None, |out| {
            encode::describe(out, client, name).map(|()| Op::Describe)
        })
    }

    fn start_single(
        &mut self,
        now: Instant,
        owner: impl FnOnce(Ticket) -> Owner,
        content: Option<ContentRouting>,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<Op, StartError>,
    ) -> Result<Ticket, StartError> {
        if !self.make_room(now) {
            return Err(StartError::Busy);
        }
        let mut datagram = self.buffers.pop().unwrap_or_default();
        let op = match encode(&mut datagram) {
            Ok(op) => op,
            Err(error) => {
                self.recycle(datagram);
                return Err(error);
            }
        };
        let ticket = self.ticket();
        self.number(now, Pending::new(owner(ticket), op, datagram).by_address(content), now);
        Ok(ticket)
    }

    /// Where the content addresses of a keyspace are, if it has any that this client reaches: over
    /// IPv4 none.
    pub(crate) fn content_of(&self, keyspace: &Keyspace) -> Option<ContentRouting> {
        let over_ipv6 = |it: &Endpoint| Ipv6Addr::from(it.addr).to_ipv4_mapped().is_none();
        keyspace.content.filter(|_| self.config.services.iter().all(over_ipv6))
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.open += 1;
        self.counters.started += 1;
        ticket
    }

    /// Takes a datagram that arrived. Whoever sent it: only a node that was asked knows client id
    /// and sequence number, and replies need not come from a service address.
    pub fn handle_packet(&mut self, now: Instant, _from: Endpoint, datagram: &[u8]) {
        match self.take_reply(now, datagram) {
            Ok(past) => {
                self.counters.replies += 1;
                if !past {
                    self.route.answered();
                }
            }
            Err(reason) => self.counters.drop_for(reason),
        }
        self.feed_starved(now);
    }

    /// Sends again what is due, and gives up what is past its deadline.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(seq) = self.window.pop_due(now) {
            self.handle_timer(now, seq);
        }
        self.end_starved(now);
        self.feed_starved(now);
    }

    fn handle_timer(&mut self, now: Instant, seq: u64) {
        if now >= self.deadline_of(seq) {
            self.give_up(seq);
            return;
        }
        let Some(pending) = self.window.get_mut(seq) else { return };
        if now < pending.resend_at {
            // It was armed for a deadline that has moved.
            self.arm(seq);
            return;
        }
        if pending.copies == 0 {
            self.transmit(now, seq);
            return;
        }
        let mut aside = None;
        if pending.next == Cause::Silence {
            // Whoever goes by a map does not learn from silence what has become of a node.
            pending.by_service |= pending.past && pending.op != Op::Mget && !pending.has_address();
            let moved = !pending.past && self.route.timed_out(now, pending.sent_at);
            self.counters.moves += u64::from(moved);
            aside = self.set_aside(seq, true);
        }
        if self.may_retry(now, seq) {
            self.retry(now, seq);
        } else {
            self.counters.postponed += 1;
            self.arm(seq);
        }
        if let Some(ticket) = aside {
            self.feed_many(now, ticket);
        }
    }

    /// Whether a copy may leave; if not, the time for the next question is set.
    ///
    /// What a node asks for needs no budget: each copy is the answer to an answer, of somebody who
    /// had time for it, and they come ever later.
    fn may_retry(&mut self, now: Instant, seq: u64) -> bool {
        let share = self.config.deadline / (RETRIES_GRANTED + 1);
        let Some(pending) = self.window.get_mut(seq) else { return false };
        if pending.next == Cause::AskAgain || self.pacer.take_retry(now) {
            return true;
        }
        let mut again_at = Instant(u64::MAX);
        if pending.granted < RETRIES_GRANTED {
            again_at = pending.started_at + share * (pending.granted + 1);
            if again_at <= now {
                pending.granted += 1;
                return true;
            }
        }
        pending.backoff += 1;
        pending.resend_at =
            again_at.min(now + self.pacer.timeout(now, pending.way(), pending.backoff));
        false
    }

    fn retry(&mut self, now: Instant, seq: u64) {
        let room = self.window.has_room();
        let Some(pending) = self.window.get_mut(seq) else { return };
        if pending.next == Cause::Silence {
            pending.backoff += 1;
        }
        if matches!(pending.owner, Owner::Describe(..)) && room {
            // The switch picks the node by the number: another one may be up.
            self.renumber(now, seq);
            return;
        }
        self.counters.retransmits += 1;
        let Some(pending) = self.window.get_mut(seq) else { return };
        if let Owner::Scan(_, ask) = &pending.owner
            && !ask.is_untouched()
        {
            self.ask_for_the_rest(now, seq);
            return;
        }
        self.transmit(now, seq);
    }

    /// Whether there is room for one more number. A read keeps no session, so that the oldest ones
    /// go on under new numbers: only a write without an answer holds the window back.
    fn make_room(&mut self, now: Instant) -> bool {
        for _ in 0..MOVED_MAX {
            if self.window.has_room() {
                return true;
            }
            let oldest = self.window.oldest();
            if self.window.get(oldest).is_none_or(|it| it.way().path == Path::Write) {
                return false;
            }
            self.renumber(now, oldest);
        }
        self.window.has_room()
    }

    fn renumber(&mut self, now: Instant, seq: u64) {
        let Some(pending) = self.window.remove(seq) else { return };
        let waits = pending.copies == 0;
        let in_flight = match &pending.owner {
            Owner::Single(_) | Owner::Describe(..) => None,
            Owner::Many(ticket, _) => self.many.get_mut(ticket).map(|it| &mut it.in_flight),
            Owner::Scan(ticket, _) => self.scans.get_mut(ticket).map(|it| &mut it.in_flight),
        };
        let moved = self.window.insert(pending);
        if let Some(in_flight) = in_flight {
            in_flight.remove(&seq);
            in_flight.insert(moved);
        }
        if waits {
            self.arm(moved);
        } else {
            self.counters.retransmits += 1;
            self.transmit(now, moved);
        }
    }

    /// Numbers a datagram and sends its first copy, not before an instant.
    pub(crate) fn number(
        &mut self,
        now: Instant,
        mut pending: Pending,
        not_before: Instant,
    ) -> u64 {
        let send_at = self.pacer.start(now).max(not_before);
        pending.started_at = now;
        pending.deadline = now + self.config.deadline;
        pending.resend_at = send_at;
        let seq = self.window.insert(pending);
        if send_at <= now {
            self.transmit(now, seq);
        } else {
            self.arm(seq);
        }
        seq
    }

    /// Sets the timer to whatever comes first, the next copy or the deadline.
    pub(crate) fn arm(&mut self, seq: u64) {
        let deadline = self.deadline_of(seq);
        let Some(pending) = self.window.get(seq) else { return };
        let at = pending.resend_at.min(deadline);
        self.window.arm(seq, at);
    }

    fn deadline_of(&self, seq: u64) -> Instant {
        let Some(pending) = self.window.get(seq) else { return Instant(u64::MAX) };
        let of_aggregate = match &pending.owner {
            Owner::Single(_) | Owner::Describe(..) => None,
            Owner::Many(ticket, _) => self.many.get(ticket).map(Many::deadline),
            Owner::Scan(ticket, _) => self.scans.get(ticket).map(|it| it.deadline),
        };
        of_aggregate.unwrap_or(pending.deadline)
    }

    /// Ends a datagram's wait, and gives what it waited with.
    pub(crate) fn end(&mut self, seq: u64) -> Option<Owner> {
        let pending = self.window.remove(seq)?;
        self.recycle(pending.datagram);
        Some(pending.owner)
    }

    /// A request has ended.
    pub(crate) fn conclude(&mut self, ticket: Ticket, outcome: Outcome<Reply>) {
        let count = match &outcome {
            Outcome::Done(_) => &mut self.counters.done,
            Outcome::Refused(_) => &mut self.counters.refused,
            Outcome::Unknown(_) => &mut self.counters.unknown,
        };
        *count += 1;
        self.outcomes.push_back((ticket, outcome));
    }

    /// Ends requests for many keys whose time is up while nothing of them is on its way.
    fn end_starved(&mut self, now: Instant) {
        let is_over =
            |ticket: &&Ticket| self.many.get(ticket).is_some_and(|it| it.deadline() <= now);
        let over: Vec<Ticket> = self.starved.iter().filter(is_over).copied().collect();
        for ticket in over {
            self.end_many(ticket);
        }
    }

    /// Lets those go on that waited for room in the window.
    fn feed_starved(&mut self, now: Instant) {
        while self.window.has_room() {
            let Some(ticket) = self.starved.pop_first() else { return };
            self.feed_many(now, ticket);
            self.feed_scan(now, ticket);
        }
    }

    pub(crate) fn starve(&mut self, ticket: Ticket) {
        self.starved.insert(ticket);
    }

    fn recycle(&mut self, mut datagram: Vec<u8>) {
        if self.buffers.len() < BUFFERS_MAX {
            datagram.clear();
            self.buffers.push(datagram);
        }
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        self.outbox.pop()
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, unless something else
    /// happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.window.next_timer()
    }

    /// The next request that has ended, and how.
    pub fn poll_outcome(&mut self) -> Option<(Ticket, Outcome<Reply>)> {
        let ended = self.outcomes.pop_front()?;
        self.open -= 1;
        Some(ended)
    }

    /// How many requests have been started whose outcome has not been polled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.open
    }

    /// How many datagrams wait for an answer.
    #[must_use]
    pub fn datagrams_in_flight(&self) -> usize {
        self.window.len()
    }

    /// Breaks a rule on purpose, for the simulator to notice. Bugs of other roles change nothing.
    pub fn mutant(&mut self, mutant: Mutant) {
        self.mutant = MaybeMutant::of(mutant);
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
