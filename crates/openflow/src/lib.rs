//! The content table in a switch that speaks OpenFlow 1.3, as SwitchKV has it (section 3.3).
//!
//! ```text
//!  table 0   rules: one address each           ─┐ set the hardware address of the
//!            all else: go to table 1            ├ member, and send it there
//!  table 1   prefixes, the longer first        ─┘
//!            all else: as a switch without OpenFlow would
//! ```
//!
//! [`Channel`] is a machine: bytes in, bytes out, and what became of what the switch was asked for.
//! It knows the part of the protocol that this takes, in `message`, with `fields` for what flows
//! match and do; the names are those of the OpenFlow Switch Specification 1.3.5, whose sections are
//! given. No socket and no clock.

mod bytes;
mod channel;
mod fields;
mod flow;
mod message;
#[cfg(test)]
mod tests;

pub use channel::{Answer, Channel, ChannelError, Part, Stage};
pub use fields::Mac;
pub use flow::{Exit, Exits};
