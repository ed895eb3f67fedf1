//! Envelopes at a client.

use crate::ENVELOPE_LEN;
use crate::keys::Period;
use crate::member::{Opened, echo_of, envelope};
use crate::pass::{Pass, PassNumber, Passes};
use crate::tags::{edge_tag, end_tag};
use std::collections::VecDeque;
use std::time::Duration;
use wire::{Endpoint, EnvelopeKind, EnvelopeRefusal, Fields as _, HEADER_LEN, Op};

/// What came of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientOpened<'a> {
    /// This packet.
    Packet(&'a mut [u8]),
    /// A cookie: [`ClientEnvelopes::resend`] has what was waiting for it.
    Cookie,
}

/// Opens what a client receives and seals what it sends, through one socket.
#[derive(Debug)]
pub struct ClientEnvelopes {
    passes: Passes,
    /// How often the pass had been renewed when it was looked at last.
    renewals: u64,
    pass: Pass,
    /// The newest period that somebody has used whose word counts.
    current: Period,
    cookies: Vec<Cookie>,
    /// What was sent without a cookie, and is sent again with one.
    waiting: VecDeque<Waiting>,
    /// When it asked for a cookie of this period last, if it sends under the one before for want of
    /// that.
    asked_at: Option<Duration>,
    /// When the first packet was sent with a cookie since the last answer, or since it was asked
    /// for another cookie.
    unanswered_since: Option<Duration>,
    /// When the first packet was sent since something was opened, or since that was said to whoever
    /// renews the pass.
    silent_since: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Cookie {
    network: Network,
    period: Period,
    cookie: u64,
}

#[derive(Debug)]
struct Waiting {
    since: Duration,
    to: Endpoint,
    packet: Vec<u8>,
}

/// Members that see the client at the same address, as far as it can know: a machine with two
/// networks has two. Content addresses, of which there may be many, have their first bytes in
/// common.
type Network = [u8; 16];

/// Bytes of an IPv6 address that are its network.
const NETWORK_BYTES: usize = wire::CONTENT_PREFIX_BITS / 8;
/// Cookies that are kept; the oldest go.
const COOKIES_MAX: usize = 32;
/// Packets that wait for a cookie; the machine sends others again in its own time.
const WAITING_MAX: usize = 64;
/// And for how long: whoever asked has asked again by then, or given up.
const WAITING_FOR: Duration = Duration::from_secs(1);
/// So long after the last answer it asks for another cookie: the one it has is not its own, or it
/// is at another address by now. So long after it has asked for one of a new period it asks again.
const ASK_AFTER: Duration = Duration::from_millis(250);
/// So long after it has opened something last its pass should be renewed: its keys may be over.
const RENEW_AFTER: Duration = Duration::from_secs(1);

impl ClientEnvelopes {
    /// Those of a socket of the process that has this pass.
    #[must_use]
    pub fn new(passes: Passes) -> Self {
        let (renewals, pass) = (passes.renewals(), passes.pass());
        let current = pass.current;
        let (cookies, waiting) = (Vec::new(), VecDeque::new());
        Self {
            passes,
            renewals,
            pass,
            current,
            cookies,
            waiting,
            asked_at: None,
            unanswered_since: None,
            silent_since: None,
        }
    }

    /// Hands over each envelope under which this packet is to be sent at this time, by any clock
    /// that never goes back: one, but for a moment after the period has changed.
    pub fn seal(
        &mut self,
        now: Duration,
        to: Endpoint,
        packet: &[u8],
        mut send: impl FnMut(&[u8; ENVELOPE_LEN]),
    ) {
        self.look();
        self.note_silence(now);
        let period = self.current;
        let before = self.before();
        if let Some(cookie) = self.cookie(to, period) {
            self.asked_at = None;
            self.envelope(period, cookie, packet).iter().for_each(&mut send);
            if !self.is_unheard(now) {
                return;
            }
        } else if let Some(cookie) = self.cookie(to, before) {
            self.envelope(before, cookie, packet).iter().for_each(&mut send);
            if self.asked_at.is_some_and(|at| now.saturating_sub(at) < ASK_AFTER) {
                return;
            }
            self.asked_at = Some(now);
        }
        self.envelope(period, 0, packet).iter().for_each(&mut send);
        self.wait(now, to, packet);
    }

    /// Has the pass renewed if nothing that comes can be opened.
    fn note_silence(&mut self, now: Duration) {
        if has_passed(RENEW_AFTER, &mut self.silent_since, now) {
            self.passes.note_unheard();
        }
    }

    /// Whether nobody has answered for some time what was sent with a cookie: once in that time.
    fn is_unheard(&mut self, now: Duration) -> bool {
        has_passed(ASK_AFTER, &mut self.unanswered_since, now)
    }

    /// Keeps what is to be sent again when there is a cookie.
    fn wait(&mut self, now: Duration, to: Endpoint, packet: &[u8]) {
        while self.waiting.front().is_some_and(|it| it.since + WAITING_FOR < now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { since: now, to, packet: packet.to_vec() });
    }

