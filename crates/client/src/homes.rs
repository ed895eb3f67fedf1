//! Which partitions hold outcomes of a client.

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

    /// What is said to all of them by a client whose next sequence number is this. None of them is
    /// told again.
    pub(crate) fn farewells(&mut self, client: u64, seq: u64) -> impl Iterator<Item = Header> {
        let op = Op::Goodbye as u8;
        let homes = std::mem::take(&mut self.0).into_iter();
        homes.map(move |((keyspace, _), match_value)| Header {
            op,
            keyspace,
            match_value,
            client,
            seq,
            ..Header::default()
        })
    }
}
