//! The half of the machine that takes replies, and ends and feeds multigets and scans.

use crate::encode::{self, PIECES_ALL, RangeTerms};
use crate::machine::{Client, path};
use crate::multiget::{Answered, Multiget, Part};
use crate::scan::{Ask, Piece};
use crate::window::{Owner, Pending};
use crate::{Outcome, Refusal, Reply, Ticket, UnknownReason, answer};
use cluster::Plant;
use machine::Instant;
use wire::{Body, Code, DropReason, Fields as _, HEADER_LEN, Op, Packet, RangeEntries};

impl Client {
    pub(crate) fn take_reply(&mut self, now: Instant, datagram: &[u8]) -> Result<(), DropReason> {
        let packet = Packet::parse(datagram)?;
        let (header, op) = (packet.header(), packet.op());
        if !op.is_reply() {
            return Err(DropReason::BadOp);
        }
        let seq = header.seq();
        let waits = header.client() == self.config.client_id
            && self.window.get(seq).is_some_and(|it| it.op.reply() == op && it.copies > 0);
        if !waits {
            return Err(DropReason::UnknownRequest);
        }
        let body = packet.body()?;
        self.told = self.told.max(header.told());
        match body {
            Body::Refusal(code) => match self.refusal(op, code) {
                None => self.take_ask_again(now, seq, code, header),
                Some(refusal) => self.take_refusal(now, seq, header, refusal),
            },
            Body::MgetReply(entries) => {
                self.take_multiget(now, seq, |multiget, part| multiget.take(part, &entries))
            }
            Body::RangeReply(entries) => self.take_range(now, seq, header, &entries),
            Body::DescribeReply { .. } => self.take_describe(now, seq, header, &body),
            Body::GetReply(_)
            | Body::PutReply
            | Body::DelReply
            | Body::CasReply
            | Body::IncrReply { .. } => self.take_single(now, seq, header, &body),
            Body::Get { .. }
            | Body::Put { .. }
            | Body::Del { .. }
            | Body::Cas { .. }
            | Body::Incr { .. }
            | Body::Mget(_)
            | Body::Range { .. }
            | Body::Describe { .. }
            | Body::ChainWrite { .. }
            | Body::ChainAck
            | Body::ChainCommit
            | Body::ChainStable
            | Body::ChainExpire { .. }
            | Body::ChainCopy(_)
            | Body::ChainCopied
            | Body::HotCopy { .. }
            | Body::HotCopied
            | Body::HotCover
            | Body::RoamFetch { .. }
            | Body::RoamFound { .. }
            | Body::RoamEnd { .. } => Err(DropReason::BadOp),
        }
    }

    /// The refusal that a reply is; `None` if it says to ask again.
    fn refusal(&self, reply: Op, code: Code) -> Option<Refusal> {
        let stale = matches!(code, Code::StaleEpoch | Code::Closed | Code::NotOwner);
        let write = matches!(reply, Op::PutReply | Op::DelReply | Op::CasReply | Op::IncrReply);
        if self.plant == Some(Plant::StaleIsFinal) && stale && write {
            return Some(Refusal::BadMatch);
        }
        Refusal::from_code(code)
    }

    fn take_single(
        &mut self,
        now: Instant,
        seq: u64,
        header: &[u8; HEADER_LEN],
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let code = Code::from_wire(header.code()).ok_or(DropReason::BadBody)?;
        let reply =
            answer::single(code, header.object_version(), body).ok_or(DropReason::BadBody)?;
        self.decided(now, seq);
        if let Some(Owner::Single(ticket)) = self.end(seq) {
            self.conclude(ticket, Outcome::Done(reply));
        }
        Ok(())
    }

    fn take_describe(
        &mut self,
        now: Instant,
        seq: u64,
        header: &[u8; HEADER_LEN],
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let code = Code::from_wire(header.code()).ok_or(DropReason::BadBody)?;
        let Some(Pending { owner: Owner::Describe(ticket, name), .. }) = self.window.get(seq)
        else {
            return Err(DropReason::UnknownRequest);
        };
        let ticket = *ticket;
        let keyspace = answer::keyspace(name, code, body).ok_or(DropReason::BadBody)?;
        self.decided(now, seq);
        self.end(seq);
        self.conclude(ticket, Outcome::Done(Reply::Describe(keyspace)));
        Ok(())
    }

    /// A node that could decide has answered: the path is open. The time it took counts if only
    /// one copy was sent (Karn's rule).
    fn decided(&mut self, now: Instant, seq: u64) {
        self.pacer.decided();
        let Some(pending) = self.window.get(seq) else { return };
        if pending.copies == 1 {
            self.pacer.sample(path(pending.op), now.since(pending.sent_at));
        }
    }

