//! The table of grants (section 9 of `spec/protocol.md`): what each request was given under a
//! delegation, so that its copies are given the same, and nobody else knows whether it had
//! anything.
//!
//! All pipelines of a switch share it. It outlives orders, and also what the directory knows: that
//! a request has no grant is worth something only as long as none was lost in this incarnation.

use machine::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::{CHAIN_MAX, DelegationId, Version};

/// Grants that are kept, over all clients: 64 MiB of them. A write that finds no room goes home
/// with the word that it did.
const GRANTS_MAX: usize = 1 << 20;

/// Clients that are remembered: more than write the hot keys of one rack, and with a few grants
/// each they take no more memory than the grants.
const CLIENTS_MAX: usize = 1 << 16;

/// Clients that have said goodbye and are remembered as such, beside the others: 64 bytes each.
/// When there are so many, the next ones stay what they were.
const ENDED_MAX: usize = 1 << 18;

/// For how long a silent client is remembered: as long as nodes keep its sessions, so longer than
/// any copy of a request is on its way.
const IDLE_MAX: Duration = Duration::from_secs(wire::SESSION_IDLE_SECS as u64);

/// How often silent clients are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Parts with a lock each: many more than threads, so that two seldom meet.
const PARTS: usize = 64;

/// What a request was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Number of the delegation.
    pub(crate) delegation: DelegationId,
    /// Its version in that.
    pub(crate) version: Version,
    /// The nodes that keep it, as the header holds them.
    pub(crate) chain: [u8; 2 * CHAIN_MAX],
    /// How many those are.
    pub(crate) chain_len: u8,
}

/// Which request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) client: u64,
    pub(crate) seq: u64,
}

/// What the table says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// It has ended: its client has said that all have up to there.
    Stale,
    /// It has this grant.
    Granted(Grant),
    /// It has none.
    New,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Grants {
    parts: [Mutex<Part>; PARTS],
    /// Grants in all parts.
    grants: AtomicUsize,
    /// Clients in all parts.
    clients: AtomicUsize,
    /// How many those may be.
    clients_max: usize,
    /// Ended clients in all parts.
    ended: AtomicUsize,
    /// When silent clients were looked for last, in nanoseconds.
    swept: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    clients: BTreeMap<u64, Client>,
    /// When clients said goodbye: all their requests have ended.
    ended: BTreeMap<u64, Instant>,
}

/// What is known of one client.
#[derive(Debug)]
struct Client {
    /// All requests below have ended.
    low: u64,
    heard: Instant,
    /// Of requests at or above `low`, by number.
    grants: VecDeque<(u64, Grant)>,
}

impl Default for Grants {
    fn default() -> Self {
        Self::remembering(CLIENTS_MAX)
    }
}

impl Grants {
    /// One that remembers so many clients.
    pub(crate) fn remembering(clients_max: usize) -> Self {
        let count = || AtomicUsize::new(0);
        let parts = std::array::from_fn(|_| Mutex::default());
        let swept = AtomicU64::new(0);
        let (grants, clients, ended) = (count(), count(), count());
        Self { parts, grants, clients, clients_max, ended, swept }
    }

