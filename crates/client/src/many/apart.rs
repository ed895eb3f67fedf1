//! Multigets that the client takes apart: each datagram holds keys of one node, and goes there. If
//! the map has changed since it was dealt, its keys go to as many nodes as it takes.

use super::{Many, Part};
use crate::coordination::{Coordination, Home, Routes, Tail, header_of, stamp_read};
use machine::Outbox;
use std::sync::Arc;
use wire::{Endpoint, Fields as _, MGET_GROUPS_MAX, MGET_KEYS_MAX};

impl Many {
    /// Puts the keys of each node beside each other, so that its datagrams are full.
    pub(super) fn sort_by_node(&mut self, directory: &Routes) {
        self.find_homes(directory);
        self.keys.sort_by(&mut self.homes, |home| home.map(|(tail, _)| tail));
    }

    fn find_homes(&mut self, directory: &Routes) {
        let Self { keyspace, keys, .. } = self;
        let home = |number| directory.find(keyspace.id, keys.match_value(number).0);
        self.homes = (0..keys.len()).map(home).collect();
    }

    /// Goes by another map from now on, if by any.
    pub(crate) fn follow(&mut self, coordination: &Coordination) {
        self.coordination.follow(coordination);
        if let Some(directory) = self.coordination.directory().map(Arc::clone) {
            self.find_homes(&directory);
        }
    }

    /// How many keys from this one on may share a datagram: those of one node if it goes there, of
    /// as many as hints can name if there are to be hints, of any nodes else.
    pub(super) fn beside(&self, first: usize) -> usize {
        let groups_max = match &self.coordination {
            Coordination::Switch | Coordination::Coordinators(_) => return MGET_KEYS_MAX,
            Coordination::Assisted(_) => MGET_GROUPS_MAX,
            Coordination::Client(_) => 1,
        };
        let (mut last, mut groups) = (None, 0);
        let fits = |home: &&Home| {
            let tail = Some(home.map(|(tail, _)| tail));
            groups += usize::from(last != tail);
            last = tail;
            groups <= groups_max
        };
        self.homes.iter().skip(first).take(MGET_KEYS_MAX).take_while(fits).count()
    }

    /// How many of so many keys go into the next datagram: not some of those of a node that could
    /// all be in the one after it, for each part of a request costs a node as much as many keys.
    pub(super) fn whole_groups(&self, first: usize, count: usize) -> usize {
        let tail = |number: usize| self.homes.get(number).map(|home| home.map(|(tail, _)| tail));
        let end = first + count;
        let Some(cut) = tail(end) else { return count };
        let before = (first..end).rev().take_while(|number| tail(*number) == Some(cut)).count();
        let after = (end..).take(MGET_KEYS_MAX).take_while(|number| tail(*number) == Some(cut));
        let whole = before == count || before + after.count() > MGET_KEYS_MAX;
        if whole { count } else { count - before }
    }

    /// Which keys of a part go where.
    fn targets(&self, directory: &Routes, part: Part) -> Vec<(Tail, u32)> {
        let mut targets: Vec<(Tail, u32)> = Vec::new();
        for index in (0..MGET_KEYS_MAX).filter(|index| part.missing & (1 << index) != 0) {
            let at = self.keys.match_value(part.first + index).0;
            // A key without a node is asked for when there is one.
            let Some(tail) = directory.tail(self.keyspace.id, at) else { continue };
            match targets.iter_mut().find(|(known, _)| *known == tail) {
                Some((_, bitmap)) => *bitmap |= 1 << index,
                None => targets.push((tail, 1 << index)),
            }
        }
        targets
    }

    /// Sends a copy of the datagram of a part past the switch, if it goes there; gives the number
    /// of datagrams. `turn` says whose turn it is of several coordinators.
    pub(crate) fn send(
        &self,
        part: Part,
        turn: impl FnOnce(&[Endpoint]) -> Option<Endpoint>,
        datagram: &mut [u8],
        outbox: &mut Outbox,
    ) -> u64 {
        let directory = match &self.coordination {
            Coordination::Switch | Coordination::Assisted(_) => return 0,
            Coordination::Client(directory) => directory,
            Coordination::Coordinators(all) => {
                let Some(to) = turn(all) else { return 0 };
                wire::seal(datagram);
                outbox.push_copy(to, datagram);
                return 1;
            }
        };
        let targets = self.targets(directory, part);
        for (tail, bitmap) in &targets {
            let header = header_of(datagram);
            stamp_read(header, *tail, directory.reply_to());
            header.set_bitmap(*bitmap);
            wire::seal(datagram);
            outbox.push_copy(tail.endpoint, datagram);
        }
        targets.len() as u64
    }
}
