//! What is handed on from a capture, and what is only counted.

use console::exit::Failure;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

/// A UDP datagram of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'a> {
    /// Which frame, or line, from 1.
    pub(crate) number: u64,
    /// When, since the Unix epoch, if that is known.
    pub(crate) at: Option<Duration>,
    /// From where to where, if that is known.
    pub(crate) ends: Option<(SocketAddr, SocketAddr)>,
    /// What it carries.
    pub(crate) bytes: &'a [u8],
    /// Whether the capture has only the beginning of it.
    pub(crate) cut: bool,
}

/// Why something in a capture is not shown: each with how often.
pub(crate) type Others = BTreeMap<&'static str, u64>;

/// Whoever takes packets.
pub(crate) trait Taker {
    /// Takes one. Says whether it is one of ours.
    fn take(&mut self, captured: Captured<'_>) -> Result<bool, Failure>;
    /// Nothing more is there for the moment: what was said is to be seen.
    fn pause(&mut self) -> Result<(), Failure>;
}

/// Datagrams that are none of Keyway's.
const STRANGER: &str = "UDP datagrams of others";

/// What reads a capture from its beginning to its end.
pub(super) struct Reading<'t> {
    pub(super) taker: &'t mut dyn Taker,
    pub(super) others: Others,
}

impl Reading<'_> {
    pub(super) fn take(&mut self, captured: Captured<'_>) -> Result<(), Failure> {
        if !self.taker.take(captured)? {
            self.other(STRANGER);
        }
        Ok(())
    }

    pub(super) fn other(&mut self, what: &'static str) {
        *self.others.entry(what).or_default() += 1;
    }
}

/// As many bytes as there are, at most this many.
pub(super) fn read_up_to(input: &mut dyn Read, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    input.take(most as u64).read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

pub(super) fn unread(error: io::Error) -> Failure {
    Failure::Other(anyhow::Error::new(error).context("cannot read standard input"))
}
