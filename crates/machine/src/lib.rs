//! What Keyway's sans-IO machines (switch, node, client, controller) have in common: time,
//! datagrams on their way out, seeded randomness and retransmission timers; how loads of keys are
//! reckoned; and the slow server that drivers put before a node when its rate is limited.
//!
//! The contract of every machine:
//!
//! 1. `handle_*` takes the present as its first argument and only changes state.
//! 2. After each `handle_*` or command the driver drains every `poll_*` until it says `None`, then
//!    waits for a datagram or for the instant that `poll_timeout` named.
//! 3. `now` never goes backwards.
//! 4. The same calls in the same order give the same outputs, bit for bit: no clock, no socket, no
//!    thread, no randomness but a [`Rng`] handed in, no iteration in the order of a random hash.

mod load;
mod outbox;
mod retransmissions;
mod rng;
mod rtt;
mod service;
mod time;

pub use load::{LoadMetric, per_second};
pub use outbox::{Datagram, Outbox};
pub use retransmissions::Retransmissions;
pub use rng::{Rng, mix};
pub use rtt::RttEstimator;
pub use service::{Full, Served, Service, Work};
pub use time::{Instant, UnixMs};