    /// What a datagram brings that was sent to the client.
    ///
    /// # Errors
    ///
    /// Why it is not let through, which was counted.
    pub fn open<'a>(
        &mut self,
        from: Endpoint,
        datagram: &'a mut [u8],
    ) -> Result<ClientOpened<'a>, EnvelopeRefusal> {
        self.look();
        match self.check(from, datagram) {
            Ok(EnvelopeKind::Cookie) => {
                self.silent_since = None;
                Ok(ClientOpened::Cookie)
            }
            Ok(_) => {
                (self.unanswered_since, self.silent_since) = (None, None);
                Ok(ClientOpened::Packet(datagram.get_mut(ENVELOPE_LEN..).unwrap_or_default()))
            }
            Err(why) => {
                self.passes.note_refused(why);
                Err(why)
            }
        }
    }

    fn check(&mut self, from: Endpoint, datagram: &[u8]) -> Result<EnvelopeKind, EnvelopeRefusal> {
        let Opened { envelope, kind, head, packet } = Opened::split(datagram)?;
        let keys = *self.pass.named(envelope.period).ok_or(EnvelopeRefusal::Period)?;
        let is_edge_right = || edge_tag(keys.edge, head, envelope.end, 0, packet) == envelope.edge;
        match kind {
            EnvelopeKind::Reply => {
                let header: &[u8; HEADER_LEN] =
                    packet.first_chunk().ok_or(EnvelopeRefusal::Malformed)?;
                let op = Op::from_wire(header.op()).ok_or(EnvelopeRefusal::Malformed)?;
                if !op.is_reply() || PassNumber::of_client(header.client()) != self.pass.number {
                    return Err(EnvelopeRefusal::Malformed);
                }
                if !is_edge_right() {
                    return Err(EnvelopeRefusal::Edge);
                }
                if end_tag(keys.end, packet) != envelope.end {
                    return Err(EnvelopeRefusal::End);
                }
            }
            EnvelopeKind::Cookie => {
                if !is_edge_right() {
                    return Err(EnvelopeRefusal::Edge);
                }
                // One that answers nothing was recorded, and would replace the one that is right.
                let asked = |it: &Waiting| it.packet.first_chunk().map(echo_of);
                if !self.waiting.iter().any(|it| asked(it) == Some(envelope.echo)) {
                    return Err(EnvelopeRefusal::Sender);
                }
                self.note_cookie(from, keys.period, envelope.end);
            }
            EnvelopeKind::Request | EnvelopeKind::Member => {
                return Err(EnvelopeRefusal::Malformed);
            }
        }
        // Members are never behind for long, and keys of the next period are no secret to them.
        self.current = self.current.max(keys.period);
        Ok(kind)
    }

    /// Hands over what has waited for a cookie that is there now, in the order in which it was
    /// sent first.
    pub fn resend(&mut self, mut send: impl FnMut(Endpoint, &[u8; ENVELOPE_LEN], &[u8])) {
        let (period, before) = (self.current, self.before());
        for it in std::mem::take(&mut self.waiting) {
            let of = |period| Some((period, self.cookie(it.to, period)?));
            match of(period).or_else(|| of(before)) {
                Some((period, cookie)) => {
                    let envelope = self.envelope(period, cookie, &it.packet);
                    envelope.iter().for_each(|envelope| send(it.to, envelope, &it.packet));
                }
                None => self.waiting.push_back(it),
            }
        }
    }

    /// Takes the pass as it is now.
    fn look(&mut self) {
        let renewals = self.passes.renewals();
        if renewals != self.renewals {
            self.renewals = renewals;
            self.pass = self.passes.pass();
            self.current = self.current.max(self.pass.current);
        }
    }

    /// The period before the present one.
    fn before(&self) -> Period {
        Period(self.current.0.saturating_sub(1))
    }

    fn cookie(&self, to: Endpoint, period: Period) -> Option<u64> {
        let network = network_of(to);
        let found = self.cookies.iter().find(|it| it.network == network && it.period == period);
        found.map(|it| it.cookie)
    }

    fn note_cookie(&mut self, from: Endpoint, period: Period, cookie: u64) {
        let network = network_of(from);
        self.cookies.retain(|it| it.network != network || it.period != period);
        if self.cookies.len() == COOKIES_MAX {
            self.cookies.remove(0);
        }
        self.cookies.push(Cookie { network, period, cookie });
    }

    /// None if the keys of that period are not, or no longer, here.
    fn envelope(&self, period: Period, cookie: u64, packet: &[u8]) -> Option<[u8; ENVELOPE_LEN]> {
        let keys = self.pass.named(period.byte()).filter(|it| it.period == period)?;
        let end = end_tag(keys.end, packet);
        Some(envelope(period, EnvelopeKind::Request, end, keys.edge, cookie, packet))
    }
}

/// Whether so long has passed since an instant, which is the present one if there is none. If so,
/// it is counted from the present one again.
fn has_passed(long: Duration, since: &mut Option<Duration>, now: Duration) -> bool {
    let passed = now.saturating_sub(*since.get_or_insert(now)) >= long;
    if passed {
        *since = Some(now);
    }
    passed
}

fn network_of(Endpoint { addr, .. }: Endpoint) -> Network {
    if std::net::Ipv6Addr::from(addr).to_ipv4_mapped().is_some() {
        return addr;
    }
    std::array::from_fn(|i| if i < NETWORK_BYTES { addr.get(i).copied().unwrap_or(0) } else { 0 })
}
