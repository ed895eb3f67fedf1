//! What an engine asks of a store that others made.

use super::changes::Old;
use super::{Changes, Spaces};
use cluster::{ClockAhead, PartitionId, StoreId};
use node::engine::Engine;
use node::engine::memory::MemoryEngine;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use wire::Room;

/// A store that others made, as the engine uses it.
pub trait Backend: Send + 'static {
    /// Whether it keeps records and notes, so that a node that comes back finds them.
    const KEEPS: bool;

    /// Fetches values, in the order asked for, with one round trip.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn fetch(&mut self, wanted: &[WantedValue]) -> Result<Vec<FoundValue>, Trouble>;

    /// Says which of these names, all different and at least one, have a value, in their order.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn exist(&mut self, names: &[Vec<u8>]) -> Result<Vec<bool>, Trouble>;

    /// Values that are there, from a cursor on that is 0 at the beginning; and the cursor to go on
    /// with, 0 at the end. Nothing of a backend that cannot list them.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn list(&mut self, cursor: u64) -> Result<(u64, Vec<ListedValue>), Trouble>;

    /// Carries all changes out and waits until that is done. Carrying them out once more changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If that did not happen, or it is not known whether it did.
    fn apply(&mut self, changes: &Changes) -> Result<(), Trouble>;

    /// What there is room for, as far as it is known.
    fn room(&self) -> Room;

    /// Sees how much room there is, and whether what was given is kept.
    ///
    /// # Errors
    ///
    /// If it cannot be asked.
    fn look(&mut self) -> Result<(), Trouble>;

    /// What time it is: how far the cluster's clock is ahead of the node's.
    fn set_clock(&mut self, _ahead: ClockAhead) {}

    /// Connects anew, and sees to it that nothing sent before is carried out after this.
    ///
    /// # Errors
    ///
    /// If it cannot be reached, or is no longer what it was.
    fn reconnect(&mut self) -> Result<(), Trouble>;
}

/// Name of a value, and when it expires in Unix milliseconds, 0 for never.
pub type ListedValue = (Vec<u8>, u64);

/// A value to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedValue {
    /// What it is called in the backend.
    pub name: Vec<u8>,
    /// Whether nobody here has written it, so that the backend is to say when it expires.
    pub with_expiry: bool,
}

impl WantedValue {
    /// A value that was written here, or is taken as if it had been.
    #[must_use]
    pub fn value(name: Vec<u8>) -> Self {
        Self { name, with_expiry: false }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundValue {
    /// The bytes, if there are any.
    pub value: Option<Vec<u8>>,
    /// When the backend lets it expire, in Unix milliseconds; 0 for never.
    pub expiry_ms: u64,
}

/// Why a backend did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers there; somebody may later.
    Gone(String),
    /// It answers, and does nothing for anybody yet: it loads its data, say. That lasts as long as
    /// it says so.
    Busy(String),
    /// It answers, and changes nothing at the moment, for the reason that it says: its memory is
    /// full, say. Nothing was changed.
    Refuses(String),
    /// It never will, or what it does cannot be relied on.
    Lost(String),
}

impl Trouble {
    /// What the backend, or the system, said.
    #[must_use]
    pub fn words(self) -> String {
        let (Self::Gone(words) | Self::Busy(words) | Self::Refuses(words) | Self::Lost(words)) =
            self;
        words
    }
}

/// What a backend has kept of an earlier incarnation.
pub struct Kept {
    /// Records without values, under the identity of this memory.
    pub index: MemoryEngine,
    /// Notes by partition and name.
    pub notes: NoteMap,
    /// Names of keyspaces.
    pub spaces: Spaces,
    /// Partitions in which nothing is shown that was there before.
    pub hidden: BTreeSet<PartitionId>,
    /// Partitions of which not all is listed that was there before.
    pub unlisted: BTreeSet<PartitionId>,
    /// Records that are to be written down anew.
    pub(super) old: Vec<Old>,
}

/// Notes by partition and name.
pub type NoteMap = BTreeMap<PartitionId, BTreeMap<Box<[u8]>, Box<[u8]>>>;

impl Kept {
    /// An empty memory of this identity.
    #[must_use]
    pub fn nothing(store_id: StoreId) -> Self {
        Self {
            index: MemoryEngine::new(store_id),
            notes: NoteMap::new(),
            spaces: Spaces::default(),
            hidden: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            old: Vec::new(),
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("records", &self.index.len()).finish_non_exhaustive()
    }
}
