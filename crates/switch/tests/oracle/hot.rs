//! The coherence directory as sections 8 and 9 of `spec/protocol.md` reads, for one thread.

use super::counts::{Counts, hot_name};
use super::roam::{Roam, Trip};
use cluster::{HotOrder, Life, NodeId, SwitchTables};
use std::collections::{BTreeMap, BTreeSet};
use wire::{HEADER_LEN, Header, hop_flag};

/// The naive directory.
#[derive(Default)]
pub(crate) struct Hot {
    order: HotOrder,
    entries: BTreeMap<(u16, u64), Entry>,
    /// Newest order that was ever installed.
    newest: u64,
}

pub(crate) struct Entry {
    stay: u64,
    low: u64,
    floor: u64,
    proven: bool,
    /// Marks of readers in their lives.
    marks: BTreeMap<(NodeId, Life), u64>,
    first: usize,
    readers: usize,
    pub(crate) trip: Option<Trip>,
}

/// How a read of a hot key is to be stamped, and who may answer it from a copy.
pub(crate) struct Read {
    pub(crate) stay: u64,
    pub(crate) floor: u64,
    pub(crate) holders: Vec<NodeId>,
    /// Whether home is asked for the floor, too: the key is on a trip and the floor is proven.
    pub(crate) floor_at_home: bool,
}

impl Hot {
    /// Takes an order for this life, by a switch that is active.
    pub(crate) fn install(
        &mut self,
        order: &HotOrder,
        life: Life,
        roam: &mut Roam,
        counts: &mut Counts,
    ) {
        let name = |key: &cluster::HotEntry| (key.keyspace.0, key.keyhash);
        let stays = |key| self.entries.get(&name(key)).is_some_and(|old| old.stay == key.stay);
        let back = order.keys.iter().any(|key| !stays(key) && key.stay <= self.newest);
        let revived = order.keys.iter().any(|key| {
            let number = key.trip.map_or(u64::MAX, |trip| trip.number);
            let trip = self.entries.get(&name(key)).and_then(|old| old.trip.as_ref());
            number <= self.newest && trip.is_none_or(|trip| trip.number != number)
        });
        if order.switch != life || order.revision <= self.newest || back || revived {
            return;
        }
        roam.order(order.revision, self.order.revision == 0);
        let mut before = std::mem::take(&mut self.entries);
        let mut stayed = BTreeSet::new();
        for key in &order.keys {
            let (first, readers) = (key.first.into(), key.readers.into());
            let fresh = Entry {
                stay: key.stay,
                low: key.match_value.0 as u64,
                floor: 0,
                proven: false,
                marks: BTreeMap::new(),
                first,
                readers,
                trip: None,
            };
            let old = before.remove(&name(key)).filter(|old| old.stay == key.stay);
            if old.is_some() {
                stayed.insert(hot_name(key.keyspace.0, key.keyhash));
            }
            let mut entry = old.unwrap_or(fresh);
            (entry.first, entry.readers) = (first, readers);
            let readers: Vec<_> = order.readers(key).collect();
            entry.marks.retain(|reader, _| readers.contains(reader));
            entry.follow(key.trip);
            self.entries.insert(name(key), entry);
        }
        (self.order, self.newest) = (order.clone(), order.revision);
        counts.hot().into_iter().for_each(|group| group.retain(|name, _| stayed.contains(name)));
    }

    /// Forgets all keys.
    pub(crate) fn forget(&mut self, counts: &mut Counts) {
        self.entries.clear();
        self.order = HotOrder::default();
        counts.hot().into_iter().for_each(BTreeMap::clear);
    }

    /// Whether this key is hot.
    pub(crate) fn has(&self, keyspace: u16, keyhash: u64, at: u128) -> bool {
        self.entries.get(&(keyspace, keyhash)).is_some_and(|entry| entry.low == at as u64)
    }

