//! Stores that go wrong by themselves in a healed world, and members that are compared then.

use super::{Unit, World};
use crate::role::Role;
use cluster::{Partition, PartitionId};
use std::time::Duration;

impl World {
    /// Some records go wrong, each at one member of a chain of three or more, and all replicas are
    /// compared and mended. In worlds in which nothing rots, none must be found to differ.
    pub(super) fn rot_and_verify(&mut self) {
        let rotten = self.rot();
        let role = Role::Controller(self.leader);
        let local = self.local(role);
        let master = self.controllers.get_mut(usize::from(self.leader));
        let Some(controller) = master.and_then(|it| it.machine.as_mut()) else { return };
        controller.verify(local, None, true).expect("all partitions are known");
        self.note(format_args!("{rotten} records rot, and replicas are compared"));
        self.pump(Unit::Master(self.leader.into()));
        let compared = |world: &Self| {
            let status = world.controller().map(|controller| controller.status(world.now));
            let verify = status.and_then(|status| status.verify);
            verify.is_some_and(|it| it.done == it.partitions)
        };
        if !self.settles_within(VERIFY_MAX, compared) {
            return self.history.violation("a comparison of replicas never ends".into());
        }
        let status = self.controller().map(|controller| controller.status(self.now));
        let Some(said) = status.and_then(|status| status.verify) else { return };
        if (said.different, said.mended, said.absurd) != (rotten, rotten, 0) {
            let text = format!("{rotten} records were made wrong, and it is said: {said:?}");
            self.history.violation(text);
        }
    }

    fn rot(&mut self) -> u64 {
        let Some(controller) = self.controller() else { return 0 };
        let partitions = controller.map().partitions.clone();
        let many = |partition: &&Partition| partition.members().len() > 2;
        let mut rotten = 0;
        for partition in partitions.iter().filter(many) {
            for _ in 0..self.options.rot {
                let member = partition.members().len() as u64;
                let place = usize::try_from(self.rng.below(member)).expect("below a length");
                let node = partition.members().get(place).expect("below their number").0;
                let (which, how) = (self.rng.below(1 << 20), self.rng.below(1 << 20));
                let Some(index) = self.shard_of(node, partition.id) else { continue };
                let shard = self.shards.get_mut(index).and_then(|it| it.machine.as_mut());
                let Some(machine) = shard else { continue };
                let spoiled = &mut self.spoiled;
                let disk = machine.engine_mut();
                rotten += u64::from(disk.rot(partition, which, how, |key| spoiled.insert(key)));
            }
        }
        rotten
    }

    /// The shard of a node that has this partition.
    fn shard_of(&self, node: u16, partition: PartitionId) -> Option<usize> {
        let shard = partition.0 % u32::from(self.options.shards);
        let mine =
            |index: &usize| self.shards.get(*index).is_some_and(|it| u32::from(it.index) == shard);
        self.shards_of(node).find(mine)
    }
}

/// For all replicas to be compared: a few pieces for each partition, and half a second for each key
/// that differs.
const VERIFY_MAX: Duration = Duration::from_secs(60);
