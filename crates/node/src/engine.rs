//! What a node asks of the store below it.
//!
//! An engine finds records by keyspace and match value. To it a partition is a name for notes, and
//! bounds: those that are split and merged leave all records where they are.
//!
//! An engine is written by one shard alone. Changes are visible to reads at once and survive a
//! crash after the next [`sync`](Engine::sync): all changes between two syncs survive together or
//! not at all. An engine that meets an I/O error remembers it, and `sync` reports it: nothing the
//! node says in between leaves the node, so a wrong read is never told to anybody.
//!
//! An engine may leave it to others to wait for its disk. It is used meanwhile, and says what of
//! that a crash could still take back.

pub mod conformance;
pub mod memory;

use cluster::{ClockAhead, Keyspace, KeyspaceId, Match, PartitionId, StoreId};
use std::fmt;
use std::ops::{Bound, ControlFlow};
use wire::Version;

/// A key and all that an engine may place it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRef<'a> {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// Its partition.
    pub partition: PartitionId,
    /// Whether the keyspace is scanned in order.
    pub ordered: bool,
    /// Its match value. In an ordered keyspace, (match value, key) sorts as the key does.
    pub match_value: Match,
    /// Its 64-bit hash.
    pub keyhash: u64,
    /// The key, at most `wire::KEY_MAX` bytes.
    pub key: &'a [u8],
}

impl<'a> KeyRef<'a> {
    /// Where a key of this keyspace and partition lies.
    #[must_use]
    pub fn of(keyspace: &Keyspace, partition: PartitionId, key: &'a [u8]) -> Self {
        Self {
            keyspace: keyspace.id,
            partition,
            ordered: keyspace.is_ordered(),
            match_value: keyspace.match_value(key),
            keyhash: keyspace.keyhash(key),
            key,
        }
    }
}

/// The committed state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Version of the write that made it.
    pub version: Version,
    /// For a value: absolute expiry in Unix milliseconds, 0 for never, and the bit
    /// `wire::big::EXPIRY_BIG`. For a tombstone: when it may be collected at the earliest.
    pub expiry_ms: u64,
    /// Whether this is the mark of a deleted key; `value` is then empty.
    pub tombstone: bool,
    /// The bytes.
    pub value: &'a [u8],
}

/// A record without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Version of the write that made it.
    pub version: Version,
    /// Whether it is the mark of a deleted key.
    pub tombstone: bool,
}

impl From<Record<'_>> for Written {
    fn from(Record { version, tombstone, .. }: Record<'_>) -> Self {
        Self { version, tombstone }
    }
}

/// A partition, and all that an engine may find its records by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// Its id.
    pub partition: PartitionId,
    /// Whether the keyspace is scanned in order.
    pub ordered: bool,
    /// First match value.
    pub first: Match,
    /// Last match value, inclusive.
    pub last: Match,
}

impl Area {
    /// Whether it has no match values: of a partition that others were made of nothing but notes
    /// may be left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first > self.last
    }

    /// Whether some match value is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let same = self.keyspace == other.keyspace && !self.is_empty() && !other.is_empty();
        same && self.first <= other.last && other.first <= self.last
    }

    /// What is left of it when the match values of another are taken, which are at one of its ends,
    /// or all of it.
    #[must_use]
    pub fn without(&self, taken: &Self) -> Self {
        let none = Self { first: Match::MAX, last: Match::MIN, ..*self };
        match (taken.first <= self.first, taken.last >= self.last) {
            (true, true) => none,
            (true, false) => Self { first: Match(taken.last.0.saturating_add(1)), ..*self },
            (false, _) => Self { last: Match(taken.first.0.saturating_sub(1)), ..*self },
        }
    }

    /// How many thousandths of the partition's match values lie before this one, which is not
    /// how many of its records do where keys are not spread evenly.
    #[must_use]
    pub fn thousandths_before(&self, at: Match) -> u16 {
        let all = self.last.0.saturating_sub(self.first.0);
        let before = at.0.saturating_sub(self.first.0);
        let thousandths = match before.checked_mul(1_000) {
            Some(product) => product / all.max(1),
            None => before / (all / 1_000).max(1),
        };
        u16::try_from(thousandths).map_or(1_000, |thousandths| thousandths.min(1_000))
    }
}

/// A piece of a partition to scan, in the order of (match value, key): what lies from `start` among
/// the keys of the match value `first` to `end` among those of `last`.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    /// The keyspace, which says where in the order a key stands.
    pub keyspace: &'a Keyspace,
    /// The partition; `first..=last` lies inside it.
    pub partition: PartitionId,
    /// First match value.
    pub first: Match,
    /// Last match value.
    pub last: Match,
    /// Bound from below on the keys of `first`.
    pub start: Bound<&'a [u8]>,
    /// Bound from above on the keys of `last`.
    pub end: Bound<&'a [u8]>,
    /// From the end to the start.
    pub reverse: bool,
}

