//! How the client starts scans.

use super::Scan;
use super::terms::Terms;
use crate::interval::Interval;
use crate::machine::Client;
use crate::{Outcome, Reply, StartError, Ticket};
use cluster::Keyspace;
use machine::Instant;
use std::ops::Bound;
use std::sync::Arc;

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
}
