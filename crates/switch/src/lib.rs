//! The switch program as a pure pipeline: a datagram in, rewritten datagrams out.
//!
//! This is sections 3.1 to 3.9 of `spec/protocol.md` and the oracle for every other data plane.
//! It knows no socket, no clock and no thread: whoever runs it calls [`Pipeline::process`] with
//! each datagram that reaches the service address and sends what the outbox then holds. Work per
//! datagram is bounded by `MGET_KEYS_MAX` and `RANGE_PIECES_MAX`, and nothing is allocated once
//! the outbox has grown to its usual size.
//!
//! Several pipelines, a thread each, may be one switch: they have the same [`Directory`] of hot
//! keys (sections 8 and 9), with what the nodes report, and nothing else that changes.
//!
//! A pipeline may also deal with what another kind of switch leaves to it, which keeps the
//! directory: that one is its [`Keeper`].
//!
//! Modules in the order a packet meets them: `tables` and `hot` are what it is matched against,
//! `directory` is how that changes, by the rules of `judge`, `pipeline` parses it and sends replies
//! and single-key requests on, `learn` is what replies say of hot keys (`keeper`: to whom else they
//! say it), `spread` chooses who answers reads of them, by `loads` and `reports`, `roam` sends
//! writes of them on their way by the `trip`, the table of `stamps` and the switch's `moments`,
//! `split` makes many of one (`hints`: without a loop over keys), `counters` remembers what
//! happened. `explain` answers people instead of packets.

mod counters;
mod directory;
mod explain;
mod hints;
mod hot;
mod judge;
mod keeper;
mod learn;
mod loads;
mod moments;
mod pipeline;
mod reports;
mod roam;
mod split;
mod spread;
mod stamps;
mod tables;
mod trip;

pub use counters::{Counters, HotLoad, PartitionLoad};
pub use directory::Directory;
pub use explain::{Explanation, HotExplanation, TripExplanation, explain, explain_hot};
pub use hot::mark_of;
pub use judge::Judge;
pub use keeper::{HotRead, Keeper, Roamed};
pub use loads::Loads;
pub use moments::{Moment, Moments};
pub use pipeline::Pipeline;
pub use tables::Tables;