impl Interval<'_> {
    /// Whether a key of this match value lies in it.
    #[must_use]
    pub fn holds(&self, at: Match, key: &[u8]) -> bool {
        let after_start = match self.start {
            _ if at > self.first => true,
            Bound::Included(start) => key >= start,
            Bound::Excluded(start) => key > start,
            Bound::Unbounded => true,
        };
        let before_end = match self.end {
            _ if at < self.last => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        };
        self.first <= at && at <= self.last && after_start && before_end
    }
}

/// Whether no key is within both bounds because the first ends after the second: what the ranges
/// of ordered maps panic at.
#[must_use]
pub fn bounds_cross<T: PartialOrd>(start: &Bound<T>, end: &Bound<T>) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
    }
}

/// The store of one shard.
pub trait Engine {
    /// How far a walk through a partition has come. It stays good whatever is written
    /// meanwhile.
    type Cursor: fmt::Debug;

    /// The version under which reads show values that were there before any node wrote the key:
    /// heads give out versions above it. 0 if the engine shows none.
    const FOUND: Version = Version::NONE;

    /// Whether it gains from [`fetch_ahead`](Self::fetch_ahead).
    const FETCHES: bool = false;

    /// Whether nobody else changes what it holds.
    const OWNS: bool = true;

    /// Whether big values can be kept: it must give every bit of an expiry back.
    const BIG: bool = true;

