//! Strangers: whoever reaches a switch can send it what looks like a node's reply.

use super::World;
use crate::queue::Event;
use crate::role::client_endpoint;
use std::time::Duration;
use wire::{ChainWrite, Endpoint, Fields as _, HEADER_LEN, KeyReply, Op};

impl World {
    /// A client that has seen a reply to another one, on its way to a switch, may send that one
    /// like it, of a version that nobody has handed out.
    pub(super) fn forge(&mut self, to: Endpoint, datagram: &[u8]) {
        let permille = self.options.links.forged_permille;
        if permille == 0 || !self.rng.chance(permille, 1_000) {
            return;
        }
        let mut bytes = datagram.to_vec();
        let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() else { return };
        if !Op::from_wire(header.op()).is_some_and(Op::is_reply) {
            return;
        }
        let KeyReply { version } = KeyReply::read(header);
        KeyReply { version: version.saturating_add(BEYOND) }.write(header);
        let from = client_endpoint(0);
        let delay = Duration::from_micros(self.rng.below(FORGED_WITHIN_US));
        self.queue.schedule(self.now + delay, Event::Datagram { from, to, bytes });
    }

    /// Whoever has seen a write on its way to a switch may send that one like it, as if another
    /// client had. No node takes it, for its tag is wrong; a switch does not look at tags.
    pub(super) fn make_up(&mut self, from: Endpoint, to: Endpoint, datagram: &[u8]) {
        let permille = self.options.links.made_up_permille;
        if permille == 0 || !self.rng.chance(permille, 1_000) {
            return;
        }
        let mut bytes = datagram.to_vec();
        let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() else { return };
        if header.op() == Op::Put as u8 {
            header.set_client(self.rng.next_u64());
            let delay = Duration::from_micros(self.rng.below(FORGED_WITHIN_US));
            self.queue.schedule(self.now + delay, Event::Datagram { from, to, bytes });
        }
    }

    /// Whoever has seen a message between members may send that one like it, in the name of its
    /// sender, with a version that cannot be.
    pub(super) fn forge_chain(&mut self, (from, to): (Endpoint, Endpoint), datagram: &[u8]) {
        let permille = self.options.links.forged_chain_permille;
        if permille == 0 || !self.rng.chance(permille, 1_000) {
            return;
        }
        let mut bytes = datagram.to_vec();
        let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() else { return };
        let op = Op::from_wire(header.op()).filter(|op| op.is_chain());
        // What is copied has its numbers in the body; and whoever takes a copy of a hot key, or a
        // write of a delegation, cannot know how far its versions have come.
        let judged = |op: &Op| {
            matches!(op, Op::ChainWrite | Op::ChainAck | Op::ChainCommit | Op::ChainExpire)
        };
        let Some(op) = op.filter(judged) else { return };
        let write = ChainWrite::read(header);
        let version = write.version.saturating_add(FAR);
        ChainWrite { version, ..write }.write(header);
        // The head, which sends writes, is also who says what is stable.
        if op == Op::ChainWrite && self.rng.chance(1, 2) {
            header.set_op(Op::ChainStable as u8);
            header.set_key_len(0);
            header.set_payload_len(STABLE_BYTES);
            bytes.truncate(HEADER_LEN + usize::from(STABLE_BYTES));
        }
        wire::seal(&mut bytes);
        let delay = Duration::from_micros(self.rng.below(FORGED_WITHIN_US));
        self.queue.schedule(self.now + delay, Event::Datagram { from, to, bytes });
    }
}

/// What follows the header of a CHAIN_STABLE; no CHAIN_WRITE is shorter.
const STABLE_BYTES: u16 = 8;
/// Further ahead than any write may be.
const FAR: u64 = 1 << 50;
/// More versions than a world lasts for.
const BEYOND: u64 = 1 << 40;
/// When it arrives: mostly after what it was made from.
const FORGED_WITHIN_US: u64 = 20_000;
