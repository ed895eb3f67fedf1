//! Somebody who sees every datagram and can send any, in anybody's name. Keys he has none but those
//! of a pass that he has stolen ([`Thief`]).

use super::strangers::Strangers;
use super::thief::Thief;
use crate::role::{CACHE_SHARDS, Cast, cache_endpoint, client_endpoint, node_spec, service};
use envelope::{ENVELOPE_LEN, ENVELOPE_MAGIC};
use machine::Rng;
use std::time::Duration;
use wire::{
    Endpoint, EnvelopeBody, EnvelopeKind, Fields as _, HEADER_LEN, Header, KeyReply, Op, Version,
    hop_flag,
};

/// Makes the ways of attacking, and all of them.
macro_rules! attacks {
    ($($(#[doc = $about:literal])+ $attack:ident,)+) => {
        /// What the attacker does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Attack {
            $($(#[doc = $about])+ $attack,)+
        }

        impl Attack {
            /// Every way.
            pub const ALL: [Self; [$(stringify!($attack)),+].len()] = [$(Self::$attack),+];
        }
    };
}

attacks! {
    /// He sends what he has seen once more.
    Repeat,
    /// To somebody else.
    Redirect,
    /// In somebody else's name.
    Disguise,
    /// Back to its sender.
    Reflect,
    /// With other bits.
    Flip,
    /// With another field.
    Alter,
    /// Shorter or longer.
    Resize,
    /// In the envelope of another.
    Swap,
    /// Without its envelope.
    Strip,
    /// He makes a packet up.
    MakeUp,
    /// He asks in a client's name for a cookie, and sends that the one that is his own.
    Mislead,
    /// He sends a write, with the stolen pass.
    StolenWrite,
    /// He sends a read with it, and what a switch would write in it.
    StolenRead,
    /// In the name of another address.
    StolenAddress,
    /// In the name of another client.
    StolenName,
    /// As a member, with what members say.
    StolenMember,
}

/// A datagram of his.
pub(super) struct Forged {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) bytes: Vec<u8>,
    pub(super) delay: Duration,
}

/// A datagram that he has seen.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) bytes: Vec<u8>,
}

impl Seen {
    pub(super) fn packet(&self) -> &[u8] {
        self.bytes.get(ENVELOPE_LEN..).unwrap_or_default()
    }

    pub(super) fn header(&self) -> Option<Header> {
        self.packet().first_chunk().map(Header::read)
    }
}

pub(super) struct Attacker {
    pub(super) rng: Rng,
    /// Of late, and of all that there was.
    recent: Vec<Seen>,
    all: Vec<Seen>,
    /// Datagrams that he has seen.
    count: u64,
    last: Option<Seen>,
    /// The last request, and the last that was answered with a cookie.
    request: Option<Seen>,
    without_cookie: Option<Seen>,
    /// Whose request he has sent in his own name, to have another's cookie for it.
    misled: Option<Endpoint>,
    /// That cookie, which is to go to the client.
    pub(super) snatched: Option<Seen>,
    members: Vec<Endpoint>,
    clients: Vec<Endpoint>,
    pub(super) thief: Thief,
    pub(super) strangers: Strangers,
    pub(super) attacks: [u64; Attack::ALL.len()],
}

impl Attacker {
    pub(super) fn new(rng: Rng, cast: Cast, shards: u16) -> Self {
        let node = |index| {
            let first = node_spec(index, shards).endpoint;
            (0..shards).filter_map(move |shard| first.with_port_offset(shard))
        };
        let switches = (0..cast.switches).map(service);
        let caches = (0..cast.caches * CACHE_SHARDS).map(cache_endpoint);
        Self {
            thief: Thief::new(rng.fork("thief"), cast),
            strangers: Strangers::new(cast),
            rng,
            recent: Vec::new(),
            all: Vec::new(),
            count: 0,
            last: None,
            request: None,
            without_cookie: None,
            misled: None,
            snatched: None,
            members: switches.chain((0..cast.nodes).flat_map(node)).chain(caches).collect(),
            clients: (0..cast.clients).map(client_endpoint).collect(),
            attacks: [0; Attack::ALL.len()],
        }
    }

    /// He sees a datagram, and may remember it. What strangers are sent he does not see: who does
    /// can show in their name that they receive.
    pub(super) fn see(&mut self, from: Endpoint, to: Endpoint, bytes: &[u8]) {
        if self.strangers.victims().contains(&to) {
            return;
        }
        let seen = Seen { from, to, bytes: bytes.to_vec() };
        self.look_at_cookies(&seen);
        self.count += 1;
        let place = below(&mut self.rng, SEEN_MAX * 4);
        keep(&mut self.recent, place, &seen);
        let place = usize::try_from(self.rng.below(self.count)).unwrap_or(usize::MAX);
        keep(&mut self.all, place, &seen);
        self.last = Some(seen);
    }

    fn look_at_cookies(&mut self, seen: &Seen) {
        let kind = EnvelopeBody::split(&seen.bytes).map_or(0, |(envelope, _)| envelope.kind);
        if kind == EnvelopeKind::Request as u8 {
            self.request = Some(seen.clone());
        } else if kind == EnvelopeKind::Cookie as u8 {
            let asked = self.request.clone().filter(|it| it.from == seen.to);
            self.without_cookie = asked.or(self.without_cookie.take());
        }
    }

    /// He receives something where he is.
    pub(super) fn receive(&mut self, from: Endpoint, datagram: &[u8]) {
        self.thief.receive(datagram);
        if let Some(to) = self.misled.take() {
            self.snatched = Some(Seen { from, to, bytes: datagram.to_vec() });
        }
    }

    /// One of those that he remembers, or the last.
    fn any(&mut self) -> Option<Seen> {
        match self.rng.below(3) {
            0 => self.last.clone(),
            1 => pick(&mut self.rng, &self.recent).cloned(),
            _ => pick(&mut self.rng, &self.all).cloned(),
        }
    }

    fn any_member(&mut self) -> Endpoint {
        pick(&mut self.rng, &self.members).copied().unwrap_or_default()
    }

    fn anybody(&mut self) -> Endpoint {
        if self.rng.chance(1, 3) {
            pick(&mut self.rng, &self.clients).copied().unwrap_or_default()
        } else {
            self.any_member()
        }
    }

    fn any_victim(&mut self) -> Endpoint {
        pick(&mut self.rng, self.strangers.victims()).copied().unwrap_or_default()
    }

    /// Somebody in whose name a datagram may be.
    fn any_name(&mut self) -> Endpoint {
        match self.rng.below(4) {
            0 => self.any_victim(),
            _ => self.anybody(),
        }
    }

    /// A datagram of his is about to arrive.
    pub(super) fn note(&mut self, attack: Attack, forged: &Forged) {
        self.strangers.note(forged.from, &forged.bytes);
        let place = Attack::ALL.iter().position(|it| *it == attack);
        let count = place.and_then(|place| self.attacks.get_mut(place));
        count.into_iter().for_each(|count| *count += 1);
    }

    /// One datagram, in one of the ways that need no pass.
    pub(super) fn forge(&mut self, attack: Attack) -> Option<Forged> {
        let Seen { mut from, mut to, mut bytes } = self.any()?;
        match attack {
            Attack::Redirect => to = self.anybody(),
            Attack::Disguise => from = self.any_name(),
            Attack::Reflect => (from, to) = (to, from),
            Attack::Flip => {
                for _ in 0..=self.rng.below(3) {
                    let (place, bit) = (below(&mut self.rng, bytes.len()), self.rng.below(8));
                    bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= 1 << bit);
                }
            }
            Attack::Alter => self.alter(&mut bytes),
            Attack::Resize => {
                if self.rng.chance(2, 3) {
                    bytes.truncate(below(&mut self.rng, bytes.len()));
                } else {
                    let more = 1 + below(&mut self.rng, 40);
                    bytes.extend((0..more).map(|_| any_byte(&mut self.rng)));
                }
            }
            Attack::Swap => {
                let other = self.any()?;
                let envelope = other.bytes.get(..ENVELOPE_LEN)?;
                bytes.get_mut(..ENVELOPE_LEN)?.copy_from_slice(envelope);
                if self.rng.chance(1, 2) {
                    (from, to) = (other.from, other.to);
                }
            }
            Attack::Strip => {
                bytes.drain(..ENVELOPE_LEN.min(bytes.len()));
            }
            Attack::MakeUp => (from, to, bytes) = self.make_up(&bytes),
            Attack::Mislead => {
                let Seen { from, to, bytes } = match self.snatched.take() {
                    Some(cookie) => cookie,
                    None => {
                        let asked = self.without_cookie.clone()?;
                        self.misled = Some(asked.from);
                        Seen { from: self.thief.endpoint(), ..asked }
                    }
                };
                return Some(Forged { from, to, bytes, delay: Duration::ZERO });
            }
            Attack::Repeat => {}
            _ => return None,
        }
        Some(self.send(from, to, bytes))
    }

    pub(super) fn send(&mut self, from: Endpoint, to: Endpoint, bytes: Vec<u8>) -> Forged {
        // Soon, or when much has changed.
        let most = if self.rng.chance(3, 4) { SOON_US } else { LATE_US };
        let delay = Duration::from_micros(self.rng.below(most));
        Forged { from, to, bytes, delay }
    }

    /// Writes something else into one field of the envelope or the header.
    fn alter(&mut self, bytes: &mut Vec<u8>) {
        let parts = EnvelopeBody::split(bytes).map(|(it, packet)| (it, packet.to_vec()));
        let Some((mut envelope, mut packet)) = parts else { return };
        let some = self.any().and_then(|other| other.header()).unwrap_or_default();
        let number = self.rng.next_u64();
        let mut header = packet.first_chunk().map(Header::read).unwrap_or_default();
        let field = self.rng.below(20);
        match field {
            0 => envelope.kind = (number % 6) as u8,
            1 => envelope.period = envelope.period.wrapping_add((number % 5) as u8),
            2 => envelope.echo = number as u32,
            3 => envelope.edge = number,
            4 => envelope.end = number,
            5 => envelope.magic ^= 1 << (number % 16),
            6 => header.op = pick(&mut self.rng, &Op::ALL).map_or(0, |op| *op as u8),
            7 => header.code = (number % 64) as u8,
            8 => header.match_value = some.match_value,
            9 => header.keyhash = some.keyhash,
            10 => (header.reply_addr, header.reply_port) = end_of(self.any_victim()),
            11 => header.client = some.client,
            12 => header.seq = some.seq.wrapping_add(number % 3),
            13 => header.flags ^= 1 << (number % 8),
            14 => header.hop_flags ^= 1 << (number % 8),
            16 => (header.partition, header.epoch) = (some.partition, some.epoch),
            17 => (header.node, header.chain_pos) = (some.node, some.chain_pos),
            18 => header.keyspace = (number % 4) as u16,
            15 => {}
            _ => header.bitmap ^= number as u32,
        }
        if let Some(place) = packet.first_chunk_mut::<HEADER_LEN>() {
            let version = place.version();
            header.write(place);
            if field == 15 {
                KeyReply { version: Version::new(number >> 20) }.write(place);
            }
            place.set_version(if number.is_multiple_of(16) { version + 1 } else { version });
        }
        if self.rng.chance(2, 3) {
            wire::seal(&mut packet);
        }
        *bytes = [&envelope.to_bytes()[..], &packet].concat();
    }

    /// A packet of any kind that nobody has sent, in the name of anybody.
    fn make_up(&mut self, like: &[u8]) -> (Endpoint, Endpoint, Vec<u8>) {
        let known = EnvelopeBody::split(like).map(|(envelope, _)| envelope);
        let known = known.unwrap_or_default();
        let some = self.any().and_then(|other| other.header()).unwrap_or_default();
        let kinds = [EnvelopeKind::Request, EnvelopeKind::Member, EnvelopeKind::Reply];
        let kind = pick(&mut self.rng, &kinds).copied().unwrap_or(EnvelopeKind::Cookie);
        let number = self.rng.next_u64();
        let header = Header {
            op: pick(&mut self.rng, &Op::ALL).map_or(0, |op| *op as u8),
            client: if self.rng.chance(1, 4) { number } else { some.client },
            hop_flags: if self.rng.chance(1, 2) { hop_flag::DIRECT } else { some.hop_flags },
            key_len: 0,
            ..some
        };
        let payload: Vec<u8> = (0..self.rng.below(64)).map(|_| any_byte(&mut self.rng)).collect();
        let mut packet = Vec::new();
        wire::emit(&mut packet, &header, &[&payload]);
        let envelope = EnvelopeBody {
            magic: ENVELOPE_MAGIC,
            kind: kind as u8,
            edge: if self.rng.chance(1, 2) { known.edge } else { number },
            ..known
        };
        let from = self.any_name();
        let to = if self.rng.chance(1, 2) { self.any_member() } else { self.anybody() };
        (from, to, [&envelope.to_bytes()[..], &packet].concat())
    }

    /// One datagram, in one of the ways that need the stolen pass. `read` and `write` are requests
    /// as its owner would make them.
    pub(super) fn steal(
        &mut self,
        attack: Attack,
        read: Vec<u8>,
        write: Vec<u8>,
    ) -> Option<Forged> {
        let own = self.thief.endpoint();
        let to = pick(&mut self.rng, &self.thief.services).copied()?;
        match attack {
            Attack::StolenWrite => {
                let (to, packet) = self.maybe_direct(to, write);
                let bytes = self.thief.request(&packet, true)?;
                Some(self.send(own, to, bytes))
            }
            Attack::StolenRead => {
                let (to, packet) = self.maybe_direct(to, read);
                let bytes = self.thief.request(&packet, true)?;
                Some(self.send(own, to, bytes))
            }
            Attack::StolenAddress => {
                let packet = if self.rng.chance(1, 2) { read } else { write };
                let (to, packet) = self.maybe_direct(to, packet);
                let has_cookie = self.rng.chance(1, 2);
                let bytes = self.thief.request(&packet, has_cookie)?;
                let from = if self.rng.chance(2, 3) { self.any_victim() } else { self.anybody() };
                Some(self.send(from, to, bytes))
            }
            Attack::StolenName => {
                let mut packet = if self.rng.chance(1, 2) { read } else { write };
                let other = self.any()?.header()?;
                let header = packet.first_chunk_mut::<HEADER_LEN>()?;
                header.set_client(other.client);
                header.set_seq(other.seq.wrapping_add(self.rng.below(3)));
                wire::seal(&mut packet);
                let bytes = self.thief.request(&packet, true)?;
                Some(self.send(own, to, bytes))
            }
            Attack::StolenMember => {
                let Seen { from, to, bytes } = self.any()?;
                let mut packet = bytes.get(ENVELOPE_LEN..)?.to_vec();
                let header = packet.first_chunk_mut::<HEADER_LEN>()?;
                let KeyReply { version } = KeyReply::read(header);
                KeyReply { version: version.saturating_add(BEYOND) }.write(header);
                wire::seal(&mut packet);
                let is_own = self.rng.chance(1, 4);
                let kind = if is_own { EnvelopeKind::Request } else { EnvelopeKind::Member };
                let bytes = self.thief.sealed(kind, &packet, true)?;
                Some(self.send(if is_own { own } else { from }, to, bytes))
            }
            _ => None,
        }
    }

    /// Sends a request past the switches, now and then: with whatever these have written into
    /// another one, more or less.
    fn maybe_direct(&mut self, to: Endpoint, mut packet: Vec<u8>) -> (Endpoint, Vec<u8>) {
        let like = self.any().filter(|it| self.rng.chance(1, 2) && it.to != to);
        let parts = like.as_ref().and_then(|it| Some((it.to, it.header()?)));
        let Some((other, hop)) = parts.filter(|(other, _)| self.members.contains(other)) else {
            return (to, packet);
        };
        if let Some(place) = packet.first_chunk_mut::<HEADER_LEN>() {
            let number = self.rng.next_u64();
            let mine = Header::read(place);
            let more = if number.is_multiple_of(3) { (number >> 32) as u8 } else { hop.hop_flags };
            let header = Header {
                op: mine.op,
                flags: mine.flags,
                keyspace: mine.keyspace,
                key_len: mine.key_len,
                payload_len: mine.payload_len,
                client: mine.client,
                seq: mine.seq,
                lag: mine.lag,
                code: mine.code,
                count: mine.count,
                match_value: mine.match_value,
                keyhash: mine.keyhash,
                hop_flags: more | hop_flag::DIRECT,
                ..hop
            };
            header.write(place);
            wire::seal(&mut packet);
        }
        (other, packet)
    }
}

/// Remembers a datagram, in the place of another if there are enough; in none beyond.
fn keep(sample: &mut Vec<Seen>, place: usize, seen: &Seen) {
    if sample.len() < SEEN_MAX {
        sample.push(seen.clone());
    } else if let Some(old) = sample.get_mut(place) {
        *old = seen.clone();
    }
}

fn end_of(Endpoint { addr, port }: Endpoint) -> ([u8; 16], u16) {
    (addr, port)
}

fn any_byte(rng: &mut Rng) -> u8 {
    rng.next_u64().to_be_bytes()[0]
}

pub(super) fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).unwrap_or_default()
}

pub(super) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    from.get(below(rng, from.len()))
}

/// Datagrams that he remembers of either kind.
const SEEN_MAX: usize = 128;
/// Microseconds until most of what he sends arrives, and the rest.
const SOON_US: u64 = 5_000;
const LATE_US: u64 = 2_000_000;
/// More versions than a world lasts for.
const BEYOND: u64 = 1 << 40;
