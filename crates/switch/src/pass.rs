//! What a packet meets on its way through a pipeline, and how it is stamped.

use crate::hot::{HotTable, Row};
use crate::tables::{Action, Exit};
use crate::{ClockReading, Counters, Loads, Tables};
use cluster::{KeyspaceId, Match, MaybeMutant, Mutant, NodeId};
use machine::{Instant, Outbox, Rng};
use wire::{
    DirectoryClock, Endpoint, Fields, Generation, HEADER_LEN, HomeWrite, HotGet, Version, hop_flag,
};

/// What one packet meets on its way through.
#[derive(Debug)]
pub struct Pass<'p> {
    pub(crate) now: Instant,
    /// The switch's, before anything was looked at.
    pub(crate) clock: ClockReading,
    /// The directory clock that the client knew when it first sent a write.
    pub(crate) first_sent: DirectoryClock,
    pub(crate) tables: &'p Tables,
    /// What is hot in the pipeline's own directory; none if it is behind another.
    pub(crate) hot: &'p HotTable,
    pub(crate) counters: &'p mut Counters,
    pub(crate) loads: &'p mut Loads,
    pub(crate) rng: &'p mut Rng,
    pub(crate) blind: bool,
    pub(crate) by_hints: bool,
    pub(crate) mutant: MaybeMutant,
    pub(crate) out: &'p mut Outbox,
}

impl<'p> Pass<'p> {
    /// The row of a request's key, if that is hot.
    pub(crate) fn row_of(&self, header: &[u8; HEADER_LEN]) -> Option<&'p Row> {
        let keyspace = KeyspaceId(header.keyspace());
        self.row((keyspace, header.keyhash()), Match(header.match_value()))
    }

    /// The row of the key with this hash that lies there.
    pub(crate) fn row(&self, key: (KeyspaceId, u64), at: Match) -> Option<&'p Row> {
        let trusts = self.mutant.is(Mutant::TrustKeyhashes);
        self.hot.find(key.0, key.1).filter(|row| row.lies_at(at) || trusts)
    }

    /// A write to its partition's head, with the version that it was granted, or 0.
    pub(crate) fn go_home(
        &mut self,
        header: &mut [u8; HEADER_LEN],
        action: &Action,
        version: Version,
    ) -> Option<Endpoint> {
        stamp_write(header, action);
        HomeWrite { granted: version, clock: self.clock.present }.write(header);
        if self.first_sent < self.clock.beginning {
            header.set_hop_flags(hop_flag::OLD);
        }
        if self.hot.predicts() && action.head.is_some() {
            action.nodes().for_each(|node| self.loads.sent(self.now, node));
        }
        action.head
    }

    /// Remembers that a request goes to this node, if a choice may depend on it.
    #[inline]
    pub(crate) fn send_to(&mut self, node: NodeId) {
        if self.hot.predicts() {
            self.loads.sent(self.now, node);
        }
    }

    pub(crate) fn emit(&mut self, to: Endpoint, datagram: &[u8]) {
        self.out.push_copy(to, datagram);
        self.counters.count_emitted();
    }
}

/// What whoever answers a read of a hot key is to know.
pub(crate) fn stamp_hot(
    header: &mut [u8; HEADER_LEN],
    exit: Exit,
    floor: Option<Version>,
    generation: Generation,
) {
    stamp_chain_of_one(header, exit);
    HotGet { floor: floor.unwrap_or(Version::ABOVE_ALL), generation }.write(header);
}

fn stamp_write(header: &mut [u8; HEADER_LEN], action: &Action) {
    stamp_partition(header, action);
    header.set_chain(action.chain);
    header.set_chain_len(action.chain_len);
}

/// Stamps a read of one partition; also a piece of a RANGE is one.
pub(crate) fn stamp_read(header: &mut [u8; HEADER_LEN], action: &Action) -> Option<Exit> {
    stamp_partition(header, action);
    let exit = action.tail?;
    stamp_chain_of_one(header, exit);
    Some(exit)
}

pub(crate) fn stamp_partition(header: &mut [u8; HEADER_LEN], action: &Action) {
    header.set_partition(action.partition.0);
    header.set_epoch(action.epoch.0);
    header.set_chain_pos(0);
    header.set_bitmap(0);
}

/// Stamps one node alone as chain, the unused places zero.
pub(crate) fn stamp_chain_of_one(header: &mut [u8; HEADER_LEN], exit: Exit) {
    let (chain, len) = wire::chain_bytes([exit.node.0]);
    header.set_chain(chain);
    header.set_chain_len(len);
}

/// The header of a datagram that passed the parser, and its payload.
pub(crate) fn split_header(datagram: &mut [u8]) -> (&mut [u8; HEADER_LEN], &mut [u8]) {
    datagram.split_first_chunk_mut().expect("parsed: it has a header")
}