    fn take_ask_again(
        &mut self,
        now: Instant,
        seq: u64,
        code: Code,
        header: &[u8; HEADER_LEN],
    ) -> Result<(), DropReason> {
        self.counters.ask_again += 1;
        let overloaded = code == Code::Overloaded;
        self.counters.overloaded += u64::from(overloaded);
        let Some(pending) = self.window.get_mut(seq) else {
            return Err(DropReason::UnknownRequest);
        };
        let Owner::Scan(ticket, ask) = &mut pending.owner else {
            if code == Code::Uncertain && pending.op.is_write() {
                self.end_unknown(seq, UnknownReason::Uncertain);
                return Ok(());
            }
            let from_copy = code == Code::NotHere && pending.ask_at_home();
            let from_home = code == Code::Away && pending.ask_away();
            self.ask_again_later(now, seq, overloaded, from_copy || from_home);
            return Ok(());
        };
        // One piece of several: the others may still be answered under this number.
        let piece = Piece::of(header).filter(|piece| !ask.lies_in(*piece));
        let (Some(piece), ticket) = (piece, *ticket) else {
            self.ask_again_later(now, seq, overloaded, false);
            return Ok(());
        };
        let agains = pending.agains + 1;
        let at = self.pacer.again_at(now, pending.agains, overloaded);
        let Some(scan) = self.scans.get_mut(&ticket) else {
            return Err(DropReason::UnknownRequest);
        };
        if !scan.again(ask, piece, at, agains) {
            return Err(DropReason::UnknownRequest);
        }
        self.feed_scan(now, ticket);
        Ok(())
    }

    /// The whole datagram is sent again later; once, however many copies of it were answered so. If
    /// only a copy of a hot key was no good, there is nothing to wait for: the key has its home. If
    /// it is away from there, neither: the switch has just heard what to do with the request.
    fn ask_again_later(&mut self, now: Instant, seq: u64, overloaded: bool, at_once: bool) {
        let Some(pending) = self.window.get_mut(seq) else { return };
        if pending.asked_again {
            return;
        }
        let later = self.pacer.again_at(now, pending.agains, overloaded);
        pending.resend_at = if at_once { now } else { later };
        pending.agains += 1;
        pending.asked_again = true;
        self.arm(seq);
    }

    fn take_refusal(
        &mut self,
        now: Instant,
        seq: u64,
        header: &[u8; HEADER_LEN],
        refusal: Refusal,
    ) -> Result<(), DropReason> {
        let Some(pending) = self.window.get(seq) else { return Err(DropReason::UnknownRequest) };
        match &pending.owner {
            Owner::Single(ticket) | Owner::Describe(ticket, _) => {
                let ticket = *ticket;
                self.decided(now, seq);
                self.end(seq);
                self.conclude(ticket, Outcome::Refused(refusal));
                Ok(())
            }
            Owner::Multiget(..) => {
                let bitmap = header.bitmap();
                self.take_multiget(now, seq, |multiget, part| {
                    multiget.refuse(part, bitmap, refusal)
                })
            }
            Owner::Scan(ticket, _) => {
                let ticket = *ticket;
                self.end_scan(ticket, Some(Outcome::Refused(refusal)));
                Ok(())
            }
        }
    }

    fn take_multiget(
        &mut self,
        now: Instant,
        seq: u64,
        take: impl FnOnce(&mut Multiget, &mut Part) -> Answered,
    ) -> Result<(), DropReason> {
        let pending = self.window.get_mut(seq);
        let Some(Pending { owner: Owner::Multiget(ticket, part), .. }) = pending else {
            return Err(DropReason::UnknownRequest);
        };
        let ticket = *ticket;
        let Some(multiget) = self.multigets.get_mut(&ticket) else {
            return Err(DropReason::UnknownRequest);
        };
        let answered = take(multiget, part);
        let missing = part.missing;
        if answered.decided == 0 && answered.again == 0 {
            return Err(DropReason::UnknownRequest);
        }
        self.counters.ask_again += u64::from(answered.again != 0);
        self.counters.overloaded += u64::from(answered.overloaded);
        if answered.decided != 0 {
            multiget.deadline = now + self.config.deadline;
        }
        if missing == 0 {
            multiget.in_flight.retain(|it| *it != seq);
            self.decided(now, seq);
            self.end(seq);
            self.feed_multiget(now, ticket);
            self.finish_multiget_if_complete(ticket);
        } else if answered.again != 0 {
            let Some(pending) = self.window.get_mut(seq) else { return Ok(()) };
            let from_copy = answered.not_here == answered.again && pending.ask_at_home();
            self.ask_again_later(now, seq, answered.overloaded, from_copy);
        }
        Ok(())
    }

