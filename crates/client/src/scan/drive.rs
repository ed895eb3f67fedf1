//! How the client starts scans, feeds and ends them.

use super::terms::Terms;
use super::{Ask, Scan};
use crate::encode::{self, PIECES_ALL, RangeTerms};
use crate::interval::Interval;
use crate::machine::Client;
use crate::window::{Owner, Pending};
use crate::{Outcome, Reply, StartError, Ticket};
use cluster::Keyspace;
use machine::Instant;
use std::ops::Bound;
use std::sync::Arc;
use wire::Op;

impl Client {
    /// Starts a scan between bounds on keys.
    pub(crate) fn start_range(
        &mut self,
        now: Instant,
        keyspace: &Arc<Keyspace>,
        (start, end): (Bound<&[u8]>, Bound<&[u8]>),
        terms: Terms,
    ) -> Result<Ticket, StartError> {
        if !keyspace.is_ordered() {
            return Err(StartError::NotOrdered);
        }
        for bound in [start, end] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound
                && key.len() > wire::KEY_MAX
            {
                return Err(StartError::KeyTooLong { len: key.len() });
            }
        }
        Ok(self.start_scan(now, keyspace, Interval::new(keyspace, start, end), terms))
    }

    /// Starts a scan of an interval; `None` holds no key.
    pub(crate) fn start_scan(
        &mut self,
        now: Instant,
        keyspace: &Arc<Keyspace>,
        interval: Option<Interval>,
        terms: Terms,
    ) -> Ticket {
        let ticket = self.ticket();
        let (Some(interval), true) = (interval, terms.limit != Some(0)) else {
            self.conclude(ticket, Outcome::Done(Reply::Range(Vec::new())));
            return ticket;
        };
        let deadline = now + self.config.deadline;
        let bytes_max = self.config.result_bytes_max;
        let scan = Scan::new(Arc::clone(keyspace), interval, terms, bytes_max, deadline);
        self.scans.insert(ticket, scan);
        self.feed_scan(now, ticket);
        ticket
    }

    /// An ask was answered in part: what is left of it is asked for under new numbers.
    pub(crate) fn ask_for_the_rest(&mut self, now: Instant, seq: u64) {
        let Some(Owner::Scan(ticket, ask)) = self.end(seq) else { return };
        if let Some(scan) = self.scans.get_mut(&ticket) {
            scan.in_flight.remove(&seq);
            scan.give_back(*ask);
        }
        self.feed_scan(now, ticket);
    }

    /// Asks for as many intervals of a scan as may be in flight, and ends it when it is complete.
    pub(crate) fn feed_scan(&mut self, now: Instant, ticket: Ticket) {
        while let Some(scan) = self.scans.get_mut(&ticket) {
            if scan.is_complete() {
                self.end_scan(ticket, None);
                return;
            }
            if !self.window.has_room() {
                self.starve(ticket);
                return;
            }
            let Some(want) = scan.next_want(self.config.aggregate_in_flight_max) else { return };
            let (limit, pieces) = match scan.remaining() {
                None => (u32::MAX, PIECES_ALL),
                Some(rest) => (u32::try_from(rest).unwrap_or(u32::MAX), 1),
            };
            let (reverse, shows) = (scan.reverse, scan.shows);
            let terms = RangeTerms { reverse, shows, limit, pieces };
            let mut datagram = self.buffers.pop().unwrap_or_default();
            let client = self.config.client_id;
            encode::range(&mut datagram, client, &scan.keyspace, &want.interval, terms);
            let owner = Owner::Scan(ticket, Box::new(Ask::new(want.interval)));
            let mut pending = Pending::new(owner, Op::Range, datagram);
            pending.agains = want.agains;
            self.counters.retransmits += u64::from(want.agains != 0);
            let seq = self.number(now, pending, want.not_before);
            if let Some(scan) = self.scans.get_mut(&ticket) {
                scan.in_flight.insert(seq);
            }
        }
    }

    /// Ends a scan, with its result unless there is another outcome.
    pub(crate) fn end_scan(&mut self, ticket: Ticket, outcome: Option<Outcome<Reply>>) {
        let Some(scan) = self.scans.remove(&ticket) else { return };
        for seq in &scan.in_flight {
            self.end(*seq);
        }
        let outcome = outcome.unwrap_or_else(|| Outcome::Done(scan.finish()));
        self.conclude(ticket, outcome);
    }
}
