//! Strangers: whoever reaches a switch can send it what looks like a node's reply.

use super::World;
use crate::queue::Event;
use crate::role::client_endpoint;
use std::time::Duration;
use wire::{Endpoint, Fields as _, HEADER_LEN, Op};

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
        header.set_object_version(header.object_version().saturating_add(BEYOND));
        let from = client_endpoint(0);
        let delay = Duration::from_micros(self.rng.below(FORGED_WITHIN_US));
        self.queue.schedule(self.now + delay, Event::Datagram { from, to, bytes });
    }
}

/// More versions than a world lasts for.
const BEYOND: u64 = 1 << 40;
/// When it arrives: mostly after what it was made from.
const FORGED_WITHIN_US: u64 = 20_000;
