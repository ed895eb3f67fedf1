//! What operators ask of where partitions lie: that replicas move, that partitions are split and
//! merged, and that nothing of that is done because of the load.

use super::{CommandError, MoveError, RemakeError};
use crate::controller::Controller;
use crate::decisions::Level;
use crate::neighbours::{are_at_one_shard, have_the_same_nodes};
use crate::placement::{Change as PlacementChange, Cut};
use cluster::{Match, NodeId, Partition, PartitionId};
use machine::Instant;

impl Controller {
    /// Changes nothing any more because of the load, until [`Self::resume_placement`]. What is
    /// under way goes on.
    pub fn pause_placement(&mut self, now: Instant) {
        self.set_placement_paused(now, true);
    }

    /// Has placement follow the load again.
    pub fn resume_placement(&mut self, now: Instant) {
        self.set_placement_paused(now, false);
    }

    fn set_placement_paused(&mut self, now: Instant, paused: bool) {
        self.awake(now);
        if self.ledger.state.placement_paused == paused {
            return;
        }
        self.ledger.state.placement_paused = paused;
        let saw = format!("wanted: placement {}", if paused { "paused" } else { "resumed" });
        self.ledger.advance(now, Level::Usual, saw, "keep that on record".to_owned());
    }

    /// Moves a replica. The copy begins at once, and does not outlive this controller: another one
    /// goes on with it only if it has a reason of its own.
    ///
    /// # Errors
    ///
    /// If it cannot begin now; nothing has changed then.
    pub fn move_replica(
        &mut self,
        now: Instant,
        id: PartitionId,
        (from, to): (NodeId, NodeId),
    ) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        self.refuse_unknown(from)?;
        self.refuse_unknown(to)?;
        let found = self.ledger.state.map.partitions.iter().find(|it| it.id == id);
        let partition = found.ok_or(CommandError::NoPartition(id))?;
        if !partition.members().contains(&from) {
            return Err(CommandError::Move(id, MoveError::NotThere(from)));
        }
        if partition.members().contains(&to) {
            return Err(CommandError::Move(id, MoveError::ThereAlready(to)));
        }
        let changes = !partition.open || partition.has_learner || self.chains.is_changing(id);
        if changes || partition.chain.len() == wire::CHAIN_MAX {
            return Err(CommandError::Move(id, MoveError::Changing));
        }
        let reads = partition.tail() == Some(from);
        let change = PlacementChange::Move { partition: id, from, to, reads };
        let saw = format!("wanted: {change}");
        self.chains.wish(change.clone());
        self.act();
        if !self.chains.is_changing(id) {
            return Err(CommandError::Move(id, MoveError::CannotBegin(to)));
        }
        self.placement.note_wished(now, &change);
        self.ledger.decisions.note(now, Level::Usual, saw, "copy it", "");
        Ok(())
    }

    /// Splits a partition in two with the same nodes: before this key, or, if its keys are spread
    /// evenly, in the middle. It is closed for some milliseconds.
    ///
    /// # Errors
    ///
    /// If it cannot begin now; nothing has changed then.
    pub fn split(
        &mut self,
        now: Instant,
        id: PartitionId,
        before: Option<&[u8]>,
    ) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        let map = &self.ledger.state.map;
        let found = map.partitions.iter().find(|it| it.id == id);
        let partition = found.ok_or(CommandError::NoPartition(id))?;
        let refuse = |why| Err(CommandError::Remake(id, why));
        let keyspace = map.keyspaces.iter().find(|it| it.id == partition.keyspace);
        let keyspace = keyspace.expect("maps name the keyspaces of their partitions");
        let Partition { first, last, .. } = *partition;
        let at = match before {
            Some(key) => keyspace.match_value(key),
            None if keyspace.is_ordered() => return refuse(RemakeError::Where),
            None => Match(first.0 + (last.0 - first.0) / 2 + 1),
        };
        if at <= first || last < at {
            return refuse(RemakeError::Outside);
        }
        if map.cuts(partition, vec![at]) != [at] {
            return refuse(RemakeError::NoPrefix);
        }
        self.refuse_to_remake(partition)?;
        if self.chains.parts_left(&self.ledger.state) == 0 {
            return refuse(RemakeError::Full);
        }
        // The roles of the second part fall to others.
        let tail = partition.head().unwrap_or_default();
        let cuts = vec![Cut { at, tail }];
        let change = PlacementChange::Split { partition: id, cuts, grown: false };
        let saw = format!("wanted: {change}");
        self.chains.wish(change);
        self.act();
        if !self.chains.is_changing(id) {
            return refuse(RemakeError::CannotBegin);
        }
        self.ledger.decisions.note(now, Level::Usual, saw, "close it", "");
        Ok(())
    }

    /// Makes one of two neighbouring partitions, which have the same nodes. Both are closed for
    /// some milliseconds.
    ///
    /// # Errors
    ///
    /// If it cannot begin now; nothing has changed then.
    pub fn merge(
        &mut self,
        now: Instant,
        (id, with): (PartitionId, PartitionId),
    ) -> Result<(), CommandError> {
        self.awake(now);
        self.refuse_foreign()?;
        let map = &self.ledger.state.map;
        let find = |id: PartitionId| {
            let found = map.partitions.iter().find(|it| it.id == id);
            found.ok_or(CommandError::NoPartition(id))
        };
        let (one, other) = (find(id)?, find(with)?);
        let refuse = |why| Err(CommandError::Remake(id, why));
        let ends_before = |one: &Partition, other: &Partition| {
            one.keyspace == other.keyspace && one.last.0.checked_add(1) == Some(other.first.0)
        };
        if !ends_before(one, other) && !ends_before(other, one) {
            return refuse(RemakeError::NotNeighbours(with));
        }
        let (first, last) = (one.first.min(other.first), one.last.max(other.last));
        if !map.may_be_partition(one.keyspace, first, last) {
            return refuse(RemakeError::NoPrefix);
        }
        self.refuse_to_remake(one)?;
        self.refuse_to_remake(other)?;
        if !have_the_same_nodes(one, other) {
            return refuse(RemakeError::OtherNodes(with));
        }
        if !are_at_one_shard(map, &one.chain, [id, with]) {
            return refuse(RemakeError::OtherShards(with));
        }
        self.chains.wish(PlacementChange::Merge { partition: id, with });
        self.act();
        if !self.chains.is_changing(id) {
            return refuse(RemakeError::CannotBegin);
        }
        let saw = format!("wanted: merge partitions {id} and {with}");
        self.ledger.decisions.note(now, Level::Usual, saw, "close them", "");
        Ok(())
    }

    /// Whether others can be made of a partition now.
    fn refuse_to_remake(&self, partition: &Partition) -> Result<(), CommandError> {
        let Partition { id, keyspace, first, last, .. } = *partition;
        let refuse = |why| Err(CommandError::Remake(id, why));
        if !partition.open || partition.has_learner || self.chains.is_changing(id) {
            return refuse(RemakeError::Changing);
        }
        if let Some(node) = partition.chain.iter().find(|node| !self.members.splits(**node)) {
            return refuse(RemakeError::Unable(*node));
        }
        if self.hot.delegates_any(keyspace, first..=last) {
            return refuse(RemakeError::Delegated);
        }
        Ok(())
    }
}
