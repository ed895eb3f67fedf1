//! Logs of bounded length.

use std::collections::VecDeque;

/// The last so many of what was noted, oldest first. What was noted has a number, from 0 on.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    items: VecDeque<T>,
    most: usize,
    /// How many there were, with those that are forgotten.
    noted: u64,
}

impl<T> Ring<T> {
    /// An empty one that remembers so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { items: VecDeque::new(), most, noted: 0 }
    }

    /// Notes one more; returns its number.
    pub(crate) fn note(&mut self, item: T) -> u64 {
        if self.items.len() == self.most {
            self.items.pop_front();
        }
        self.items.push_back(item);
        self.noted += 1;
        self.noted - 1
    }

    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// Those after the first `seen`, as far as they are remembered.
    pub(crate) fn since(&self, seen: u64) -> impl Iterator<Item = &T> {
        let new = usize::try_from(self.noted.saturating_sub(seen)).unwrap_or(usize::MAX);
        self.items.iter().skip(self.items.len().saturating_sub(new))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// The one with this number, if it is remembered.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let after = usize::try_from(self.noted.checked_sub(number)?).ok()?;
        self.items.len().checked_sub(after).and_then(|place| self.items.get_mut(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once_as_far_as_it_is_remembered() {
        let mut ring = Ring::new(256);
        for number in 0..300_u32 {
            assert_eq!(ring.note(number), u64::from(number));
        }
        let since = |seen| ring.since(seen).copied().collect::<Vec<_>>();
        assert_eq!(since(298), [298, 299]);
        assert_eq!(since(0).len(), 256);
        assert!(since(ring.noted()).is_empty());
        assert_eq!(ring.get_mut(299).copied(), Some(299));
        assert_eq!(ring.get_mut(44).copied(), Some(44));
        assert_eq!(ring.get_mut(43), None, "forgotten");
        assert_eq!(ring.get_mut(300), None, "not noted yet");
    }
}
