//! What the benchmarks of whole stores share: a loop of requests from one thread on one core, over
//! servers in processes of their own on another.
//!
//! Every store is driven alike: so many requests in flight or so many a second,
//! [`closed_loop::BATCH`] to a system call, every reply matched to its request and its value
//! compared with what was written.

pub(crate) mod alternate;
pub(crate) mod closed_loop;
pub(crate) mod contents;
pub(crate) mod cores;
pub(crate) mod figures;
pub(crate) mod keyway;
pub(crate) mod options;
pub(crate) mod pace;
pub(crate) mod round;
