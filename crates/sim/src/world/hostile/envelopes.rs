//! What each process has of envelopes, between the network and its machine.

use crate::actor::READERS;
use crate::options::{Hostility, Options};
use crate::role::{CACHE_SHARDS, Cast, Role, cache_spec, node_spec, service};
use crate::routes::content_routing;
use cluster::Mutant;
use envelope::{
    Allowed, ClientEnvelopes, ClientOpened, ENVELOPE_LEN, EdgeKeys, Key, KeySet, MemberEnvelopes,
    MemberRole, Pass, PassNumber, Passes, Period, Refused, Rights, RightsTable, Ring, RingPorts,
    Secret, edge_tag, end_tag,
};
use machine::{Instant, Rng};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use wire::{Endpoint, EnvelopeBody, EnvelopeKind, EnvelopeRefusal, Fields as _, HEADER_LEN};

/// All keys, and the envelopes of all processes.
pub(super) struct Envelopes {
    secret: Secret,
    period: Duration,
    cast: Cast,
    ring: Ring,
    rights: RightsTable,
    mutant: Option<Mutant>,
    /// By the cast's order of roles.
    members: Vec<Option<Member>>,
    clients: Vec<Option<Client>>,
    pub(super) refused: [u64; EnvelopeRefusal::ALL.len()],
    /// What was let in that should not have been.
    pub(super) violation: Option<String>,
}

struct Member {
    role: MemberRole,
    envelopes: MemberEnvelopes,
    /// The period that it was told of last.
    told: Option<Period>,
}

struct Client {
    passes: Passes,
    envelopes: ClientEnvelopes,
}

/// To whom each goes.
type Datagrams = Vec<(Endpoint, Vec<u8>)>;

/// What comes of a datagram.
pub(super) enum Opened {
    /// This packet.
    Packet(Vec<u8>),
    /// The sender is to be sent this cookie.
    Ask([u8; ENVELOPE_LEN]),
    /// There was a cookie in it: these are to be sent to these.
    Resend(Datagrams),
    /// It is not let in.
    Nothing,
}

impl Envelopes {
    pub(super) fn new(options: &Options, hostility: &Hostility, cast: Cast) -> Self {
        let mut rng = Rng::new(options.seed).fork("secret");
        let secret = Secret::new(std::array::from_fn(|_| rng.next_u64().to_be_bytes()[0]));
        let read = Allowed { write: false, ..Allowed::ALL };
        let readers = match options.mutant {
            Some(Mutant::AnyRight) => Allowed::ALL,
            _ => read,
        };
        let rights = Rights { elsewhere: readers, ..Rights::default() };
        Self {
            secret,
            period: hostility.period,
            cast,
            ring: ring(options, cast),
            rights: RightsTable(vec![rights; usize::from(READERS)]),
            mutant: options.mutant,
            members: cast.roles().map(|_| None).collect(),
            clients: (0..cast.clients).map(|_| None).collect(),
            refused: Default::default(),
            violation: None,
        }
    }

    /// A member starts and knows no keys.
    pub(super) fn begin(&mut self, role: Role) {
        let place = self.cast.index(role);
        let role = match role {
            Role::Switch(_) => MemberRole::Switch,
            Role::Node(_) => MemberRole::Node,
            Role::Cache(_) => MemberRole::Cache,
            Role::Client(_) | Role::Controller(_) | Role::Store => return,
        };
        let envelopes = self.envelopes_of(role);
        if let Some(member) = self.members.get_mut(place) {
            *member = Some(Member { role, envelopes, told: None });
        }
    }

    fn envelopes_of(&self, role: MemberRole) -> MemberEnvelopes {
        let mut envelopes = MemberEnvelopes::new(role);
        envelopes.set_ring(self.ring.clone());
        envelopes.set_rights(self.rights.clone());
        envelopes
    }

    /// A member hears of the keys as they were when an order was given.
    pub(super) fn tell(&mut self, role: Role, given: Instant) {
        let period = self.period_at(given);
        let Some(Some(member)) = self.members.get_mut(self.cast.index(role)) else { return };
        if member.told != Some(period) {
            member.told = Some(period);
            let with_ends = member.role != MemberRole::Switch;
            member.envelopes.set_keys(&self.secret.key_set(period, with_ends));
        }
    }

    fn period_at(&self, now: Instant) -> Period {
        let length = u64::try_from(self.period.as_millis()).unwrap_or(u64::MAX);
        Period(now.unix_ms() / length.max(1))
    }

