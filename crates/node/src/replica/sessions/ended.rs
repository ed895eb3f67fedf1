//! Clients that have said goodbye (section 4 of `spec/protocol.md`, *Goodbye*): of their sessions
//! no more is kept than that all of their requests have ended, which is a quarter of the room.

use machine::Instant;
use std::collections::{BTreeMap, VecDeque};
use wire::Version;

/// Those of one partition.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// The newest version of a write of each, or one above it; 0 if none is committed yet.
    newest: BTreeMap<u64, Version>,
    /// The same clients, in the order in which they said it.
    order: VecDeque<(Instant, u64)>,
}

impl Ended {
    pub(crate) fn holds(&self, client: u64) -> bool {
        self.newest.contains_key(&client)
    }

    /// Takes in that a client has ended, unless that is known; either way that it has a write of
    /// this version. Gives back the newest.
    pub(crate) fn note(&mut self, now: Instant, client: u64, version: Version) -> Version {
        let order = &mut self.order;
        let newest = self.newest.entry(client).or_insert_with(|| {
            order.push_back((now, client));
            version
        });
        *newest = version.max(*newest);
        *newest
    }

    /// Takes in those of a partition that this one is made of; gives back who they were.
    pub(crate) fn unite(&mut self, other: &Self) -> Vec<u64> {
        for (at, client) in &other.order {
            let newest = other.newest.get(client).copied().unwrap_or(Version::NONE);
            self.note(*at, *client, newest);
        }
        other.order.iter().map(|(_, client)| *client).collect()
    }

    /// Takes it that all of their writes are at most this new.
    pub(crate) fn are_up_to(&mut self, version: Version) {
        self.newest.values_mut().for_each(|newest| *newest = version.max(*newest));
    }

    /// Who said it first: when, who, and its newest version.
    pub(crate) fn first(&self) -> Option<(Instant, u64, Version)> {
        let (at, client) = *self.order.front()?;
        Some((at, client, self.newest.get(&client).copied().unwrap_or(Version::NONE)))
    }

    /// Forgets that one.
    pub(crate) fn remove_first(&mut self) {
        if let Some((_, client)) = self.order.pop_front() {
            self.newest.remove(&client);
        }
    }

    /// Those that come after this client, in order, and their newest versions.
    pub(crate) fn after(&self, client: u64) -> impl Iterator<Item = (u64, Version)> {
        let from = client.checked_add(1).map(|from| self.newest.range(from..));
        from.into_iter().flatten().map(|(client, newest)| (*client, *newest))
    }

    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }

    /// What they take in memory, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.newest.len() as u64 * ENDED_BYTES
    }
}

/// How many are remembered for each client that may have a session: at 48 bytes each they take as
/// much memory as the sessions, and it takes 65,536 of them within `SESSION_IDLE_SECS` until any is
/// forgotten before its time.
pub(crate) const ENDED_PER_SESSION_MAX: usize = 4;

/// 16 bytes in each of two orders, which are on average two thirds full.
const ENDED_BYTES: u64 = 48;
