//! Trips as section 9 of `spec/protocol.md` reads, for one thread: moments, and what requests were
//! given. Clients are never silent for long here.

use super::hot::{Entry, Hot};
use super::model::Sent;
use cluster::{NodeId, SwitchTables};
use std::collections::{BTreeMap, BTreeSet};
use wire::{HEADER_LEN, Header, hop_flag};

/// What a request was given.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) trip: u64,
    pub(crate) version: u64,
    pub(crate) nodes: Nodes,
    /// How many of the nodes are its chain; the others are readers.
    pub(crate) replicas: usize,
}

/// The nodes of a stamp.
#[derive(Clone, Debug)]
pub(crate) enum Nodes {
    Known(Vec<NodeId>),
    /// It was chosen when a reply passed, and shows when the request comes again.
    Hidden(Choice),
}

/// What there was to choose from for a write: the nodes of each window, and how many are chosen.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    windows: Vec<Vec<NodeId>>,
    replicas: usize,
    readers: usize,
}

/// A trip of a key.
#[derive(Clone, Debug)]
pub(crate) struct Trip {
    pub(crate) number: u64,
    pub(crate) replicas: usize,
    copies: usize,
    /// The moment of its beginning, and the version that is given next.
    pub(crate) begun: Option<(u64, u64)>,
}

impl Trip {
    /// How many readers the stamp of a write names, if there are as many.
    pub(crate) fn readers(&self) -> usize {
        let others = self.replicas - 1;
        self.copies.saturating_sub(others).min(CHAIN_PLACES - self.replicas)
    }
}

/// Nodes that a header has room for.
const CHAIN_PLACES: usize = 8;

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
        let (windows, entry) = hot.row(header);
        if !self.stamps.contains_key(&name)
            && its_own
            && let Some(trip) = entry.and_then(|entry| entry.trip.as_mut())
            && trip.begun.is_some_and(|(begun, _)| moment(header) >= begun)
            && let Some(nodes) = Choice::of(&windows, tables, trip).made(did)
        {
            self.keep(header, trip, Nodes::Known(nodes));
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
        let (windows, entry) = hot.row(header);
        let Some(trip) = entry.and_then(|entry| entry.trip.as_mut()) else { return };
        if trip.number != super::hot::stay(header) {
            return;
        }
        if trip.begun.is_none()
            && header.object_version < (1 << 62) - (1 << 32)
            && self.moment & 0xffff != 0xffff
        {
            self.moment += 1;
            trip.begun = Some((self.moment, header.object_version + 1));
        }
        let has = self.stamps.get(&(header.client, header.seq));
        let has = has.is_some_and(|stamp| stamp.trip >= trip.number);
        let choice = Choice::of(&windows, tables, trip);
        if trip.begun.is_some() && !self.has_ended(header) && !has && choice.any().is_some() {
            self.keep(header, trip, Nodes::Hidden(choice));
        }
    }

    /// A write is acknowledged that was sent on a trip: all that it was stamped for are taken to
    /// hold it, if the order asks for readers.
    pub(crate) fn done(&self, hot: &mut Hot, header: &Header) {
        let Some(stamp) = self.told_of(hot, header) else { return };
        let nodes = stamp.nodes.all().filter(|_| !self.has_ended(header));
        let Some(nodes) = nodes else { panic!("{header:?} is unclear: {stamp:?}") };
        nodes.into_iter().for_each(|node| hot.mark(header, node));
    }

    /// Whether nobody knows what an answer says: of nodes that have not shown, which they do when
    /// its request comes again; or of a request that has ended, whose stamp may be kept or not.
    pub(crate) fn is_unclear(&self, hot: &Hot, header: &Header) -> bool {
        let hides = |stamp: &Stamp| stamp.nodes.all().is_none() || self.has_ended(header);
        self.told_of(hot, header).is_some_and(hides)
    }

    /// The stamp whose nodes an answer tells of.
    fn told_of(&self, hot: &Hot, header: &Header) -> Option<&Stamp> {
        let stamp = self.stamps.get(&(header.client, header.seq))?;
        let of_trip = header.code < 16 && header.hop_flags & hop_flag::ROAM != 0;
        let is_it = of_trip && stamp.version == header.object_version;
        (is_it && hot.asks_readers(header)).then_some(stamp)
    }

    /// Whether the client of a request has said that it has ended.
    fn has_ended(&self, header: &Header) -> bool {
        self.low.get(&header.client).is_some_and(|low| header.seq < *low)
    }

    /// The nodes of a request that has a stamp; what was not known until now is what another
    /// switch `did`. None if that shows nothing because the tables lack some that it may be.
    pub(crate) fn nodes(
        &mut self,
        header: &Header,
        tables: &SwitchTables,
        did: &[Sent],
    ) -> Option<Vec<NodeId>> {
        let stamp = self.stamps.get_mut(&(header.client, header.seq)).expect("it has a stamp");
        if let Nodes::Hidden(choice) = &stamp.nodes {
            let lacks = |nodes: &Vec<NodeId>| known(nodes, tables).len() < nodes.len();
            if did.is_empty() && choice.windows.iter().any(lacks) {
                return None;
            }
            stamp.nodes = Nodes::Known(choice.made(did).expect("enough nodes"));
        }
        let Nodes::Known(nodes) = &stamp.nodes else { unreachable!("they have just shown") };
        Some(nodes.clone())
    }

    /// Gives a request the next version of a trip that has begun.
    fn keep(&mut self, header: &Header, trip: &mut Trip, nodes: Nodes) {
        let (_, next) = trip.begun.as_mut().expect("it has begun");
        let stamp = Stamp { trip: trip.number, version: *next, nodes, replicas: trip.replicas };
        *next += 1;
        self.low.entry(header.client).or_default();
        self.stamps.insert((header.client, header.seq), stamp);
    }
}