    /// A pass as the controllers give it at this time.
    pub(super) fn pass(&self, number: PassNumber, now: Instant) -> Pass {
        let current = self.period_at(now);
        let keys = self.secret.key_set(current, true);
        let periods = keys.periods.iter().filter_map(|it| it.of_client(number)).collect();
        Pass { number, ticket: Key([0; 16]), current, periods, renew_in_ms: 0 }
    }

    /// The pass that a client has.
    pub(super) fn number(&self, client: u16) -> Option<PassNumber> {
        let client = self.clients.get(usize::from(client))?.as_ref()?;
        Some(client.passes.pass().number)
    }

    /// A client's pass has newer keys, unless the client has another one by now.
    pub(super) fn renew(&mut self, client: u16, pass: Pass) {
        if let Some(Some(client)) = self.clients.get(usize::from(client)) {
            let _ = client.passes.renew(pass);
        }
    }

    /// The datagrams that a packet goes in.
    pub(super) fn seal(
        &mut self,
        role: Role,
        now: Instant,
        to: Endpoint,
        packet: &[u8],
    ) -> Vec<Vec<u8>> {
        let mut sealed = Vec::new();
        if let Role::Client(index) = role {
            let Some(header) = packet.first_chunk::<HEADER_LEN>() else { return sealed };
            self.take_seat(index, PassNumber::of_client(header.client()), now);
            if let Some(Some(client)) = self.clients.get_mut(usize::from(index)) {
                let now = Duration::from_nanos(now.0);
                let add = |it: &[u8; ENVELOPE_LEN]| sealed.push([&it[..], packet].concat());
                client.envelopes.seal(now, to, packet, add);
            }
            return sealed;
        }
        if let Some(Some(member)) = self.members.get_mut(self.cast.index(role)) {
            let envelope = member.envelopes.seal(to, packet);
            sealed.extend(envelope.map(|it| [&it[..], packet].concat()));
        }
        sealed
    }

    /// A client that another one has taken the place of has another pass.
    fn take_seat(&mut self, index: u16, number: PassNumber, now: Instant) {
        if self.number(index) == Some(number) {
            return;
        }
        let passes = Passes::new(self.pass(number, now));
        let envelopes = ClientEnvelopes::new(passes.clone());
        if let Some(client) = self.clients.get_mut(usize::from(index)) {
            *client = Some(Client { passes, envelopes });
        }
    }

    /// What came of a datagram at a switch is sent.
    pub(super) fn end_turn(&mut self, role: Role) {
        if let Some(Some(member)) = self.members.get_mut(self.cast.index(role)) {
            member.envelopes.end_turn();
        }
    }

    pub(super) fn open(&mut self, role: Role, from: Endpoint, mut datagram: Vec<u8>) -> Opened {
        let opened = match role {
            Role::Client(index) => self.open_at_client(index, from, &mut datagram),
            _ => self.open_at_member(role, from, &mut datagram),
        };
        match opened {
            Ok(None) => {
                datagram.drain(..ENVELOPE_LEN);
                Opened::Packet(datagram)
            }
            Ok(Some(again)) => Opened::Resend(again),
            Err(Refused { why, cookie, .. }) => {
                let place = EnvelopeRefusal::ALL.iter().position(|it| *it == why);
                let count = place.and_then(|place| self.refused.get_mut(place));
                count.into_iter().for_each(|count| *count += 1);
                cookie.map_or(Opened::Nothing, Opened::Ask)
            }
        }
    }

    fn open_at_client(
        &mut self,
        index: u16,
        from: Endpoint,
        datagram: &mut [u8],
    ) -> Result<Option<Datagrams>, Refused> {
        let client = self.clients.get_mut(usize::from(index));
        // One that has sent nothing yet has no keys.
        let Some(Some(client)) = client else { return Err(EnvelopeRefusal::Period.into()) };
        match client.envelopes.open(from, datagram)? {
            ClientOpened::Packet(_) => Ok(None),
            ClientOpened::Cookie => {
                let mut again = Vec::new();
                client.envelopes.resend(|to, it, packet| again.push((to, [it, packet].concat())));
                Ok(Some(again))
            }
        }
    }

