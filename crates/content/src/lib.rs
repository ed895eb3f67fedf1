//! The content table: which addresses a router, or a switch that matches on addresses, sends to
//! which member of the cluster (SwitchKV, sections 3.1 and 3.3). The device knows nothing of keys.
//!
//! ```text
//!   tables of the controller ──► partitions ┐                       ┌─► batches of changes
//!                                           ├─► what is wanted ─ ≠ ─┤
//!   rules of caches ───────────► holders ───┘   what is installed ◄─┴── what became of them
//! ```
//!
//! A partition has a prefix for each class of requests: reads go to its tail, writes to its head.
//! A key that a cache holds has a rule, which is longer than any prefix and goes before it. What
//! is wanted is known at once, a device takes few changes in a second: [`ContentTable`] says which
//! come next.
//!
//! *No answer rests on it.* Who is asked answers by its own assignment and lease, or says that it
//! is not the one. So a table may be late, and may stay when nobody keeps it any more.

mod budget;
mod holders;
mod inherited;
mod loads;
mod partitions;
mod table;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use partitions::{Unroutable, Why};
pub use table::{BATCH_MAX, Change, ContentTable, Counts, Entry};
