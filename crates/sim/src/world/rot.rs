//! Stores that go wrong by themselves in a healed world, and members that are compared then.

use super::faults::Harm;
use super::{Unit, World};
use crate::disk::RecordKey;
use crate::role::Role;
use cluster::{Findings, NodeId, Partition, PartitionId};
use std::collections::BTreeSet;
use std::time::Duration;

impl World {
    /// Some records go wrong, each at one member of a chain of three or more, and all replicas are
    /// compared and mended. In worlds in which nothing rots, none must be found to differ.
    pub(super) fn rot_and_verify(&mut self) {
        let rotten = self.rot();
        let chains = self.chains();
        self.stats.rotten += rotten;
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
        // What was wrong at a member that lost its replica meanwhile may not be found.
        let all_found = said.found.different == rotten || self.chains() != chains;
        let Findings { different, mended, absurd, .. } = said.found;
        if !all_found || different > rotten || mended != different || absurd > 0 {
            let text = format!("{rotten} records were made wrong, and it is said: {said:?}");
            self.history.violation(text);
        }
        if rotten > 0 {
            self.close_chains_once();
        }
    }

    /// Members that were made right are compared as all are that settle: a node starts anew, and
    /// chains have to open again.
    fn close_chains_once(&mut self) {
        let role = Role::Node(
            u16::try_from(self.rng.below(self.options.nodes.into())).expect("below a number"),
        );
        self.crash(role, Harm::None);
        self.start(role);
        if !self.settles_within(self.healed_max(), Self::has_recovered) {
            let why = self.status_in_words();
            self.history.violation(format!("no chain opens after replicas were mended: {why}"));
        }
    }

    /// Who is in the chain of each partition.
    fn chains(&self) -> Vec<Vec<NodeId>> {
        let partitions = self.controller().map(|it| &it.map().partitions);
        partitions.into_iter().flatten().map(|it| it.chain.clone()).collect()
    }

    fn rot(&mut self) -> u64 {
        if self.options.rot > 0 {
            // A write that was on its way for long would be carried out on what is wrong.
            self.run_until(self.now + self.options.links.stray_max, |_| false);
        }
        let mut spoiled = BTreeSet::new();
        let Some(controller) = self.controller() else { return 0 };
        let partitions = controller.map().partitions.clone();
        let many = |partition: &&Partition| partition.members().len() > 2;
        for partition in partitions.iter().filter(many) {
            for _ in 0..self.options.rot {
                let member = partition.members().len() as u64;
                let place = usize::try_from(self.rng.below(member)).expect("below a length");
                let node = partition.members().get(place).expect("below their number").0;
                let (which, how) = (self.rng.below(1 << 20), self.rng.below(1 << 20));
                let Some(index) = self.shard_of(node, partition.id) else { continue };
                let shard = self.shards.get_mut(index).and_then(|it| it.machine.as_mut());
                let Some(machine) = shard else { continue };
                let disk = machine.engine_mut();
                let is_first = |key: &RecordKey| !spoiled.contains(key);
                let record = disk.rot(partition, which, how, is_first);
                spoiled.extend(record);
            }
        }
        spoiled.len() as u64
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
