//! Flags that threads of a test look at.

use std::sync::atomic::{AtomicBool, Ordering};

/// Raises a flag when it is dropped: threads that go on until then end also if the test fails.
#[derive(Debug)]
pub struct RaiseOnDrop<'a>(pub &'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
