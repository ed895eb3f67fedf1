//! The coherence directory as sections 8 and 9 of `spec/protocol.md` reads, for one thread.

use super::counts::{Counts, hot_name};
use super::delegate::{Delegate, Delegation};
use cluster::{HotOrder, Incarnation, NodeId, SwitchTables};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Generation, HEADER_LEN, Header, HotGet, KeyReply, Revision, Version, hop_flag};

/// The naive directory.
#[derive(Default)]
pub struct Hot {
    order: HotOrder,
    entries: BTreeMap<(u16, u64), Entry>,
    /// Newest order that was ever installed.
    newest: u64,
}

pub struct Entry {
    generation: u64,
    low: u64,
    floor: Version,
    proven: bool,
    /// Marks of readers in their incarnations.
    holders: BTreeMap<(NodeId, Incarnation), u64>,
    first: usize,
    readers: usize,
    pub delegation: Option<Delegation>,
    /// The place in the row of who has answered for a delegation with the floor, since the last
    /// order.
    near: Option<usize>,
}

/// How a read of a hot key is to be stamped, and who may answer it from a copy.
pub struct Read {
    pub generation: u64,
    pub floor: Version,
    pub holders: Vec<NodeId>,
    /// Whether a switch finds one of them, if there are some: it need not look at all readers.
    finds: bool,
    /// Whether home is asked for the floor, too: the key is delegated and the floor is proven.
    pub floor_at_home: bool,
}

impl Hot {
    /// Takes an order for this incarnation, by a switch that is active.
    pub fn install(
        &mut self,
        order: &HotOrder,
        incarnation: Incarnation,
        delegate: &mut Delegate,
        counts: &mut Counts,
    ) {
        let name = |key: &cluster::HotEntry| (key.keyspace.0, key.keyhash);
        let stays = |key| {
            self.entries.get(&name(key)).is_some_and(|old| old.generation == key.generation.get())
        };
        let back = order.keys.iter().any(|key| !stays(key) && key.generation.get() <= self.newest);
        let revived = order.keys.iter().any(|key| {
            let number = key.delegation.map_or(u64::MAX, |delegation| delegation.number.get());
            let delegation = self.entries.get(&name(key)).and_then(|old| old.delegation.as_ref());
            number <= self.newest && delegation.is_none_or(|delegation| delegation.number != number)
        });
        if order.switch != incarnation
            || order.revision <= Revision::new(self.newest)
            || back
            || revived
        {
            return;
        }
        delegate.order(order, self.order.revision.is_none());
        let mut before = std::mem::take(&mut self.entries);
        let mut stayed = BTreeSet::new();
        for key in &order.keys {
            let (first, readers) = (key.first.into(), key.readers.into());
            let fresh = Entry {
                generation: key.generation.get(),
                low: key.match_value.0 as u64,
                floor: Version::NONE,
                proven: false,
                holders: BTreeMap::new(),
                first,
                readers,
                delegation: None,
                near: None,
            };
            let old =
                before.remove(&name(key)).filter(|old| old.generation == key.generation.get());
            if old.is_some() {
                stayed.insert(hot_name(key.keyspace.0, key.keyhash));
            }
            let mut entry = old.unwrap_or(fresh);
            (entry.first, entry.readers, entry.near) = (first, readers, None);
            let readers: Vec<_> = order.readers(key).collect();
            entry.holders.retain(|reader, _| readers.contains(reader));
            entry.follow(key.delegation);
            self.entries.insert(name(key), entry);
        }
        (self.order, self.newest) = (order.clone(), order.revision.get());
        counts.hot().into_iter().for_each(|group| group.retain(|name, _| stayed.contains(name)));
    }

    /// Forgets all keys.
    pub fn forget(&mut self, counts: &mut Counts) {
        self.entries.clear();
        self.order = HotOrder::default();
        counts.hot().into_iter().for_each(BTreeMap::clear);
    }

    /// Whether this key is hot.
    pub fn has(&self, keyspace: u16, keyhash: u64, at: u128) -> bool {
        self.entries.get(&(keyspace, keyhash)).is_some_and(|entry| entry.low == at as u64)
    }

