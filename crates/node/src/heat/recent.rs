//! Who is asked for often among the last few requests: a circular log of them and a count for each
//! key in it (SwitchKV section 3.2.2, figure 6).

use super::named::Named;
use cluster::KeyspaceId;
use machine::Instant;
use std::time::Duration;

/// The last requests of a stream, of which there are always as many, and the keys that they were
/// for.
#[derive(Debug)]
pub struct Recent {
    /// The oldest is at `next`, where the next request goes.
    log: Vec<Logged>,
    next: usize,
    named: Named,
    /// By place.
    keys: Vec<Key>,
    /// Places that nobody has.
    free: Vec<usize>,
}

/// A request.
#[derive(Clone, Copy, Debug)]
struct Logged {
    at: Instant,
    /// That of its key in `keys`; `None` if nobody has asked yet.
    place: Option<usize>,
}

/// A key of which a request is in the log.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    count: u32,
    noted: Option<Instant>,
}

/// What the log says of a key with a request for it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// How often it is in the log.
    pub count: u32,
    /// How much time the log covers.
    pub covers: Duration,
    /// Something that its user keeps of the key, for as long as it is in the log.
    pub noted: &'a mut Option<Instant>,
}

impl Recent {
    /// A log of so many requests, of which there were none yet.
    #[must_use]
    pub fn new(now: Instant, len: usize) -> Self {
        let none = Logged { at: now, place: None };
        Self {
            log: vec![none; len.max(1)],
            next: 0,
            named: Named::default(),
            keys: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a request in the place of the oldest. Takes the same time however long the log is, and
    /// allocates nothing once each place has been given to a key as long.
    pub fn see(
        &mut self,
        now: Instant,
        keyspace: KeyspaceId,
        keyhash: u64,
        key: &[u8],
    ) -> Seen<'_> {
        let oldest = self.log.get(self.next).copied().expect("it lies within the log");
        if let Some(place) = oldest.place {
            self.forget(place);
        }
        let place = self.place(keyspace, keyhash, key);
        if let Some(logged) = self.log.get_mut(self.next) {
            *logged = Logged { at: now, place: Some(place) };
        }
        self.next = (self.next + 1) % self.log.len();
        let it = self.keys.get_mut(place).expect("it was found, or made");
        it.count += 1;
        Seen { count: it.count, covers: now.since(oldest.at), noted: &mut it.noted }
    }

    /// A request for this key leaves the log, and perhaps the key with it.
    fn forget(&mut self, place: usize) {
        let Some(it) = self.keys.get_mut(place) else { return };
        it.count -= 1;
        if it.count == 0 {
            self.named.take(place);
            self.free.push(place);
        }
    }

    /// The place of a key, which it is given if it has none.
    fn place(&mut self, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) -> usize {
        let known = self.named.find(keyspace, keyhash, key);
        known.unwrap_or_else(|| {
            let place = self.free.pop().unwrap_or(self.keys.len());
            self.named.give(place, keyspace, keyhash, key);
            if self.keys.len() == place {
                self.keys.push(Key::default());
            }
            if let Some(it) = self.keys.get_mut(place) {
                *it = Key::default();
            }
            place
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACE: KeyspaceId = KeyspaceId(1);

    proptest! {
        #[test]
        fn counts_and_time_are_those_of_the_last_requests(
            stream in proptest::collection::vec((0u16..60, 0u64..5), 0..1_000), len in 1usize..50,
        ) {
            let start = Instant(1_000);
            let (mut now, mut recent) = (start, Recent::new(start, len));
            let mut all: Vec<(u16, Instant)> = Vec::new();
            for (key, passed) in stream {
                now = Instant(now.0 + passed);
                let oldest = all.len().checked_sub(len).map_or(start, |at| all[at].1);
                all.push((key, now));
                let last = &all[all.len().saturating_sub(len)..];
                let exact = last.iter().filter(|(other, _)| *other == key).count();
                // Few hashes, so that keys of one hash meet.
                let seen = recent.see(now, SPACE, u64::from(key % 8), &key.to_be_bytes());
                prop_assert_eq!(seen.count as usize, exact);
                prop_assert_eq!(seen.covers, now.since(oldest));
                // What was noted stays as long as the key is in the log, and no longer.
                let before = seen.noted.replace(now);
                prop_assert_eq!(before.is_some(), exact > 1);
                prop_assert!(recent.keys.len() <= len, "there is a place for each request");
                prop_assert_eq!(recent.named.len() + recent.free.len(), recent.keys.len());
            }
        }
    }
}
