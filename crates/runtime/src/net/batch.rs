//! What receiving and sending a batch have in common: the memory, allocated once.

use super::{BATCH_MAX, BUFFER_SIZE, Family};
use nix::sys::socket::{MultiHeaders, SockaddrIn, SockaddrIn6};

/// A place for each datagram of a batch.
pub(super) type Buffers = [[u8; BUFFER_SIZE]; BATCH_MAX];

/// What the kernel is told about each of them; it depends on the kind of address.
#[derive(Debug)]
pub(super) enum Headers {
    V4(MultiHeaders<SockaddrIn>),
    V6(MultiHeaders<SockaddrIn6>),
}

impl Headers {
    pub(super) fn new(family: Family) -> Self {
        match family {
            Family::V4 => Self::V4(MultiHeaders::preallocate(BATCH_MAX, None)),
            Family::V6 => Self::V6(MultiHeaders::preallocate(BATCH_MAX, None)),
        }
    }
}

/// Empty buffers, made where they stay: they are too large for a stack.
pub(super) fn buffers() -> Box<Buffers> {
    let buffers = vec![[0; BUFFER_SIZE]; BATCH_MAX].into_boxed_slice();
    buffers.try_into().expect("as many buffers as a batch has places")
}
