//! A coordinator: takes requests in the switch's place. It exists to compare with: a switch that
//! knows the way needs neither its time nor its place.
//!
//! Requests for one key, and scans, it passes on to the nodes that they are for, as a switch does,
//! and what it hears from those goes to the client that asked. Of a multiget it asks the nodes, and
//! answers when all keys are there.

mod clients;

use crate::coordination::{Coordination, Routes, header_of};
use crate::machine::Client;
use crate::{ClientConfig, Outcome, Refusal, Reply, Request, Services, Ticket, Value};
use clients::Clients;
use cluster::{Keyspace, KeyspaceId, Map};
use machine::{Datagram, Instant, Outbox, Rng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use wire::{Body, Code, Endpoint, Entry, FILL_MAX, Fields as _, HEADER_LEN, Header, Op, Packet};

/// The machine. It follows the contract of all [`machine`]s.
#[derive(Debug)]
pub struct Coordinator {
    client: Client,
    /// Where it receives.
    address: Endpoint,
    routes: Arc<Routes>,
    /// Whether its map has turned out to be old.
    outdated: bool,
    /// Who is answered.
    clients: Clients,
    /// A request that is passed on.
    passing: Vec<u8>,
    keyspaces: BTreeMap<KeyspaceId, Arc<Keyspace>>,
    asked: BTreeMap<Ticket, Asked>,
    /// What is being asked for already: client and sequence number.
    known: BTreeSet<(u64, u64)>,
    answers: Outbox,
}

/// A multiget that waits for the nodes.
#[derive(Debug)]
struct Asked {
    from: Endpoint,
    header: Header,
    /// Indices of the keys that are asked for.
    indices: Vec<u8>,
}

/// How long nodes may take. Clients ask again sooner than a coordinator gives up.
const DEADLINE: Duration = Duration::from_secs(1);

/// Multigets at once; those beyond are dropped, and asked for again.
const ASKED_MAX: usize = 4096;

impl Coordinator {
    /// A coordinator that receives at `address` and has an id like a client's. Without a map it
    /// takes nothing. Of what its map does not know any more it asks at the service addresses.
    #[must_use]
    pub fn new(address: Endpoint, services: impl Into<Services>, id: u64, rng: Rng) -> Self {
        let mut config = ClientConfig::new(services, id);
        config.deadline = DEADLINE;
        config.in_flight_max = ASKED_MAX;
        Self {
            client: Client::new(config, rng),
            address,
            routes: Arc::new(Routes::new(&Map::default(), address)),
            outdated: false,
            clients: Clients::default(),
            passing: Vec::new(),
            keyspaces: BTreeMap::new(),
            asked: BTreeMap::new(),
            known: BTreeSet::new(),
            answers: Outbox::default(),
        }
    }

    /// Goes by this map from now on.
    pub fn install(&mut self, map: &Map) {
        let keyspaces = map.keyspaces.iter();
        self.keyspaces = keyspaces.map(|it| (it.id, Arc::new(it.clone()))).collect();
        self.routes = Arc::new(Routes::new(map, self.address));
        self.client.coordinate(Coordination::Client(Arc::clone(&self.routes)));
        self.outdated = false;
    }

    /// Whether its map has turned out to be old.
    #[must_use]
    pub fn wants_map(&self) -> bool {
        self.outdated || self.client.wants_routes()
    }

    /// Takes a datagram: a client's request, or a node's answer.
    pub fn handle_packet(&mut self, now: Instant, from: Endpoint, datagram: &[u8]) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        let op = packet.op();
        if op == Op::Mget {
            self.take(now, from, &packet);
        } else if op.is_reply() {
            match self.clients.find(packet.header().client()) {
                Some(to) => {
                    self.outdated |= is_elsewhere(packet.header().code());
                    self.answers.push_copy(to, datagram);
                }
                None => self.client.handle_packet(now, from, datagram),
            }
        } else if op.is_answered() && op != Op::Describe {
            self.pass_on(now, from, op, datagram);
        }
        self.answer();
    }

    /// Does with a request what a switch does. Where nobody has the key it is asked for again.
    fn pass_on(&mut self, now: Instant, from: Endpoint, op: Op, datagram: &[u8]) {
        let Self { clients, routes, passing, answers, .. } = self;
        passing.clear();
        passing.extend_from_slice(datagram);
        clients.note(now, header_of(passing).client(), from);
        // A node answers whoever it hears: only one that knew this coordinator could go by this.
        routes.send(op, from, passing, answers);
    }

    /// Asks nodes again, and gives up what has taken too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        self.answer();
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        if self.answers.is_empty() { self.client.poll_transmit() } else { self.answers.pop() }
    }

    fn take(&mut self, now: Instant, from: Endpoint, packet: &Packet<'_>) {
        let header = Header::read(packet.header());
        let Ok(Body::Mget(keys)) = packet.body() else { return };
        let request = (header.client, header.seq);
        let Some(keyspace) = self.keyspaces.get(&KeyspaceId(header.keyspace)) else { return };
        let wanted = (0u8..).zip(keys.iter()).filter(|(index, _)| header.bitmap >> index & 1 != 0);
        let (indices, keys): (Vec<u8>, Vec<&[u8]>) =
            wanted.map(|(index, key)| (index, key.key)).unzip();
        // A copy of what is on its way already adds nothing.
        if indices.is_empty() || self.known.contains(&request) {
            return;
        }
        let mget = Request::Mget { keys: &keys, within: Some(DEADLINE) };
        // What cannot be taken now is asked for again.
        let Ok(ticket) = self.client.start(now, keyspace, mget) else { return };
        self.known.insert(request);
        self.asked.insert(ticket, Asked { from, header, indices });
    }

    /// Answers multigets whose keys are all there, or will not be.
    fn answer(&mut self) {
        while let Some((ticket, outcome)) = self.client.poll_outcome() {
            let Some(asked) = self.asked.remove(&ticket) else { continue };
            self.known.remove(&(asked.header.client, asked.header.seq));
            if let Outcome::Done(Reply::Mget(outcomes)) = outcome {
                reply(&mut self.answers, &asked, &outcomes);
            }
        }
    }
}

