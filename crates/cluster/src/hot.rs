//! Hot keys: which they are, and on which nodes copies of them may be (section 8 of
//! `spec/protocol.md`).
//!
//! Everything here is soft: a controller that has lost it finds the hot keys again, and no answer
//! depends on it but through what switch and nodes prove to each other.

use crate::{ClusterId, Incarnation, InstallError, KeyspaceId, Match, NodeId, text};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use wire::{DelegationId, Generation, Revision};

/// What becomes of a keyspace's hot keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotPolicy {
    /// Copies of them answer reads on other nodes, too, and what is written much goes anywhere.
    #[default]
    Replicate,
    /// Copies of them answer reads on other nodes; their writes go through their chains.
    Reads,
    /// Caches hold them and answer reads: no other node has copies, and no write goes anywhere
    /// but through its chain.
    Cache,
    /// Caches hold those that they can help, and the others are as with [`Self::Replicate`]. Each
    /// key is one or the other at any time, never both.
    Either,
    /// Nothing: each key is read from its tail alone.
    Off,
}

impl HotPolicy {
    /// Whether nodes beside the tail may have copies of them.
    #[must_use]
    pub fn copies(self) -> bool {
        match self {
            Self::Replicate | Self::Reads | Self::Either => true,
            Self::Cache | Self::Off => false,
        }
    }

    /// Whether caches may hold them.
    #[must_use]
    pub fn caches(self) -> bool {
        match self {
            Self::Cache | Self::Either => true,
            Self::Replicate | Self::Reads | Self::Off => false,
        }
    }

    /// Whether writes of them may go to other nodes than their chains.
    #[must_use]
    pub fn delegates(self) -> bool {
        match self {
            Self::Replicate | Self::Either => true,
            Self::Reads | Self::Cache | Self::Off => false,
        }
    }
}

/// How a switch chooses among the nodes that may answer (Pegasus section 6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// Any of them.
    Random,
    /// Of two of them the one that last reported the shorter queue.
    Reported,
    /// Of two of them the one with the shorter queue as the switch predicts it: what it has sent
    /// there, less what the node can have served since.
    #[default]
    Predicted,
}

/// All hot keys: what the switch is to spread the reads of, and what nodes are to keep copies of.
///
/// It goes to the active switch first, and to nodes when that has installed it: so no node takes a
/// key for cold that the switch still spreads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotOrder {
    /// Grows with every change, over all controllers, in the manner of the map's revision.
    pub revision: Revision,
    /// Whose keys these are. Who belongs to another cluster must not install this.
    #[serde(default)]
    pub cluster: ClusterId,
    /// The incarnation of the active switch that this was made for. A switch in another incarnation
    /// knows nothing of the versions that passed it, and must not install this; nodes that see
    /// another incarnation than before say again what they hold.
    pub switch: Incarnation,
    /// A revision of the map by which that switch is active. Who has stood by since, by tables of
    /// this revision or a newer one, must not install this: it was made for an earlier time in
    /// which it served. None of a build that does not say.
    #[serde(default)]
    pub map: Revision,
    /// The order of the switch before from which on nobody has had a delegation, if the controller
    /// knows that: what was first sent after it has been at home all the time, whatever passed it.
    /// A directory that was empty begins there, unless it had an order since.
    #[serde(default)]
    pub at_home_since: Revision,
    /// How the switch is to choose.
    pub selection: Selection,
    /// Nodes that may hold copies, with their incarnations; a node that has gone leaves a hole, so
    /// that the others keep their places. At most [`wire::NODES_MAX`].
    pub places: Vec<Option<(NodeId, Incarnation)>>,
    /// The keys, by keyspace and then by key, so that they are found without an index. No two of a
    /// keyspace have the same keyhash. At most [`wire::HOT_KEYS_MAX`].
    pub keys: Vec<HotEntry>,
}

/// One hot key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotEntry {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The key.
    #[serde(with = "text::hex")]
    pub key: Vec<u8>,
    /// Its hash, by which the switch knows it.
    pub keyhash: u64,
    /// Where it lies, by which the switch tells it from another key with that hash.
    pub match_value: Match,
    /// Number of its present generation in the directory of that incarnation of the switch: the
    /// revision of the order that took it in. The switch drops what it knows of a key whose number
    /// changes.
    pub generation: Generation,
    /// Place of the first node that is to hold a copy.
    pub first: u16,
    /// How many are to: the nodes in so many places from `first` on, round the end. At most as many
    /// as there are places. On a delegation: the nodes that writes may go to; how many of them are
    /// to hold copies, the delegation says.
    pub readers: u16,
    /// The delegation that its writes are on; `None`: they go through the chain of its partition.
    #[serde(default)]
    pub delegation: Option<Delegation>,
}

/// A time in which writes of a hot key go anywhere (section 9 of `spec/protocol.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// Its number: the revision of the order that began it. Not below that of the key's generation.
    pub number: DelegationId,
    /// Nodes in the chain of a write: the replicas of the keyspace.
    pub replicas: u8,
    /// Nodes beside the last of its chain that each write is copied to, for reads: the others of
    /// the chain first.
    pub copies: u16,
}

