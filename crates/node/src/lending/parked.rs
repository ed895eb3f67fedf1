//! Requests that would show a key which is held back: they wait, and are served when its cache has
//! answered.

use machine::Instant;
use std::time::Duration;
use wire::Endpoint;

/// The requests of a shard that wait.
#[derive(Debug, Default)]
pub(crate) struct Parked(Vec<Request>);

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) from: Endpoint,
    pub(crate) load: u16,
    pub(crate) datagram: Box<[u8]>,
    deadline: Instant,
}

impl Parked {
    /// Keeps a request, if there is room. What has waited in vain goes: its client has asked again.
    pub(crate) fn push(&mut self, now: Instant, from: Endpoint, load: u16, bytes: &[u8]) -> bool {
        if self.0.len() >= PARKED_MAX {
            self.0.retain(|it| now < it.deadline);
        }
        let has_room = self.0.len() < PARKED_MAX;
        if has_room {
            let deadline = now + WAITS_MAX;
            self.0.push(Request { from, load, datagram: bytes.into(), deadline });
        }
        has_room
    }

    /// Takes all of them, in the order in which they came.
    pub(crate) fn take(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.0)
    }
}

/// Requests that wait in a shard.
const PARKED_MAX: usize = 512;

/// Clients ask again sooner.
const WAITS_MAX: Duration = Duration::from_millis(50);
