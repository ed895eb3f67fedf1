//! An exhaustive model of Keyway's chains, sessions and changes of chain, in small bounds.
//!
//! The rules of `spec/protocol.md`, sections 4, 6 and 7, are written down here once more, as small
//! as they go: one key, three nodes, two or three writes. A checker ([`stateright`]) then visits
//! every state that any order of events leads to, and looks whether a promise is broken in one. The
//! simulator runs the real machines through long, random runs; the model runs the bare rules
//! through all short ones. A rule that is missing from the text shows up here first, with the
//! shortest story of the harm: `cargo run -p keyway-model -- --bugs` tells one for each
//! [`Bug`].
//!
//! # What is promised
//!
//! - What clients see has an order: the history of the key is linearizable.
//! - Every write is applied once: all answers to one request are the same.
//! - What is acknowledged is kept: every full member that has its memory has it and its outcome,
//!   and there is such a member while fewer nodes have failed than there were members.
//! - What is read is kept: no full member that has its memory lacks it.
//!
//! Besides, whatever has happened, every request can still be answered, as long as a full member
//! has its memory ([`stuck`]). And so that the checker is not content with a model that does
//! nothing: within the bounds that allow it, a chain opens again, acknowledges a write, a learner
//! becomes a member, and a tombstone is collected.
//!
//! # What is in the model
//!
//! Writes that depend on what they find and writes that do not, deletes, failed conditions;
//! versions, bases, `stable`, tombstones and the collected floor; sessions and low-water marks;
//! close, settle, open; learners, copies piece by piece beside live writes, leftovers of an earlier
//! generation; leases that end, restarts with and without the memory, a controller that comes back
//! with its map alone; loss, duplication and reordering of everything that is sent.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - The network is the set of what was ever sent. Any of it may arrive at any time, again, or
//!   never. Only what its receiver would refuse for ever is forgotten (and under
//!   [`IgnoreEpoch`](cluster::Mutant::IgnoreEpoch) nothing is).
//! - There is no switch. Any copy of any request may reach any node at any time, also long after
//!   the request has ended: that is at least what all switches, retries and delays can do.
//! - Reads are not steps. After every step every node that would answer one is read: more reads at
//!   more moments only make it harder to find an order. For the same reason a write begins when
//!   the first node takes it, and is acknowledged when the first answer leaves. A lost first answer
//!   is covered because a later one must be the same.
//! - CHAIN_ACK and timers do not matter where everything sent may arrive at any time. CHAIN_COPIED
//!   arrives when the piece is taken, reports arrive when they become true: late ones only delay
//!   the next step, which waits as long as it likes anyway.
//! - What a node takes is on its disk in the same step. The controller decides in one step; that a
//!   controller stopped before it gave its orders is the same as that they are late.
//! - A lease is a flag. It may end at any time, and only a node without one may be taken out of a
//!   chain. That clocks can bring this about is the business of `cluster::Lease`.
//!
//! # What is not in the model
//!
//! Expiry, ranges, several keys (versions are per partition, but one key uses all of them),
//! sessions that end because time has passed, overload, and how long anything takes. The simulator
//! has all of these. Eleven things have models of their own: disks that lag behind what was said
//! ([`durable`]), the same for writes of keys that are delegated ([`delegated`]), older copies of
//! stores that are put back ([`Returning`]), nodes that leave for a while ([`leaving`]), takeovers
//! that do not wait for leases ([`fence`]), writes of delegated keys while one switch hands over to
//! another ([`handover`]), the signs of leaders ([`leaders`]), partitions that are split and merged
//! ([`split`]), keys that a tail lends to caches ([`lent`]), requests that no switch has stamped
//! ([`content`]), and keys of envelopes that change ([`periods`]). Their bounds are [`Bounds`],
//! which know how to run the checker.

mod bug;
mod check;
pub mod content;
mod controller;
pub mod delegated;
pub mod durable;
pub mod fence;
pub mod handover;
mod history;
pub mod leaders;
pub mod leaving;
pub mod lent;
mod live;
mod node;
pub mod periods;
mod protocol;
mod returns;
mod scope;
pub mod split;
mod state;
mod steps;
mod story;

pub use bug::Bug;
pub use check::{Bounds, Checked, Rules, THREADS, Verdict};
pub use history::{Kind, Possible, Request};
pub use live::stuck;
pub use protocol::{Action, Protocol, exhaust, hunt};
pub use returns::{Cluster, Map, Member, ReturnAction, ReturnBug, ReturnScope, Returning, Store};
pub use scope::Scope;
pub use state::{
    Bits, Breach, Chain, Effect, Faults, Message, NODES, Node, Outcome, Piece, REQUESTS_MAX,
    Record, Replica, State, Status, VERSIONS_MAX, Value, Volatile, Way, Write,
};
