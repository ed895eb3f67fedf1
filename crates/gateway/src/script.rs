//! Scripts: Lua 5.1 as Redis has it.
//!
//! A script is a transaction whose commands are found as it runs. What runs it, in `machine`, asks
//! for one command after the other and is given replies; it knows nothing of a cluster. The store
//! carries the commands out on a view, and makes that true when the script is done; if that does
//! not succeed, the script is run anew, from the beginning.
//!
//! Scripts run on threads of their own, a bounded number of them, so that none holds up the worker
//! whose connection has sent it: an interpreter of Lua 5.1 cannot be left in the middle of a
//! script, where that has called itself through C, and gone back to later.

mod api;
mod bits;
mod cache;
mod convert;
mod given;
mod json;
mod machine;
mod msgpack;
mod number;
mod pool;
mod raised;
mod random;
mod source;
mod state;

pub(crate) use given::{Commands, Ended, Given};
pub(crate) use pool::Scripts;
pub(crate) use source::Source;
