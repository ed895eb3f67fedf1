//! What the pipeline is held against: a naive model of it, and what holds for every packet.

pub(crate) mod compare;
pub(crate) mod counts;
pub(crate) mod delegate;
pub(crate) mod hot;
pub(crate) mod invariants;
pub(crate) mod model;
pub(crate) mod numbers;
