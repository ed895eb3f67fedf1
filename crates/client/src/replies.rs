//! The half of the machine that takes replies.

use crate::machine::Client;
use crate::scan::Piece;
use crate::window::{Cause, Owner, Pending};
use crate::{NotDone, Outcome, Refusal, Reply, StoreWords, UnknownReason, answer};
use cluster::{Mutant, is_plausible_revision};
use machine::Instant;
use std::time::Duration;
use wire::{
    Body, ClientReply, Code, DirectoryClock, DropReason, Fields as _, HEADER_LEN, KeyReply,
    NoSession, Op, Packet, RangeEntries, Version, hop_flag,
};

/// Copies of a request that a store has refused after which it ends: a store that was only being
/// started, or switched to another, takes one of the first.
const STORE_REFUSALS: u32 = 4;

/// For how long whoever forgets clients remembers one that it has heard.
const SESSION_KEPT: Duration = Duration::from_millis(wire::SESSION_KEPT_MS as u64);

impl Client {
    /// Takes a reply; says whether it passed no switch.
    pub(crate) fn take_reply(&mut self, now: Instant, datagram: &[u8]) -> Result<bool, DropReason> {
        let packet = Packet::parse(datagram)?;
        let (header, op) = (packet.header(), packet.op());
        if !op.is_reply() {
            return Err(DropReason::BadOp);
        }
        let seq = header.seq();
        if !self.waits_for(op, header) {
            if header.client() == self.config.client_id {
                self.note_second_answer(now, seq);
            }
            return Err(DropReason::UnknownRequest);
        }
        let body = packet.body()?;
        let past = header.hop_flags() & hop_flag::DIRECT != 0;
        if !past {
            self.see_clock(now, ClientReply::read(header).clock);
        }
        if let Some(pending) = self.window.get(seq) {
            let op = pending.op;
            self.homes.note(op, header);
            self.compare_routes(op, header);
        }
        self.take_body(now, &packet, &body).map(|()| past)
    }

    fn take_body(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        body: &Body<'_>,
    ) -> Result<(), DropReason> {
        let (header, op) = (packet.header(), packet.op());
        let seq = header.seq();
        match *body {
            Body::Refusal(Code::StoreRefuses) => {
                self.take_store_refuses(now, seq, header, packet.payload())
            }
            Body::Refusal(code) => match self.refusal(op, code) {
                None => self.take_ask_again(now, seq, code, header),
                Some(refusal) => self.take_refusal(now, seq, header, refusal),
            },
            Body::MgetReply(entries) => self.take_entries(now, seq, &entries),
            Body::RangeReply(entries) => self.take_range(now, seq, header, &entries),
            Body::DescribeReply { .. } => self.take_describe(now, seq, header, body),
            Body::GetReply(_)
            | Body::PutReply
            | Body::DelReply
            | Body::CasReply
            | Body::IncrReply { .. }
            | Body::BatchReply { .. } => self.take_single(now, seq, header, body),
            Body::Get { .. }
            | Body::Put { .. }
            | Body::Del { .. }
            | Body::Cas { .. }
            | Body::Incr { .. }
            | Body::Mget(_)
            | Body::Range { .. }
            | Body::Describe { .. }
            | Body::Batch(_)
            | Body::Goodbye
            | Body::ChainWrite { .. }
            | Body::ChainAck
            | Body::ChainCommit
            | Body::ChainStable { .. }
            | Body::ChainExpire { .. }
            | Body::ChainCopy(_)
            | Body::ChainCopied
            | Body::ChainGoodbye
            | Body::ChainDurable(_)
            | Body::ChainOffer { .. }
            | Body::ChainOffered
            | Body::ChainVerify { .. }
            | Body::ChainVerified { .. }
            | Body::ChainMend { .. }
            | Body::HotCopy { .. }
            | Body::HotCopied
            | Body::HotPublish
            | Body::DelegationFetch { .. }
            | Body::DelegationFound { .. }
            | Body::DelegationEnd { .. }
            | Body::DelegationCommit { .. }
            | Body::DelegationWrite { .. }
            | Body::DelegationDurable { .. }
            | Body::Cache(_) => Err(DropReason::BadOp),
        }
    }

    /// Whether such a reply answers a request of this client that has been sent and not ended.
    fn waits_for(&self, op: Op, header: &[u8; HEADER_LEN]) -> bool {
        let pending = self.window.get(header.seq());
        header.client() == self.config.client_id
            && pending.is_some_and(|it| it.op.reply() == op && it.copies > 0)
    }

