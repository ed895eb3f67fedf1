//! Requests that were sent more than once and have ended: which copies were sent in vain.
//!
//! A second answer to a request says that its first copy was not lost but waited somewhere, so that
//! it was asked again too soon.

use std::collections::BTreeMap;

/// The last ones that ended, by number, with what is to be known of each.
#[derive(Clone, Debug)]
pub struct Retransmissions<T> {
    /// And how many of its copies have not been answered.
    ended: BTreeMap<u64, (T, u32)>,
}

/// Requests remembered: as many retries as a client can have saved up, and some more.
const ENDED_MAX: usize = 1024;

impl<T> Default for Retransmissions<T> {
    fn default() -> Self {
        Self { ended: BTreeMap::new() }
    }
}

impl<T: Copy> Retransmissions<T> {
    /// Remembers a request, if copies of it are `open`: sent and not answered.
    pub fn end(&mut self, number: u64, known: T, open: u32) {
        if open == 0 {
            return;
        }
        self.ended.insert(number, (known, open));
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_first();
        }
    }

    /// Takes an answer that came after the end. Returns what is known of the request, if it was
    /// sent more than once.
    pub fn answered(&mut self, number: u64) -> Option<T> {
        let (known, open) = self.ended.get_mut(&number)?;
        let found = *known;
        *open -= 1;
        if *open == 0 {
            self.ended.remove(&number);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_is_in_vain_once() {
        let mut retransmissions = Retransmissions::default();
        retransmissions.end(1, "one", 0);
        retransmissions.end(2, "two", 2);
        assert_eq!(retransmissions.answered(1), None);
        assert_eq!(retransmissions.answered(2), Some("two"));
        assert_eq!(retransmissions.answered(2), Some("two"));
        assert_eq!(retransmissions.answered(2), None);
    }

    #[test]
    fn only_the_last_are_remembered() {
        let mut retransmissions = Retransmissions::default();
        (0..3_000).for_each(|number| retransmissions.end(number, (), 1));
        assert_eq!(retransmissions.ended.len(), ENDED_MAX);
        assert_eq!(
            (retransmissions.answered(1_900), retransmissions.answered(2_999)),
            (None, Some(()))
        );
    }
}
