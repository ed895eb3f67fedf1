//! The part of the machine that feeds requests for many keys, takes their answers and ends them.

use super::{Answered, Limits, Many, Part};
use crate::machine::Client;
use crate::window::{Owner, Pending};
use crate::{Expiry, NotDone, Outcome, Reply, Request, StartError, Ticket};
use cluster::{Keyspace, Mutant};
use machine::Instant;
use std::sync::Arc;
use wire::{Code, DropReason, MgetEntries, PartKey};

impl Client {
    /// Starts a request for many keys.
    pub(crate) fn start_many(
        &mut self,
        now: Instant,
        keyspace: &Arc<Keyspace>,
        request: Request<'_>,
    ) -> Result<Ticket, StartError> {
        let limits = |within| Limits::new(&self.config, now, within);
        let many = match request {
            Request::Mget { keys, within } => {
                Many::get(keyspace, keys, &self.config.coordination, limits(within))
            }
            Request::GetParts { key, upload, first, count } => {
                let named = (first..first.saturating_add(count))
                    .map(|index| PartKey { key, upload, index }.to_bytes());
                let named: Vec<Vec<u8>> = named.collect();
                let keys: Vec<&[u8]> = named.iter().map(Vec::as_slice).collect();
                Many::get(keyspace, &keys, &self.config.coordination, limits(None))
            }
            Request::PutParts { key, upload, first, part_len, bytes } => {
                let parts = (first..).zip(bytes.chunks(part_len.max(1)));
                let named = |(index, part)| (PartKey { key, upload, index }.to_bytes(), part);
                let named: Vec<(Vec<u8>, &[u8])> = parts.map(named).collect();
                let entries: Vec<(&[u8], &[u8])> =
                    named.iter().map(|(key, part)| (&key[..], *part)).collect();
                Many::put(keyspace, &entries, Expiry::Never, limits(None))
            }
            Request::Mdel { keys, within } => Many::del(keyspace, keys, limits(within)),
            Request::Mset { entries, expiry, within } => {
                Many::put(keyspace, entries, expiry, limits(within))
            }
            _ => unreachable!("a request for one key, or an interval, is none for many keys"),
        }?;
        let ticket = self.ticket();
        self.many.insert(ticket, many);
        self.feed_many(now, ticket);
        Ok(ticket)
    }

    /// Sends what may be sent, and ends the request if nothing is left to be answered.
    pub(crate) fn feed_many(&mut self, now: Instant, ticket: Ticket) {
        while let Some(many) = self.many.get_mut(&ticket) {
            if many.is_complete() {
                self.end_many(ticket);
                return;
            }
            if !many.may_send() {
                return;
            }
            if !self.window.has_room() {
                self.starve(ticket);
                return;
            }
            let mut datagram = self.buffers.pop().unwrap_or_default();
            let (op, part) = many.deal(&mut datagram, now, self.config.client_id);
            let keyspace = Arc::clone(&many.keyspace);
            let pending = Pending::new(Owner::Many(ticket, part), op, datagram);
            let pending = pending.by_address(self.content_of(&keyspace));
            let seq = self.number(now, pending, now);
            if let Some(many) = self.many.get_mut(&ticket) {
                many.in_flight.insert(seq);
            }
        }
    }

    /// Takes a reply to an MGET.
    pub(crate) fn take_entries(
        &mut self,
        now: Instant,
        seq: u64,
        entries: &MgetEntries<'_>,
    ) -> Result<(), DropReason> {
        let by_count = self.mutant.is(Mutant::CompleteByCount);
        self.take_many(now, seq, |many, part| {
            let mut answered = many.take_entries(part, entries);
            if by_count {
                answered.decided |= many.complete_by_count(part);
            }
            answered
        })
    }

    /// Takes the answer to one write of many.
    pub(crate) fn take_write(
        &mut self,
        now: Instant,
        seq: u64,
        reply: Reply,
    ) -> Result<(), DropReason> {
        self.take_many(now, seq, |many, part| many.take_write(part, reply))
    }

    /// These keys were refused, or nobody can know how they ended.
    pub(crate) fn fail_many(
        &mut self,
        now: Instant,
        seq: u64,
        bitmap: u32,
        why: NotDone,
    ) -> Result<(), DropReason> {
        self.take_many(now, seq, |many, part| many.fail(part, bitmap, why))
    }

    fn take_many(
        &mut self,
        now: Instant,
        seq: u64,
        take: impl FnOnce(&mut Many, &mut Part) -> Answered,
    ) -> Result<(), DropReason> {
        let pending = self.window.get_mut(seq);
        let Some(Pending { owner: Owner::Many(ticket, part), .. }) = pending else {
            return Err(DropReason::UnknownRequest);
        };
        let ticket = *ticket;
        let many = self.many.get_mut(&ticket).ok_or(DropReason::UnknownRequest)?;
        let answered = take(many, part);
        if answered.decided == 0 && answered.again == 0 {
            return Err(DropReason::UnknownRequest);
        }
        let part = *part;
        if answered.decided != 0 {
            many.progress_by = now + self.config.deadline;
        }
        self.counters.ask_again += u64::from(answered.again != 0);
        self.counters.overloaded += u64::from(answered.overloaded);
        if part.missing == 0 {
            many.end_part(seq, part);
            self.decided(now, seq);
            self.end(seq);
        } else if answered.again != 0 {
            let Some(pending) = self.window.get_mut(seq) else { return Ok(()) };
            let not_here = answered.not_here == answered.again;
            let past = pending.past;
            let from_copy = not_here && !past && pending.ask_at_home();
            let code = if answered.elsewhere { Code::NotOwner } else { Code::NotHere };
            let turned =
                past && (not_here || answered.elsewhere) && self.turn_to_service(seq, code);
            self.set_aside(seq, answered.overloaded);
            self.ask_again_later(now, seq, answered.overloaded, turned || from_copy);
        }
        self.feed_many(now, ticket);
        Ok(())
    }

    /// A datagram was not answered in time, or is to be sent again later: if it is one of many,
    /// the others do not wait for it.
    pub(crate) fn set_aside(&mut self, seq: u64, congested: bool) -> Option<Ticket> {
        let pending = self.window.get_mut(seq)?;
        let Owner::Many(ticket, part) = &mut pending.owner else { return None };
        let many = self.many.get_mut(ticket)?;
        many.set_aside(part, congested);
        Some(*ticket)
    }

    /// Ends a request for many keys; what was asked for and has no answer is unknown.
    pub(crate) fn end_many(&mut self, ticket: Ticket) {
        let Some(mut many) = self.many.remove(&ticket) else { return };
        for seq in std::mem::take(&mut many.in_flight) {
            let sent = self.window.get(seq).is_some_and(|pending| pending.copies > 0);
            let why = self.why_unknown(seq);
            if let Some(Owner::Many(_, mut part)) = self.end(seq)
                && sent
            {
                let missing = part.missing;
                many.fail(&mut part, missing, NotDone::Unknown(why));
            }
        }
        self.conclude(ticket, Outcome::Done(many.finish()));
    }
}
