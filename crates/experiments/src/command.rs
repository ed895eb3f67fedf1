//! The commands of the experiments, each with its arguments.

pub mod balance;
mod ground;
pub mod paper;
pub mod shift;
