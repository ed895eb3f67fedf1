//! The end of a write's payload that says since when its client is known, with the flag SINCE.

use crate::layout::{Fields, HEADER_LEN, Op, SinceBody, flag};

/// What a write says of when it was first sent, if it does.
#[must_use]
pub fn since_of(header: &[u8; HEADER_LEN], payload: &[u8]) -> Option<SinceBody> {
    let says = header.flags() & flag::SINCE != 0;
    let is_write = Op::from_wire(header.op()).is_some_and(Op::is_write);
    split_since(payload).filter(|_| says && is_write).map(|(_, since)| since)
}

/// The rest of a payload that ends with `since`, and that.
fn split_since(payload: &[u8]) -> Option<(&[u8], SinceBody)> {
    let (rest, last) = payload.split_at_checked(payload.len().checked_sub(SinceBody::LEN)?)?;
    SinceBody::split(last).map(|(since, _)| (rest, since))
}

/// The payload of a request without that; `None` if it should be there and is not.
pub(crate) fn without_since<'a>(
    op: Op,
    header: &[u8; HEADER_LEN],
    payload: &'a [u8],
) -> Option<&'a [u8]> {
    let says = op.is_write() && header.flags() & flag::SINCE != 0;
    if says { split_since(payload).map(|(rest, _)| rest) } else { Some(payload) }
}
