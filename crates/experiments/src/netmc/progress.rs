//! How far an experiment has come, for who waits for it.

use console::note;
use std::cell::Cell;

/// Counts trials.
#[derive(Debug)]
pub(crate) struct Progress {
    done: Cell<u32>,
    of: u32,
}

impl Progress {
    /// Nothing of so many is done.
    pub(crate) fn new(of: u32) -> Self {
        Self { done: Cell::new(0), of }
    }

    /// Tells on standard error what one more has shown.
    pub(crate) fn tell(&self, what: &str) {
        self.done.set(self.done.get() + 1);
        note!("[{}/{}] {what}", self.done.get(), self.of);
    }
}