    /// A reply tells the newest clock of the directory that its switch knows.
    fn see_clock(&mut self, now: Instant, clock: DirectoryClock) {
        if is_plausible_revision(now, clock.order()) {
            self.told = self.told.max(clock);
        }
    }

    /// The refusal that a reply is; `None` if it says to ask again.
    fn refusal(&self, reply: Op, code: Code) -> Option<Refusal> {
        let stale = matches!(code, Code::StaleEpoch | Code::Closed | Code::NotOwner);
        let write = matches!(
            reply,
            Op::PutReply | Op::DelReply | Op::CasReply | Op::IncrReply | Op::BatchReply
        );
        if self.mutant.is(Mutant::StaleIsFinal) && stale && write {
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
        let without_effect = match code {
            Code::PartsMissing => Some(Refusal::PartsMissing),
            Code::Full => Some(Refusal::Full),
            _ => None,
        };
        if let Some(why) = without_effect {
            return self.take_refusal(now, seq, header, why);
        }
        let KeyReply { version } = KeyReply::read(header);
        let reply = answer::single(code, version, body).ok_or(DropReason::BadBody)?;
        if let Some(Pending { owner: Owner::Many(..), .. }) = self.window.get(seq) {
            return self.take_write(now, seq, reply);
        }
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
    /// one copy was sent (Karn's rule); if there were more, it may turn out later to count, too.
    pub(crate) fn decided(&mut self, now: Instant, seq: u64) {
        self.pacer.decided();
        let Some(pending) = self.window.get(seq) else { return };
        let way = pending.way();
        if pending.copies == 1 {
            self.pacer.sample(now, way, now.since(pending.sent_at), self.window.len());
        } else if matches!(pending.owner, Owner::Single(_)) {
            let (took, open) = (now.since(pending.started_at), pending.copies.saturating_sub(1));
            self.twice.end(seq, (way, took), open);
        }
    }

    /// A copy of a request that was answered before has been answered as well.
    fn note_second_answer(&mut self, now: Instant, seq: u64) {
        let Some((way, took)) = self.twice.answered(seq) else { return };
        self.counters.in_vain += 1;
        self.pacer.in_vain(now, way, took, self.window.len());
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
        let past = header.hop_flags() & hop_flag::DIRECT != 0;
        let turned = past && self.turn_to_service(seq, code);
        let Some(pending) = self.window.get_mut(seq) else {
            return Err(DropReason::UnknownRequest);
        };
        let Owner::Scan(ticket, ask) = &mut pending.owner else {
            if code == Code::Uncertain && pending.op.is_write() {
                return self.end_uncertain(now, seq);
            }
            if code == Code::NoSession && pending.op.is_write() {
                let NoSession { since } = NoSession::read(header);
                return self.take_no_session(now, seq, since);
            }
            pending.overloaded = overloaded;
            pending.store_refuses.take_if(|_| code != Code::StoreRefuses);
            let from_copy = code == Code::NotHere && !past && pending.ask_at_home();
            let from_home = code == Code::Delegated && pending.ask_delegated();
            self.ask_again_later(now, seq, overloaded, turned || from_copy || from_home);
            if let Some(ticket) = self.set_aside(seq, overloaded) {
                self.feed_many(now, ticket);
            }
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

    /// Changes are not taken for now. Whoever asks is not left waiting to the end for that: after
    /// some tries he is told why.
    fn take_store_refuses(
        &mut self,
        now: Instant,
        seq: u64,
        header: &[u8; HEADER_LEN],
        words: &[u8],
    ) -> Result<(), DropReason> {
        let words = StoreWords::new(words);
        let Some(pending) = self.window.get_mut(seq) else {
            return Err(DropReason::UnknownRequest);
        };
        // Of several answers to one copy the first counts.
        let is_first = pending.next == Cause::Silence;
        let said = pending.store_refuses.as_ref().map_or(0, |it| it.1) + u32::from(is_first);
        if said < STORE_REFUSALS {
            self.take_ask_again(now, seq, Code::StoreRefuses, header)?;
            if let Some(pending) = self.window.get_mut(seq) {
                pending.store_refuses = Some(Box::new((words, said)));
            }
            return Ok(());
        }
        let why = UnknownReason::StoreRefuses(words);
        match &pending.owner {
            Owner::Many(_, part) => {
                let missing = part.missing;
                self.fail_many(now, seq, missing, NotDone::Unknown(why))
            }
            Owner::Scan(ticket, _) => {
                let ticket = *ticket;
                self.end_scan(ticket, Some(Outcome::Unknown(why)));
                Ok(())
            }
            Owner::Single(_) | Owner::Describe(..) => {
                self.end_unknown(seq, why);
                Ok(())
            }
        }
    }

    /// The head may have forgotten this client. Whom it has heard it remembers for a while, so
    /// that it has not taken a write that is younger than that: the write is sent again, and says
    /// since when. Later answers to earlier copies change nothing.
    fn take_no_session(
        &mut self,
        now: Instant,
        seq: u64,
        version: Version,
    ) -> Result<(), DropReason> {
        let next = self.window.next();
        let Some(pending) = self.window.get_mut(seq) else {
            return Err(DropReason::UnknownRequest);
        };
        let young = now.since(pending.started_at) < SESSION_KEPT;
        if !young && !pending.says_since() {
            return self.end_uncertain(now, seq);
        }
        if pending.say_since(version, next) {
            pending.next = Cause::Silence;
            self.ask_again_later(now, seq, false, true);
        }
        Ok(())
    }

    /// The whole datagram is sent again later; once, however many copies of it were answered so. If
    /// only a copy of a hot key was no good, there is nothing to wait for: the key has its home. If
    /// it is delegated from there, neither: the switch has just heard what to do with the request.
    pub(crate) fn ask_again_later(
        &mut self,
        now: Instant,
        seq: u64,
        overloaded: bool,
        at_once: bool,
    ) {
        let Some(pending) = self.window.get_mut(seq) else { return };
        if pending.next != Cause::Silence {
            return;
        }
        let later = self.pacer.again_at(now, pending.agains, overloaded);
        pending.resend_at = if at_once { now } else { later };
        pending.agains += 1;
        pending.next = if overloaded { Cause::Overloaded } else { Cause::AskAgain };
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
            Owner::Many(_, part) => {
                let keys = if pending.op == Op::Mget { header.bitmap() } else { part.missing };
                self.fail_many(now, seq, keys, NotDone::Refused(refusal))
            }
            Owner::Scan(ticket, _) => {
                let ticket = *ticket;
                self.end_scan(ticket, Some(Outcome::Refused(refusal)));
                Ok(())
            }
        }
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
            scan.in_flight.remove(&seq);
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

    /// Nobody has answered in time.
    pub(crate) fn give_up(&mut self, seq: u64) {
        self.end_unknown(seq, self.why_unknown(seq));
    }

    /// Why nobody knows how a request ended whose time is up.
    pub(crate) fn why_unknown(&self, seq: u64) -> UnknownReason {
        let Some(pending) = self.window.get(seq) else { return UnknownReason::NoAnswer };
        match pending.store_refuses.as_deref() {
            Some(&(words, _)) => UnknownReason::StoreRefuses(words),
            None if pending.overloaded => UnknownReason::Overloaded,
            None => UnknownReason::NoAnswer,
        }
    }

    /// The write of this datagram may have been taken or not, and nobody can know any more.
    fn end_uncertain(&mut self, now: Instant, seq: u64) -> Result<(), DropReason> {
        if let Some(Pending { owner: Owner::Many(_, part), .. }) = self.window.get(seq) {
            let keys = part.missing;
            return self.fail_many(now, seq, keys, NotDone::Unknown(UnknownReason::Uncertain));
        }
        self.end_unknown(seq, UnknownReason::Uncertain);
        Ok(())
    }

    fn end_unknown(&mut self, seq: u64, why: UnknownReason) {
        let Some(pending) = self.window.get(seq) else { return };
        if let Owner::Many(ticket, _) = &pending.owner {
            let ticket = *ticket;
            self.end_many(ticket);
            return;
        }
        let unknown = Outcome::Unknown(why);
        match self.end(seq) {
            Some(Owner::Single(ticket) | Owner::Describe(ticket, _)) => {
                self.conclude(ticket, unknown);
            }
            Some(Owner::Scan(ticket, _)) => self.end_scan(ticket, Some(unknown)),
            Some(Owner::Many(..)) | None => {}
        }
    }
}