    /// Looks a key up.
    fn read<R>(&self, key: &KeyRef<'_>, with: impl FnOnce(Option<Record<'_>>) -> R) -> R;

    /// What a node wrote under this key, if there is a record of it. It looks at no value.
    fn written(&self, key: &KeyRef<'_>) -> Option<Written> {
        self.read(key, |record| record.map(Written::from))
    }

    /// The version of that.
    fn version_written(&self, key: &KeyRef<'_>) -> Option<Version> {
        self.written(key).map(|written| written.version)
    }

    /// Keys whose values are probably read before the next sync: one that has them elsewhere
    /// fetches them in one go.
    fn fetch_ahead(&mut self, _keys: &[KeyRef<'_>]) {}

    /// What time it is: how far the cluster's clock is ahead of the node's. For an engine whose
    /// store says of values how long they have left.
    fn set_clock(&mut self, _ahead: ClockAhead) {}

    /// A keyspace as it is: said before any partition of it is used.
    fn meet_keyspace(&mut self, _keyspace: &Keyspace) {}

    /// A partition was made of this other one, or of this and others: what is remembered of that
    /// beside records and notes counts for it as well.
    fn inherit(&mut self, _from: PartitionId, _to: PartitionId) {}

    /// A partition begins here, and what is in the store already is its own: from the next sync on
    /// it is on record that this is still to be [listed](Self::list_on).
    fn begin_listing(&mut self, _partition: PartitionId) {}

    /// Whether all that was in the store before is among the records of a partition. Until then it
    /// can be read, but not scanned, counted or copied.
    fn is_listed(&self, _partition: PartitionId) -> bool {
        true
    }

    /// Whether there is something to list.
    fn is_listing(&self) -> bool {
        false
    }

    /// Lists a bounded piece of what is in the store: each key of these keyspaces that `place` has
    /// a partition, a match value and a keyhash for, and that is of a partition to be listed and
    /// has no record yet, becomes a record of version [`FOUND`](Self::FOUND).
    fn list_on(
        &mut self,
        _keyspaces: &[KeyspaceId],
        _place: impl Fn(KeyspaceId, &[u8]) -> Option<(PartitionId, Match, u64)>,
    ) {
    }

    /// What was there before any node wrote is not to be shown in this partition any more: the node
    /// joins those that have it, and what they have deleted meanwhile may lie here still.
    fn hide_found(&mut self, _partition: PartitionId) {}

    /// Replaces the state of a key.
    fn write(&mut self, key: &KeyRef<'_>, record: &Record<'_>);

    /// Forgets a key: a tombstone collected.
    fn remove(&mut self, key: &KeyRef<'_>);

    /// Visits the records of an interval in the order of (match value, key), or the reverse, until
    /// told to break. In an ordered keyspace that is the order of the keys.
    fn scan(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    );

    /// As [`scan`](Self::scan), for one who looks at no value: those may be left out, and are then
    /// empty.
    fn scan_keys(
        &self,
        interval: &Interval<'_>,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) {
        self.scan(interval, visit);
    }

    /// Visits (keyspace, key, record) of every record with `0 < time <= until_ms`, the
    /// earliest first, until told to break; the time is `wire::big::time_of` its expiry. Values may
    /// be left out.
    fn due(
        &self,
        until_ms: u64,
        visit: impl FnMut(KeyspaceId, &[u8], Record<'_>) -> ControlFlow<()>,
    );

    /// Begins a walk through all records of a partition, in any order.
    fn walk(&self, area: &Area) -> Self::Cursor;

    /// Visits the next records of the walk with their keys. A record whose visit breaks was not
    /// taken and is visited again first; so the walk is over when this returns without a break. A
    /// record that is there from the beginning of the walk to its end is visited, as it is at its
    /// turn; one that comes or goes meanwhile may be or not; twice is allowed.
    fn walk_on(
        &self,
        area: &Area,
        cursor: &mut Self::Cursor,
        visit: impl FnMut(&[u8], Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Thousandths of the walk that lie behind the cursor, about; all of them when it is over.
    fn walked(&self, area: &Area, cursor: &Self::Cursor) -> u16;

    /// Forgets a piece of a partition: of its notes and, when there are none left, of its records;
    /// at least one and at most `at_most` (which is above 0) of both together. Breaks if more is
    /// left; then it is to be called again, however much later, until it does not.
    ///
    /// From the first piece to the last nothing may be written or noted of the partition, and
    /// whatever reads of it, visits or lists what is due sees any part of what there was, or
    /// nothing: nobody may be told of it. Other partitions are as always.
    ///
    /// The last piece is a change like any other. Those before it may be gone for good before the
    /// next sync, without what was changed elsewhere. So what a crash leaves of a clear is any part
    /// of the partition, and it must be done again, from the first piece to the last.
    fn clear_on(&mut self, area: &Area, at_most: usize) -> ControlFlow<()>;

    /// Keeps (or with `None` removes) a note of the protocol: a pending write, a session, a
    /// counter. An engine that loses everything in a crash need not keep notes.
    fn note(&mut self, partition: PartitionId, name: &[u8], note: Option<&[u8]>);

    /// Visits the notes of a partition in the order of their names, from this one on, until told to
    /// break.
    fn notes_from(
        &self,
        partition: PartitionId,
        from: &[u8],
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    );

    /// Visits all of them.
    fn notes(&self, partition: PartitionId, mut visit: impl FnMut(&[u8], &[u8])) {
        self.notes_from(partition, &[], |name, note| {
            visit(name, note);
            ControlFlow::Continue(())
        });
    }

    /// Makes every change so far durable, as far as the engine's policy asks for it.
    ///
    /// # Errors
    ///
    /// After an I/O error, now and for ever: the owner must stop serving and start anew from what
    /// is on disk. Whether the changes since the last sync survived is then unknown.
    ///
    /// An engine may also refuse for now: until a later sync succeeds it keeps the changes, shows
    /// what was there before them, and must not be given others.
    fn sync(&mut self) -> Result<(), EngineError>;

    /// Whether somebody else waits for its disk, so that it is used while it syncs.
    fn syncs_apart(&self) -> bool {
        false
    }

    /// Begins to make every change so far durable, which it is when this says `false`. Else it goes
    /// on apart: the owner hears when it has ended, and says so by [`end_sync`](Self::end_sync).
    /// There is one at a time.
    ///
    /// # Errors
    ///
    /// As for [`sync`](Self::sync).
    fn begin_sync(&mut self) -> Result<bool, EngineError> {
        self.sync().map(|()| false)
    }

    /// The sync that went on apart has ended so.
    ///
    /// # Errors
    ///
    /// If it has failed: as for [`sync`](Self::sync).
    fn end_sync(&mut self, how: Result<(), EngineError>) -> Result<(), EngineError> {
        how
    }

    /// What reads see under a key comes back after a crash although it is not on disk, for what it
    /// was made of is. So it need not be waited for, until it changes again.
    fn see_backed(&mut self, _key: &KeyRef<'_>) {}

    /// Whether no crash can take back what reads see under a key. One that does not sync apart need
    /// not know.
    fn is_durable(&self, _key: &KeyRef<'_>) -> bool {
        true
    }

    /// Whether that is so of all keys.
    fn is_all_durable(&self) -> bool {
        true
    }

    /// Identity of this memory.
    fn store_id(&self) -> StoreId;

    /// Bytes of memory that it takes, about: a total that it keeps, for it is asked for with every
    /// packet.
    fn usage(&self) -> u64;

    /// How many keys it holds, tombstones included; an estimate will do.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The store can no longer be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(pub String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "storage engine failed: {}; restart the node to recover", self.0)
    }
}

impl std::error::Error for EngineError {}
