//! Datagrams in envelopes, right and wrong ones, and the switch in user space that opens them.

use crate::reference::Reference;
use crate::stand::{SERVICE, Switch};
use cluster::{SwitchControl as _, SwitchTables};
use envelope::{
    Allowed, CookieKey, Counts as Refusals, ENVELOPE_LEN, ENVELOPE_MAGIC, EdgeKeys, Key, KeySet,
    MemberEnvelopes, MemberRole, PassNumber, Period, PeriodKeys, Rights, RightsTable, Ring,
    RingPorts, Secret, edge_tag,
};
use machine::Rng;
use std::net::SocketAddr;
use testkit::draw::{HASH, RANGE, endpoint};
use testkit::oracle::model::Sent;
use wire::{Endpoint, EnvelopeBody, EnvelopeKind, Fields as _, HEADER_LEN, MgetSlotBody, Op};

/// Where another switch is.
pub(crate) const OTHER_SWITCH: (u8, u16) = (230, 7700);

/// The keys of a switch in a period.
pub(crate) fn keys(current: Period) -> KeySet {
    secret().key_set(current, false)
}

fn secret() -> Secret {
    Secret::new([7; 32])
}

/// All members: the nodes and caches of the tables, this switch and another one.
pub(crate) fn ring(tables: &SwitchTables) -> Ring {
    let (host, port) = OTHER_SWITCH;
    let nodes = tables.nodes.iter().map(|it| (it.endpoint, it.shards));
    let caches = tables.caches.iter().map(|it| (it.endpoint, it.shards));
    let switches = [(SocketAddr::V4(SERVICE).into(), 1), (endpoint(host, port), 1)];
    let members = nodes.chain(caches).chain(switches);
    let members = members.map(|(at, ports)| RingPorts { first: SocketAddr::from(at), ports });
    Ring::new(&members.collect::<Vec<_>>(), None)
}

/// Class 1 reads, class 2 writes in one keyspace and reads elsewhere, class 3 scans, class 4 may
/// do all but one keyspace.
pub(crate) fn rights() -> RightsTable {
    let read = Allowed { read: true, ..Allowed::default() };
    let write = Allowed { write: true, ..Allowed::default() };
    let scan = Allowed { scan: true, ..Allowed::default() };
    let of = |elsewhere, keyspaces: &[(u16, Allowed)]| Rights {
        elsewhere,
        keyspaces: keyspaces.iter().copied().collect(),
    };
    RightsTable(vec![
        of(read, &[]),
        of(read, &[(HASH, write)]),
        of(scan, &[]),
        of(Allowed::ALL, &[(RANGE, Allowed::default())]),
    ])
}

/// The switch in user space behind its envelopes.
pub(crate) struct Opener {
    pub(crate) reference: Reference,
    pub(crate) envelopes: MemberEnvelopes,
}

impl Opener {
    pub(crate) fn new() -> Self {
        let envelopes = MemberEnvelopes::new(MemberRole::Switch);
        Self { reference: Reference::new(), envelopes }
    }

    /// Takes a datagram and gives what is sent for it.
    pub(crate) fn process(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let mut datagram = datagram.to_vec();
        let packet = match self.envelopes.open(from, &mut datagram) {
            Ok(packet) => packet,
            Err(refused) => {
                return refused.cookie.map(|it| (from, it.to_vec())).into_iter().collect();
            }
        };
        let sent = self.reference.process(from, packet);
        let sealed = sent.into_iter().filter_map(|(to, packet)| {
            let envelope = self.envelopes.seal(to, &packet)?;
            Some((to, [&envelope[..], &packet].concat()))
        });
        let sealed = sealed.collect();
        self.envelopes.end_turn();
        sealed
    }
}

/// The program and the switch in user space, which are told the same.
pub(crate) struct Pair<'s> {
    pub(crate) switch: Switch<'s>,
    pub(crate) user: Opener,
}

