//! What callers of the faces may choose.

use crate::{ClientConfig, Expiry};
use envelope::{Passes, Seat};
use std::io;
use std::ops::Bound;
use std::time::Duration;
use wire::Endpoint;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a request may wait for an answer before its outcome is unknown. A scan or a
    /// request for many keys counts from its last progress.
    pub deadline: Duration,
    /// Requests on their way at once, at most [`IN_FLIGHT_MAX`](crate::IN_FLIGHT_MAX). Callers
    /// beyond wait.
    pub in_flight_max: usize,
    /// Bytes that the result of one scan or multiget may take: a larger scan is refused, and so
    /// are the keys of a multiget whose values are too many.
    pub result_bytes_max: usize,
    /// Bytes that a value may have that is written, at most `wire::VALUE_MAX`.
    pub value_bytes_max: u64,
    /// What makes this process a client where the network is not to be trusted; elsewhere none.
    pub passes: Option<Passes>,
}

impl Options {
    /// A place for one more client, if the process has a pass.
    pub(crate) fn seat(&self) -> io::Result<Option<Seat>> {
        let Some(passes) = &self.passes else { return Ok(None) };
        let none_left = || {
            let what =
                "the pass of this process has had as many clients as it can: ask for another";
            io::Error::new(io::ErrorKind::QuotaExceeded, what)
        };
        passes.seat().map(Some).ok_or_else(none_left)
    }
}

impl Default for Options {
    fn default() -> Self {
        let ClientConfig { deadline, in_flight_max, result_bytes_max, .. } =
            ClientConfig::new(Endpoint::default(), 1);
        let value_bytes_max = wire::VALUE_MAX as u64;
        Self { deadline, in_flight_max, result_bytes_max, value_bytes_max, passes: None }
    }
}

/// How to write a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    /// When it goes away by itself.
    pub expiry: Expiry,
}

/// What to scan; by default everything, forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanOptions {
    /// Bound from below.
    pub start: Bound<Vec<u8>>,
    /// Bound from above.
    pub end: Bound<Vec<u8>>,
    /// From the end to the start.
    pub reverse: bool,
    /// Most entries wanted.
    pub limit: Option<usize>,
    /// Leave the values out: they come back empty.
    pub keys_only: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        let (start, end) = (Bound::Unbounded, Bound::Unbounded);
        Self { start, end, reverse: false, limit: None, keys_only: false }
    }
}
