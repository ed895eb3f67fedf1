//! Saying goodbye: a client that ends tells the partitions that it has written to, so that they
//! need keep no outcomes for it. Nobody answers, and nothing is sent again: where it is not heard,
//! what is kept of the client goes when it has been silent for long.

use crate::machine::Client;
use machine::Instant;
use std::collections::BTreeMap;
use wire::{Code, Fields as _, HEADER_LEN, Header, Op};

/// Partitions that hold outcomes of this client's writes, each with a match value that it holds.
#[derive(Debug, Default)]
pub(crate) struct Homes(BTreeMap<(u16, u32), u128>);

/// Partitions that are told. Who has written to more of them was there for so long that one session
/// more or less makes no difference, and so many datagrams at once would be lost on the way.
const HOMES_MAX: usize = 256;

impl Homes {
    /// A reply has come to a request that was waiting.
    pub(crate) fn note(&mut self, op: Op, reply: &[u8; HEADER_LEN]) {
        let home = (reply.keyspace(), reply.partition());
        let keeps = op.is_write() && Code::says_decided(reply.code());
        if keeps && (self.0.len() < HOMES_MAX || self.0.contains_key(&home)) {
            self.0.insert(home, reply.match_value());
        }
    }
}

impl Client {
    /// Says goodbye to all partitions that the client has written to, if nothing of it is on its
    /// way; what is to be sent comes from [`poll_transmit`](Self::poll_transmit). Nothing can be
    /// started after that: a write would be taken for an old one, and dropped.
    pub fn say_goodbye(&mut self, now: Instant) {
        if self.window.len() > 0 || self.in_flight() > 0 {
            return;
        }
        let (client, seq) = (self.config.client_id, self.window.next());
        let mut datagram = Vec::new();
        for ((keyspace, _), match_value) in std::mem::take(&mut self.homes.0) {
            let op = Op::Goodbye as u8;
            let header = Header { op, keyspace, match_value, client, seq, ..Header::default() };
            datagram.clear();
            wire::emit(&mut datagram, &header, &[]);
            self.outbox.push_copy(self.route.send(now), &datagram);
            self.counters.datagrams += 1;
        }
    }
}
