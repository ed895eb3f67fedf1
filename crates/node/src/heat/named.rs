//! Keys that have places: which is where, found by their hashes.

use cluster::KeyspaceId;
use hashbrown::HashTable;

/// Keys by place, and places by key.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Places in `names`, by keyhash.
    places: HashTable<usize>,
    /// By place. Kept for their room when they are not in use.
    names: Vec<Name>,
}

#[derive(Debug, Default)]
pub(super) struct Name {
    pub(super) keyspace: KeyspaceId,
    pub(super) keyhash: u64,
    pub(super) key: Vec<u8>,
}

impl Named {
    /// The place of a key, if it has one.
    pub(super) fn find(&self, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) -> Option<usize> {
        let is_it = |place: &usize| {
            let known = self.names.get(*place);
            known
                .is_some_and(|it| it.keyhash == keyhash && it.keyspace == keyspace && it.key == key)
        };
        self.places.find(keyhash, is_it).copied()
    }

    /// Who has this place, or had it last.
    pub(super) fn name(&self, place: usize) -> Option<&Name> {
        self.names.get(place)
    }

    /// Gives a key that has no place one that nobody has. Allocates nothing if the place has had a
    /// key as long.
    pub(super) fn give(&mut self, place: usize, keyspace: KeyspaceId, keyhash: u64, key: &[u8]) {
        if self.names.len() <= place {
            self.names.resize_with(place + 1, Name::default);
        }
        if let Some(it) = self.names.get_mut(place) {
            (it.keyspace, it.keyhash) = (keyspace, keyhash);
            it.key.clear();
            it.key.extend_from_slice(key);
        }
        let names = &self.names;
        let rehash = |place: &usize| names.get(*place).map_or(0, |it| it.keyhash);
        self.places.insert_unique(keyhash, place, rehash);
    }

    /// Takes a place from whoever has it.
    pub(super) fn take(&mut self, place: usize) {
        let keyhash = self.names.get(place).map_or(0, |it| it.keyhash);
        let found = self.places.find_entry(keyhash, |known| *known == place);
        found.expect("who has a place can be found").remove();
    }

    /// Takes all places.
    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// How many have a place.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}