impl Delegation {
    /// Nodes that the switch chooses for each write: those of the chain, and of those that it is
    /// copied to as many as it has room to name.
    #[must_use]
    pub fn chosen(&self) -> u8 {
        let wanted = self.copies.saturating_add(1).max(self.replicas.into());
        u8::try_from(wanted).unwrap_or(u8::MAX).min(wire::CHAIN_MAX as u8)
    }
}

impl HotOrder {
    /// Checks that it has room in every switch, and does not contradict itself.
    ///
    /// # Errors
    ///
    /// What is too much, or the first contradiction, in words.
    pub fn check(&self) -> Result<(), InstallError> {
        let places = self.places.len();
        // Clocks are made of it.
        unsound_unless(self.revision <= Revision::MAX, || {
            format!("revision {} is too large", self.revision)
        })?;
        if places > wire::NODES_MAX {
            return Err(InstallError::TableFull("hot place"));
        }
        if self.keys.len() > wire::HOT_KEYS_MAX {
            return Err(InstallError::TableFull("hot key"));
        }
        let mut nodes = BTreeSet::new();
        for (node, _) in self.places.iter().flatten() {
            let known = usize::from(node.0) < wire::NODES_MAX;
            unsound_unless(known, || format!("node id {node} is too large"))?;
            unsound_unless(nodes.insert(node), || format!("node {node} has two places"))?;
        }
        for key in &self.keys {
            key.check(self.revision, places)?;
        }
        let unsorted = self.keys.windows(2).find(|pair| !pair.is_sorted_by_key(HotEntry::place));
        if let Some([_, key]) = unsorted {
            return Err(InstallError::Unsound(format!("{} is out of order", key.name())));
        }
        // Sorted, for there may be many.
        let mut keys: Vec<&HotEntry> = self.keys.iter().collect();
        keys.sort_unstable_by_key(|key| (key.keyspace, key.keyhash));
        let same = |a: &HotEntry, b: &HotEntry| (a.keyspace, a.keyhash) == (b.keyspace, b.keyhash);
        let twice = keys.windows(2).find(|pair| matches!(pair, [a, b] if same(a, b)));
        match twice.and_then(|pair| pair.first()) {
            Some(key) => Err(InstallError::Unsound(format!("{} is there twice", key.name()))),
            None => Ok(()),
        }
    }

    /// What it says of a key.
    #[must_use]
    pub fn find(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&HotEntry> {
        let found = self.keys.binary_search_by(|entry| entry.place().cmp(&(keyspace, key)));
        self.keys.get(found.ok()?)
    }

    /// The nodes that are to hold copies of a key, with their incarnations.
    pub fn readers<'a>(
        &'a self,
        key: &HotEntry,
    ) -> impl Iterator<Item = (NodeId, Incarnation)> + 'a {
        self.row(key).filter_map(|place| *place)
    }

    /// Those of them that are in the same bank as this one, which is one of them; else those of
    /// the first bank.
    pub fn mates(&self, key: &HotEntry, node: NodeId) -> impl Iterator<Item = NodeId> {
        let is_it = |place: &Option<(NodeId, Incarnation)>| place.is_some_and(|(it, _)| it == node);
        let bank = bank(key.readers.into(), self.row(key).position(is_it).unwrap_or(0));
        let places = self.row(key).skip(bank.start).take(bank.len());
        places.filter_map(|place| Some((*place)?.0))
    }

    /// A key's candidates.
    fn row<'a>(
        &'a self,
        key: &HotEntry,
    ) -> impl Iterator<Item = &'a Option<(NodeId, Incarnation)>> + use<'a> {
        let round = self.places.iter().cycle().skip(key.first.into());
        round.take(usize::from(key.readers).min(self.places.len()))
    }
}

/// The bank, of so many candidates, that the one at a place is in. All that hold one version of a
/// delegation are in one bank: so a switch finds them by looking at no more than
/// [`wire::HOT_BANK_MAX`] marks. All banks are of the same length, but perhaps
/// for the last.
#[must_use]
pub fn bank(row: usize, place: usize) -> Range<usize> {
    let banks = row.div_ceil(wire::HOT_BANK_MAX).max(1);
    let len = row.div_ceil(banks).max(1);
    let first = place - place % len;
    first..(first + len).min(row)
}

/// Which key of all keyspaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyName {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The key.
    #[serde(with = "text::hex")]
    pub key: Vec<u8>,
}

impl HotEntry {
    fn check(&self, revision: Revision, places: usize) -> Result<(), InstallError> {
        let Self { key, generation, first, readers, .. } = self;
        let count = usize::from(*readers);
        unsound_unless(count <= places, || format!("{} has {readers} readers", self.name()))?;
        unsound_unless(usize::from(*first) < places, || {
            format!("{} begins at place {first}", self.name())
        })?;
        let order = generation.order();
        let ordered = !generation.is_none() && order <= revision;
        unsound_unless(ordered, || format!("{} has the generation {generation}", self.name()))?;
        let delegation_holds = self.delegation.is_none_or(|delegation| {
            let chain = 1..=count.min(wire::CHAIN_MAX);
            (order..=revision).contains(&delegation.number.order())
                && chain.contains(&delegation.replicas.into())
        });
        unsound_unless(delegation_holds, || {
            format!("{} has the delegation {:?}", self.name(), self.delegation)
        })?;
        unsound_unless(key.len() <= wire::KEY_MAX, || format!("{} is too long", self.name()))
    }

