//! Saying goodbye: a client that ends tells the partitions that it has written to, so that they
//! need keep no outcomes for it. Nobody answers, and nothing is sent again: where it is not heard,
//! what is kept of the client goes when it has been silent for long.

use crate::machine::Client;
use machine::Instant;

impl Client {
    /// Says goodbye to all partitions that the client has written to, if nothing of it is on its
    /// way; what is to be sent comes from [`poll_transmit`](Self::poll_transmit). Nothing can be
    /// started after that: a write would be taken for an old one, and dropped.
    pub fn say_goodbye(&mut self, now: Instant) {
        if self.window.len() > 0 || self.in_flight() > 0 {
            return;
        }
        let mut datagram = Vec::new();
        for header in self.homes.farewells(self.config.client_id, self.window.next()) {
            datagram.clear();
            wire::emit(&mut datagram, &header, &[]);
            self.outbox.push_copy(self.route.send(now), &datagram);
            self.counters.datagrams += 1;
        }
    }
}
