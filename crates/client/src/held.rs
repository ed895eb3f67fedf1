//! PUTs of one key that come together: while one is under way, those that come are held, and when
//! it has ended the last of them is sent and answers for all. The others take effect just before
//! it: all of them were begun before it was sent, none is answered before it, and what they wrote
//! nobody could have read. A key that is written all the time so costs the cluster one PUT at a
//! time of each client.
//!
//! Whoever is told the version of a PUT that another one answered for is told that one's. So this
//! is for those who do not compare with it.

use crate::mailbox::Mailbox;
use crate::{Expiry, Ticket};
use cluster::Keyspace;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::sync::Arc;

/// The request of one who has many, by its number.
pub(crate) type NumberedWaiter = (Arc<Mailbox>, u64);

/// PUTs that are under way, one of a key, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct Held(HashTable<UnderWay>);

/// A PUT that is under way.
#[derive(Debug)]
struct UnderWay {
    place: HeldKey,
    ticket: Ticket,
    next: Option<NextPut>,
}

/// A key.
#[derive(Clone, Debug)]
pub(crate) struct HeldKey {
    pub(crate) keyspace: Arc<Keyspace>,
    pub(crate) keyhash: u64,
    pub(crate) key: Box<[u8]>,
}

/// A PUT that is to be sent, and those for which it answers.
#[derive(Debug)]
pub(crate) struct NextPut {
    pub(crate) value: Vec<u8>,
    pub(crate) expiry: Expiry,
    pub(crate) waiters: Vec<NumberedWaiter>,
}

impl Held {
    /// Holds a PUT, if one of its key is under way.
    pub(crate) fn hold(
        &mut self,
        keyspace: &Arc<Keyspace>,
        key: &[u8],
        (value, expiry): (&[u8], Expiry),
        waiter: &NumberedWaiter,
    ) -> bool {
        // What it leaves would depend on the one for which it answers.
        if self.0.is_empty() || expiry == Expiry::Keep {
            return false;
        }
        let is_it = |it: &UnderWay| it.place.is(keyspace, key);
        let Some(it) = self.0.find_mut(keyspace.keyhash(key), is_it) else { return false };
        let none = || NextPut { value: Vec::new(), expiry, waiters: Vec::new() };
        let next = it.next.get_or_insert_with(none);
        next.value.clear();
        next.value.extend_from_slice(value);
        next.expiry = expiry;
        next.waiters.push(waiter.clone());
        true
    }

    /// A PUT of a key is under way: those that come are held from now on. Returns where to find it.
    pub(crate) fn note(&mut self, keyspace: &Arc<Keyspace>, key: &[u8], ticket: Ticket) -> u64 {
        let keyhash = keyspace.keyhash(key);
        let is_it = |it: &UnderWay| it.place.is(keyspace, key);
        // One that keeps the expiry was not held.
        if let Entry::Vacant(entry) = self.0.entry(keyhash, is_it, |it| it.place.keyhash) {
            let place = HeldKey { keyspace: Arc::clone(keyspace), keyhash, key: key.into() };
            entry.insert(UnderWay { place, ticket, next: None });
        }
        keyhash
    }

    /// A PUT has ended. Whether others wait for it: the one that is to be sent, and its key.
    pub(crate) fn end(&mut self, keyhash: u64, ticket: Ticket) -> Option<(HeldKey, NextPut)> {
        let found = self.0.find_entry(keyhash, |it| it.ticket == ticket).ok()?;
        let (UnderWay { place, next, .. }, _) = found.remove();
        next.map(|next| (place, next))
    }

    /// All that wait.
    pub(crate) fn into_waiters(self) -> impl Iterator<Item = NumberedWaiter> {
        self.0.into_iter().filter_map(|it| it.next).flat_map(|next| next.waiters)
    }
}

impl HeldKey {
    fn is(&self, keyspace: &Arc<Keyspace>, key: &[u8]) -> bool {
        *self.key == *key && Arc::ptr_eq(&self.keyspace, keyspace)
    }
}
