//! What the pipeline is held against: a naive model of it, and what holds for every packet.

pub mod cached;
pub mod compare;
pub mod counts;
pub mod delegate;
pub mod hot;
pub mod invariants;
pub mod model;
pub mod numbers;
