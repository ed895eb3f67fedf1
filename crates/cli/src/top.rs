//! A live view of a cluster: what is asked for most, and how busy every node is.

mod plain;
pub(crate) mod screen;
mod view;

pub(crate) use plain::{json, text};
pub(crate) use view::{NodeView, View};

#[cfg(test)]
mod tests;