    /// What holds for a read of a key, if it is hot.
    pub fn read(
        &self,
        tables: &SwitchTables,
        (keyspace, keyhash): (u16, u64),
        at: u128,
        at_home: bool,
    ) -> Option<Read> {
        let entry = self.entries.get(&(keyspace, keyhash)).filter(|it| it.low == at as u64)?;
        let holds = |reader: &_| entry.holders.get(reader) == Some(&(entry.floor.get() % 255));
        let nodes = self.readers(entry).into_iter().filter(holds).map(|(node, _)| node);
        let known = |node: &NodeId| tables.reachable().any(|spec| spec.id == *node);
        let at_home = at_home && entry.delegation.is_none();
        let holders = if entry.proven && !at_home { nodes.filter(known).collect() } else { vec![] };
        let floor_at_home = entry.proven && entry.delegation.is_some();
        let (generation, floor, finds) =
            (entry.generation, entry.floor, self.finds(entry, &holders));
        Some(Read { generation, floor, holders, finds, floor_at_home })
    }

    /// Whether one of these readers is found. A switch looks at a few, and under a delegation at
    /// all of the bank in which the floor was written.
    fn finds(&self, entry: &Entry, holders: &[NodeId]) -> bool {
        let banks = self.banks(entry);
        match (&entry.delegation, &banks[..]) {
            (None, _) => entry.readers <= FEW,
            (Some(_), [] | [_]) => true,
            (Some(_), [..]) => entry.near.is_some_and(|near| {
                let mates = banks.get(near / Self::bank_len(entry)).expect("a place in the row");
                holders.iter().any(|node| mates.contains(node))
            }),
        }
    }

    /// The lower half of the match value of the hot key with the hash of an answer.
    pub fn low(&self, header: &Header) -> Option<u64> {
        self.entries.get(&(header.keyspace, header.keyhash)).map(|entry| entry.low)
    }

    /// The delegation of a request's key, by number.
    pub fn delegation(&self, header: &Header) -> Option<u64> {
        let entry = self.entries.get(&(header.keyspace, header.keyhash))?;
        entry.delegation.as_ref().map(|delegation| delegation.number)
    }

    /// The nodes of each bank of a key's candidates, and its entry; none if it is not hot.
    pub fn row(&mut self, header: &Header) -> (Vec<Vec<NodeId>>, Option<&mut Entry>) {
        let name = (header.keyspace, header.keyhash);
        let banks = self.entries.get(&name).map(|entry| self.banks(entry)).unwrap_or_default();
        (banks, self.entries.get_mut(&name))
    }

    /// A row has as few banks as hold 64 places at most, which are of the same length, rounded
    /// up, but for the last.
    fn bank_len(entry: &Entry) -> usize {
        entry.readers.div_ceil(entry.readers.div_ceil(64).max(1)).max(1)
    }

    fn banks(&self, entry: &Entry) -> Vec<Vec<NodeId>> {
        let row: Vec<_> = self.places(entry).collect();
        let len = Self::bank_len(entry);
        let nodes = |bank: &[Option<(NodeId, Incarnation)>]| {
            bank.iter().flatten().map(|(node, _)| *node).collect()
        };
        row.chunks(len).map(nodes).collect()
    }

    /// Whether writes of the key that an answer is about are copied to readers.
    pub fn asks_readers(&self, header: &Header) -> bool {
        let entry = self.entries.get(&(header.keyspace, header.keyhash));
        let delegation = entry.and_then(|entry| entry.delegation.as_ref());
        delegation.is_some_and(|delegation| delegation.readers() > 0)
    }

    /// A node answers for a delegation.
    fn answers(&mut self, header: &Header, node: NodeId) {
        self.holder(header, node);
        let name = (header.keyspace, header.keyhash);
        let Some(entry) = self.entries.get(&name) else { return };
        let is_it = |place: Option<(NodeId, Incarnation)>| place.is_some_and(|(it, _)| it == node);
        let near = self.places(entry).position(is_it);
        let Some(entry) = self.entries.get_mut(&name) else { return };
        if entry.floor == KeyReply::of(header).version {
            entry.near = near.or(entry.near);
        }
    }

