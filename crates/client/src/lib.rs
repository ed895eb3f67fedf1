//! The Keyway client: typed requests to a cluster behind one service address, or a few.
//!
//! Every request ends in one of three ways, and the types keep them apart: *done* (it took place,
//! exactly once), *refused* (it had no effect and never will) or *unknown* (nobody answered before
//! the deadline: a write may have taken place). See [`Outcome`].
//!
//! There are two faces with the same surface. Blocking:
//!
//! ```no_run
//! use client::blocking::Client;
//! use client::{Options, PutOptions, ScanOptions};
//! use std::net::SocketAddr;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let service: SocketAddr = "127.0.0.1:7700".parse()?;
//! let client = Client::connect(service, Options::default())?;
//! let users = client.keyspace("users")?;
//! let version = users.put(b"user:7", b"Ada", PutOptions::default()).into_result()?;
//! let found = users.get(b"user:7").into_result()?;
//! assert_eq!(found.map(|it| (it.value, it.version)), Some((b"Ada".to_vec(), version)));
//! let first_ten = ScanOptions { limit: Some(10), ..ScanOptions::default() };
//! for (key, value) in users.scan(first_ten).into_result()? {
//!     println!("{} = {}", key.escape_ascii(), value.value.escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! And async, on tokio, of a cluster with two switches:
//!
//! ```no_run
//! use client::asynchronous::Client;
//! use client::{IncrReply, Options, Outcome};
//! use std::net::SocketAddr;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let switches: [SocketAddr; 2] = ["10.0.0.1:7700".parse()?, "10.0.0.2:7700".parse()?];
//! let client = Client::connect(&switches[..], Options::default()).await?;
//! let counters = client.keyspace("counters").await?;
//! match counters.incr(b"visits", 1).await {
//!     Outcome::Done(IncrReply::Sum { sum, .. }) => println!("visit number {sum}"),
//!     Outcome::Done(other) => println!("not counted: {other:?}"),
//!     Outcome::Refused(why) => println!("not counted: {why}"),
//!     Outcome::Unknown(why) => println!("perhaps counted: {why}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Below both is [`Client`], a machine without socket, clock or thread: it numbers requests, sends
//! them again until they are answered, and puts scans and requests for many keys together from the
//! replies they get. Whoever has an event loop of their own drives it directly.

mod answer;
pub mod asynchronous;
mod big;
pub mod blocking;
mod channel;
mod clock;
mod config;
mod coordination;
mod coordinator;
mod counters;
mod encode;
mod face;
mod goodbye;
mod held;
mod homes;
mod interval;
mod machine;
mod mailbox;
mod many;
mod options;
mod outcome;
mod owned;
mod pace;
mod page;
mod port;
mod present;
mod replies;
mod request;
mod scan;
mod service;
mod tickets;
mod transmit;
mod unsent;
mod window;

pub use crate::channel::Channel;
pub use crate::config::{ClientConfig, IN_FLIGHT_MAX, MANY_KEYS_MAX, RetransmitBounds};
pub use crate::coordination::{Coordination, Routes};
pub use crate::coordinator::Coordinator;
pub use crate::counters::Counters;
pub use crate::encode::span_of;
pub use crate::face::LookupError;
pub use crate::machine::Client;
pub use crate::options::{Options, PutOptions, ScanOptions};
pub use crate::outcome::{
    BatchReply, CasReply, DelReply, IncrReply, KeyCount, NotDone, Outcome, Refusal, Reply,
    StoreWords, Ticket, UnknownReason, Value,
};
pub use crate::page::{Page, PageStart};
pub use crate::request::{Change, Condition, Expect, Expiry, New, Request, StartError, Step};
pub use crate::service::{SERVICES_MAX, Services};
pub use crate::tickets::Tickets;
pub use wire::Version;
