//! Whether what a shard says waits for its disk.

/// Whether a message waits until what the turn has done is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It may rest on that.
    Turn,
    /// It shows nothing of it.
    No,
    /// It may rest on that, and nobody is in a hurry: it goes when another turn is made durable.
    Late,
}

impl Waits {
    /// Of an answer that shows what is durable, or not.
    pub(crate) fn unless(durable: bool) -> Self {
        if durable { Self::No } else { Self::Turn }
    }
}

/// Whether a crash could take back what is agreed of hot keys.
#[derive(Debug, Default)]
pub(crate) struct AgreedAtRisk {
    changed: bool,
    syncing: bool,
}

impl AgreedAtRisk {
    /// It changes, and neither that is durable nor what it was made of.
    pub(crate) fn see(&mut self) {
        self.changed = true;
    }

    pub(crate) fn is_so(&self) -> bool {
        self.changed || self.syncing
    }

    pub(crate) fn begin_sync(&mut self) {
        self.syncing = std::mem::take(&mut self.changed);
    }

    pub(crate) fn end_sync(&mut self) {
        self.syncing = false;
    }
}
