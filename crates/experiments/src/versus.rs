//! Keyway beside what people would use instead: the servers of both as processes of this machine,
//! each limited to the same share of a processor, and clients with the same keys.

mod cgroup;
mod compare;
mod keyway;
mod load;
mod options;
mod process;
mod redis;
mod work;

pub use options::{Rival, Versus};
