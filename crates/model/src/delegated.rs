//! Delegated writes that a chain of nodes sends on before they are on its disks.
//!
//! A model of its own: such chains have no epochs, no commits that travel back and no pending
//! writes, and a node keeps of each key the newest write alone. Any nodes are the chain of a write.
//! Each records it, sends it on at once and tells the last when its disk has it or a newer one; the
//! last shows and answers what all have. Power goes at nodes, which lose what was not synced; one
//! less than a chain has go for good, or have disks that lose what they had said to have kept. An
//! order ends the delegation; home asks what nodes hold of
//! it, and takes the newest when all but that many have told. Then another delegation begins. One
//! message of each kind may arrive at any time, again, or never.
//!
//! Home and the switch are as simple as they can be: versions come in order, one chain for each,
//! and a write may be sent along its chain again at any time. Which requests get them, and what
//! becomes of copies, is not in it.

mod rules;
mod scope;
mod state;

pub use scope::{Bug, Rules, Scope};
pub use state::{Action, CHAIN, Life, Message, NODES, Node, Store, VERSIONS, World};
