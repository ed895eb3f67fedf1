//! The commands of the experiments, each with its arguments.

pub mod balance;
pub mod coordinator;
mod ground;
pub mod latency;
pub mod paper;
pub mod shift;