    fn open_at_member(
        &mut self,
        role: Role,
        from: Endpoint,
        datagram: &mut [u8],
    ) -> Result<Option<Datagrams>, Refused> {
        let place = self.cast.index(role);
        let named = EnvelopeBody::split(datagram).map_or(0, |(envelope, _)| envelope.period);
        let Some(Some(member)) = self.members.get_mut(place) else {
            return Err(EnvelopeRefusal::Period.into());
        };
        if let Err(refused) = member.envelopes.open(from, datagram) {
            self.overlook(place, from, refused, datagram)?;
        }
        let told = self.members.get(place).and_then(|it| it.as_ref()?.told);
        let is_known = told.is_some_and(|told| named.wrapping_sub(told.byte()).wrapping_add(1) < 3);
        if !is_known {
            let what = format!("{role} opens what is of period {named}, and was told {told:?}");
            self.violation.get_or_insert(what);
        }
        Ok(None)
    }

    /// Lets in what should not be, if that is the mutant of this world: it is given the envelope
    /// that a member would have sent it in.
    fn overlook(
        &mut self,
        place: usize,
        from: Endpoint,
        refused: Refused,
        datagram: &mut [u8],
    ) -> Result<(), Refused> {
        let overlooks = match refused.why {
            EnvelopeRefusal::Edge | EnvelopeRefusal::Sender => Mutant::BelieveAnybody,
            EnvelopeRefusal::NoCookie => Mutant::AnswerAnybody,
            EnvelopeRefusal::Period => Mutant::OldPeriods,
            _ => return Err(refused),
        };
        let Some(Some(member)) = self.members.get(place) else { return Err(refused) };
        let Some(told) = member.told.filter(|_| self.mutant == Some(overlooks)) else {
            return Err(refused);
        };
        let role = member.role;
        let keys = self.secret.key_set(told, true);
        let parts = EnvelopeBody::split(datagram).map(|(it, packet)| (it, packet.to_vec()));
        let Some((mut envelope, packet)) = parts else { return Err(refused) };
        if overlooks == Mutant::OldPeriods {
            let age = told.byte().wrapping_sub(envelope.period);
            let Some(period) = told.0.checked_sub(age.into()) else { return Err(refused) };
            let mut then = self.envelopes_of(role);
            then.set_keys(&self.secret.key_set(Period(period), role != MemberRole::Switch));
            then.open(from, datagram)?;
            envelope.period = told.byte();
            envelope.end = end_of(&keys, envelope.period, &packet).unwrap_or(envelope.end);
        }
        envelope.kind = EnvelopeKind::Member as u8;
        let Some(named) = keys.named(envelope.period) else { return Err(refused) };
        envelope = with_edge(envelope, EdgeKeys::of(named).members, 0, &packet);
        for (place, byte) in datagram.iter_mut().zip(envelope.to_bytes()) {
            *place = byte;
        }
        let Some(Some(member)) = self.members.get_mut(place) else { return Err(refused) };
        member.envelopes.open(service(0), datagram).map(|_| ())
    }
}

/// The end tag that the author of a packet makes.
fn end_of(keys: &KeySet, period: u8, packet: &[u8]) -> Option<u64> {
    let header = packet.first_chunk::<HEADER_LEN>()?;
    let op = wire::Op::from_wire(header.op())?;
    let keys = keys.named(period)?;
    let is_of_client = !op.is_chain() && header.client() != 0;
    if envelope::is_under_edge_alone(op) {
        return Some(0);
    }
    let whose = PassNumber::of_client(header.client());
    let key = if is_of_client { keys.of_client(whose)?.end } else { keys.end?.derive(u64::MAX) };
    Some(end_tag(key, packet))
}

/// An envelope with the edge tag that is right under this key.
pub(super) fn with_edge(body: EnvelopeBody, key: Key, cookie: u64, packet: &[u8]) -> EnvelopeBody {
    let head = body.to_bytes().first_chunk().copied().unwrap_or_default();
    EnvelopeBody { edge: edge_tag(key, head, body.end, cookie, packet), ..body }
}

/// Where all members are.
fn ring(options: &Options, cast: Cast) -> Ring {
    let ports = |at: Endpoint, ports| {
        let first = SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(at.addr), at.port, 0, 0));
        RingPorts { first, ports }
    };
    let switches = (0..cast.switches).map(|index| ports(service(index), 1));
    let nodes = (0..cast.nodes).map(|index| {
        let spec = node_spec(index, options.shards);
        ports(spec.endpoint, spec.shards)
    });
    let caches = (0..cast.caches).map(|index| ports(cache_spec(index).endpoint, CACHE_SHARDS));
    let members: Vec<RingPorts> = switches.chain(nodes).chain(caches).collect();
    let routing = options.content.then(content_routing);
    let content = routing.map(|it| SocketAddrV6::new(it.prefix.addresses().addr, it.port, 0, 0));
    Ring::new(&members, content)
}
