//! The cables of a rack: every datagram arrives, a hop later.

use super::agenda::{Agenda, Event};
use machine::{Datagram, Instant, Rng, Work};
use std::time::Duration;
use wire::Endpoint;

/// Cables, and what is on its way.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) agenda: Agenda,
    hop: Duration,
    /// Cables that a datagram passes which goes past the switch's program.
    cables_past: u32,
    rng: Rng,
    parcels: Vec<Parcel>,
    /// Places among `parcels` that are free; their buffers are used again.
    free: Vec<u32>,
    /// Requests of clients for which there was no room.
    lost: u64,
}

/// A datagram on its way, or in the queue of a node.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) bytes: Vec<u8>,
}

/// Who has an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Switch,
    Node(u16),
    /// What passes requests on beside a node.
    Coordinator(u16),
    Cache(u16),
    Client(u16),
}

impl Net {
    /// Cables that take so long, and up to one part of [`JITTER`] longer.
    pub(super) fn new(hop: Duration, cables_past: u32, rng: Rng) -> Self {
        let (parcels, free) = (Vec::new(), Vec::new());
        Self { agenda: Agenda::default(), hop, cables_past, rng, parcels, free, lost: 0 }
    }

    /// Puts a datagram on its cable.
    pub(super) fn post(&mut self, now: Instant, from: Endpoint, datagram: Datagram<'_>) {
        let parcel = self.keep(from, datagram);
        self.send(now, parcel);
    }

    /// Keeps a datagram that is to go later.
    pub(super) fn keep(&mut self, from: Endpoint, datagram: Datagram<'_>) -> u32 {
        let Datagram { to, payload, .. } = datagram;
        let parcel = match self.free.pop() {
            Some(place) => place,
            None => {
                self.parcels.push(Parcel { from, to, bytes: Vec::new() });
                u32::try_from(self.parcels.len() - 1).expect("fewer than four billion on their way")
            }
        };
        let slot = self.slot(parcel);
        (slot.from, slot.to) = (from, to);
        slot.bytes.clear();
        slot.bytes.extend_from_slice(payload);
        parcel
    }

    /// Puts a datagram on so many cables.
    pub(super) fn post_by(
        &mut self,
        now: Instant,
        from: Endpoint,
        datagram: Datagram<'_>,
        cables: u32,
    ) {
        let parcel = self.keep(from, datagram);
        self.send_by(now, parcel, cables);
    }

    /// Puts a parcel on its cable.
    pub(super) fn send(&mut self, now: Instant, parcel: u32) {
        let Parcel { from, to, .. } = self.slot(parcel);
        let past = *from != SERVICE && *to != SERVICE;
        let cables = if past { self.cables_past } else { 1 };
        self.send_by(now, parcel, cables);
    }

    fn send_by(&mut self, now: Instant, parcel: u32, cables: u32) {
        let most = u64::try_from((self.hop / JITTER).as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.rng.below(most));
        self.agenda.plan(now + (self.hop + jitter) * cables, Event::Arrival { parcel });
    }

    /// Lends a parcel out; [`put_back`](Self::put_back) it.
    pub(super) fn take(&mut self, parcel: u32) -> Parcel {
        let slot = self.slot(parcel);
        Parcel { from: slot.from, to: slot.to, bytes: std::mem::take(&mut slot.bytes) }
    }

    /// The parcel has been dealt with.
    pub(super) fn put_back(&mut self, parcel: u32, taken: Parcel) {
        self.slot(parcel).bytes = taken.bytes;
        self.free.push(parcel);
    }

    /// There was no room for it.
    pub(super) fn lose(&mut self, work: Work, parcel: u32) {
        self.lost += u64::from(work == Work::Request);
        self.free.push(parcel);
    }

    /// How many requests of clients were lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// A parcel, to look at.
    pub(super) fn slot(&mut self, parcel: u32) -> &mut Parcel {
        let place = usize::try_from(parcel).expect("32 bits fit");
        self.parcels.get_mut(place).expect("parcels are named by who has them")
    }
}

/// Where requests go.
pub(super) const SERVICE: Endpoint = endpoint(1_000);
const NODES: u16 = 2_000;
const COORDINATORS: u16 = 6_000;
const CACHES: u16 = 9_000;
const CLIENTS: u16 = 10_000;

/// Where a node takes its datagrams.
pub(super) const fn node_endpoint(node: u16) -> Endpoint {
    endpoint(NODES + node)
}

/// Where a node takes requests that may be for others.
pub(super) const fn coordinator_endpoint(node: u16) -> Endpoint {
    endpoint(COORDINATORS + node)
}

/// Where a cache takes its datagrams.
pub(super) const fn cache_endpoint(cache: u16) -> Endpoint {
    endpoint(CACHES + cache)
}

/// Where a client takes its answers.
pub(super) const fn client_endpoint(client: u16) -> Endpoint {
    endpoint(CLIENTS + client)
}

/// Whose endpoint this is.
pub(super) fn place_of(endpoint: Endpoint) -> Owner {
    match endpoint.port {
        CLIENTS.. => Owner::Client(endpoint.port - CLIENTS),
        CACHES.. => Owner::Cache(endpoint.port - CACHES),
        COORDINATORS.. => Owner::Coordinator(endpoint.port - COORDINATORS),
        NODES.. => Owner::Node(endpoint.port - NODES),
        _ => Owner::Switch,
    }
}

const fn endpoint(port: u16) -> Endpoint {
    Endpoint { addr: [10; 16], port }
}

/// A hop takes longer by a part of itself, up to one of so many.
const JITTER: u32 = 10;
