//! What is held for commands, and for how long.

use bytes::{Bytes, BytesMut};

/// Bytes of the arguments of commands under way beyond which none is started. One may be longer.
pub(super) const UNDER_WAY_BYTES_MAX: usize = 16 << 20;

/// What arguments hold on to, about: their bytes, and what each of them is kept in.
pub(super) fn held_by(args: &[Bytes]) -> usize {
    args.iter().map(Bytes::len).sum::<usize>() + size_of_val(args)
}

/// Bytes of an empty buffer that are kept for the next use. Above it, they are given back.
const KEPT_MAX: usize = 512;

/// Gives the memory of an empty buffer back if it is much.
pub(super) fn give_back(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > KEPT_MAX {
        *buffer = BytesMut::new();
    }
}
