//! Delegations as section 9 of `spec/protocol.md` reads, for one thread: clock, and what requests
//! were given. Clients are never silent for long here.

use super::hot::{Entry, Hot};
use super::model::Sent;
use cluster::{HotOrder, NodeId, SwitchTables};
use std::collections::{BTreeMap, BTreeSet};
use wire::{DelegatedReply, HEADER_LEN, Header, KeyReply, Version, hop_flag};

/// What a request was given.
#[derive(Clone, Debug)]
pub struct Grant {
    pub delegation: u64,
    pub version: Version,
    pub nodes: Nodes,
    /// How many of the nodes are its chain; the others are readers.
    pub replicas: usize,
}

/// The nodes of a grant.
#[derive(Clone, Debug)]
pub enum Nodes {
    Known(Vec<NodeId>),
    /// It was chosen when a reply passed, and shows when the request comes again.
    Hidden(Choice),
}

/// What there was to choose from for a write: the nodes of each bank, and how many are chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    banks: Vec<Vec<NodeId>>,
    replicas: usize,
    readers: usize,
}

/// A delegation of a key.
#[derive(Clone, Debug)]
pub struct Delegation {
    pub number: u64,
    pub replicas: usize,
    copies: usize,
    /// The clock of its beginning, and the version that is given next.
    pub begun: Option<(u64, u64)>,
}

impl Delegation {
    /// How many readers the grant of a write names, if there are as many.
    pub fn readers(&self) -> usize {
        let others = self.replicas - 1;
        self.copies.saturating_sub(others).min(CHAIN_PLACES - self.replicas)
    }
}

/// Nodes that a header has room for.
const CHAIN_PLACES: usize = 8;

/// The clock and the table of grants.
#[derive(Default)]
pub struct Delegate {
    pub directory_clock: u64,
    pub beginning: u64,
    grants: BTreeMap<(u64, u64), Grant>,
    /// Low-water marks of clients that were ever given a grant.
    low: BTreeMap<u64, u64>,
}

/// What becomes of a write that may be delegated.
pub enum Way {
    Drop(&'static str),
    Home(u64),
    /// With a grant that is new or not.
    Delegation(Grant, bool),
}

impl Delegate {
    /// An order comes, to a directory that was empty or not.
    pub fn order(&mut self, order: &HotOrder, was_empty: bool) {
        let (own, earlier) = (order.revision.get() << 16, order.at_home_since.get() << 16);
        if was_empty {
            let is_known = earlier > self.directory_clock;
            self.beginning = if is_known { earlier.min(own) } else { own };
        }
        self.directory_clock = self.directory_clock.max(own);
    }

    /// Where a write that may be delegated goes. A switch that may choose chose what another one
    /// `did`.
    pub fn way(
        &mut self,
        hot: &mut Hot,
        tables: &SwitchTables,
        header: &Header,
        did: &[Sent],
    ) -> Way {
        let low = header.seq.saturating_sub(header.lag.into());
        if let Some(holder) = self.low.get_mut(&header.client) {
            *holder = low.max(*holder);
            if header.seq < *holder {
                return Way::Drop("stale_request");
            }
        }
        let name = (header.client, header.seq);
        let is_new = !self.grants.contains_key(&name);
        let its_own = hot.has(header.keyspace, header.keyhash, header.match_value);
        let (banks, entry) = hot.row(header);
        if !self.grants.contains_key(&name)
            && its_own
            && let Some(delegation) = entry.and_then(|entry| entry.delegation.as_mut())
            && delegation.begun.is_some_and(|(begun, _)| directory_clock(header) >= begun)
            && let Some(nodes) = Choice::of(&banks, tables, delegation).made(did)
        {
            self.keep(header, delegation, Nodes::Known(nodes));
        }
        let Some(grant) = self.grants.get(&name) else { return Way::Home(0) };
        if its_own && hot.delegation(header) == Some(grant.delegation) {
            Way::Delegation(grant.clone(), is_new)
        } else {
            Way::Home(grant.version.get())
        }
    }

    /// All requests of this client have ended.
    pub(crate) fn hear_goodbye(&mut self, client: u64) {
        if let Some(low) = self.low.get_mut(&client) {
            *low = u64::MAX;
        }
    }

    /// The head says that this write is delegated.
    pub fn delegated(&mut self, hot: &mut Hot, tables: &SwitchTables, header: &Header) {
        let (banks, entry) = hot.row(header);
        let Some(delegation) = entry.and_then(|entry| entry.delegation.as_mut()) else { return };
        if delegation.number != super::hot::generation(header) {
            return;
        }
        let DelegatedReply { delegated_at: at, .. } = DelegatedReply::of(header);
        if delegation.begun.is_none()
            && at < Version::new((1 << 62) - (1 << 32))
            && self.directory_clock & 0xffff != 0xffff
        {
            self.directory_clock += 1;
            delegation.begun = Some((self.directory_clock, at.get() + 1));
        }
        let has = self.grants.get(&(header.client, header.seq));
        let has = has.is_some_and(|grant| grant.delegation >= delegation.number);
        let choice = Choice::of(&banks, tables, delegation);
        if delegation.begun.is_some() && !self.has_ended(header) && !has && choice.any().is_some() {
            self.keep(header, delegation, Nodes::Hidden(choice));
        }
    }

