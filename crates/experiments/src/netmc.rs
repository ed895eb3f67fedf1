//! The experiments of NetMC, with real packets in a lab: who takes multigets apart, and what that
//! costs.
//!
//! An experiment is a list of points (what the load and the rack are like) and what is measured at
//! each. All arms are measured at every point on the same rack, under the same load, by turns.

pub(crate) mod arm;
pub(crate) mod design;
pub(crate) mod equal;
pub(crate) mod experiment;
pub(crate) mod figures;
pub(crate) mod load;
pub(crate) mod look;
pub(crate) mod progress;
pub(crate) mod redis;
pub(crate) mod restart;
pub(crate) mod results;
pub(crate) mod stage;
pub(crate) mod stores;