    /// Sends as many datagrams of a multiget as may be in flight.
    pub(crate) fn feed_multiget(&mut self, now: Instant, ticket: Ticket) {
        while let Some(multiget) = self.multigets.get_mut(&ticket) {
            if multiget.in_flight.len() >= self.config.aggregate_in_flight_max
                || multiget.queue.is_empty()
            {
                return;
            }
            if !self.window.has_room() {
                self.starve(ticket);
                return;
            }
            let Some((part, datagram)) = multiget.queue.pop_front() else { return };
            let pending = Pending::new(Owner::Multiget(ticket, part), Op::Mget, datagram);
            let seq = self.number(now, pending, now);
            if let Some(multiget) = self.multigets.get_mut(&ticket) {
                multiget.in_flight.push(seq);
            }
        }
    }

    pub(crate) fn finish_multiget_if_complete(&mut self, ticket: Ticket) {
        if self.multigets.get(&ticket).is_some_and(|it| it.is_complete()) {
            self.end_multiget(ticket);
        }
    }

    /// Ends a multiget; keys without an answer are unknown.
    fn end_multiget(&mut self, ticket: Ticket) {
        let Some(multiget) = self.multigets.remove(&ticket) else { return };
        for seq in &multiget.in_flight {
            self.end(*seq);
        }
        self.conclude(ticket, Outcome::Done(Reply::Mget(multiget.finish())));
    }

    fn take_range(
        &mut self,
        now: Instant,
        seq: u64,
        header: &[u8; HEADER_LEN],
        entries: &RangeEntries<'_>,
    ) -> Result<(), DropReason> {
        let piece = Piece::of(header).ok_or(DropReason::BadBody)?;
        let pending = self.window.get_mut(seq);
        let Some(Pending { owner: Owner::Scan(ticket, ask), .. }) = pending else {
            return Err(DropReason::UnknownRequest);
        };
        let ticket = *ticket;
        let Some(scan) = self.scans.get_mut(&ticket) else {
            return Err(DropReason::UnknownRequest);
        };
        let untouched = ask.is_untouched();
        if scan.take(ask, piece, entries)? {
            scan.deadline = now + self.config.deadline;
        }
        let answered = ask.is_answered();
        if answered {
            scan.in_flight.retain(|it| *it != seq);
        }
        let overflow = scan.overflow();
        if untouched {
            self.decided(now, seq);
        }
        if answered {
            self.end(seq);
        }
        if let Some(refusal) = overflow {
            self.end_scan(ticket, Some(Outcome::Refused(refusal)));
            return Ok(());
        }
        self.feed_scan(now, ticket);
        Ok(())
    }

    /// An ask was answered in part: what is left of it is asked for under new numbers.
    pub(crate) fn ask_for_the_rest(&mut self, now: Instant, seq: u64) {
        let Some(Owner::Scan(ticket, ask)) = self.end(seq) else { return };
        if let Some(scan) = self.scans.get_mut(&ticket) {
            scan.in_flight.retain(|it| *it != seq);
            scan.give_back(ask);
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
            let terms = RangeTerms { reverse: scan.reverse, limit, pieces };
            let mut datagram = self.buffers.pop().unwrap_or_default();
            let client = self.config.client_id;
            encode::range(&mut datagram, client, &scan.keyspace, &want.interval, terms);
            let owner = Owner::Scan(ticket, Ask::new(want.interval));
            let mut pending = Pending::new(owner, Op::Range, datagram);
            pending.agains = want.agains;
            self.counters.retransmits += u64::from(want.agains != 0);
            let seq = self.number(now, pending, want.not_before);
            if let Some(scan) = self.scans.get_mut(&ticket) {
                scan.in_flight.push(seq);
            }
        }
    }

    /// Ends a scan, with its result unless there is another outcome.
    fn end_scan(&mut self, ticket: Ticket, outcome: Option<Outcome<Reply>>) {
        let Some(scan) = self.scans.remove(&ticket) else { return };
        for seq in &scan.in_flight {
            self.end(*seq);
        }
        let outcome = outcome.unwrap_or_else(|| Outcome::Done(Reply::Range(scan.finish())));
        self.conclude(ticket, outcome);
    }

    /// Nobody has answered in time.
    pub(crate) fn give_up(&mut self, seq: u64) {
        self.end_unknown(seq, UnknownReason::NoAnswer);
    }

    fn end_unknown(&mut self, seq: u64, why: UnknownReason) {
        let unknown = Outcome::Unknown(why);
        match self.end(seq) {
            None => {}
            Some(Owner::Single(ticket) | Owner::Describe(ticket, _)) => {
                self.conclude(ticket, unknown);
            }
            Some(Owner::Multiget(ticket, _)) => self.end_multiget(ticket),
            Some(Owner::Scan(ticket, _)) => self.end_scan(ticket, Some(unknown)),
        }
    }
}