/// As many datagrams as it takes. Keys that nobody answered for are left out: the client asks for
/// them again.
fn reply(out: &mut Outbox, asked: &Asked, outcomes: &[Outcome<Option<Value>>]) {
    let op = Op::MgetReply as u8;
    let mut header = Header { op, flags: 0, count: 0, bitmap: 0, ..asked.header };
    let mut payload = Vec::new();
    let mut send = |header: &mut Header, payload: &mut Vec<u8>| {
        if header.bitmap != 0 {
            let mut datagram = Vec::new();
            wire::emit(&mut datagram, header, &[payload]);
            out.push_copy(asked.from, &datagram);
        }
        header.bitmap = 0;
        payload.clear();
    };
    for (index, outcome) in asked.indices.iter().zip(outcomes) {
        let (code, value) = match outcome {
            Outcome::Done(Some(value)) => (Code::Ok, value),
            Outcome::Done(None) => (Code::NotFound, &Value::default()),
            Outcome::Refused(why) => match code_of(*why) {
                Some(code) => (code, &Value::default()),
                None => continue,
            },
            Outcome::Unknown(_) => continue,
        };
        let Value { value, version, expiry_ms, big, .. } = value;
        let big = if *big { wire::big::EXPIRY_BIG } else { 0 };
        let entry = Entry { version: *version, expiry_ms: *expiry_ms | big, now_ms: 0, value };
        let before = payload.len();
        wire::push_mget_entry(&mut payload, *index, code as u8, &entry);
        if HEADER_LEN + payload.len() > FILL_MAX {
            let last = payload.split_off(before);
            send(&mut header, &mut payload);
            payload = last;
        }
        header.bitmap |= 1 << index;
    }
    send(&mut header, &mut payload);
}

/// Whether a node says that it is asked for what it does not have.
fn is_elsewhere(code: u8) -> bool {
    matches!(Code::from_wire(code), Some(Code::StaleEpoch | Code::NotOwner | Code::Closed))
}

/// The code that a node refused with.
fn code_of(why: Refusal) -> Option<Code> {
    [Code::BadRequest, Code::TooLarge, Code::BadMatch, Code::UnknownKeyspace]
        .into_iter()
        .find(|code| Refusal::from_code(*code) == Some(why))
}
