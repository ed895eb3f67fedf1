//! Envelopes at a switch, a node or a cache.

mod lately;
mod ring;

pub use ring::{Ring, RingPorts};

use crate::counts::Counts;
use crate::keys::{EdgeKeys, Key, KeySet, MEMBERS, Period};
use crate::pass::PassNumber;
use crate::rights::RightsTable;
use crate::tags::{HEAD_LEN, edge_tag, end_tag, is_under_edge_alone, op_of};
use crate::{ENVELOPE_LEN, ENVELOPE_MAGIC};
use hashbrown::HashMap;
use lately::{Kind, Lately};
use wire::{
    Endpoint, EnvelopeBody, EnvelopeKind, EnvelopeRefusal, Fields as _, HEADER_LEN, Header, Op,
    hop_flag,
};

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRole {
    /// Sends on what others have written.
    Switch,
    /// Reads and writes.
    Node,
    /// Reads and writes.
    Cache,
}

/// What was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub why: EnvelopeRefusal,
    /// What its sender is to be sent, if it is a client that lacks a cookie.
    pub cookie: Option<[u8; ENVELOPE_LEN]>,
    /// Where that is to come from, if not from where the member receives: a client keeps it for the
    /// address that it comes from.
    pub asked_at: Option<Endpoint>,
}

impl From<EnvelopeRefusal> for Refused {
    fn from(why: EnvelopeRefusal) -> Self {
        Self { why, cookie: None, asked_at: None }
    }
}

/// Opens what a member receives and seals what it sends.
#[derive(Debug)]
pub struct MemberEnvelopes {
    role: MemberRole,
    keys: Option<Keys>,
    lately: Lately,
    ring: Ring,
    rights: RightsTable,
    /// At a switch: the end tags of what came in this turn, which it cannot make.
    ends: HashMap<Written, EndTag>,
    counts: Counts,
}

/// What a packet is known by that a switch sends on, whatever else it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Written {
    client: u64,
    seq: u64,
    crc: u32,
}

/// An end tag as it came, and the period whose keys made it.
#[derive(Clone, Copy, Debug)]
struct EndTag {
    period: u8,
    tag: u64,
}

impl Written {
    fn of(header: &[u8; HEADER_LEN]) -> Self {
        Self { client: header.client(), seq: header.seq(), crc: header.tag() }
    }
}

#[derive(Debug)]
struct Keys {
    current: Period,
    periods: [Derived; 3],
}

/// A period's keys, with those that are needed for every packet.
#[derive(Clone, Copy, Debug)]
struct Derived {
    period: Period,
    edge: EdgeKeys,
    end: Option<Ends>,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    clients: Key,
    members: Key,
}

impl Derived {
    /// The key of a packet's end tag: its client's, or the members' own.
    fn end_of(&self, lately: &mut Lately, op: Op, header: &[u8; HEADER_LEN]) -> Option<Key> {
        let ends = self.end?;
        let (period, pass) = (self.period.byte(), PassNumber::of_client(header.client()));
        Some(match is_of_client(op) && header.client() != 0 {
            true => lately.of(ends.clients, Kind::End, period, pass),
            false => ends.members,
        })
    }

    fn edge_of_client(&self, lately: &mut Lately, header: &[u8; HEADER_LEN]) -> Key {
        let (period, pass) = (self.period.byte(), PassNumber::of_client(header.client()));
        lately.of(self.edge.clients, Kind::Edge, period, pass)
    }
}

impl MemberEnvelopes {
    /// Those of a member that was told no keys yet: nothing passes.
    #[must_use]
    pub fn new(role: MemberRole) -> Self {
        Self {
            role,
            keys: None,
            lately: Lately::new(),
            ring: Ring::default(),
            rights: RightsTable::default(),
            ends: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Takes other keys.
    pub fn set_keys(&mut self, set: &KeySet) {
        let derived = |it: &crate::PeriodKeys| Derived {
            period: it.period,
            edge: EdgeKeys::of(it),
            end: it.end.map(|end| Ends { clients: end, members: end.derive(MEMBERS) }),
        };
        let periods = set.periods.each_ref().map(derived);
        self.lately.forget();
        self.keys = Some(Keys { current: set.current, periods });
    }

    /// Takes the addresses of all members.
    pub fn set_ring(&mut self, ring: Ring) {
        self.ring = ring;
    }

    /// Takes the rights of each class.
    pub fn set_rights(&mut self, rights: RightsTable) {
        self.rights = rights;
    }

    /// What was refused so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The packet of a datagram, if whoever sent it may do so and the packet is as it was written.
    ///
    /// # Errors
    ///
    /// Why it is not let through, which was counted.
    pub fn open<'a>(
        &mut self,
        from: Endpoint,
        datagram: &'a mut [u8],
    ) -> Result<&'a mut [u8], Refused> {
        match self.check(from, datagram) {
            Ok(()) => Ok(datagram.get_mut(ENVELOPE_LEN..).unwrap_or_default()),
            Err(refused) => {
                self.counts.note(refused.why);
                Err(refused)
            }
        }
    }

