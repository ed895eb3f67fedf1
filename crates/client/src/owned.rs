//! Batches on their way from a caller to the machine, with their bytes.

use crate::{Change, Condition, Step};

/// What a batch leaves of a key, with its bytes.
#[derive(Debug)]
pub(crate) enum OwnedChange {
    None,
    Put { value: Vec<u8>, expiry_ms: u64 },
    Delete,
}

/// A step of a batch, with its bytes.
#[derive(Debug)]
pub(crate) struct OwnedStep {
    key: Vec<u8>,
    condition: Condition,
    change: OwnedChange,
}

impl From<&Step<'_>> for OwnedStep {
    fn from(step: &Step<'_>) -> Self {
        let change = match step.change {
            Change::None => OwnedChange::None,
            Change::Put { value, expiry_ms } => {
                OwnedChange::Put { value: value.to_vec(), expiry_ms }
            }
            Change::Delete => OwnedChange::Delete,
        };
        Self { key: step.key.to_vec(), condition: step.condition, change }
    }
}

impl OwnedStep {
    /// The step, lent.
    pub(crate) fn lent(&self) -> Step<'_> {
        let change = match &self.change {
            OwnedChange::None => Change::None,
            OwnedChange::Put { value, expiry_ms } => Change::Put { value, expiry_ms: *expiry_ms },
            OwnedChange::Delete => Change::Delete,
        };
        Step { key: &self.key, condition: self.condition, change }
    }
}
