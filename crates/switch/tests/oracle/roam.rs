//! Trips as section 9 of `spec/protocol.md` reads, for one thread: moments, and what requests were
//! given. Clients are never silent for long here.

use super::hot::{Entry, Hot};
use super::model::Sent;
use cluster::{NodeId, SwitchTables};
use std::collections::BTreeMap;
use wire::{HEADER_LEN, Header};

/// What a request was given.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) trip: u64,
    pub(crate) version: u64,
    pub(crate) chain: Chain,
}

/// The nodes of a stamp.
#[derive(Clone, Debug)]
pub(crate) enum Chain {
    Known(Vec<NodeId>),
    /// So many of these. It was chosen when a reply passed, and shows when the request comes again.
    Hidden(Vec<NodeId>, usize),
}

/// A trip of a key.
#[derive(Clone, Debug)]
pub(crate) struct Trip {
    pub(crate) number: u64,
    pub(crate) replicas: usize,
    /// The moment of its beginning, and the version that is given next.
    pub(crate) begun: Option<(u64, u64)>,
}

/// The moment and the table of stamps.
#[derive(Default)]
pub(crate) struct Roam {
    pub(crate) moment: u64,
    pub(crate) beginning: u64,
    stamps: BTreeMap<(u64, u64), Stamp>,
    /// Low-water marks of clients that were ever given a stamp.
    low: BTreeMap<u64, u64>,
}

/// What becomes of a write that may roam.
pub(crate) enum Way {
    Drop(&'static str),
    Home(u64),
    /// With a stamp that is new or not.
    Trip(Stamp, bool),
}

impl Roam {
    /// An order comes, to a directory that was empty or not.
    pub(crate) fn order(&mut self, revision: u64, was_empty: bool) {
        if was_empty {
            self.beginning = revision << 16;
        }
        self.moment = self.moment.max(revision << 16);
    }

    /// Where a write that may roam goes. A switch that may choose chose what another one `did`.
    pub(crate) fn way(
        &mut self,
        hot: &mut Hot,
        tables: &SwitchTables,
        header: &Header,
        did: &[Sent],
    ) -> Way {
        let low = header.seq.saturating_sub(header.lag.into());
        if let Some(mark) = self.low.get_mut(&header.client) {
            *mark = low.max(*mark);
            if header.seq < *mark {
                return Way::Drop("stale_request");
            }
        }
        let name = (header.client, header.seq);
        let is_new = !self.stamps.contains_key(&name);
        let its_own = hot.has(header.keyspace, header.keyhash, header.match_value);
        let (nodes, entry) = hot.row(header);
        if !self.stamps.contains_key(&name)
            && its_own
            && let Some(trip) = entry.and_then(|entry| entry.trip.as_mut())
            && let Some((begun, next)) = &mut trip.begun
            && moment(header) >= *begun
            && let Some(chain) = chosen(&known(&nodes, tables), trip.replicas, did)
        {
            let chain = Chain::Known(chain);
            let stamp = Stamp { trip: trip.number, version: *next, chain };
            *next += 1;
            self.keep(header, stamp);
        }
        let Some(stamp) = self.stamps.get(&name) else { return Way::Home(0) };
        if its_own && hot.trip(header) == Some(stamp.trip) {
            Way::Trip(stamp.clone(), is_new)
        } else {
            Way::Home(stamp.version)
        }
    }

    /// The head says that this write is away.
    pub(crate) fn away(&mut self, hot: &mut Hot, tables: &SwitchTables, header: &Header) {
        let (nodes, entry) = hot.row(header);
        let Some(trip) = entry.and_then(|entry| entry.trip.as_mut()) else { return };
        if trip.number != super::hot::stay(header) {
            return;
        }
        if trip.begun.is_none()
            && header.object_version < u64::MAX - 1 - (1 << 32)
            && self.moment & 0xffff != 0xffff
        {
            self.moment += 1;
            trip.begun = Some((self.moment, header.object_version + 1));
        }
        let ended = self.low.get(&header.client).is_some_and(|low| header.seq < *low);
        let stamp = self.stamps.get(&(header.client, header.seq));
        let has = stamp.is_some_and(|stamp| stamp.trip >= trip.number);
        let known = known(&nodes, tables);
        if let Some((_, next)) = &mut trip.begun
            && !ended
            && !has
            && known.len() >= trip.replicas
        {
            let chain = Chain::Hidden(known, trip.replicas);
            let stamp = Stamp { trip: trip.number, version: *next, chain };
            *next += 1;
            self.keep(header, stamp);
        }
    }

    /// The chain of a request that has a stamp; one that was not known until now is what another
    /// switch `did`.
    pub(crate) fn chain(&mut self, header: &Header, did: &[Sent]) -> Vec<NodeId> {
        let stamp = self.stamps.get_mut(&(header.client, header.seq)).expect("it has a stamp");
        let chain = match &stamp.chain {
            Chain::Known(chain) => chain.clone(),
            Chain::Hidden(nodes, replicas) => chosen(nodes, *replicas, did).expect("enough nodes"),
        };
        stamp.chain = Chain::Known(chain.clone());
        chain
    }

    fn keep(&mut self, header: &Header, stamp: Stamp) {
        self.low.entry(header.client).or_default();
        self.stamps.insert((header.client, header.seq), stamp);
    }
}

/// What lies where replies and MGETs have `bitmap`, `node` and `load`.
pub(crate) fn moment(header: &Header) -> u64 {
    u64::from(header.bitmap) << 32 | u64::from(header.node) << 16 | u64::from(header.load)
}

pub(crate) fn set_moment(header: &mut Header, moment: u64) {
    header.bitmap = (moment >> 32) as u32;
    header.node = (moment >> 16) as u16;
    header.load = moment as u16;
}

/// Those of a key's nodes that the tables have.
fn known(nodes: &[NodeId], tables: &SwitchTables) -> Vec<NodeId> {
    let known = |node: &&NodeId| tables.nodes.iter().any(|spec| spec.id == **node);
    nodes.iter().filter(known).copied().collect()
}

/// The chain that was chosen, if it is one that may be chosen; else any. None if there is none.
fn chosen(nodes: &[NodeId], replicas: usize, did: &[Sent]) -> Option<Vec<NodeId>> {
    let of = |bytes: &Vec<u8>| {
        let header = Header::read(bytes.first_chunk::<HEADER_LEN>().expect("a whole header"));
        let ids = header.chain.chunks(2).take(header.chain_len.into());
        ids.map(|id| NodeId(u16::from_be_bytes([id[0], id[1]]))).collect::<Vec<_>>()
    };
    let found = did.first().map(|(_, bytes)| of(bytes)).unwrap_or_default();
    let distinct = (1..found.len()).all(|at| !found[..at].contains(&found[at]));
    if distinct && found.len() == replicas && found.iter().all(|node| nodes.contains(node)) {
        return Some(found);
    }
    nodes.get(..replicas).map(<[NodeId]>::to_vec)
}

impl Entry {
    /// The trip after an order that names this one, or none.
    pub(crate) fn follow(&mut self, order: Option<cluster::Trip>) {
        let before = self.trip.take();
        self.trip = order.map(|order| {
            let kept = before.filter(|trip| trip.number == order.number);
            let (number, replicas) = (order.number, order.replicas.into());
            kept.unwrap_or(Trip { number, replicas, begun: None })
        });
    }
}
