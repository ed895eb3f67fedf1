//! The keys of a request, each once, one behind the other in one allocation.

use cluster::{Keyspace, Match};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wire::MgetKey;

/// Distinct keys by number, and which of them stands at each place of the request.
#[derive(Debug)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// By number: in the order of their first places, unless they were sorted.
    slots: Vec<Slot>,
    /// Numbers, one for each place of the request.
    places: Vec<u32>,
    /// Whether numbers are in the order of first places.
    in_order: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u32,
    len: u16,
    /// At how many places it stands.
    places: u32,
    keyhash: u64,
    match_value: Match,
}

impl Keys {
    /// Takes the keys, each of them at most `wire::KEY_MAX` long and no more than `MANY_KEYS_MAX`.
    pub(crate) fn new<'k>(
        keyspace: &Keyspace,
        keys: impl ExactSizeIterator<Item = &'k [u8]>,
    ) -> Self {
        let count = keys.len();
        let mut all = Self {
            bytes: Vec::new(),
            slots: Vec::with_capacity(count),
            places: Vec::with_capacity(count),
            in_order: true,
        };
        let mut known: HashTable<u32> = HashTable::with_capacity(count);
        for key in keys {
            let keyhash = keyspace.keyhash(key);
            let hash = |number: &u32| all.slot(*number as usize).keyhash;
            let same = |number: &u32| all.key(*number as usize) == key;
            let place = match known.entry(keyhash, same, hash) {
                Entry::Occupied(known) => {
                    let number = *known.get();
                    let slot = all.slots.get_mut(number as usize);
                    slot.expect("it is known").places += 1;
                    number
                }
                Entry::Vacant(free) => {
                    let number = int(all.slots.len());
                    let start = int(all.bytes.len());
                    let len = u16::try_from(key.len()).expect("keys are at most KEY_MAX long");
                    free.insert(number);
                    let match_value = keyspace.match_value(key);
                    all.slots.push(Slot { start, len, places: 1, keyhash, match_value });
                    all.bytes.extend_from_slice(key);
                    number
                }
            };
            all.places.push(place);
        }
        all
    }

    /// How many distinct ones there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Numbers them anew, in the order of `marks`, which has one for each number; marks are moved
    /// with their keys.
    pub(crate) fn sort_by<M: Copy, T: Ord>(&mut self, marks: &mut [M], by: impl Fn(M) -> T) {
        if marks.is_sorted_by_key(|mark| by(*mark)) {
            return;
        }
        let mut order: Vec<(M, u32)> = marks.iter().copied().zip(0..).collect();
        order.sort_by_key(|(mark, _)| by(*mark));
        self.slots = order.iter().map(|(_, before)| self.slot(*before as usize)).collect();
        let mut moved = vec![0; order.len()];
        for ((number, to), (mark, before)) in (0..).zip(marks).zip(order) {
            *to = mark;
            if let Some(place) = moved.get_mut(before as usize) {
                *place = number;
            }
        }
        for place in &mut self.places {
            *place = *moved.get(*place as usize).expect("every number has a new one");
        }
        self.in_order = false;
    }

    /// Whether each stands at one place only, and at that of its number.
    pub(crate) fn are_in_place(&self) -> bool {
        self.in_order && self.slots.len() == self.places.len()
    }

    /// At how many places a key stands.
    pub(crate) fn places_of(&self, number: usize) -> usize {
        self.slot(number).places as usize
    }

    /// The number of the key at each place.
    pub(crate) fn places(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.places.iter().map(|number| *number as usize)
    }

    /// A key by its number.
    pub(crate) fn key(&self, number: usize) -> &[u8] {
        let Slot { start, len, .. } = self.slot(number);
        let start = start as usize;
        self.bytes.get(start..start + usize::from(len)).expect("every slot was written")
    }

    /// The match value of a key.
    pub(crate) fn match_value(&self, number: usize) -> Match {
        self.slot(number).match_value
    }

    /// A key as an MGET names it.
    pub(crate) fn named(&self, number: usize) -> MgetKey<'_> {
        let Slot { keyhash, match_value, .. } = self.slot(number);
        MgetKey { match_value: match_value.0, keyhash, key: self.key(number) }
    }

    fn slot(&self, number: usize) -> Slot {
        *self.slots.get(number).expect("numbers are those of slots")
    }
}

/// Numbers and places of bytes fit 32 bits: 2^20 keys of 2^10 bytes.
fn int(it: usize) -> u32 {
    u32::try_from(it).expect("the number of keys is bounded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{HotPolicy, KeyspaceId, KeyspaceKind};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_has_its_key_and_no_key_is_there_twice(
            wanted in proptest::collection::vec(proptest::collection::vec(0u8..3, 1..4), 0..60),
        ) {
            let (id, hot) = (KeyspaceId(1), HotPolicy::Off);
            let (name, kind) = ("k".into(), KeyspaceKind::Hash);
            let keyspace = Keyspace { id, name, kind, seed: 1, replicas: 1, hot, content: None };
            let keys = Keys::new(&keyspace, wanted.iter().map(Vec::as_slice));
            prop_assert!(keys.places().map(|it| keys.key(it)).eq(wanted.iter()));
            let mut distinct: Vec<&[u8]> = (0..keys.len()).map(|it| keys.key(it)).collect();
            distinct.sort_unstable();
            prop_assert!(distinct.is_sorted_by(|a, b| a < b));
        }

        #[test]
        fn keys_that_are_sorted_keep_their_places_and_their_marks(
            wanted in proptest::collection::vec(0u8..40, 1..60),
        ) {
            let (id, hot) = (KeyspaceId(1), HotPolicy::Off);
            let (name, kind) = ("k".into(), KeyspaceKind::Hash);
            let keyspace = Keyspace { id, name, kind, seed: 1, replicas: 1, hot, content: None };
            let wanted: Vec<[u8; 1]> = wanted.into_iter().map(|byte| [byte]).collect();
            let mut keys = Keys::new(&keyspace, wanted.iter().map(<[u8; 1]>::as_slice));
            let mark = |key: &[u8]| (key[0] % 5, key[0]);
            let mut marks: Vec<_> = (0..keys.len()).map(|it| mark(keys.key(it))).collect();
            keys.sort_by(&mut marks, |(group, _)| group);
            prop_assert!(marks.is_sorted_by_key(|(group, _)| *group));
            prop_assert!(keys.places().map(|it| keys.key(it)).eq(wanted.iter()));
            for (number, marked) in marks.iter().enumerate() {
                prop_assert_eq!(*marked, mark(keys.key(number)));
                let at = keyspace.match_value(keys.key(number));
                prop_assert_eq!(keys.match_value(number), at);
            }
        }
    }
}
