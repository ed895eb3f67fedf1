//! What a node has to compare as a tail, and the answers that it is sent.

use crate::engine::Engine;
use crate::node::Node;
use crate::replica::Replica;
use crate::verify::Verifier;
use crate::verify::look::take_answer;
use crate::verify::run::Run;
use cluster::{PartitionId, Verification, VerifyOrder};
use machine::Instant;
use wire::{ChainVerifiedBody, DropReason, Header};

/// Whether this node leads the comparison of a partition now.
fn leads(replica: &Replica) -> bool {
    replica.member.is_tail() && replica.member.partition.open
}

impl<E: Engine> Node<E> {
    /// Takes a wish to compare, unless a newer one is known.
    pub fn install_verify(&mut self, now: Instant, order: &VerifyOrder) {
        if order.number <= self.verifier.number() {
            return;
        }
        self.verifier.wanted = Some(*order);
        self.verifier.run = None;
        self.find_what_to_verify(now);
    }

    /// Chains have changed, or there is a new wish: what this shard is to compare now. A comparison
    /// of another epoch begins anew, here or at another tail.
    pub(crate) fn find_what_to_verify(&mut self, now: Instant) {
        let Some(order) = self.verifier.wanted else { return };
        let Verifier { left, run, results, .. } = &mut self.verifier;
        let replicas = &self.replicas;
        let stays = |id: &PartitionId| replicas.get(id).is_some_and(|it| it.member.is_tail());
        results.retain(|id, _| stays(id));
        let has_stayed = |run: &Run| {
            let replica = replicas.get(&run.partition());
            replica.is_some_and(|it| leads(it) && it.member.epoch() == run.epoch())
        };
        if !run.as_ref().is_some_and(has_stayed) {
            *run = None;
        }
        let done = |id: &PartitionId| {
            results.get(id).is_some_and(|it| it.done && it.number == order.number)
        };
        let runs = |id: PartitionId| run.as_ref().is_some_and(|run| run.partition() == id);
        let wanted = replicas.values().filter(|it| leads(it) && order.concerns(it.member.id()));
        *left = wanted.map(|it| it.member.id()).filter(|id| !done(id) && !runs(*id)).collect();
        self.begin_to_verify(now);
    }

    fn begin_to_verify(&mut self, now: Instant) {
        let Verifier { wanted, left, run, results } = &mut self.verifier;
        let Some(order) = wanted else { return };
        while run.is_none() {
            let Some(id) = left.pop_first() else { return };
            let Some(replica) = self.replicas.get_mut(&id) else { continue };
            replica.begin_survey();
            let next = Run::new(now, order, replica);
            if next.sum.members > 1 {
                *run = Some(next);
                return;
            }
            // There is nobody to compare it with.
            let alone = Verification { done: true, permille: 1_000, ..next.sum };
            results.insert(id, alone);
        }
    }

    /// Goes on comparing, if it is time to.
    pub(crate) fn verify_on(&mut self, now: Instant) {
        let Some(directory) = &self.directory else { return };
        let Some(run) = self.verifier.run.as_mut().filter(|run| run.due <= now) else { return };
        let Some(replica) = self.replicas.get(&run.partition()) else { return };
        let mut ctx = self.shard.context(directory, now, 0);
        run.go_on(&mut ctx, replica);
    }

    /// A member has answered; its address has been checked.
    pub(crate) fn take_verified(
        &mut self,
        now: Instant,
        header: &Header,
        fixed: &ChainVerifiedBody,
        last: &[u8],
    ) -> Result<(), DropReason> {
        let answer = take_answer(fixed, last).ok_or(DropReason::BadBody)?;
        let Some(directory) = &self.directory else { return Ok(()) };
        let id = PartitionId(header.partition);
        let run = self.verifier.run.as_mut().filter(|run| run.partition() == id);
        let (Some(run), Some(replica)) = (run, self.replicas.get(&id)) else { return Ok(()) };
        if run.epoch() != replica.member.epoch() {
            return Ok(());
        }
        let mut ctx = self.shard.context(directory, now, 0);
        run.take(&mut ctx, replica, header, answer);
        if run.sum.done {
            let sum = run.sum.clone();
            ctx.counters.count_verified(&sum.found);
            self.verifier.results.insert(id, sum);
            self.verifier.run = None;
            self.begin_to_verify(now);
        }
        Ok(())
    }
}
