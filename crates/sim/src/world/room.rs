//! Nodes that run out of memory or disk for a while, and have room again.

use super::World;
use crate::role::Role;
use node::MemoryLimit;
use node::engine::Engine as _;
use std::ops::Range;
use wire::Room;

/// What a node lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Memory: so many bytes are left before nothing is taken that grows.
    Memory(u64),
    /// Its disk is nearly full, or so full that only deletes are taken.
    Disk(Room),
    /// Its disk is so full that nothing can be written.
    Frozen,
}

impl World {
    /// A node has little room, or none, until [`make_room`](Self::make_room).
    pub(super) fn fill_up(&mut self, node: u16) {
        let lack = match self.rng.below(8) {
            0..4 => Lack::Memory(self.rng.below(SPARE_MAX)),
            4..6 => Lack::Disk(Room::Shut),
            6 => Lack::Disk(Room::Tight),
            _ => Lack::Frozen,
        };
        self.lack(node, lack);
        self.stats.filled += 1;
    }

    /// Some node has no memory left for what grows.
    pub(super) fn fill_memory(&mut self) {
        let node = self.any_node();
        self.lack(node, Lack::Memory(0));
    }

    fn lack(&mut self, node: u16, lack: Lack) {
        self.note(format_args!("node {node} has no room: {lack:?}"));
        self.lacks.insert(node, lack);
        self.apply_room(node);
    }

    /// A node has room again.
    pub(super) fn make_room(&mut self, node: u16) {
        if self.lacks.remove(&node).is_some() {
            self.note(format_args!("node {node} has room again"));
        }
        self.apply_room(node);
    }

    /// Everybody has room.
    pub(super) fn make_all_room(&mut self) {
        for node in 0..self.cast.nodes {
            self.make_room(node);
        }
    }

    /// Tells the shards of a node what room there is, also those that have just been started.
    pub(super) fn apply_room(&mut self, node: u16) {
        let lack = self.lacks.get(&node).copied();
        for index in self.shards_of(node) {
            let Some(shard) = self.shards.get_mut(index) else { continue };
            let Some(machine) = &mut shard.machine else { continue };
            let limit = match lack {
                Some(Lack::Memory(spare)) => {
                    let bytes = machine.memory_used() + spare + RESERVE;
                    Some(MemoryLimit { bytes, reserve: RESERVE, uploads: bytes / 4 })
                }
                Some(Lack::Disk(_) | Lack::Frozen) | None => None,
            };
            shard.capacity = limit.map(|limit| limit.bytes);
            machine.limit_memory(limit);
            match lack {
                Some(Lack::Disk(room)) => machine.set_store_room(room, false),
                Some(Lack::Frozen) => machine.set_store_room(Room::Shut, true),
                Some(Lack::Memory(_)) | None => machine.set_store_room(Room::Plenty, false),
            }
        }
        self.rearm_node(node);
    }

    /// No node may take more than there is: the system would end it.
    pub(super) fn check_capacity(&mut self, shards: Range<usize>) {
        for index in shards {
            let Some(shard) = self.shards.get(index) else { continue };
            let Some((machine, most)) = shard.machine.as_ref().zip(shard.capacity) else {
                continue;
            };
            let taken = machine.engine().usage();
            if taken > most {
                let text = format!("shard {index} takes {taken} bytes, and has {most}");
                self.history.violation(text);
            }
        }
    }

    fn rearm_node(&mut self, node: u16) {
        for unit in self.units_of(Role::Node(node)) {
            self.rearm(unit);
        }
    }
}

/// Bytes that are left at most when memory becomes short: for a few new keys.
const SPARE_MAX: u64 = 1_000;

/// What is kept for what has to be taken: more than all clients have under way.
const RESERVE: u64 = 64 << 10;
