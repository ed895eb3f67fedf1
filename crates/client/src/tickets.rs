//! What a user of the machine knows of each request that waits: a ring, since tickets are dense.

use crate::Ticket;
use std::collections::VecDeque;

/// Notes by ticket. Bounded by the client's limit of requests in flight.
#[derive(Debug)]
pub struct Tickets<T> {
    first: u64,
    notes: VecDeque<Option<T>>,
}

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Tickets<T> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { first: 0, notes: VecDeque::new() }
    }

    /// Adds the note of a request that was just started.
    ///
    /// # Panics
    ///
    /// If requests were started in between whose notes were not added.
    pub fn insert(&mut self, ticket: Ticket, note: T) {
        if self.notes.is_empty() {
            self.first = ticket.0;
        }
        let next = self.first + self.notes.len() as u64;
        assert_eq!(ticket.0, next, "tickets are dense");
        self.notes.push_back(Some(note));
    }

    /// Takes the note of a request that has ended.
    pub fn take(&mut self, ticket: Ticket) -> Option<T> {
        let at = usize::try_from(ticket.0.checked_sub(self.first)?).ok()?;
        let note = self.notes.get_mut(at)?.take();
        while let Some(None) = self.notes.front() {
            self.notes.pop_front();
            self.first += 1;
        }
        note
    }

    /// The notes of all requests that have not ended.
    pub(crate) fn into_notes(self) -> impl Iterator<Item = T> {
        self.notes.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_once_in_any_order() {
        let mut tickets = Tickets::new();
        (5..9).for_each(|n| tickets.insert(Ticket(n), n));
        for n in [6, 5, 8, 7] {
            assert_eq!(tickets.take(Ticket(n)), Some(n));
            assert_eq!(tickets.take(Ticket(n)), None);
        }
        assert_eq!(tickets.take(Ticket(4)), None);
        tickets.insert(Ticket(20), 20);
        assert_eq!(tickets.take(Ticket(20)), Some(20));
    }
}
