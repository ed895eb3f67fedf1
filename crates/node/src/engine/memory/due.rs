//! The index of records that expire, the earliest first.

use super::block::allocated;
use crate::engine::KeyRef;
use cluster::{KeyspaceId, Match};
use wire::big::time_of;

/// A record with an expiry. Sorted by expiry first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) expiry_ms: u64,
    pub(super) keyspace: KeyspaceId,
    pub(super) key: Box<[u8]>,
}

/// Where it is.
pub(super) enum DuePlace {
    Hashed(Match, u64),
    Ordered(Match),
}

impl Due {
    pub(super) fn new(key: &KeyRef<'_>, expiry_ms: u64) -> Self {
        Self { expiry_ms: time_of(expiry_ms), keyspace: key.keyspace, key: key.key.into() }
    }
}

impl DuePlace {
    pub(super) fn of(key: &KeyRef<'_>) -> Self {
        if key.ordered {
            Self::Ordered(key.match_value)
        } else {
            Self::Hashed(key.match_value, key.keyhash)
        }
    }
}

/// What a record takes in it: a place in a tree whose nodes are two thirds full, and the key.
pub(super) fn due_bytes(key_len: usize) -> usize {
    3 * size_of::<(Due, DuePlace)>() / 2 + allocated(key_len)
}
