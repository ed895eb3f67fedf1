//! The gateway's parser without the gateway, which fuzzing would take long to build.

#[path = "../../crates/gateway/src/resp/inline.rs"]
mod inline;
#[path = "../../crates/gateway/src/resp/parse.rs"]
mod parse;

pub(crate) use parse::{Limits, Parser};
