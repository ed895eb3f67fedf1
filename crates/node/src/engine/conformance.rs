//! What every engine must do, as a check that any implementation can be put to.
//!
//! Steps are drawn from numbers, so that any generator (a property test, a seed) can drive them,
//! and each is carried out on an engine and on a plain model that must agree. It is a module like
//! any other, not a test, because engines live in more than one crate.

mod clear;
mod model;
mod step;
mod walk;

pub use model::{Model, Notes};
pub use step::{Change, Draw, Step, keyspaces};
