//! The switch program as a pure pipeline: a datagram in, rewritten datagrams out.
//!
//! This is sections 3.1 to 3.9 of `spec/protocol.md` and the oracle for every other data plane. It
//! knows no socket, no clock and no thread: whoever runs it calls [`Pipeline::process`] with each
//! datagram that reaches the service address and sends what the outbox then holds. Work per
//! datagram is bounded by `MGET_KEYS_MAX` and `RANGE_PIECES_MAX`, and nothing is allocated once the
//! outbox has grown to its usual size.
//!
//! Several pipelines, a thread each, may be one switch: they have the same [`Directory`] of hot
//! keys (sections 8 and 9), with what the nodes report, and nothing else that changes.
//!
//! A pipeline asks a [`CoherenceDirectory`] about hot keys: `shared` is that of these pipelines,
//! and another kind of switch, which leaves some packets to them, brings its own.
//!
//! Modules in the order a packet meets them: `tables` and `hot` are what it is matched against,
//! `directory` is how that changes, by the rules of `gate`, `pipeline` parses it and sends replies
//! and single-key requests on, with what it meets in a `pass`; `coherence` is what is asked about
//! hot keys (`either`: of which directory), `cache_rules` which keys caches hold, `observe` is what
//! replies say of them, `selection` chooses who answers reads of them, by `loads` and `reports`,
//! `delegate` sends writes of them on their way by the `delegation`, the table of `grants` and the
//! switch's `clock`, `split` makes many of one (`hints`: without a loop over keys), `counters`
//! remembers what happened. `explain` answers people instead of packets.

mod cache_rules;
mod clock;
mod coherence;
mod counters;
mod delegate;
mod delegation;
mod directory;
mod either;
mod explain;
mod gate;
mod grants;
mod hints;
mod hot;
mod loads;
mod observe;
mod pass;
mod pipeline;
mod reports;
mod selection;
mod shared;
mod split;
mod tables;

pub use cache_rules::{RULES_LAST, RuleBucket, RuleMemory, RuleTable, RuleWatch};
pub use clock::{ClockReading, SharedClock};
pub use coherence::{CoherenceDirectory, HotRead, WriteRoute};
pub use counters::{Counters, HotLoad, PartitionLoad};
pub use delegation::DelegationExplanation;
pub use directory::Directory;
pub use explain::{Explanation, HotExplanation, explain, explain_hot};
pub use gate::OrderGate;
pub use hot::tag_of;
pub use loads::Loads;
pub use pass::Pass;
pub use pipeline::Pipeline;
pub use tables::Tables;