    /// A write is acknowledged that was sent under a delegation: all that it was stamped for are
    /// taken to hold it, if the order asks for readers.
    pub fn done(&self, hot: &mut Hot, header: &Header) {
        let Some(grant) = self.told_of(hot, header) else { return };
        let nodes = grant.nodes.all().filter(|_| !self.has_ended(header));
        let Some(nodes) = nodes else { panic!("{header:?} is unclear: {grant:?}") };
        nodes.into_iter().for_each(|node| hot.holder(header, node));
    }

    /// Whether nobody knows what an answer says: of nodes that have not shown, which they do when
    /// its request comes again; or of a request that has ended, whose grant may be kept or not.
    pub fn is_unclear(&self, hot: &Hot, header: &Header) -> bool {
        let hides = |grant: &Grant| grant.nodes.all().is_none() || self.has_ended(header);
        self.told_of(hot, header).is_some_and(hides)
    }

    /// The grant whose nodes an answer tells of.
    fn told_of(&self, hot: &Hot, header: &Header) -> Option<&Grant> {
        let grant = self.grants.get(&(header.client, header.seq))?;
        let of_delegation = header.code < 16 && header.hop_flags & hop_flag::GRANTED != 0;
        let is_it = of_delegation && grant.version == KeyReply::of(header).version;
        (is_it && hot.asks_readers(header)).then_some(grant)
    }

    /// Whether the client of a request has said that it has ended.
    fn has_ended(&self, header: &Header) -> bool {
        self.low.get(&header.client).is_some_and(|low| header.seq < *low)
    }

    /// The nodes of a request that has a grant; what was not known until now is what another
    /// switch `did`. None if that shows nothing because the tables lack some that it may be.
    pub fn nodes(
        &mut self,
        header: &Header,
        tables: &SwitchTables,
        did: &[Sent],
    ) -> Option<Vec<NodeId>> {
        let grant = self.grants.get_mut(&(header.client, header.seq)).expect("it has a grant");
        if let Nodes::Hidden(choice) = &grant.nodes {
            let lacks = |nodes: &Vec<NodeId>| known(nodes, tables).len() < nodes.len();
            if did.is_empty() && choice.banks.iter().any(lacks) {
                return None;
            }
            grant.nodes = Nodes::Known(choice.made(did).expect("enough nodes"));
        }
        let Nodes::Known(nodes) = &grant.nodes else { unreachable!("they have just shown") };
        Some(nodes.clone())
    }

    /// Gives a request the next version of a delegation that has begun.
    fn keep(&mut self, header: &Header, delegation: &mut Delegation, nodes: Nodes) {
        let (_, next) = delegation.begun.as_mut().expect("it has begun");
        let grant = Grant {
            delegation: delegation.number,
            version: Version::new(*next),
            nodes,
            replicas: delegation.replicas,
        };
        *next += 1;
        self.low.entry(header.client).or_default();
        self.grants.insert((header.client, header.seq), grant);
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
    /// banks or in none.
    fn of(banks: &[Vec<NodeId>], tables: &SwitchTables, delegation: &Delegation) -> Self {
        let banks = banks.iter().map(|nodes| known(nodes, tables)).collect();
        Self { banks, replicas: delegation.replicas, readers: delegation.readers() }
    }

    /// How many are chosen in this bank.
    fn count(&self, bank: &[NodeId]) -> usize {
        bank.len().min(self.replicas + self.readers)
    }

    /// Any that may be chosen; None if there are none.
    fn any(&self) -> Option<Vec<NodeId>> {
        let bank = self.banks.iter().find(|bank| bank.len() >= self.replicas)?;
        Some(bank[..self.count(bank)].to_vec())
    }

    /// Those that are chosen, in any order, if there is no choice.
    fn all(&self) -> Option<Vec<NodeId>> {
        let [bank] = &self.banks[..] else { return None };
        (self.count(bank) == bank.len()).then(|| bank.clone())
    }

    /// Whether these may be chosen.
    fn allows(&self, nodes: &[NodeId]) -> bool {
        let set: BTreeSet<_> = nodes.iter().collect();
        let holds = |bank: &Vec<NodeId>| {
            set.len() == self.count(bank) && set.iter().all(|node| bank.contains(node))
        };
        set.len() == nodes.len() && self.banks.iter().any(holds)
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
pub fn directory_clock(header: &Header) -> u64 {
    u64::from(header.bitmap) << 32 | u64::from(header.node) << 16 | u64::from(header.load)
}

pub fn set_directory_clock(header: &mut Header, directory_clock: u64) {
    header.bitmap = (directory_clock >> 32) as u32;
    header.node = (directory_clock >> 16) as u16;
    header.load = directory_clock as u16;
}

/// Those of a key's nodes that the tables have.
fn known(nodes: &[NodeId], tables: &SwitchTables) -> Vec<NodeId> {
    let known = |node: &&NodeId| tables.reachable().any(|spec| spec.id == **node);
    nodes.iter().filter(known).copied().collect()
}

impl Entry {
    /// The delegation after an order that names this one, or none.
    pub fn follow(&mut self, order: Option<cluster::Delegation>) {
        let before = self.delegation.take();
        self.delegation = order.map(|order| {
            let kept = before.filter(|delegation| delegation.number == order.number.get());
            let (number, replicas) = (order.number, order.replicas.into());
            let copies = order.copies.into();
            // Chains stay as long as they were when it began.
            let kept =
                kept.unwrap_or(Delegation { number: number.get(), replicas, copies, begun: None });
            Delegation { copies, ..kept }
        });
    }
}