    fn check(&mut self, from: Endpoint, datagram: &[u8]) -> Result<(), Refused> {
        let Opened { envelope, kind, head, packet } = Opened::split(datagram)?;
        let op = op_of(packet).ok_or(EnvelopeRefusal::Malformed)?;
        let header: &[u8; HEADER_LEN] = packet.first_chunk().ok_or(EnvelopeRefusal::Malformed)?;
        let derived = self.keys.as_ref().and_then(|keys| keys.named(envelope.period));
        let keys = *derived.ok_or(EnvelopeRefusal::Period)?;
        let is_of_ring = self.ring.has(from);
        match kind {
            EnvelopeKind::Request => {
                if is_of_ring {
                    return Err(EnvelopeRefusal::Sender.into());
                }
                if !self.may_come_from_client(op, header) {
                    return Err(EnvelopeRefusal::Malformed.into());
                }
                let key = keys.edge_of_client(&mut self.lately, header);
                let cookie = keys.edge.cookies.cookie(from);
                let tag = |cookie| edge_tag(key, head, envelope.end, cookie, packet);
                if tag(cookie) != envelope.edge {
                    if tag(0) != envelope.edge {
                        return Err(EnvelopeRefusal::Edge.into());
                    }
                    let answer = answer_with_cookie(&keys, key, cookie, header);
                    let asked_at = self.ring.asked_at(op, &Header::read(header));
                    let why = EnvelopeRefusal::NoCookie;
                    return Err(Refused { why, cookie: Some(answer), asked_at });
                }
            }
            EnvelopeKind::Member => {
                if !is_of_ring {
                    return Err(EnvelopeRefusal::Sender.into());
                }
                if edge_tag(keys.edge.members, head, envelope.end, 0, packet) != envelope.edge {
                    return Err(EnvelopeRefusal::Edge.into());
                }
            }
            EnvelopeKind::Reply | EnvelopeKind::Cookie => {
                return Err(EnvelopeRefusal::Malformed.into());
            }
        }
        if self.role == MemberRole::Switch {
            let end = EndTag { period: envelope.period, tag: envelope.end };
            self.ends.insert(Written::of(header), end);
        } else if !is_under_edge_alone(op) {
            let key = keys.end_of(&mut self.lately, op, header).ok_or(EnvelopeRefusal::Period)?;
            if end_tag(key, packet) != envelope.end {
                return Err(EnvelopeRefusal::End.into());
            }
        }
        let class = PassNumber::of_client(header.client()).class();
        if is_request(op)
            && header.client() != 0
            && !self.rights.allow(class, op, header.keyspace())
        {
            return Err(EnvelopeRefusal::Right.into());
        }
        Ok(())
    }

    /// Whether a client may send this here: to a switch any request, to others what passes no
    /// switch.
    fn may_come_from_client(&self, op: Op, header: &[u8; HEADER_LEN]) -> bool {
        let is_direct = header.hop_flags() & hop_flag::DIRECT != 0;
        is_request(op) && header.client() != 0 && (self.role == MemberRole::Switch || is_direct)
    }

