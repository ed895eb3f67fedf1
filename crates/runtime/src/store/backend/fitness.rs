//! Whether a store that others made is fit to keep a node's values, without making it a node's.

use super::{BackendUrl, MemcachedBackend, RedisBackend};
use crate::store::StoreError;

/// What was found of a store that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitness {
    /// In words.
    pub found: String,
    /// What the operator had better change.
    pub remedy: Option<String>,
}

/// Looks at a store, and changes nothing that is kept there.
///
/// # Errors
///
/// If it cannot be reached, or no node starts before it.
pub fn inspect(url: &BackendUrl) -> Result<Fitness, StoreError> {
    if url.is_memcached() { MemcachedBackend::inspect(url) } else { RedisBackend::inspect(url) }
}
