//! The cables of a rack: every datagram arrives, a hop later.

use super::agenda::{Agenda, Event};
use machine::{Datagram, Instant, Rng};
use std::time::Duration;
use wire::Endpoint;

/// Cables, and what is on its way.
#[derive(Debug)]
pub(super) struct Net {
    pub(super) agenda: Agenda,
    rng: Rng,
    parcels: Vec<Parcel>,
    /// Places among `parcels` that are free; their buffers are used again.
    free: Vec<u32>,
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
pub(super) enum Place {
    Switch,
    Node(u16),
    Client(u16),
}

impl Net {
    pub(super) fn new(rng: Rng) -> Self {
        Self { agenda: Agenda::default(), rng, parcels: Vec::new(), free: Vec::new() }
    }

    /// Puts a datagram on its cable.
    pub(super) fn post(&mut self, now: Instant, from: Endpoint, datagram: Datagram<'_>) {
        let Datagram { to, payload } = datagram;
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
        let jitter = Duration::from_nanos(self.rng.below(JITTER_NS_MAX));
        self.agenda.plan(now + HOP + jitter, Event::Arrival { parcel });
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

    /// A parcel, to look at.
    pub(super) fn slot(&mut self, parcel: u32) -> &mut Parcel {
        let place = usize::try_from(parcel).expect("32 bits fit");
        self.parcels.get_mut(place).expect("parcels are named by who has them")
    }
}

/// Where requests go.
pub(super) const SERVICE: Endpoint = endpoint(1_000);
const NODES: u16 = 2_000;
const CLIENTS: u16 = 10_000;

/// Where a node takes its datagrams.
pub(super) const fn node_endpoint(node: u16) -> Endpoint {
    endpoint(NODES + node)
}

/// Where a client takes its answers.
pub(super) const fn client_endpoint(client: u16) -> Endpoint {
    endpoint(CLIENTS + client)
}

/// Whose endpoint this is.
pub(super) fn place_of(endpoint: Endpoint) -> Place {
    match endpoint.port {
        CLIENTS.. => Place::Client(endpoint.port - CLIENTS),
        NODES.. => Place::Node(endpoint.port - NODES),
        _ => Place::Switch,
    }
}

const fn endpoint(port: u16) -> Endpoint {
    Endpoint { addr: [10; 16], port }
}

/// From one end of a cable to the other, with all that is before and behind it. As long as a
/// request takes its server: 10 µs to a server of 100,000 requests a second, slowed down ten times.
pub const HOP: Duration = Duration::from_micros(100);

/// A hop takes up to a tenth longer, so that nothing runs in lockstep.
const JITTER_NS_MAX: u64 = 10_000;
