//! The table of hot keys that a packet is matched against: entries, their floors and holders.
//!
//! A table never changes; a new order makes a new one. What packets change lies in the entries,
//! which a key that stays takes along: whoever still looks at the table before raises the same
//! floor.
//!
//! There may be 65,536 keys, so they are kept small: rows in one slab, in the order of their
//! counters, an index of row numbers by a few bits of the hash, and in each entry what most keys
//! need. Marks of many readers and the state of a delegation lie apart, and are there only for keys
//! that have them; those of more readers than a [bank](cluster::bank) has, which few keys have, lie
//! apart once more.

use crate::delegation::Delegation;
use cluster::{
    HotEntry, HotOrder, Incarnation, InstallError, KeyspaceId, Match, NodeId, Selection,
};
use hashbrown::HashTable;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use wire::{DelegationId, Generation, Revision, Version};

/// What is known of one hot key, shared by all tables and threads in which it has this generation.
#[derive(Debug)]
pub(crate) struct Entry {
    keyhash: u64,
    generation: Generation,
    floor: AtomicU64,
    /// Marks of the readers after the first few: there once an order has given it so many.
    more: OnceLock<Box<More>>,
    keyspace: KeyspaceId,
    proven: AtomicBool,
    /// By place among the readers; [`NO_HOLDER`] or that of a version.
    few: [AtomicU8; FEW_READERS],
}

/// Readers that most keys have at most, in a rack. As many as the rest of an entry leaves room for.
const FEW_READERS: usize = 13;

/// Marks of the readers after those.
#[derive(Debug)]
struct More {
    holders: [AtomicU8; wire::HOT_BANK_MAX - FEW_READERS],
    /// There once an order has given it more readers than that, likewise.
    wide: OnceLock<Box<Wide>>,
}

/// Of a key with more readers than a bank has.
#[derive(Debug)]
struct Wide {
    /// Marks of those after as many.
    holders: [AtomicU8; wire::NODES_MAX - wire::HOT_BANK_MAX],
    /// A reader that holds the floor, if the key is delegated. A hint, like the holders.
    near: AtomicU16,
}

const NO_HOLDER: u8 = 0;

const _: () = assert!(wire::HOT_KEYS_MAX <= 1 << u16::BITS, "a row knows its place");

/// The holder of a version. That two of them have the same is rare, and then a reader says that it
/// does not hold what it is asked for.
#[must_use]
pub fn tag_of(version: Version) -> u8 {
    1 + u8::try_from(version.get() % 255).expect("below 255")
}

impl Entry {
    fn new(key: &HotEntry) -> Self {
        Self {
            keyhash: key.keyhash,
            generation: key.generation,
            floor: AtomicU64::new(0),
            more: OnceLock::new(),
            keyspace: key.keyspace,
            proven: AtomicBool::new(false),
            few: no_holders(),
        }
    }

    /// Has a holder for each of so many readers, at least.
    fn make_room(&self, readers: u16) {
        if usize::from(readers) > FEW_READERS {
            let none = || Box::new(More { holders: no_holders(), wide: OnceLock::new() });
            let more = self.more.get_or_init(none);
            if usize::from(readers) > wire::HOT_BANK_MAX {
                let none = || Box::new(Wide { holders: no_holders(), near: AtomicU16::new(0) });
                more.wide.get_or_init(none);
            }
        }
    }

    fn wide(&self) -> Option<&Wide> {
        self.more.get()?.wide.get().map(|wide| &**wide)
    }

    fn holder(&self, reader: usize) -> Option<&AtomicU8> {
        let Some(after) = reader.checked_sub(FEW_READERS) else { return self.few.get(reader) };
        let more = self.more.get()?;
        match reader.checked_sub(wire::HOT_BANK_MAX) {
            None => more.holders.get(after),
            Some(after) => self.wide()?.holders.get(after),
        }
    }

    fn is_of(&self, keyspace: KeyspaceId, keyhash: u64) -> bool {
        self.keyhash == keyhash && self.keyspace == keyspace
    }