    /// By which the keys of an order are sorted.
    fn place(&self) -> (KeyspaceId, &[u8]) {
        (self.keyspace, &self.key)
    }

    fn name(&self) -> String {
        format!("hot key {:016x} of keyspace {}", self.keyhash, self.keyspace)
    }
}

fn unsound_unless(holds: bool, why: impl FnOnce() -> String) -> Result<(), InstallError> {
    if holds { Ok(()) } else { Err(InstallError::Unsound(why())) }
}

/// A key that clients ask for often, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotKey {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The key.
    #[serde(with = "text::hex")]
    pub key: Vec<u8>,
    /// Reads per second, lately.
    pub reads: u64,
    /// Writes per second, lately. The head of its partition counts each, whatever the length of the
    /// chain, and of those under a delegation the last of the chain does: each is in one node's
    /// figure.
    pub writes: u64,
    /// Those of them that no switch can have counted, of a key that is hot where it lies: a switch
    /// sees the first key of a batch alone.
    #[serde(default)]
    pub steps: u64,
    /// Requests that only the home of the key can answer, per second, lately: writes that depend on
    /// what is there or that time ends, and reads of whole ranges.
    #[serde(default)]
    pub home_only: u64,
    /// Reads that found the key delegated and nobody who holds it, per second, lately.
    #[serde(default)]
    pub missed: u64,
}

impl HotKey {
    /// Reads and writes per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// The order of lists: the hottest first, and equally hot ones by name.
    #[must_use]
    pub fn hottest_first(&self, other: &Self) -> std::cmp::Ordering {
        let names = || (self.keyspace, &self.key).cmp(&(other.keyspace, &other.key));
        other.rate().cmp(&self.rate()).then_with(names)
    }

    /// Puts the reports of several shards or nodes together: each key once, so many of the hottest,
    /// and all that have to do with a home, or have writes that only that has counted.
    #[must_use]
    pub fn join<'a>(reports: impl Iterator<Item = &'a Self>, most: usize) -> Vec<Self> {
        let mut joint: BTreeMap<(KeyspaceId, &[u8]), Self> = BTreeMap::new();
        for it in reports {
            let none = || Self { keyspace: it.keyspace, key: it.key.clone(), ..Self::default() };
            let sum = joint.entry((it.keyspace, &it.key)).or_insert_with(none);
            sum.reads = sum.reads.saturating_add(it.reads);
            sum.writes = sum.writes.saturating_add(it.writes);
            sum.steps = sum.steps.saturating_add(it.steps);
            sum.home_only = sum.home_only.saturating_add(it.home_only);
            sum.missed = sum.missed.saturating_add(it.missed);
        }
        let mut list: Vec<Self> = joint.into_values().collect();
        list.sort_by(Self::hottest_first);
        let mut left = most;
        list.retain(|it| {
            let hottest = left > 0;
            left = left.saturating_sub(1);
            hottest || it.steps > 0 || it.home_only > 0 || it.missed > 0
        });
        list
    }
}

/// How often requests for a hot key passed the switch in its present generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotCount {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// Its keyhash.
    pub keyhash: u64,
    /// GETs and MGET keys.
    pub reads: u64,
    /// Those of them that went to a copy.
    pub spread: u64,
    /// Writes.
    pub writes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_into_windows_that_are_alike() {
        for (row, len) in [(1, 1), (64, 64), (65, 33), (128, 64), (129, 43), (512, 64), (1_000, 63)]
        {
            let mut end = 0;
            for place in 0..row {
                let bank = bank(row, place);
                assert!(bank.contains(&place));
                if place == end {
                    assert_eq!(bank.start, end);
                    assert!(bank.len() == len || bank.end == row, "{row}: {bank:?}");
                    end = bank.end;
                }
            }
            assert_eq!(end, row);
        }
        assert!(bank(0, 0).is_empty());
    }

    #[test]
    fn the_mates_of_a_node_are_those_of_its_window() {
        let key = HotEntry {
            keyspace: KeyspaceId(1),
            key: b"key".into(),
            keyhash: 1,
            match_value: Match(0),
            generation: Generation::new(1),
            first: 90,
            readers: 100,
            delegation: None,
        };
        let mut places: Vec<_> = (0..100).map(|id| Some((NodeId(id), Incarnation(1)))).collect();
        places[5] = None;
        let order =
            HotOrder { revision: Revision::new(1), places, keys: vec![], ..HotOrder::default() };
        let mates = |node| order.mates(&key, NodeId(node)).map(|node| node.0).collect::<Vec<u16>>();
        let first: Vec<u16> = (90..100).chain(0..5).chain(6..40).collect();
        assert_eq!((mates(90), mates(39), mates(5)), (first.clone(), first.clone(), first));
        assert_eq!(mates(40), (40..90).collect::<Vec<u16>>());
    }
}
