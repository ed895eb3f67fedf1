//! What a rack holds, and how it lies there.

use super::RackSpec;
use cluster::{Keyspace, KeyspaceKind};
use machine::Rng;
use std::collections::BTreeSet;
use std::sync::Arc;
use workload::{KeyNames, Values};

/// What a rack holds, and how it lies there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// How keys are spread over partitions.
    pub order: Order,
    /// Partitions at the beginning; `None`: one for each node, and eight where nodes differ in
    /// speed, enough to share them out by it.
    pub partitions: Option<u32>,
    /// Bytes of each key.
    pub key_bytes: usize,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// Requests per second below which a node never has too much to do; above that the controller
    /// evens load out. `None`: partitions stay where they are.
    pub load_floor: Option<u64>,
    /// Bytes that each node may hold in memory. `None`: as much as there is.
    pub memory_max: Option<u64>,
}

/// How keys are spread over partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their hash.
    Hash,
    /// In order, the most popular ones first: a hot range.
    Ranked,
    /// In order, the popular ones anywhere among the others.
    Shuffled,
}

impl Store {
    /// As in Pegasus' evaluation, which places keys once.
    pub const PEGASUS: Self = Self {
        order: Order::Hash,
        partitions: None,
        key_bytes: 64,
        value_bytes: 128,
        load_floor: None,
        memory_max: None,
    };
}

impl RackSpec {
    /// Partitions at the beginning.
    pub(super) fn partitions(&self) -> u32 {
        let usual = if self.half_slow { 8 } else { 1 };
        self.store.partitions.unwrap_or(u32::from(self.nodes) * usual)
    }

    /// What decides where a key lies.
    pub(super) fn kind(&self) -> KeyspaceKind {
        match self.store.order {
            Order::Hash => KeyspaceKind::Hash,
            Order::Ranked | Order::Shuffled => {
                KeyspaceKind::Range { prefix: PREFIX.as_bytes().to_vec() }
            }
        }
    }

    /// Where partitions begin, so that each has as many keys as another.
    pub(super) fn splits(&self) -> Vec<Vec<u8>> {
        if self.store.order == Order::Hash {
            return Vec::new();
        }
        let (names, parts) = (self.names(), u64::from(self.partitions()));
        let first = |part: u64| u128::from(self.keys) * u128::from(part) / u128::from(parts);
        let first = |part| u64::try_from(first(part)).expect("a key's number");
        (1..parts).map(|part| names.name(first(part))).collect()
    }

    pub(super) fn names(&self) -> KeyNames {
        KeyNames::new(PREFIX, self.store.key_bytes, self.keys).expect("room for every number")
    }
}

/// What keys and values look like, and whose they are. A key's number is its place in the order of
/// names; its rank is how many are more popular. Ranks go round: the most popular key can be any,
/// and those that were less popular than it follow.
pub(super) struct Contents {
    pub(super) keyspace: Arc<Keyspace>,
    pub(super) names: KeyNames,
    pub(super) values: Values,
    keys: u64,
    /// The number of the key of each rank, and the rank of each number; empty if they are the same.
    numbers: Vec<u64>,
    ranks: Vec<u64>,
    /// The rank at the beginning of the key that is the most popular one now.
    first: u64,
    /// The keys of these numbers are stored, and besides these some others.
    stored: u64,
    stored_too: BTreeSet<u64>,
}

impl Contents {
    pub(super) fn new(spec: &RackSpec, keyspace: Keyspace, rng: &Rng) -> Self {
        let mut numbers = Vec::new();
        if spec.store.order == Order::Shuffled {
            numbers = shuffled(spec.keys, rng.fork("shuffle"));
        }
        let mut ranks = vec![0; numbers.len()];
        for (rank, number) in (0..).zip(&numbers) {
            *place_mut(&mut ranks, *number) = rank;
        }
        Self {
            keyspace: Arc::new(keyspace),
            names: spec.names(),
            values: Values::new(spec.store.value_bytes.to_string().parse().expect("a size")),
            keys: spec.keys,
            numbers,
            ranks,
            first: 0,
            stored: spec.stored,
            stored_too: BTreeSet::new(),
        }
    }

    /// How many keys there are.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// The number of the key of a rank.
    pub(super) fn number(&self, rank: u64) -> u64 {
        at(&self.numbers, (self.first + rank) % self.keys)
    }

    /// The rank of the key of a number.
    pub(super) fn rank(&self, number: u64) -> u64 {
        (at(&self.ranks, number) + self.keys - self.first) % self.keys
    }

    /// Whether the key of a number is stored.
    pub(super) fn is_stored(&self, number: u64) -> bool {
        number < self.stored || self.stored_too.contains(&number)
    }

    /// The keys of these numbers are going to be stored, too.
    pub(super) fn store(&mut self, numbers: &[u64]) {
        self.stored_too.extend(numbers);
    }

    /// The key that had this rank at the beginning is the most popular one from now on.
    pub(super) fn begin_at(&mut self, first: u64) {
        self.first = first % self.keys;
    }
}

/// What stands at a place of a permutation, which is empty if everything stands at its own.
fn at(permutation: &[u64], place: u64) -> u64 {
    let found = usize::try_from(place).ok().and_then(|place| permutation.get(place));
    found.copied().unwrap_or(place)
}

fn place_mut(permutation: &mut [u64], place: u64) -> &mut u64 {
    let found = usize::try_from(place).ok().and_then(|place| permutation.get_mut(place));
    found.expect("the numbers below the number of keys")
}

/// The numbers below `count`, each as likely to stand anywhere (Fisher and Yates).
fn shuffled(count: u64, mut rng: Rng) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    for last in (1..numbers.len()).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).expect("a place among them");
        numbers.swap(last, other);
    }
    numbers
}

/// What all keys begin with.
const PREFIX: &str = "user";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_that_its_ranks_undo() {
        let numbers = shuffled(1_000, Rng::new(1));
        let moved = (0..).zip(&numbers).filter(|(place, number)| place != *number).count();
        assert!(moved > 990, "{moved} of 1000 stand elsewhere");
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..1_000));
        assert_ne!(numbers, shuffled(1_000, Rng::new(2)));
    }
}
