//! Periods of keys: packets in envelopes while everybody goes on to other keys, one after the
//! other.
//!
//! These are the rules S1, S3, S12, S17, S19, S22 and S23 of `spec/protocol.md`, section 14. A
//! client asks through a switch, and a node answers through it. The cluster's clock says which
//! period it is. The switch and the node are told at some time after it has begun, the client has
//! its pass renewed at some time, and packets are under way meanwhile.
//!
//! # What is promised
//!
//! - *Nobody refuses what has just been sealed*: whoever gets a packet of a member or client that
//!   follows the rules has the keys that it was sealed with. A client that has not heard of a
//!   period may have only a cookie that is over, but then asks for another with the same request.
//! - *A cookie is good for a period more*: a client that has one of the period before is let in
//!   while it has none of the present one.
//! - *What was recorded is of no use after three periods.*
//!
//! # What is taken for granted
//!
//! Time is counted in halves of a period. By the end of the first half all members were told of
//! the period, and clients have had their passes renewed. A packet that has not arrived by the end
//! of the half after the one in which it was sealed never does. For a request that is the whole way
//! to the node, or to the switch and back with a cookie. In truth all of this takes seconds, and a
//! period minutes.
//!
//! # What is merged, and why nothing is lost by it
//!
//! - Tags are right or not by the periods of their keys. That nobody makes tags without keys is
//!   what SipHash is for.
//! - What was recorded may be sent again at any time. Instead of a step for each it is looked, in
//!   every state, whether it would be let through. Of packets of one period the first is taken, and
//!   of all ways the first hop.
//! - A takeover changes nothing by the rules, for the next leader has the same clock.
//!
//! # What is not in it
//!
//! Who may send what from where, rights, what a cookie proves: the simulator's hostile worlds try
//! all of these. Clients that do not ask for longer than a period begin anew with a cookie.

mod rules;
mod scope;
mod state;

pub use rules::Action;
pub use scope::{Bug, Rules, Scope};
pub use state::{Client, Datagram, Harm, Hop, World};
