//! The Keyway client.
//!
//! [`Client`] is a machine without socket, clock or thread: it numbers requests, sends them again
//! until they are answered, puts multigets and scans together from the many replies they get, and
//! says of every request how it ended.

mod answer;
mod config;
mod counters;
mod encode;
mod interval;
mod machine;
mod multiget;
mod outcome;
mod pace;
mod replies;
mod request;
mod scan;
mod window;

pub use crate::config::{ClientConfig, IN_FLIGHT_MAX, MULTIGET_KEYS_MAX, RetransmitBounds};
pub use crate::counters::Counters;
pub use crate::machine::Client;
pub use crate::outcome::{
    CasReply, DelReply, IncrReply, NotDone, Outcome, Refusal, Reply, Ticket, UnknownReason, Value,
};
pub use crate::request::{Expect, Expiry, Request, StartError};