impl Nodes {
    /// All of them in any order, if that is known.
    fn all(&self) -> Option<Vec<NodeId>> {
        match self {
            Self::Known(nodes) => Some(nodes.clone()),
            Self::Hidden(choice) => choice.all(),
        }
    }
}

impl Choice {
    /// Those of a key's nodes that the tables have. Orders here leave enough for a chain in all
    /// windows or in none.
    fn of(windows: &[Vec<NodeId>], tables: &SwitchTables, trip: &Trip) -> Self {
        let windows = windows.iter().map(|nodes| known(nodes, tables)).collect();
        Self { windows, replicas: trip.replicas, readers: trip.readers() }
    }

    /// How many are chosen in this window.
    fn count(&self, window: &[NodeId]) -> usize {
        window.len().min(self.replicas + self.readers)
    }

    /// Any that may be chosen; None if there are none.
    fn any(&self) -> Option<Vec<NodeId>> {
        let window = self.windows.iter().find(|window| window.len() >= self.replicas)?;
        Some(window[..self.count(window)].to_vec())
    }

    /// Those that are chosen, in any order, if there is no choice.
    fn all(&self) -> Option<Vec<NodeId>> {
        let [window] = &self.windows[..] else { return None };
        (self.count(window) == window.len()).then(|| window.clone())
    }

    /// Whether these may be chosen.
    fn allows(&self, nodes: &[NodeId]) -> bool {
        let set: BTreeSet<_> = nodes.iter().collect();
        let holds = |window: &Vec<NodeId>| {
            set.len() == self.count(window) && set.iter().all(|node| window.contains(node))
        };
        set.len() == nodes.len() && self.windows.iter().any(holds)
    }

    /// The nodes that were chosen, if they are some that may be; else any. None if there are none.
    fn made(&self, did: &[Sent]) -> Option<Vec<NodeId>> {
        let of = |bytes: &Vec<u8>| {
            let header = Header::read(bytes.first_chunk::<HEADER_LEN>().expect("a whole header"));
            let ids = header.chain.chunks(2).map(|id| u16::from_be_bytes([id[0], id[1]]));
            ids.take_while(|id| *id != u16::MAX).map(NodeId).collect::<Vec<_>>()
        };
        let found = did.first().map(|(_, bytes)| of(bytes)).unwrap_or_default();
        let any = self.any()?;
        Some(if self.allows(&found) { found } else { any })
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

impl Entry {
    /// The trip after an order that names this one, or none.
    pub(crate) fn follow(&mut self, order: Option<cluster::Trip>) {
        let before = self.trip.take();
        self.trip = order.map(|order| {
            let kept = before.filter(|trip| trip.number == order.number);
            let (number, replicas) = (order.number, order.replicas.into());
            let copies = order.copies.into();
            // Chains stay as long as they were when it began.
            let kept = kept.unwrap_or(Trip { number, replicas, copies, begun: None });
            Trip { copies, ..kept }
        });
    }
}
