//! Reads that have been begun and not sent: who wants to read one of their keys meanwhile needs no
//! request of its own. What it is told was true after both were begun, for nothing has been read
//! before it is sent.

use crate::Ticket;
use cluster::Keyspace;
use hashbrown::HashTable;
use std::ops::Range;
use std::sync::Arc;

/// The reads of one keyspace that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    keyspace: Option<Arc<Keyspace>>,
    reads: HashTable<Read>,
    /// Their keys, one after the other.
    keys: Vec<u8>,
}

#[derive(Debug)]
struct Read {
    keyhash: u64,
    key: Range<usize>,
    ticket: Ticket,
}

/// Reads that are remembered at most; those beyond are sent for themselves.
const READS_MAX: usize = 1024;

impl Unsent {
    /// The read of a key that waits to be sent, if there is one.
    pub(crate) fn find(&self, keyspace: &Arc<Keyspace>, key: &[u8]) -> Option<Ticket> {
        let same = self.keyspace.as_ref().is_some_and(|it| Arc::ptr_eq(it, keyspace));
        if self.reads.is_empty() || !same {
            return None;
        }
        let is_it = |read: &Read| self.keys.get(read.key.clone()) == Some(key);
        self.reads.find(keyspace.keyhash(key), is_it).map(|read| read.ticket)
    }

    /// A read was begun that none of those before could spare.
    pub(crate) fn note(&mut self, keyspace: &Arc<Keyspace>, key: &[u8], ticket: Ticket) {
        if !self.keyspace.as_ref().is_some_and(|it| Arc::ptr_eq(it, keyspace)) {
            self.clear();
            self.keyspace = Some(Arc::clone(keyspace));
        }
        if self.reads.len() == READS_MAX {
            return;
        }
        let keyhash = keyspace.keyhash(key);
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        let read = Read { keyhash, key: start..self.keys.len(), ticket };
        self.reads.insert_unique(keyhash, read, |read| read.keyhash);
    }

    /// Everything is sent now.
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        self.keys.clear();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cluster::{HotPolicy, KeyspaceId, KeyspaceKind};

    /// One whose requests are only begun.
    pub(crate) fn keyspace(id: u16) -> Arc<Keyspace> {
        Arc::new(Keyspace {
            id: KeyspaceId(id),
            name: "users".into(),
            kind: KeyspaceKind::Hash,
            seed: 7,
            replicas: 1,
            hot: HotPolicy::default(),
            content: None,
        })
    }

    #[test]
    fn reads_are_found_by_key_until_they_are_sent() {
        let (mut unsent, users, others) = (Unsent::default(), keyspace(1), keyspace(2));
        assert_eq!(unsent.find(&users, b"a"), None);
        unsent.note(&users, b"a", Ticket(1));
        unsent.note(&users, b"b", Ticket(2));
        assert_eq!(unsent.find(&users, b"a"), Some(Ticket(1)));
        assert_eq!(unsent.find(&users, b"b"), Some(Ticket(2)));
        assert_eq!(unsent.find(&users, b"ab"), None);
        assert_eq!(unsent.find(&others, b"a"), None, "it is the key of another keyspace");
        unsent.clear();
        assert_eq!(unsent.find(&users, b"a"), None);
        (0..2 * READS_MAX as u64).for_each(|n| unsent.note(&users, &n.to_be_bytes(), Ticket(n)));
        assert_eq!(unsent.reads.len(), READS_MAX);
        unsent.note(&others, b"a", Ticket(9));
        assert_eq!((unsent.find(&users, &[0; 8]), unsent.reads.len()), (None, 1));
    }
}