    /// A node is taken to hold the version of an answer, if that is the floor and it is a reader.
    pub fn holder(&mut self, header: &Header, node: NodeId) {
        let name = (header.keyspace, header.keyhash);
        let Some(entry) = self.entries.get(&name) else { return };
        let is_it = |reader: &(NodeId, Incarnation)| reader.0 == node;
        let reader = self.readers(entry).into_iter().find(is_it);
        let Some(entry) = self.entries.get_mut(&name) else { return };
        if entry.floor == KeyReply::of(header).version {
            reader.map(|reader| entry.holders.insert(reader, entry.floor.get() % 255));
        }
    }

    fn places(&self, entry: &Entry) -> impl Iterator<Item = Option<(NodeId, Incarnation)>> {
        let row = entry.first..entry.first + entry.readers;
        row.map(|it| self.order.places[it % self.order.places.len()])
    }

    fn readers(&self, entry: &Entry) -> Vec<(NodeId, Incarnation)> {
        self.places(entry).flatten().collect()
    }

    /// Observes from a reply that is sent on; whether it is believed.
    pub fn observe(&mut self, op: &str, sender: NodeId, header: &Header) -> bool {
        let find =
            |entry: &Entry| self.readers(entry).into_iter().find(|(node, _)| *node == sender);
        let name = (header.keyspace, header.keyhash);
        let Some(reader) = self.entries.get(&name).map(find) else { return true };
        let Some(entry) = self.entries.get_mut(&name) else { return true };
        let KeyReply { version } = KeyReply::of(header);
        let own_generation = generation(header) == entry.generation;
        let of_read = matches!(op, "get_reply" | "hot_publish");
        let newest = header.hop_flags & hop_flag::NEWEST != 0;
        let begun = entry.delegation.as_ref().and_then(|delegation| delegation.begun);
        let never_given = begun.is_some_and(|(_, next)| version >= Version::new(next));
        let beyond = version > entry.floor && never_given || version > Version::new(1 << 62);
        match op {
            "hot_copied" if version < entry.floor => {}
            "hot_copied" if beyond => return false,
            "hot_copied" => {
                reader.map(|reader| entry.holders.insert(reader, version.get() % 255));
            }
            "get_reply" | "hot_publish" | "put_reply" | "del_reply" | "cas_reply"
            | "incr_reply" => {
                if header.code < 16 {
                    if beyond {
                        return false;
                    }
                    entry.floor = entry.floor.max(version);
                    entry.proven |= of_read && newest && own_generation;
                    if op == "put_reply" && header.hop_flags & hop_flag::GRANTED != 0 {
                        self.answers(header, sender);
                    }
                } else if header.code == 22 && of_read && own_generation {
                    if !newest {
                        reader.map(|reader| entry.holders.remove(&reader));
                    } else if beyond {
                        return false;
                    } else {
                        entry.floor = entry.floor.max(version);
                        entry.proven = true;
                    }
                }
            }
            _ => {}
        }
        true
    }
}

pub fn generation(header: &Header) -> u64 {
    u64::from_be_bytes(header.chain[8..].try_into().unwrap())
}

/// Stamps a read of a hot key: with its floor for one who holds a copy; what is for the tail alone
/// with what no copy has.
pub fn stamp(header: &mut Header, read: &Read, spread: bool) {
    header.hop_flags = hop_flag::HOT;
    let floor = if spread || read.floor_at_home { read.floor } else { Version::ABOVE_ALL };
    HotGet { floor, generation: Generation::new(read.generation) }.put(header);
}

/// Readers all of which a switch looks at for any read.
const FEW: usize = 4;

/// Which of the holders the switch chose, who may choose freely: the one that it sent the copy to
/// that this picks out. None if there are no holders, or it did not find any and need not.
pub fn chosen(
    read: &Read,
    sent: &[(wire::Endpoint, Vec<u8>)],
    picks: impl Fn(&Header) -> bool,
) -> Option<NodeId> {
    let headers = sent.iter().map(|(_, bytes)| {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk().expect("a whole header");
        Header::read(bytes)
    });
    let went_to = headers
        .filter(picks)
        .map(|header| NodeId(u16::from(header.chain[0]) << 8 | u16::from(header.chain[1])));
    let any = read.holders.first().filter(|_| read.finds).copied();
    went_to.into_iter().find(|node| read.holders.contains(node)).or(any)
}
