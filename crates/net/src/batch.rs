//! What the kernel is told about the messages of one system call.

use super::Family;
use nix::sys::socket::{MultiHeaders, SockaddrIn, SockaddrIn6};

/// A place for each message; what it is depends on the kind of address.
#[derive(Debug)]
pub(super) enum Headers {
    V4(MultiHeaders<SockaddrIn>),
    V6(MultiHeaders<SockaddrIn6>),
}

impl Headers {
    /// For so many messages, each with room for this control message, if any.
    pub(super) fn new(family: Family, messages: usize, control: Option<Vec<u8>>) -> Self {
        match family {
            Family::V4 => Self::V4(MultiHeaders::preallocate(messages, control)),
            Family::V6 => Self::V6(MultiHeaders::preallocate(messages, control)),
        }
    }
}
