//! Loans of a partition are over before it changes its epoch: until then the assignment that says
//! so waits. To the others that is an assignment that comes late.

use crate::engine::Engine;
use crate::node::Node;
use cluster::{Assignment, Mutant, PartitionId};
use machine::Instant;
use std::collections::BTreeSet;

impl<E: Engine> Node<E> {
    /// Whether an assignment has to wait for loans to end. Then they are recalled.
    pub(crate) fn waits_for_loans(&mut self, now: Instant, assignment: &Assignment) -> bool {
        if self.shard.mutant.is(Mutant::SettleLent) {
            return false;
        }
        let ending = self.lent_and_ended_by(now, assignment);
        if ending.is_empty() {
            self.shard.lending.waiting = None;
            return false;
        }
        self.shard.lending.waiting = Some(Box::new(assignment.clone()));
        self.shard.lending.next_look = now + super::TELL_EVERY;
        if let Some(directory) = &self.directory {
            let mut ctx = self.shard.context(directory, now, 0);
            for id in ending {
                let Some(replica) = self.replicas.get_mut(&id) else { continue };
                replica.loans.close();
                replica.recall_all(&mut ctx);
                ctx.lending.see_busy(now, id);
            }
        }
        true
    }

    /// Partitions that something is lent of, and that an assignment takes into another epoch.
    fn lent_and_ended_by(&self, now: Instant, assignment: &Assignment) -> BTreeSet<PartitionId> {
        let stays = |id: PartitionId, epoch| {
            let same = |it: &&cluster::Partition| it.id == id && it.epoch == epoch;
            assignment.partitions.iter().any(|it| same(&it))
        };
        let lent = self.replicas.iter().filter(|(_, replica)| !replica.loans.are_over(now));
        let ended = lent.filter(|(id, replica)| !stays(**id, replica.member.epoch()));
        ended.map(|(id, _)| *id).collect()
    }

    /// Looks after what is lent: serves what was parked where a cache has answered, tells caches
    /// again, and takes the assignment that has waited for the end of loans.
    pub(crate) fn look_after_loans(&mut self, now: Instant) {
        self.serve_parked(now);
        if self.shard.lending.due().is_none_or(|at| at > now) {
            return;
        }
        self.shard.lending.next_look = now + super::TELL_EVERY;
        if let Some(directory) = &self.directory {
            let mut ctx = self.shard.context(directory, now, 0);
            for id in std::mem::take(&mut ctx.lending.busy) {
                let Some(replica) = self.replicas.get_mut(&id) else { continue };
                replica.look_after_loans(&mut ctx);
                ctx.lending.released.insert(id);
                if replica.loans.is_busy() {
                    ctx.lending.busy.insert(id);
                }
            }
        }
        self.serve_parked(now);
        if let Some(assignment) = self.shard.lending.waiting.take() {
            self.install(now, &assignment);
        }
    }

    /// Serves what was parked if a cache has answered, and then tells caches what has waited for
    /// that: else reads of a key that is written all the time would never be served.
    pub(crate) fn serve_parked(&mut self, now: Instant) {
        let released = std::mem::take(&mut self.shard.lending.released);
        if released.is_empty() {
            return;
        }
        for request in self.shard.lending.parked.take() {
            self.handle_packet(now, request.from, request.load, &request.datagram);
        }
        let Some(directory) = &self.directory else { return };
        let mut ctx = self.shard.context(directory, now, 0);
        for id in released {
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            replica.loans.end_rest();
            for key in replica.loans.to_tell(now) {
                replica.tell_borrower(&mut ctx, &key);
            }
            if replica.loans.is_busy() {
                ctx.lending.see_busy(now, id);
            }
        }
    }
}
