//! Requests that were sent more than once and have ended: which copies were sent in vain.
//!
//! A second answer to a request says that its first copy was not lost but waited somewhere, so that
//! it was asked again too soon.

use crate::pace::Path;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last ones that ended, by sequence number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twice {
    ended: BTreeMap<u64, Ended>,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Which way it took.
    pub(crate) path: Path,
    /// The time from its first copy to its end.
    pub(crate) took: Duration,
    /// Copies that have not been answered.
    pub(crate) open: u32,
}

/// Requests remembered: as many retries as a client can have saved up, and some more.
const ENDED_MAX: usize = 1024;

impl Twice {
    /// Remembers a request, if it was sent more than once.
    pub(crate) fn end(&mut self, seq: u64, ended: Ended) {
        if ended.open == 0 {
            return;
        }
        self.ended.insert(seq, ended);
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_first();
        }
    }

    /// Takes an answer that came after the end. Returns what it answers, if that was sent more than
    /// once.
    pub(crate) fn answered(&mut self, seq: u64) -> Option<Ended> {
        let ended = self.ended.get_mut(&seq)?;
        let found = *ended;
        ended.open -= 1;
        if ended.open == 0 {
            self.ended.remove(&seq);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(open: u32) -> Ended {
        Ended { path: Path::Read, took: Duration::from_millis(7), open }
    }

    #[test]
    fn each_copy_is_in_vain_once() {
        let mut twice = Twice::default();
        twice.end(1, ended(0));
        twice.end(2, ended(2));
        assert_eq!(twice.answered(1), None);
        assert_eq!(twice.answered(2), Some(ended(2)));
        assert_eq!(twice.answered(2), Some(ended(1)));
        assert_eq!(twice.answered(2), None);
    }

    #[test]
    fn only_the_last_are_remembered() {
        let mut twice = Twice::default();
        (0..3_000).for_each(|seq| twice.end(seq, ended(1)));
        assert_eq!(twice.ended.len(), ENDED_MAX);
        assert_eq!((twice.answered(1_900), twice.answered(2_999)), (None, Some(ended(1))));
    }
}