    /// Number of its generation.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Lifts the floor to this version. Must come before the reply that shows it is sent on.
    pub(crate) fn raise(&self, version: Version) {
        // Most replies show nothing new, and then the line stays shared by all processors.
        // Whoever hears of this version from here on cannot read less than what is read here.
        if self.floor.load(Ordering::Acquire) < version.get() {
            self.floor.fetch_max(version.get(), Ordering::AcqRel);
        }
    }

    /// Takes the floor for proven. Must come after it was raised to what the proof says.
    pub(crate) fn prove(&self) {
        if !self.proven.load(Ordering::Relaxed) {
            self.proven.store(true, Ordering::Release);
        }
    }

    /// The floor, and whether it is proven.
    pub(crate) fn floor(&self) -> (Version, bool) {
        // In this order: who sees the proof sees what it proved.
        let proven = self.proven.load(Ordering::Acquire);
        (Version::new(self.floor.load(Ordering::Acquire)), proven)
    }

    fn set_near(&self, reader: usize) {
        if let Some(wide) = self.wide() {
            wide.near.store(u16::try_from(reader).unwrap_or(0), Ordering::Relaxed);
        }
    }

    fn set_holder(&self, reader: usize, holder: u8) {
        if let Some(place) = self.holder(reader)
            && place.load(Ordering::Relaxed) != holder
        {
            place.store(holder, Ordering::Relaxed);
        }
    }
}

fn no_holders<const N: usize>() -> [AtomicU8; N] {
    std::array::from_fn(|_| AtomicU8::new(NO_HOLDER))
}

/// One hot key in one table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Place of its counters, and of this row.
    pub(crate) counter: u16,
    first: u16,
    readers: u16,
    /// The lower half of the key's match value.
    low: u64,
    pub(crate) entry: Arc<Entry>,
    /// The delegation that its writes are to go under, shared like the entry.
    pub(crate) delegation: Option<Arc<Delegation>>,
    /// Nodes that are chosen for each write on it: the chain, and readers.
    pub(crate) chosen: u8,
}

impl Row {
    /// Whether the key lies there: one that has its hash, but lies elsewhere, is another key.
    #[inline]
    pub(crate) fn lies_at(&self, at: Match) -> bool {
        self.low == low_of(at)
    }

    /// The number of the delegation that the order names.
    fn number(&self) -> Option<DelegationId> {
        Some(self.delegation.as_ref()?.number)
    }

    /// The delegation of this number, if that is the one that the order names.
    pub(crate) fn delegation(&self, number: DelegationId) -> Option<&Delegation> {
        self.delegation.as_deref().filter(|delegation| delegation.number == number)
    }

    /// Whether a version is above all that there can be: under a delegation this switch alone gives
    /// them out.
    pub(crate) fn is_beyond(&self, version: Version) -> bool {
        if !version.is_plausible() {
            return true;
        }
        let impossible = |delegation: &Arc<Delegation>| !delegation.may_have(version);
        version > self.entry.floor().0 && self.delegation.as_ref().is_some_and(impossible)
    }

    /// The floor for a read that its home is to answer: a delegated key may be delegated from
    /// there, and then what home has is as good as any copy. `None` if that is not so, or nothing
    /// is proven.
    pub(crate) fn floor_at_home(&self) -> Option<Version> {
        self.delegation.as_ref()?;
        let (floor, proven) = self.entry.floor();
        proven.then_some(floor)
    }

    /// The delegation of an order's entry: that of before if it is the same.
    fn follow_delegation(key: &HotEntry, before: Option<&Self>) -> Option<Arc<Delegation>> {
        let delegation = key.delegation?;
        let same = |it: &&Arc<Delegation>| it.number == delegation.number;
        let kept = before.and_then(|row| row.delegation.as_ref().filter(same));
        Some(kept.map_or_else(|| Arc::new(Delegation::new(delegation)), Arc::clone))
    }

    /// How many nodes are chosen for a write: chains stay as long as they were when the
    /// delegation began.
    fn chosen(key: &HotEntry, delegation: Option<&Delegation>) -> u8 {
        let order = key.delegation.zip(delegation);
        order.map_or(0, |(order, it)| {
            cluster::Delegation { replicas: it.replicas, ..order }.chosen()
        })
    }

