//! A pass that was stolen, of a class that may only read, and what can be made with it.

use super::attacker::{below, pick};
use super::envelopes::with_edge;
use crate::actor::{Keyspaces, READERS, keys};
use crate::options::Load;
use crate::role::{Cast, client_endpoint, service};
use client::{Client, ClientConfig, Expect, Expiry, New, Request};
use envelope::{ENVELOPE_MAGIC, Pass, PassNumber, end_tag};
use machine::{Instant, Rng};
use wire::{Endpoint, EnvelopeBody, EnvelopeKind, HEADER_LEN, Header, Op, Version};

/// The attacker, as far as he has a pass.
pub(super) struct Thief {
    rng: Rng,
    at: Endpoint,
    pub(super) services: Vec<Endpoint>,
    pub(super) pass: Option<Pass>,
    /// The newest cookie that he was sent, and of which period.
    cookie: Option<(u8, u64)>,
}

impl Thief {
    pub(super) fn new(rng: Rng, cast: Cast) -> Self {
        let services = (0..cast.switches).map(service).collect();
        Self { rng, at: client_endpoint(cast.clients), services, pass: None, cookie: None }
    }

    /// Where he receives.
    pub(super) fn endpoint(&self) -> Endpoint {
        self.at
    }

    /// The number of the pass.
    pub(super) fn number() -> PassNumber {
        PassNumber::new(READERS, STOLEN).expect("it is small")
    }

    /// He receives something: of cookies he makes use.
    pub(super) fn receive(&mut self, datagram: &[u8]) {
        let Some((envelope, _)) = EnvelopeBody::split(datagram) else { return };
        if envelope.kind == EnvelopeKind::Cookie as u8 {
            self.cookie = Some((envelope.period, envelope.end));
        }
    }

    /// A request as a client makes it, a write or a read.
    pub(super) fn draw(
        &mut self,
        now: Instant,
        [hashed, ordered]: &Keyspaces,
        load: &Load,
        writes: bool,
    ) -> Option<Vec<u8>> {
        let known = keys(load);
        let key = pick(&mut self.rng, &known)?.clone();
        let keyspace = if key.ordered { ordered } else { hashed };
        let key = &key.key[..];
        let value = STOLEN.to_string();
        let (value, expiry) = (value.as_bytes(), Expiry::Never);
        let expect = Expect::Version(Version::NONE);
        let all = [key];
        let request = match (writes, self.rng.below(5)) {
            (true, 0 | 1) => Request::Put { key, value, expiry },
            (true, 2) => Request::Del { key },
            (true, 3) => Request::Incr { key, delta: 77 },
            (true, _) => Request::Cas { key, expect, new: New::Value(value), expiry },
            (false, 0) => Request::Mget { keys: &all, within: None },
            (false, 1) if keyspace.is_ordered() => Request::Range {
                start: std::ops::Bound::Unbounded,
                end: std::ops::Bound::Unbounded,
                reverse: false,
                limit: None,
                keys_only: false,
            },
            (false, _) => Request::Get { key },
        };
        let seat = u16::try_from(below(&mut self.rng, 1 << 16)).ok()?;
        let mut config = ClientConfig::new(self.services.clone(), 0);
        config.client_id = Self::number().client(seat);
        let mut client = Client::new(config, self.rng.fork("client"));
        client.start(now, keyspace, request).ok()?;
        let mut packet = client.poll_transmit()?.payload.to_vec();
        if !writes && self.rng.chance(1, 8) {
            say_goodbye(&mut packet)?;
        }
        Some(packet)
    }

    /// A request in an envelope that he can make, with his cookie or without one.
    pub(super) fn request(&self, packet: &[u8], with_cookie: bool) -> Option<Vec<u8>> {
        self.sealed(EnvelopeKind::Request, packet, with_cookie)
    }

    pub(super) fn sealed(
        &self,
        kind: EnvelopeKind,
        packet: &[u8],
        with_cookie: bool,
    ) -> Option<Vec<u8>> {
        let pass = self.pass.as_ref()?;
        let current = pass.periods.iter().find(|it| it.period == pass.current)?;
        let of_period = |byte| pass.periods.iter().find(|it| it.period.byte() == byte);
        let usable = self.cookie.filter(|_| with_cookie);
        let usable = usable.and_then(|(byte, cookie)| Some((of_period(byte)?, cookie)));
        // Of a period that ends he asks for the next cookie.
        let (keys, cookie) =
            usable.filter(|(keys, _)| keys.period >= current.period).unwrap_or((current, 0));
        let body = EnvelopeBody {
            magic: ENVELOPE_MAGIC,
            kind: kind as u8,
            period: keys.period.byte(),
            echo: 0,
            edge: 0,
            end: end_tag(keys.end, packet),
        };
        let envelope = with_edge(body, keys.edge, cookie, packet);
        Some([&envelope.to_bytes()[..], packet].concat())
    }
}

/// Makes a client's last word of a request.
fn say_goodbye(packet: &mut Vec<u8>) -> Option<()> {
    packet.truncate(HEADER_LEN);
    let place = packet.first_chunk_mut::<HEADER_LEN>()?;
    let (op, count, bitmap) = (Op::Goodbye as u8, 0, 0);
    let header = Header { op, count, bitmap, key_len: 0, payload_len: 0, ..Header::read(place) };
    header.write(place);
    wire::seal(packet);
    Some(())
}

/// The number of his pass, and what he would like to be read.
const STOLEN: u64 = 900_000_000;
