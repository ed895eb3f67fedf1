//! The content table in the routes of this machine, which is then the coordinating switch with no
//! program in it: its kernel forwards by the longest prefix.
//!
//! ```text
//!   default  ...                                          others' routes: left alone
//!   fd00:6b77:1:1002::/65   via fd00:6b77::11 dev eth1    the tail of a partition
//!   fd00:6b77:1:1002:42..   via fd00:6b77::31 dev eth3    a cache, for one key
//! ```
//!
//! All routes are in the main table, have a next hop, the protocol [`wire::ROUTE_PROTOCOL`] and the
//! metric [`wire::ROUTE_METRIC`]. [`Fib`] changes them in batches and says what there is;
//! `ways` are the next hops, `channel` is a netlink socket, `watch` hears what others change.

mod channel;
mod fib;
mod watch;
mod ways;

pub use channel::Error;
pub use fib::Fib;