    /// How many nodes are to hold copies.
    pub(crate) fn readers(&self) -> usize {
        self.readers.into()
    }

    /// The bank of its readers that this one is in.
    pub(crate) fn bank(&self, reader: usize) -> Range<usize> {
        cluster::bank(self.readers(), reader)
    }

    /// The bank in which all are that hold the floor, if it is delegated.
    pub(crate) fn bank_of_floor(&self) -> Range<usize> {
        let near = self.entry.wide().map_or(0, |wide| wide.near.load(Ordering::Relaxed));
        // An order may have given it fewer readers since.
        self.bank(usize::from(near).min(self.readers().saturating_sub(1)))
    }

    /// Whether this reader, by its place among the readers, last said to hold that version.
    pub(crate) fn holds(&self, reader: usize, version: Version) -> bool {
        let holder = self.entry.holder(reader).map(|holder| holder.load(Ordering::Relaxed));
        holder == Some(tag_of(version))
    }
}

/// All hot keys.
#[derive(Debug, Default)]
pub(crate) struct HotTable {
    revision: Revision,
    selection: Selection,
    places: Vec<Option<(NodeId, Incarnation)>>,
    /// Place of each node, by node id.
    place_of: Vec<Option<u16>>,
    /// By keyspace and keyhash.
    rows: Box<[Row]>,
    /// Places of rows, by keyhash.
    index: HashTable<u32>,
    /// Whether any key is delegated.
    delegates: bool,
}

impl HotTable {
    /// Compiles an order. Keys that `before` holds with the same generation keep their entries; of
    /// holders those of readers that are the same.
    ///
    /// # Errors
    ///
    /// If there is no room for it, or it contradicts itself. Nothing is changed then.
    pub(crate) fn compile(order: &HotOrder, before: &Self) -> Result<Self, InstallError> {
        order.check()?;
        let mut place_of = vec![None; wire::NODES_MAX];
        for (place, node) in (0..).zip(&order.places) {
            let of = node.and_then(|(node, _)| place_of.get_mut(usize::from(node.0)));
            of.into_iter().for_each(|of| *of = Some(place));
        }
        let mut keys: Vec<&HotEntry> = order.keys.iter().collect();
        keys.sort_unstable_by_key(|key| (key.keyspace, key.keyhash));
        let row = |(counter, key)| before.follow(order, key, counter);
        let rows: Box<[Row]> = (0..=u16::MAX).zip(keys).map(row).collect();
        let mut index = HashTable::with_capacity(rows.len());
        let hash = |place: &u32| row_at(&rows, *place).map_or(0, |row| row.entry.keyhash);
        for row in &rows {
            index.insert_unique(row.entry.keyhash, row.counter.into(), hash);
        }
        let (revision, selection, places) = (order.revision, order.selection, order.places.clone());
        let delegates = order.keys.iter().any(|key| key.delegation.is_some());
        Ok(Self { revision, selection, places, place_of, rows, index, delegates })
    }

    /// The row of an order's key, that comes after this table's if it has the key in the same
    /// generation.
    fn follow(&self, order: &HotOrder, key: &HotEntry, counter: u16) -> Row {
        let kept = self.find(key.keyspace, key.keyhash);
        let kept = kept.filter(|row| row.entry.generation == key.generation);
        let delegation = Row::follow_delegation(key, kept);
        let row = Row {
            counter,
            first: key.first,
            readers: key.readers,
            // As long as it stays it is the key that its floor is of.
            low: kept.map_or_else(|| low_of(key.match_value), |row| row.low),
            entry: kept.map_or_else(|| Arc::new(Entry::new(key)), |row| row.entry.clone()),
            chosen: Row::chosen(key, delegation.as_deref()),
            delegation,
        };
        row.entry.make_room(key.readers);
        if let Some(old) = kept {
            self.move_holders(old, order, &row);
            if old.number() != row.number() {
                // What is newest was copied from home, to the first of the readers.
                row.entry.set_near(0);
            }
        }
        row
    }

