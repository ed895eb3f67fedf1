//! Short ways to write a history down.

use machine::Instant;
use sim::check::{Op, OpKind};
use wire::Version;

/// An operation of client 0 between two milliseconds, `None` for never answered.
pub(crate) fn op(called: u64, returned: impl Into<Option<u64>>, kind: OpKind) -> Op {
    let ms = Instant::from_unix_ms;
    Op {
        client: 0,
        called: ms(called),
        returned: returned.into().map(ms),
        kind,
        version: Version::NONE,
    }
}

/// The same at a version.
pub(crate) fn at(version: u64, op: Op) -> Op {
    Op { version: Version::new(version), ..op }
}

pub(crate) fn put(value: i64) -> OpKind {
    OpKind::Put { value, expiry_ms: 0 }
}

pub(crate) fn until(value: i64, expiry_ms: u64) -> OpKind {
    OpKind::Put { value, expiry_ms }
}

pub(crate) fn read(value: impl Into<Option<i64>>) -> OpKind {
    OpKind::Read(value.into())
}

pub(crate) fn del(existed: impl Into<Option<bool>>) -> OpKind {
    OpKind::Del { existed: existed.into() }
}

pub(crate) fn cas(
    expect: impl Into<Option<i64>>,
    value: impl Into<Option<i64>>,
    written: impl Into<Option<bool>>,
) -> OpKind {
    let (expect, value, written) = (expect.into(), value.into(), written.into());
    OpKind::Cas { expect, at: None, value, expiry_ms: 0, written }
}

pub(crate) fn incr(delta: i64, sum: impl Into<Option<i64>>) -> OpKind {
    OpKind::Incr { delta, sum: sum.into() }
}
