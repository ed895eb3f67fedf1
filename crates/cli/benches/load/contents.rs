//! The keys and values of a benchmark, and what each key must hold by now.

use machine::mix;

/// Bytes of a key: `key-` and twelve digits.
pub(crate) const KEY_LEN: usize = 16;

/// Keys: enough that they do not all lie in the caches, few enough to load at once.
pub(crate) const KEYS: usize = 100_000;

/// What one store holds: a value of one size under each key.
#[derive(Debug)]
pub(crate) struct Contents {
    names: Vec<[u8; KEY_LEN]>,
    /// The round in which each key was last written; 0 for never.
    written: Vec<u32>,
    value_len: usize,
}

impl Contents {
    /// An empty store, to be filled with values of this many bytes, a multiple of 8.
    pub(crate) fn new(value_len: usize) -> Self {
        assert!(value_len.is_multiple_of(8), "values are made of words");
        Self { names: (0..KEYS).map(name).collect(), written: vec![0; KEYS], value_len }
    }

    /// All keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8; KEY_LEN]> {
        self.names.iter()
    }

    pub(crate) fn name(&self, index: usize) -> &[u8; KEY_LEN] {
        self.names.get(index).expect("the index of a key")
    }

    /// Replaces `value` by what the key is given in this round.
    pub(crate) fn make_value(&self, index: usize, round: u32, value: &mut Vec<u8>) {
        value.clear();
        let word = word(index, round);
        (0..self.value_len / 8).for_each(|_| value.extend_from_slice(&word));
    }

    /// Notes that the key was written in this round.
    pub(crate) fn note_written(&mut self, index: usize, round: u32) {
        *self.written.get_mut(index).expect("the index of a key") = round;
    }

    /// Whether this is the value last written to the key.
    pub(crate) fn is_right(&self, index: usize, value: &[u8]) -> bool {
        let round = *self.written.get(index).expect("the index of a key");
        let word = word(index, round);
        let (words, rest) = value.as_chunks::<8>();
        value.len() == self.value_len && rest.is_empty() && words.iter().all(|it| *it == word)
    }
}

fn name(index: usize) -> [u8; KEY_LEN] {
    let text = format!("key-{index:012}");
    text.as_bytes().try_into().expect("four letters and twelve digits")
}

fn word(index: usize, round: u32) -> [u8; 8] {
    mix((index as u64) << 32 | u64::from(round)).to_be_bytes()
}
