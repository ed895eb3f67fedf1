//! What clients cost a gateway in memory. The kernel tells what a process has as a whole, so these
//! tests have one for themselves, and each its turn.

#[cfg(test)]
mod memory {
    mod cost;
}
#[cfg(test)]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod raw;
