//! Multigets that the client takes apart: each datagram holds keys of one node, and goes there. If
//! the map has changed since it was dealt, its keys go to as many nodes as it takes.

use super::{Many, Part};
use crate::coordination::{Coordination, Directory, Tail};
use crate::machine::Client;
use crate::window::Owner;
use wire::{Fields as _, HEADER_LEN, MGET_GROUPS_MAX, MGET_KEYS_MAX};

impl Many {
    /// Puts the keys of each node beside each other, so that its datagrams are full.
    pub(super) fn sort_by_node(&mut self, directory: &Directory) {
        let Self { keyspace, keys, .. } = self;
        keys.sort_by_cached_key(|key| directory.tail(keyspace.id, keyspace.match_value(key).0));
    }

    /// How many keys from this one on may share a datagram: those of one node if it goes there, of
    /// as many as hints can name if there are to be hints, of any nodes else.
    pub(super) fn beside(&self, first: usize) -> usize {
        let (directory, groups_max) = match &self.coordination {
            Coordination::Switch | Coordination::Coordinator(_) => return MGET_KEYS_MAX,
            Coordination::Assisted(directory) => (directory, MGET_GROUPS_MAX),
            Coordination::Client(directory) => (directory, 1),
        };
        let (mut last, mut groups) = (None, 0);
        let these = (first..self.keys.len()).take(MGET_KEYS_MAX);
        let fits = |number: &usize| {
            let tail = Some(directory.tail(self.keyspace.id, self.match_value(*number)));
            groups += usize::from(last != tail);
            last = tail;
            groups <= groups_max
        };
        these.take_while(fits).count()
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

    pub(super) fn match_value(&self, number: usize) -> u128 {
        self.keyspace.match_value(self.keys.key(number)).0
    }
}

impl Client {
    /// From now on multigets are taken apart so; those that have been started go on as they were,
    /// but for the map that a client goes by.
    pub fn coordinate(&mut self, coordination: Coordination) {
        self.many.values_mut().for_each(|many| many.coordination.follow(&coordination));
        self.config.coordination = coordination;
    }

    /// Sends a copy of an MGET past the switch, if it goes there; gives the number of datagrams.
    pub(crate) fn transmit_apart(&mut self, seq: u64) -> Option<u64> {
        let pending = self.window.get_mut(seq)?;
        let Owner::Many(ticket, part) = &pending.owner else { return None };
        let many = self.many.get(ticket)?;
        let directory = match &many.coordination {
            Coordination::Switch | Coordination::Assisted(_) => return None,
            Coordination::Client(directory) => directory,
            Coordination::Coordinator(to) => {
                wire::seal(&mut pending.datagram);
                self.outbox.push_copy(*to, &pending.datagram);
                return Some(1);
            }
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
