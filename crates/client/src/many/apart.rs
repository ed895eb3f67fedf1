//! Multigets that the client takes apart: each datagram holds keys of one node, and goes there. If
//! the map has changed since it was dealt, its keys go to as many nodes as it takes.

use super::{Many, Part};
use crate::coordination::{Coordination, Directory, Tail};
use crate::machine::Client;
use crate::window::Owner;
use std::sync::Arc;
use wire::{Endpoint, Fields as _, HEADER_LEN, MGET_KEYS_MAX};

impl Many {
    /// Puts the keys of each node beside each other, so that its datagrams are full.
    pub(super) fn sort_by_node(&mut self, directory: &Directory) {
        let Self { keyspace, keys, .. } = self;
        keys.sort_by_cached_key(|key| directory.tail(keyspace.id, keyspace.match_value(key).0));
    }

    /// How many keys from this one on are of the same node.
    pub(super) fn of_one_node(&self, first: usize) -> usize {
        let Some(directory) = &self.directory else { return MGET_KEYS_MAX };
        let tail = |number| directory.tail(self.keyspace.id, self.match_value(number));
        let wanted = tail(first);
        let these = (first..self.keys.len()).take(MGET_KEYS_MAX);
        these.take_while(|number| tail(*number) == wanted).count()
    }

    /// Which keys of a part go where.
    fn targets(&self, directory: &Directory, part: Part) -> Vec<(Tail, u32)> {
        let mut targets: Vec<(Tail, u32)> = Vec::new();
        for index in (0..MGET_KEYS_MAX).filter(|index| part.missing & (1 << index) != 0) {
            let at = self.match_value(part.first + index);
            // A key without a node is asked for when there is one.
            let Some(tail) = directory.tail(self.keyspace.id, at) else { continue };
            match targets.iter_mut().find(|(known, _)| *known == tail) {
                Some((_, bitmap)) => *bitmap |= 1 << index,
                None => targets.push((tail, 1 << index)),
            }
        }
        targets
    }

    fn match_value(&self, number: usize) -> u128 {
        self.keyspace.match_value(self.keys.key(number)).0
    }
}

impl Client {
    /// From now on multigets are taken apart so; those that have been started go on as they were,
    /// but for the map that a client goes by.
    pub fn coordinate(&mut self, coordination: Coordination) {
        if let Coordination::Client(directory) = &coordination {
            for many in self.many.values_mut().filter(|many| many.directory.is_some()) {
                many.directory = Some(Arc::clone(directory));
            }
        }
        self.config.coordination = coordination;
    }

    /// Sends a copy of an MGET past the switch, if it goes there; gives the number of datagrams.
    pub(crate) fn transmit_apart(&mut self, seq: u64) -> Option<u64> {
        let pending = self.window.get_mut(seq)?;
        let Owner::Many(ticket, part) = &pending.owner else { return None };
        let many = self.many.get(ticket)?;
        let Some(directory) = &many.directory else {
            let to = many.coordinator?;
            wire::seal(&mut pending.datagram);
            self.outbox.push_copy(to, &pending.datagram);
            return Some(1);
        };
        let targets = many.targets(directory, *part);
        for (tail, bitmap) in &targets {
            let header = pending.datagram.first_chunk_mut::<HEADER_LEN>();
            let header = header.expect("every request was emitted with a header");
            directory.stamp(header, *tail);
            header.set_bitmap(*bitmap);
            wire::seal(&mut pending.datagram);
            self.outbox.push_copy(tail.endpoint, &pending.datagram);
        }
        Some(targets.len() as u64)
    }
}

/// Where the multigets of a client go, other than to a service address.
pub(super) fn ways(coordination: &Coordination) -> (Option<Arc<Directory>>, Option<Endpoint>) {
    match coordination {
        Coordination::Switch => (None, None),
        Coordination::Client(directory) => (Some(Arc::clone(directory)), None),
        Coordination::Coordinator(at) => (None, Some(*at)),
    }
}
