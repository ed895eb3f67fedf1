//! A packet as people and programs read it: what `wire::dissect` finds in it, in words.

mod json;
mod said;
mod text;

pub(crate) use json::json;
pub(crate) use text::text;
