//! How copies of requests leave: by the service address, or past the switch, and when that is over.

use crate::coordination::{Coordination, header_of, stamp_address, turn_of, unstamp};
use crate::machine::Client;
use crate::window::{Cause, Owner, Pending};
use cluster::Mutant;
use machine::Instant;
use wire::{ClientWrite, Code, Endpoint, Fields as _, HEADER_LEN, Op, hop_flag};

impl Client {
    /// Sends a copy and sets the time of the next.
    pub(crate) fn transmit(&mut self, now: Instant, seq: u64) {
        let (lag, told) = (self.window.lag(seq), self.told);
        let repeats_hints = self.mutant.is(Mutant::RepeatHints);
        let Some(pending) = self.window.get_mut(seq) else { return };
        if pending.op == Op::Mget && pending.copies > 0 && !repeats_hints {
            pending.ask_without_hints();
        }
        if pending.has_address() && pending.backoff > 0 {
            // Silence may be that of a cache whose rule has outlived it.
            pending.ask_at_home();
        }
        let header = header_of(&mut pending.datagram);
        header.set_seq(seq);
        header.set_lag(lag);
        if let (Op::Mget, Owner::Many(_, part)) = (pending.op, &pending.owner) {
            header.set_bitmap(part.missing);
        }
        if pending.op == Op::Put && pending.copies == 0 {
            ClientWrite { first_sent: told }.write(header);
        }
        let past = self.send_past(seq);
        self.counters.datagrams += past.max(1);
        let Some(pending) = self.window.get_mut(seq) else { return };
        if past == 0 {
            if pending.past {
                unstamp(header_of(&mut pending.datagram));
            }
            wire::seal(&mut pending.datagram);
            self.outbox.push_copy(self.route.send(now), &pending.datagram);
        }
        pending.past = past > 0;
        pending.copies += 1;
        pending.next = Cause::Silence;
        pending.sent_at = now;
        pending.resend_at = now + self.pacer.timeout(now, pending.way(), pending.backoff);
        self.arm(seq);
    }

    /// From now on this is who coordinates. Multigets that have been started go on as they were,
    /// but for the map that a client goes by.
    pub fn coordinate(&mut self, coordination: Coordination) {
        self.many.values_mut().for_each(|many| many.follow(&coordination));
        self.config.coordination = coordination;
        self.outdated = false;
    }

    /// Whether the map that this client coordinates by has turned out to be old. Everything goes by
    /// the service address until [`coordinate`](Self::coordinate) brings a newer one.
    #[must_use]
    pub fn wants_routes(&self) -> bool {
        self.outdated
    }

    /// Sends a copy past the switch, if it is to go there; gives the number of datagrams.
    pub(crate) fn send_past(&mut self, seq: u64) -> u64 {
        let Self { config, window, many, outbox, outdated, .. } = self;
        let Some(pending) = window.get_mut(seq) else { return 0 };
        let address = pending.next_address();
        let Pending { owner, op, datagram, copies, by_service, .. } = pending;
        if *outdated || *by_service || *op == Op::Describe {
            return 0;
        }
        if let (Op::Mget, Owner::Many(ticket, part)) = (*op, &*owner) {
            let turn = |all: &[Endpoint]| turn_of(all, seq, *copies);
            return many.get(ticket).map_or(0, |many| many.send(*part, turn, datagram, outbox));
        }
        match &config.coordination {
            Coordination::Switch | Coordination::Assisted(_) => {
                let Some(to) = address else { return 0 };
                stamp_address(header_of(datagram));
                wire::seal(datagram);
                outbox.push_copy(to, datagram);
                1
            }
            Coordination::Client(routes) => routes.send(*op, routes.reply_to(), datagram, outbox),
            Coordination::Coordinators(all) => {
                let Some(to) = turn_of(all, seq, *copies) else { return 0 };
                wire::seal(datagram);
                outbox.push_copy(to, datagram);
                1
            }
        }
    }

    /// A reply that passed the switch tells where its key lies by now.
    pub(crate) fn compare_routes(&mut self, op: Op, reply: &[u8; HEADER_LEN]) {
        if let Coordination::Client(routes) = &self.config.coordination
            && reply.hop_flags() & hop_flag::DIRECT == 0
            && !matches!(op, Op::Mget | Op::Range | Op::Describe)
        {
            self.outdated |= !routes.agree_with(reply);
        }
    }

    /// A node says that these routes are old, or that only the switch knows the way to a key.
    /// Whether the request goes by the service address because of that, and may do so at once.
    pub(crate) fn turn_to_service(&mut self, seq: u64, code: Code) -> bool {
        let elsewhere = matches!(code, Code::StaleEpoch | Code::NotOwner);
        if elsewhere || code == Code::Closed {
            self.outdated |= matches!(self.config.coordination, Coordination::Client(_));
        }
        let Some(pending) = self.window.get_mut(seq) else { return false };
        // The keys of a multiget are dealt anew as soon as there is a newer map.
        let elsewhere = elsewhere && pending.op != Op::Mget && !pending.has_address();
        let news = (elsewhere || code == Code::NotHere) && !pending.by_service;
        pending.by_service |= news;
        news
    }
}
