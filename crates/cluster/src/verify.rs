//! Comparing what the members of chains hold: what is asked for, and what was found (section 11 of
//! `spec/protocol.md`).

use crate::{Epoch, PartitionId, text};
use serde::{Deserialize, Serialize};
use wire::Version;

/// A wish of an operator. Nodes keep the newest, and each tail carries it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyOrder {
    /// Grows with every wish, over all controllers, in the manner of the map's revision.
    pub number: u64,
    /// The partition to compare; all of them if there is none.
    pub partition: Option<PartitionId>,
    /// Whether what is certainly wrong is to be made right.
    pub mend: bool,
}

impl VerifyOrder {
    /// Whether it is about this partition.
    #[must_use]
    pub fn concerns(&self, partition: PartitionId) -> bool {
        self.partition.is_none_or(|id| id == partition)
    }
}

/// How far the comparison of one partition has come, as its tail says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Which.
    pub partition: PartitionId,
    /// In which epoch it was begun: a change of epoch begins it anew.
    pub epoch: Epoch,
    /// Number of the wish.
    pub number: u64,
    /// Members that were compared. One alone has nobody to be compared with.
    pub members: u8,
    /// Whether everything has been compared.
    pub done: bool,
    /// Thousandths of its match values that have been.
    pub permille: u16,
    /// What was found.
    #[serde(flatten)]
    pub found: Findings,
}

/// What came of a comparison, of one partition or of many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Values that were compared.
    pub keys: u64,
    /// Keys of which members hold different things, and go on to.
    pub different: u64,
    /// Those of them that were made right.
    pub mended: u64,
    /// Keys that were written all the time, and could not be compared.
    pub moving: u64,
    /// Records with a version that nobody can have given out yet.
    pub absurd: u64,
    /// The first of the different keys, of each partition.
    pub first: Vec<Difference>,
}

impl Findings {
    /// Keys that members hold different things of still.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.different.saturating_sub(self.mended)
    }

    /// Takes in those of another partition.
    pub fn add(&mut self, other: &Self) {
        let Self { keys, different, mended, moving, absurd, first } = other;
        self.keys = self.keys.saturating_add(*keys);
        self.different = self.different.saturating_add(*different);
        self.mended = self.mended.saturating_add(*mended);
        self.moving = self.moving.saturating_add(*moving);
        self.absurd = self.absurd.saturating_add(*absurd);
        self.first.extend(first.iter().cloned());
    }
}

/// A key of which members hold different things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The key.
    #[serde(with = "text::hex")]
    pub key: Vec<u8>,
    /// Version at each member, in the order of the chain, as it was found: of a value or of the
    /// mark of its deletion. `None`: it has neither.
    pub versions: Vec<Option<Version>>,
    /// Whether it was made right.
    pub mended: bool,
}

/// Different keys that are listed of each partition: enough to see what kind of fault it is.
pub const DIFFERENCES_MAX: usize = 8;
