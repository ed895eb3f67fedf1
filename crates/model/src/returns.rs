//! Members that come back, and maps that come back: the rules of section 6 of `spec/protocol.md`,
//! "What a member holds is compared before it is believed" and "A map older than what members
//! follow", in a model of their own.
//!
//! Here stores can be put back as they were some time before, a node's and the controller's; the
//! other model has disks that keep everything or lose everything. A journal that was cut short is
//! such a store, too. In return a chain is hardly more than the order in which its members record
//! and commit: what closed chains, copies and leases do step by step is the other model's matter.
//! All keys are one: the digest of a member is the newest version that it shows.
//!
//! Whoever can hear it is told at once what was decided and what is committed everywhere.
//!
//! # What bounds it
//!
//! - A node's store is put back only while another member of its chain holds all that was
//!   acknowledged; and where silent members are taken out of chains, only one from before the
//!   incarnation that the node is known by. Else all who hold something have failed, and a member
//!   that is alone and lost its end in the same incarnation is not found out.
//! - When the controller's store is put back every node is up, and stays so until it has reported.
//!   While all who follow a newer map are silent, nobody can tell.

mod compare;
mod rules;
mod scope;
mod state;

pub(crate) use compare::{Claim, Trust, compare};
pub use rules::ReturnAction;
pub use scope::{ReturnBug, ReturnScope, Returning};
pub use state::{Cluster, Map, Member, Store};
