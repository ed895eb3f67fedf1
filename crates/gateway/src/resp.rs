//! RESP, the protocol of Redis: bytes to commands and replies to bytes. Nothing here waits or knows
//! what a command means.

mod encode;
mod inline;
mod parse;

pub use encode::{Version, encode};
pub use parse::{Limits, Parser, ProtocolError};