    /// What holds for a read of a key, if it is hot.
    pub(crate) fn read(
        &self,
        tables: &SwitchTables,
        (keyspace, keyhash): (u16, u64),
        at: u128,
        at_home: bool,
    ) -> Option<Read> {
        let entry = self.entries.get(&(keyspace, keyhash)).filter(|it| it.low == at as u64)?;
        let holds = |reader: &_| entry.marks.get(reader) == Some(&(entry.floor % 255));
        let nodes = self.readers(entry).into_iter().filter(holds).map(|(node, _)| node);
        let known = |node: &NodeId| tables.nodes.iter().any(|spec| spec.id == *node);
        let at_home = at_home && entry.trip.is_none();
        let holders = if entry.proven && !at_home { nodes.filter(known).collect() } else { vec![] };
        let floor_at_home = entry.proven && entry.trip.is_some();
        Some(Read { stay: entry.stay, floor: entry.floor, holders, floor_at_home })
    }

    /// The trip of a request's key, by number.
    pub(crate) fn trip(&self, header: &Header) -> Option<u64> {
        let entry = self.entries.get(&(header.keyspace, header.keyhash))?;
        entry.trip.as_ref().map(|trip| trip.number)
    }

    /// The nodes of a key's row of places, and its entry; none if it is not hot.
    pub(crate) fn row(&mut self, header: &Header) -> (Vec<NodeId>, Option<&mut Entry>) {
        let name = (header.keyspace, header.keyhash);
        let nodes = self.entries.get(&name).map(|entry| self.readers(entry)).unwrap_or_default();
        (nodes.into_iter().map(|(node, _)| node).collect(), self.entries.get_mut(&name))
    }

    fn readers(&self, entry: &Entry) -> Vec<(NodeId, Life)> {
        let places =
            (entry.first..entry.first + entry.readers).map(|it| it % self.order.places.len());
        places.filter_map(|place| self.order.places[place]).collect()
    }

    /// Learns from a reply that is sent on; whether it is believed.
    pub(crate) fn learn(&mut self, op: &str, sender: NodeId, header: &Header) -> bool {
        let find =
            |entry: &Entry| self.readers(entry).into_iter().find(|(node, _)| *node == sender);
        let name = (header.keyspace, header.keyhash);
        let Some(reader) = self.entries.get(&name).map(find) else { return true };
        let Some(entry) = self.entries.get_mut(&name) else { return true };
        let version = header.object_version;
        let own_stay = stay(header) == entry.stay;
        let newest = header.hop_flags & hop_flag::NEWEST != 0;
        let begun = entry.trip.as_ref().and_then(|trip| trip.begun);
        let beyond = version > entry.floor && begun.is_some_and(|(_, next)| version >= next);
        match op {
            "hot_copied" if version < entry.floor => {}
            "hot_copied" | "hot_cover" if beyond => return false,
            "hot_copied" => {
                reader.map(|reader| entry.marks.insert(reader, version % 255));
            }
            "hot_cover" => entry.floor = entry.floor.max(version),
            "get_reply" | "put_reply" | "del_reply" | "cas_reply" | "incr_reply" => {
                if header.code < 16 {
                    if beyond {
                        return false;
                    }
                    entry.floor = entry.floor.max(version);
                    entry.proven |= op == "get_reply" && newest && own_stay;
                    let of_trip = op == "put_reply" && header.hop_flags & hop_flag::ROAM != 0;
                    if let Some(reader) = reader
                        && of_trip
                        && entry.floor == version
                    {
                        entry.marks.insert(reader, version % 255);
                    }
                } else if header.code == 22 && op == "get_reply" && own_stay {
                    if !newest {
                        reader.map(|reader| entry.marks.remove(&reader));
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

pub(crate) fn stay(header: &Header) -> u64 {
    u64::from_be_bytes(header.chain[8..].try_into().unwrap())
}

/// Stamps a read of a hot key: with its floor for one who holds a copy; what is for the tail alone
/// with what no copy has.
pub(crate) fn stamp(header: &mut Header, read: &Read, spread: bool) {
    header.hop_flags = hop_flag::HOT;
    header.object_version = if spread || read.floor_at_home { read.floor } else { u64::MAX };
    header.chain[8..].copy_from_slice(&read.stay.to_be_bytes());
}

/// Which of the holders the switch chose, who may choose freely: the one that it sent the copy to
/// that this picks out. None if there are no holders.
pub(crate) fn chosen(
    holders: &[NodeId],
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
    went_to.into_iter().find(|node| holders.contains(node)).or(holders.first().copied())
}