    /// Readers that are the same in `after`, in the same incarnation, take their holders along,
    /// wherever they stand there. Threads that still look at the old table may set some meanwhile:
    /// holders are hints.
    fn move_holders(&self, old: &Row, order: &HotOrder, after: &Row) {
        let round = |row: &Row| (row.first, row.readers);
        if round(old) == round(after) && self.places == order.places {
            return;
        }
        let holder_of_reader = |reader: usize| {
            let place = (usize::from(after.first) + reader).checked_rem(order.places.len())?;
            let (node, incarnation) = (*order.places.get(place)?)?;
            let known = self.reader_of(old, node)?;
            let same = self.place(node).and_then(|place| *self.places.get(place)?)
                == Some((node, incarnation));
            let holder = old.entry.holder(known).filter(|_| same)?;
            Some(holder.load(Ordering::Relaxed))
        };
        // Those that are none any more have none.
        let marked = 0..old.readers().max(after.readers());
        let is_one = |reader: &usize| *reader < after.readers();
        let moved = marked.map(|reader| Some(reader).filter(is_one).and_then(holder_of_reader));
        let moved: Vec<Option<u8>> = moved.collect();
        for (reader, holder) in moved.into_iter().enumerate() {
            after.entry.set_holder(reader, holder.unwrap_or(NO_HOLDER));
        }
    }

    /// Revision of the order that this was made from; 0 for none.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// How readers are chosen.
    pub(crate) fn selection(&self) -> Selection {
        self.selection
    }

    /// Whether no key is hot.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether any key is delegated, or is to go on one.
    #[inline]
    pub(crate) fn delegates(&self) -> bool {
        self.delegates
    }

    /// Whether what is sent to nodes has to be remembered for a choice.
    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        !self.is_empty() && self.selection == Selection::Predicted
    }

    /// Keyspace, keyhash and generation of each key, in the order of their counters.
    pub(crate) fn names(&self) -> impl Iterator<Item = (KeyspaceId, u64, Generation)> {
        self.rows.iter().map(|row| (row.entry.keyspace, row.entry.keyhash, row.entry.generation))
    }

    /// The row of a key.
    #[inline]
    pub(crate) fn find(&self, keyspace: KeyspaceId, keyhash: u64) -> Option<&Row> {
        if self.is_empty() {
            return None;
        }
        let at = |place: &u32| row_at(&self.rows, *place);
        let same = |place: &u32| at(place).is_some_and(|row| row.entry.is_of(keyspace, keyhash));
        self.index.find(keyhash, same).and_then(at)
    }

    /// Which node this reader of a key is; none if its place is a hole.
    pub(crate) fn reader(&self, row: &Row, reader: usize) -> Option<NodeId> {
        let place = usize::from(row.first) + reader;
        let round = self.places.len();
        // There are no more readers than places, so that is at most once round.
        let place = if place < round { place } else { place - round };
        self.places.get(place)?.map(|(node, _)| node)
    }

    /// Notes that a node holds this version of a key, or that it does not hold what it was asked
    /// for. Nothing happens if it is no reader of it.
    pub(crate) fn holder(&self, row: &Row, node: NodeId, version: Option<Version>) {
        if let Some(reader) = self.reader_of(row, node) {
            row.entry.set_holder(reader, version.map_or(NO_HOLDER, tag_of));
        }
    }

    /// Notes who holds the floor of a delegated key: the others that do are in the same bank.
    pub(crate) fn note_near(&self, row: &Row, node: NodeId) {
        if let Some(reader) = self.reader_of(row, node) {
            row.entry.set_near(reader);
        }
    }

    /// Which reader of a key this node is, if it is one.
    fn reader_of(&self, row: &Row, node: NodeId) -> Option<usize> {
        let (place, first) = (self.place(node)?, usize::from(row.first));
        let reader = if place < first { place + self.places.len() - first } else { place - first };
        (reader < row.readers()).then_some(reader)
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.place_of.get(usize::from(node.0)).copied().flatten().map(usize::from)
    }
}

/// What of a match value tells keys with one hash apart: with its 64 bits no two meet by chance.
fn low_of(Match(at): Match) -> u64 {
    at as u64
}

fn row_at(rows: &[Row], place: u32) -> Option<&Row> {
    rows.get(usize::try_from(place).ok()?)
}

#[cfg(test)]
mod tests;
