//! What a key is called in a backend.
//!
//! | keyspace | key | name |
//! |---|---|---|
//! | `default` | `user:1` | `user:1` |
//! | `default` | `keyway:1` | `keyway::keyway:1` |
//! | `sessions` | `user:1` | `keyway:sessions:user:1` |
//!
//! Keyspaces have no colon in their names, and none has an empty one, so that different keys have
//! different names. What a backend keeps about Keyway itself begins with [`OWN`], which is no
//! keyspace either.

use crate::up::HASH_KEYSPACE;
use cluster::KeyspaceId;
use std::collections::BTreeMap;

/// What every name begins with that is not a key of the default keyspace.
pub(super) const RESERVED: &[u8] = b"keyway:";

/// What the names begin with under which a backend keeps what is no value.
pub(super) const OWN: &str = "keyway:#";

/// Names of keyspaces.
#[derive(Clone, Debug, Default)]
pub struct Spaces(BTreeMap<KeyspaceId, String>);

impl Spaces {
    /// Learns what a keyspace is called; says whether that is news.
    pub(super) fn learn(&mut self, keyspace: KeyspaceId, name: &str) -> bool {
        if self.0.get(&keyspace).is_some_and(|known| known == name) {
            return false;
        }
        self.0.insert(keyspace, name.to_owned());
        true
    }

    /// The key of this keyspace that has this name, if one has.
    pub(super) fn key<'a>(&self, keyspace: KeyspaceId, name: &'a [u8]) -> Option<&'a [u8]> {
        let space = self.0.get(&keyspace)?;
        match name.strip_prefix(RESERVED) {
            None => (space == HASH_KEYSPACE).then_some(name),
            Some(rest) if space == HASH_KEYSPACE => rest.strip_prefix(b":"),
            Some(rest) => rest.strip_prefix(space.as_bytes())?.strip_prefix(b":"),
        }
    }

    /// The name of a key in the backend.
    pub(super) fn name(&self, keyspace: KeyspaceId, key: &[u8]) -> Vec<u8> {
        let space = self.0.get(&keyspace);
        let space = space.expect("a keyspace is named before anything in it is");
        match space.as_str() {
            HASH_KEYSPACE if !key.starts_with(RESERVED) => key.to_vec(),
            HASH_KEYSPACE => [RESERVED, b":", key].concat(),
            space => [RESERVED, space.as_bytes(), b":", key].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_keys_have_different_names_and_those_of_default_their_own() {
        let mut spaces = Spaces::default();
        let (default, other) = (KeyspaceId(1), KeyspaceId(2));
        assert!(spaces.learn(default, "default") && spaces.learn(other, "other"));
        assert!(!spaces.learn(default, "default"));
        assert_eq!(spaces.name(default, b"user:1"), b"user:1");
        assert_eq!(spaces.name(default, b"keyway:#0:about"), b"keyway::keyway:#0:about");
        assert_eq!(spaces.name(default, b"keyway::x"), b"keyway::keyway::x");
        assert_eq!(spaces.name(other, b"user:1"), b"keyway:other:user:1");
        for (keyspace, key) in [(default, &b"a"[..]), (default, b"keyway:a"), (other, b":a:")] {
            let name = spaces.name(keyspace, key);
            assert_eq!(spaces.key(keyspace, &name), Some(key));
            let elsewhere = if keyspace == default { other } else { default };
            assert_eq!(spaces.key(elsewhere, &name), None);
        }
        assert_eq!(spaces.key(default, b"keyway:#0:about"), None);
        assert_ne!(
            spaces.name(default, b"keyway:other:1"),
            spaces.name(other, b"1"),
            "nobody gets into another keyspace by a key"
        );
    }
}
