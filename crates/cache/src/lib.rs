//! A cache node as a machine: it holds the hottest keys of some nodes in memory, and answers reads
//! of them under leases of the tails that lend them (SwitchKV; `spec/protocol.md` section 12).
//!
//! The switch sends it reads of the keys for which it has a rule. A rule is a hint: a read of what
//! the cache does not hold, or holds without a lease, goes on to the key's tail.
//!
//! A key's way: a node reports that it is asked for much (`admission` decides whether it is worth
//! a place), the cache fetches it from its tail (`slots` is what it holds and has asked for), is
//! granted a lease (`volumes`), and tells the switch (`rules`). When the key is written, its
//! tail tells the cache and waits for its answer. A cache that cannot keep up holds fewer keys
//! (`limit`), and tells of one that is too hot for it (`crowding`). [`Cache`] is what packets meet.
//!
//! Nothing that is held outlives the process, and nothing that is answered rests on the controller.

mod admission;
mod answer;
mod asker;
mod cache;
mod crowding;
mod health;
mod lender;
mod limit;
mod rules;
mod slots;
mod switches;
#[cfg(test)]
mod tests;
mod volumes;

pub use admission::Admission;
pub use cache::{Cache, CacheConfig};
pub use rules::RulePace;