    /// The envelope of a packet that is sent to this address; `None` if there are no keys for it.
    pub fn seal(&mut self, to: Endpoint, packet: &[u8]) -> Option<[u8; ENVELOPE_LEN]> {
        let keys = self.keys.as_ref()?;
        let current = keys.named(keys.current.byte())?;
        let header: &[u8; HEADER_LEN] = packet.first_chunk()?;
        let op = Op::from_wire(header.op())?;
        let (keys, end) = match self.role {
            _ if is_under_edge_alone(op) => (current, 0),
            // Whoever opens it looks for both keys by the one period that the envelope names.
            MemberRole::Switch => {
                let end = self.ends.get(&Written::of(header))?;
                (keys.named(end.period)?, end.tag)
            }
            MemberRole::Node | MemberRole::Cache => {
                (current, end_tag(current.end_of(&mut self.lately, op, header)?, packet))
            }
        };
        let (kind, key) = if self.ring.has(to) {
            (EnvelopeKind::Member, keys.edge.members)
        } else {
            (EnvelopeKind::Reply, keys.edge_of_client(&mut self.lately, header))
        };
        Some(envelope(keys.period, kind, end, key, 0, packet))
    }

    /// What came before is sent: what a switch notes of it goes.
    pub fn end_turn(&mut self) {
        self.ends.clear();
    }
}

impl Keys {
    fn named(&self, byte: u8) -> Option<&Derived> {
        self.periods.iter().find(|it| it.period.byte() == byte)
    }
}

/// A datagram whose parts are where they should be.
pub(crate) struct Opened<'a> {
    pub(crate) envelope: EnvelopeBody,
    pub(crate) kind: EnvelopeKind,
    pub(crate) head: [u8; HEAD_LEN],
    pub(crate) packet: &'a [u8],
}

impl<'a> Opened<'a> {
    pub(crate) fn split(datagram: &'a [u8]) -> Result<Self, EnvelopeRefusal> {
        let magic = datagram.first_chunk().map(|magic| u16::from_be_bytes(*magic));
        if magic == Some(wire::MAGIC) {
            return Err(EnvelopeRefusal::Bare);
        }
        let parts = EnvelopeBody::split(datagram).zip(datagram.first_chunk());
        let parts = parts.filter(|((envelope, _), _)| envelope.magic == ENVELOPE_MAGIC);
        let ((envelope, packet), head) = parts.ok_or(EnvelopeRefusal::Malformed)?;
        let kind = EnvelopeKind::from_wire(envelope.kind).ok_or(EnvelopeRefusal::Malformed)?;
        // A cookie is all that there is.
        if (kind == EnvelopeKind::Cookie) != packet.is_empty() {
            return Err(EnvelopeRefusal::Malformed);
        }
        Ok(Self { envelope, kind, head: *head, packet })
    }
}

/// An envelope with its tags.
pub(crate) fn envelope(
    period: Period,
    kind: EnvelopeKind,
    end: u64,
    key: Key,
    cookie: u64,
    packet: &[u8],
) -> [u8; ENVELOPE_LEN] {
    let body = EnvelopeBody {
        magic: ENVELOPE_MAGIC,
        kind: kind as u8,
        period: period.byte(),
        echo: 0,
        edge: 0,
        end,
    };
    with_edge(body, key, cookie, packet)
}

fn with_edge(body: EnvelopeBody, key: Key, cookie: u64, packet: &[u8]) -> [u8; ENVELOPE_LEN] {
    let bytes = body.to_bytes();
    let head = bytes.first_chunk().copied().unwrap_or_default();
    let edge = edge_tag(key, head, body.end, cookie, packet);
    EnvelopeBody { edge, ..body }.to_bytes()
}

fn answer_with_cookie(
    keys: &Derived,
    key: Key,
    cookie: u64,
    header: &[u8; HEADER_LEN],
) -> [u8; ENVELOPE_LEN] {
    let body = EnvelopeBody {
        magic: ENVELOPE_MAGIC,
        kind: EnvelopeKind::Cookie as u8,
        period: keys.period.byte(),
        echo: echo_of(header),
        edge: 0,
        end: cookie,
    };
    with_edge(body, key, 0, &[])
}

/// What a cookie repeats of the request that it answers.
pub(crate) fn echo_of(header: &[u8; HEADER_LEN]) -> u32 {
    (header.seq() & u64::from(u32::MAX)) as u32
}

/// Whether this is what a client asks.
fn is_request(op: Op) -> bool {
    is_of_client(op) && !op.is_reply()
}

/// Whether this is between a client and who answers it.
fn is_of_client(op: Op) -> bool {
    op as u8 & BETWEEN_MEMBERS == 0
}

/// The bit of an operation that is between members.
const BETWEEN_MEMBERS: u8 = 0x40;
