//! Envelopes: on a network that is not to be trusted, each packet has [`ENVELOPE_LEN`] bytes before
//! it that say who sent the datagram, and who wrote the packet (`spec/protocol.md`, section 14).
//!
//! No machine knows of them. [`MemberEnvelopes`] stand between the socket and the machine of a
//! switch, node or cache, [`ClientEnvelopes`] between those of a client: what comes is opened or
//! refused, what goes is sealed. All keys follow from a [`Secret`] that the controllers have, and
//! members keep nothing of clients, however many there are.
//!
//! Tags are SipHash (Aumasson and Bernstein, INDOCRYPT 2012), a keyed hash made for short messages.
//! The end tag, which goes from author to reader, is SipHash-2-4. The edge tag, which goes one hop
//! and is checked by programs in the kernel, is SipHash-1-3. Keys are used for some minutes.

mod client;
mod counts;
mod keys;
mod member;
mod pass;
mod rights;
mod tags;

pub use client::{ClientEnvelopes, ClientOpened};
pub use counts::Counts;
pub use keys::{ClientKeys, EdgeKeys, Key, KeySet, Period, PeriodKeys, Secret, Secrets};
pub use member::{MemberEnvelopes, MemberRole, Refused, Ring, RingPorts};
pub use pass::{Pass, PassNumber, Passes, Seat};
pub use rights::{Allowed, Rights, RightsTable};
pub use tags::{CookieKey, edge_tag, end_tag, is_under_edge_alone};
pub use wire::ENVELOPE_MAGIC;

/// Bytes of an envelope.
pub const ENVELOPE_LEN: usize = wire::EnvelopeBody::LEN;
