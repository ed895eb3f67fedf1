//! What the numbers mean that SCAN gives out. A number has 64 bits, which is enough to say where in
//! the order of match values a page begins, and not behind which key of one match value. So where
//! many keys share one, the gateway remembers the key for its number.
//!
//! An even number is the beginning of a page by itself. An odd one has the upper 32 bits of the
//! match value; who does not remember it (another gateway, or this one after many others) gives all
//! keys with those bits as one page. So a scan is complete and comes to its end wherever its parts
//! are asked for.

use client::PageStart;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// The odd numbers that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Cursors(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    keys: BTreeMap<u64, Vec<u8>>,
    /// In the order in which they were given out.
    oldest: VecDeque<u64>,
}

/// Numbers remembered: at a kilobyte for the longest keys a megabyte, and as many scans at once
/// that have come to the middle of a match value.
const REMEMBERED_MAX: usize = 1_024;

/// What a number means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A page begins there.
    Start(PageStart),
    /// Not remembered: the page is all keys with these upper bits of their match value.
    All(u32),
}

impl Cursors {
    /// The number for where the next page begins; `half` is the upper half of that match value.
    pub(crate) fn number(&self, start: &PageStart, half: u64) -> u64 {
        let key = match start {
            PageStart::Half(half) => return *half,
            PageStart::After(key) => key.clone(),
        };
        let drawn = RandomState::new().build_hasher().finish() >> 33;
        let number = half >> 32 << 32 | drawn << 1 | 1;
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.keys.insert(number, key).is_none() {
            remembered.oldest.push_back(number);
        }
        if remembered.oldest.len() > REMEMBERED_MAX
            && let Some(oldest) = remembered.oldest.pop_front()
        {
            remembered.keys.remove(&oldest);
        }
        number
    }

    /// What a number means.
    pub(crate) fn meaning(&self, number: u64) -> Meaning {
        if number.is_multiple_of(2) {
            return Meaning::Start(PageStart::Half(number));
        }
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match remembered.keys.get(&number) {
            Some(key) => Meaning::Start(PageStart::After(key.clone())),
            None => Meaning::All(u32::try_from(number >> 32).expect("32 bits")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_remembered_for_a_while_and_can_be_done_without() {
        let cursors = Cursors::default();
        let (half, start) = (0x1234_5678_9abc_def0, PageStart::Half(0x1234_5678_9abc_def0));
        assert_eq!(cursors.number(&start, half), half);
        assert_eq!(cursors.meaning(half), Meaning::Start(start));
        let after = |n: usize| PageStart::After(format!("k{n}").into_bytes());
        let numbers: Vec<u64> =
            (0..REMEMBERED_MAX + 1).map(|n| cursors.number(&after(n), half)).collect();
        assert!(numbers.iter().all(|number| number % 2 == 1 && number >> 32 == half >> 32));
        assert_eq!(cursors.meaning(numbers[0]), Meaning::All(0x1234_5678), "the oldest");
        assert_eq!(cursors.meaning(numbers[1]), Meaning::Start(after(1)));
        assert_eq!(Cursors::default().meaning(numbers[1]), Meaning::All(0x1234_5678), "another's");
    }
}