    /// Whether anything is remembered of any client: if not, nothing need be looked for. Must be
    /// asked after the switch's clock was read.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.clients.load(Ordering::SeqCst) != 0 || self.ended.load(Ordering::SeqCst) != 0
    }

    /// Takes note of a request that passes, with its client's low-water mark, and says what it was
    /// given.
    pub(crate) fn meet(&self, now: Instant, who: Who, low: u64) -> Met {
        let mut part = self.part(who.client);
        if part.ended.contains_key(&who.client) {
            return Met::Stale;
        }
        let Some(client) = part.clients.get_mut(&who.client) else { return Met::New };
        let ended = client.hear(now, low);
        self.grants.fetch_sub(ended, Ordering::Relaxed);
        if who.seq < client.low {
            return Met::Stale;
        }
        client.find(who.seq).map_or(Met::New, |place| {
            client.grants.get(place).map_or(Met::New, |(_, grant)| Met::Granted(*grant))
        })
    }

    /// Whether a request of this client that has no grant could be given one.
    pub(crate) fn has_room(&self, client: u64) -> bool {
        self.grants.load(Ordering::Relaxed) < GRANTS_MAX
            && (self.clients.load(Ordering::Relaxed) < self.clients_max
                || self.part(client).clients.contains_key(&client))
    }

    /// The grant of a request that has not ended.
    pub(crate) fn of(&self, client: u64, seq: u64) -> Option<Grant> {
        let part = self.part(client);
        let client = part.clients.get(&client)?;
        client.grants.get(client.find(seq)?).map(|(_, grant)| *grant)
    }

    /// The grant of a request, which is made if it has none yet; if it has one that it may not keep
    /// by `outdated`, it is made anew. `None` if none can be made, there is no room, or the request
    /// has ended.
    pub(crate) fn note(
        &self,
        now: Instant,
        who: Who,
        outdated: impl FnOnce(&Grant) -> bool,
        make: impl FnOnce() -> Option<Grant>,
    ) -> Option<Grant> {
        let mut part = self.part(who.client);
        if part.ended.contains_key(&who.client) {
            return None;
        }
        let is_new = !part.clients.contains_key(&who.client);
        if is_new && self.clients.load(Ordering::Relaxed) >= self.clients_max {
            return None;
        }
        if let Some(client) = part.clients.get_mut(&who.client) {
            if who.seq < client.low {
                return None;
            }
            let place = client.find(who.seq);
            if let Some((_, grant)) = place.and_then(|place| client.grants.get_mut(place)) {
                if outdated(grant) {
                    *grant = make()?;
                }
                return Some(*grant);
            }
        }
        if self.grants.load(Ordering::Relaxed) >= GRANTS_MAX {
            return None;
        }
        let grant = make()?;
        if is_new {
            // Before whoever gave the grant looks whether its order is still the present one.
            self.clients.fetch_add(1, Ordering::SeqCst);
        }
        self.grants.fetch_add(1, Ordering::Relaxed);
        let client = part.clients.entry(who.client).or_insert_with(|| Client::new(now));
        client.insert(who.seq, grant);
        Some(grant)
    }

    /// A client says goodbye: all its requests have ended. Its grants go, and it takes no room from
    /// others any more.
    pub(crate) fn end(&self, now: Instant, client: u64) {
        let mut part = self.part(client);
        if !part.clients.contains_key(&client) || self.ended.load(Ordering::Relaxed) >= ENDED_MAX {
            return;
        }
        // Something is remembered all the time.
        self.ended.fetch_add(1, Ordering::SeqCst);
        part.ended.insert(client, now);
        if let Some(gone) = part.clients.remove(&client) {
            self.count_out(&gone);
        }
    }

    /// Forgets a client altogether: a bug.
    pub(crate) fn forget(&self, client: u64) {
        let gone = self.part(client).clients.remove(&client);
        gone.iter().for_each(|gone| self.count_out(gone));
    }

    /// A client that is known, if there is one other than this.
    pub(crate) fn other_than(&self, client: u64) -> Option<u64> {
        self.parts
            .iter()
            .find_map(|part| lock(part).clients.keys().copied().find(|other| *other != client))
    }

    fn count_out(&self, gone: &Client) {
        self.grants.fetch_sub(gone.grants.len(), Ordering::Relaxed);
        self.clients.fetch_sub(1, Ordering::SeqCst);
    }

    /// Forgets clients that have been silent for [`IDLE_MAX`]. To be called now and then.
    pub(crate) fn sweep(&self, now: Instant) {
        let last = self.swept.load(Ordering::Relaxed);
        if !self.any() || now.since(Instant(last)) < SWEEP_EVERY {
            return;
        }
        if self.swept.compare_exchange(last, now.0, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        for part in &self.parts {
            let mut part = lock(part);
            part.clients.retain(|_, client| {
                let stays = now.since(client.heard) < IDLE_MAX;
                if !stays {
                    self.count_out(client);
                }
                stays
            });
            let before = part.ended.len();
            part.ended.retain(|_, at| now.since(*at) < IDLE_MAX);
            self.ended.fetch_sub(before - part.ended.len(), Ordering::SeqCst);
        }
    }

    /// Forgets a client for one that has no room, whatever that one had: a bug.
    pub(crate) fn evict(&self, for_client: u64) {
        if self.has_room(for_client) {
            return;
        }
        let gone = self.parts.iter().find_map(|part| lock(part).clients.pop_first());
        gone.iter().for_each(|(_, gone)| self.count_out(gone));
    }

    fn part(&self, client: u64) -> MutexGuard<'_, Part> {
        let place = usize::try_from(machine::mix(client) % PARTS as u64);
        let part = place.ok().and_then(|place| self.parts.get(place));
        lock(part.expect("the remainder is below their number"))
    }
}

/// Whoever panicked with the lock left whole entries behind.
fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    fn new(now: Instant) -> Self {
        Self { low: 0, heard: now, grants: VecDeque::new() }
    }

    /// It is there, and says that all below have ended: how many grants go.
    fn hear(&mut self, now: Instant, low: u64) -> usize {
        self.heard = self.heard.max(now);
        self.low = self.low.max(low);
        let ended = self.grants.partition_point(|(seq, _)| *seq < self.low);
        self.grants.drain(..ended);
        ended
    }

    fn find(&self, seq: u64) -> Option<usize> {
        self.grants.binary_search_by_key(&seq, |(seq, _)| *seq).ok()
    }

    /// Requests come nearly in the order of their numbers, so little has to move.
    fn insert(&mut self, seq: u64, grant: Grant) {
        let place = self.grants.partition_point(|(other, _)| *other < seq);
        self.grants.insert(place, (seq, grant));
    }
}

#[cfg(test)]
mod tests;