impl Pair<'_> {
    pub(crate) fn turn(&mut self, current: Period) {
        self.switch.plane.install_keys(&keys(current)).unwrap();
        self.user.envelopes.set_keys(&keys(current));
    }

    pub(crate) fn install(&mut self, tables: &SwitchTables) {
        self.switch.plane.install_ring(&ring(tables)).unwrap();
        self.user.envelopes.set_ring(ring(tables));
        self.switch.install(tables);
        self.user.reference.pipeline.install(tables).unwrap();
    }

    pub(crate) fn allow(&mut self, table: RightsTable) {
        self.switch.plane.install_rights(&table).unwrap();
        self.user.envelopes.set_rights(table);
    }

    /// Everything that both have counted.
    pub(crate) fn compare(&self, when: &str) {
        assert_eq!(self.switch.counts(), self.user.reference.counts(), "{when}");
        let refused = self.switch.plane.read_envelope_refusals().unwrap();
        assert_eq!(&refused, self.user.envelopes.counts(), "{when}");
    }

    pub(crate) fn refused(&self) -> &Refusals {
        self.user.envelopes.counts()
    }
}

/// How an envelope is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) kind: u8,
    pub(crate) period: Period,
    /// Whether the cookie is the right one, none, or another.
    pub(crate) cookie: Cookie,
    pub(crate) end: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cookie {
    Right,
    None,
    Wrong,
}

/// The packet in an envelope under the keys that its kind asks for.
pub(crate) fn wrap(from: Endpoint, packet: &[u8], made: Made) -> Vec<u8> {
    let Made { kind, period, cookie, end } = made;
    let keys = EdgeKeys::of(&period_keys(period));
    let body = EnvelopeBody {
        magic: ENVELOPE_MAGIC,
        kind,
        period: period.byte(),
        echo: if end.is_multiple_of(16) { 7 } else { 0 },
        edge: 0,
        end,
    };
    let of_member = kind == EnvelopeKind::Member as u8;
    let key = if of_member { keys.members } else { key_of(&keys.clients, packet) };
    let cookie = match cookie {
        _ if of_member => 0,
        Cookie::Right => cookie_of(keys.cookies, from),
        Cookie::None => 0,
        Cookie::Wrong => 99,
    };
    let head = *body.to_bytes().first_chunk().unwrap();
    let edge = edge_tag(key, head, end, cookie, packet);
    [&EnvelopeBody { edge, ..body }.to_bytes()[..], packet].concat()
}

fn period_keys(period: Period) -> PeriodKeys {
    let set = keys(period);
    *set.current().unwrap()
}

fn key_of(clients: &Key, packet: &[u8]) -> Key {
    let client = packet.first_chunk::<HEADER_LEN>().map_or(0, |header| header.client());
    clients.derive(PassNumber::of_client(client).0)
}

fn cookie_of(key: CookieKey, from: Endpoint) -> u64 {
    key.cookie(from)
}

/// Some envelope of a packet, mostly one with which it passes.
pub(crate) fn any_wrapped(
    rng: &mut Rng,
    (ring, current): (&Ring, Period),
    from: Endpoint,
    packet: &[u8],
) -> Vec<u8> {
    if rng.chance(1, 40) {
        return packet.to_vec();
    }
    let mut kind = if ring.has(from) { EnvelopeKind::Member } else { EnvelopeKind::Request } as u8;
    if rng.chance(1, 20) {
        kind = u8::try_from(rng.below(6)).unwrap();
    }
    let period = match rng.below(20) {
        0 => Period(current.0 - 2),
        1 => Period(current.0 + 2),
        2 => Period(current.0 - 1),
        3 => Period(current.0 + 1),
        _ => current,
    };
    let cookie = match rng.below(20) {
        0 => Cookie::None,
        1 => Cookie::Wrong,
        _ => Cookie::Right,
    };
    let mut wrapped = wrap(from, packet, Made { kind, period, cookie, end: rng.next_u64() });
    match rng.below(40) {
        0 => {
            let at = usize::try_from(rng.below(wrapped.len() as u64)).unwrap();
            wrapped[at] ^= 1 << rng.below(8);
        }
        1 => wrapped.truncate(usize::try_from(rng.below(200)).unwrap()),
        2 => wrapped.truncate(ENVELOPE_LEN),
        _ => {}
    }
    wrapped
}

