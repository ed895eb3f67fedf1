//! Partitions that are split and merged while copies of requests arrive late.
//!
//! A model of its own: chains of two nodes that settle in one step, for how they come to that is
//! the business of the others. A partition that has settled becomes two, or two that have become
//! one, or one of its nodes is replaced. Nodes follow the map when they like, make what they hold
//! of the new partitions from what they hold of the old ones, and forget the rest. Power goes at
//! nodes, which lose what was not synced. Any copy of a request may arrive at any time, stamped for
//! whatever partition its key was ever in.

mod rules;
mod scope;
mod state;

pub use scope::{Bug, Rules, Scope};
pub use state::{Action, Held, Map, NODES, Node, Partition, REQUESTS, Record, Stamp, Store, World};