/// Has a client of some class and pass ask, where somebody asks, and another switch say most of
/// what no client may.
pub(crate) fn of_somebody(rng: &mut Rng, from: Endpoint, packet: &mut [u8]) -> Endpoint {
    let Some(header) = packet.first_chunk_mut::<HEADER_LEN>() else { return from };
    let class = if rng.chance(1, 2) { 0 } else { u16::try_from(rng.below(6)).unwrap() };
    let pass = PassNumber::new(class, 1 + rng.below(3)).unwrap();
    let client = pass.client(u16::try_from(rng.below(3)).unwrap());
    let keeps = Op::from_wire(header.op()).is_none() || rng.chance(1, 20);
    if !keeps {
        header.set_client(client);
    }
    let (host, port) = OTHER_SWITCH;
    if header.op() & 0x80 != 0 && rng.chance(9, 10) {
        let members = [endpoint(host, port), endpoint(0, 9000)];
        let clients = [endpoint(200, 1), endpoint(200, 2), endpoint(201, port)];
        let to = [&clients[..], &members].concat()[rng.below(5) as usize];
        header.set_reply_addr(to.addr);
        header.set_reply_port(to.port);
    }
    if (0x40..0x80).contains(&header.op()) && rng.chance(1, 2) {
        endpoint(host, port)
    } else {
        from
    }
}

/// Right envelopes around packets that know nothing of them.
#[derive(Default)]
pub(crate) struct Disguise {
    pub(crate) ring: Ring,
}

impl Disguise {
    pub(crate) const PERIOD: Period = Period(1_000_003);

    /// Whether this may be in an envelope that the program opens.
    pub(crate) fn takes(&self, from: Endpoint, packet: &[u8]) -> bool {
        let Some(header) = packet.first_chunk::<HEADER_LEN>() else { return false };
        let is_of_socket = |op| match op {
            Op::CacheRules | Op::CacheRuled => true,
            Op::Mget => packet.len() < HEADER_LEN + usize::from(header.count()) * MgetSlotBody::LEN,
            _ => false,
        };
        let is_whole = Op::from_wire(header.op()).is_some_and(|op| !is_of_socket(op));
        let asks = header.op() < 0x40 && header.client() != 0;
        let is_named = PassNumber::of_client(header.client()).class() == 0;
        let many = header.op() == Op::Mget as u8 && usize::from(header.count()) > 32;
        is_whole && !many && (self.ring.has(from) || asks) && (is_named || header.op() >= 0x40)
    }

    /// The packet as of a client that has a pass, if a client reads.
    pub(crate) fn named(mut packet: Vec<u8>) -> Vec<u8> {
        if let Some(header) = packet.first_chunk_mut::<HEADER_LEN>()
            && [Op::Get, Op::Mget, Op::Range].map(|op| op as u8).contains(&header.op())
        {
            let client = header.client() & 0xffff | 5 << 16;
            header.set_client(client);
        }
        packet
    }

    pub(crate) fn wrap(&self, from: Endpoint, packet: &[u8]) -> Vec<u8> {
        wrap(from, packet, self.made(from, Cookie::Right, end_of(packet)))
    }

    fn made(&self, at: Endpoint, cookie: Cookie, end: u64) -> Made {
        let of_member = self.ring.has(at);
        let kind = if of_member { EnvelopeKind::Member } else { EnvelopeKind::Request } as u8;
        Made { kind, period: Self::PERIOD, cookie, end }
    }

    /// The packet that is sent on for this one, whose envelope has to be right.
    pub(crate) fn unwrap(&self, to: Endpoint, sent: &[u8], came: &[u8]) -> Vec<u8> {
        let (envelope, packet) = sent.split_at(ENVELOPE_LEN);
        let mut made = self.made(to, Cookie::None, end_of(came));
        if made.kind == EnvelopeKind::Request as u8 {
            made.kind = EnvelopeKind::Reply as u8;
        }
        let wanted = wrap(to, packet, made);
        assert_eq!(envelope, &wanted[..ENVELOPE_LEN], "to {to}: {packet:02x?}");
        packet.to_vec()
    }
}

/// Some end tag of a packet: odd, so that its envelope has no echo.
fn end_of(packet: &[u8]) -> u64 {
    packet.iter().fold(1, |sum: u64, byte| sum.wrapping_mul(257) ^ u64::from(*byte)) | 1
}
