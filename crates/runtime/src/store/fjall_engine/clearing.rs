//! How what is held of a partition is removed, piece by piece.

use super::tree::Direction;
use super::{FjallEngine, codec};
use cluster::PartitionId;
use fjall::PersistMode;
use node::engine::{Area, Engine};
use std::ops::{Bound, ControlFlow};

/// Records and notes that are cleared at once, whatever is asked for. Their keys are in memory some
/// four times over, which is a few MiB for the longest; in a larger batch the cost of a commit
/// would no longer show.
pub(super) const CLEARED_MAX: usize = 1_024;

/// Where the next piece of a partition begins. What lies before it is removed, and would still have
/// to be looked at.
#[derive(Debug)]
pub(super) enum NextPiece {
    /// With the note of this name, or the next.
    Note(Vec<u8>),
    /// With this record, or the next: there are no notes any more.
    Record(Vec<u8>),
}

impl FjallEngine {
    /// Removes a piece of a partition: any but the last by a batch of its own, so that no other
    /// change becomes durable before its time.
    pub(super) fn clear_piece(
        &mut self,
        area: &Area,
        at_most: usize,
    ) -> fjall::Result<ControlFlow<()>> {
        let (partition, at_most) = (area.partition, at_most.min(CLEARED_MAX));
        let place = self.clearing.remove(&partition);
        let (start, at_most) = match place.unwrap_or(NextPiece::Note(Vec::new())) {
            NextPiece::Record(start) => (start, at_most),
            NextPiece::Note(from) => match self.clear_notes(partition, &from, at_most) {
                ControlFlow::Continue(cleared) => (codec::start_of(area), at_most - cleared),
                ControlFlow::Break(next) => {
                    self.clear_now(partition, Vec::new())?;
                    self.clearing.insert(partition, NextPiece::Note(next));
                    return Ok(ControlFlow::Break(()));
                }
            },
        };
        if area.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let (mut found, mut next) = (Vec::new(), None);
        let (start, end) = (Bound::Included(start), codec::end_of(area));
        self.visit(&start, &end, Direction::Forward, |at, _, record| {
            if found.len() == at_most {
                next = Some(at.to_vec());
                return ControlFlow::Break(());
            }
            found.push((at.to_vec(), record.expiry_ms));
            ControlFlow::Continue(())
        });
        let Some(next) = next else {
            // With the next sync, which thereby has something to make durable.
            found.iter().for_each(|(at, expiry_ms)| self.remove_at(at, *expiry_ms));
            return Ok(ControlFlow::Continue(()));
        };
        self.clear_now(partition, found)?;
        self.clearing.insert(partition, NextPiece::Record(next));
        Ok(ControlFlow::Break(()))
    }

    /// Commits that these records are gone, and what was changed of the partition's notes. The next
    /// sync makes it as durable as itself, because it comes later in the journal.
    fn clear_now(
        &mut self,
        partition: PartitionId,
        records: Vec<(Vec<u8>, u64)>,
    ) -> fjall::Result<()> {
        self.apart.write()?;
        self.have_written();
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for (at, expiry_ms) in records {
            // What is on disk under it then, and in the due index, is not what is seen here.
            if self.records.tree().is_changed_at(&at) {
                self.remove_at(&at, expiry_ms);
                continue;
            }
            self.len = self.len.saturating_sub(1);
            self.len_on_disk = self.len_on_disk.saturating_sub(1);
            self.due.remove_on_disk(&at, expiry_ms, &mut batch);
            self.records.remove_on_disk(at, &mut batch);
        }
        self.notes.move_changes_of(partition, self.len_on_disk, &mut batch);
        batch.commit()?;
        self.have_written();
        let rotated = self.database.rotate()?;
        self.have_rotated(rotated);
        Ok(())
    }

    /// Removes so many notes of a partition, from this one on, and says which is the next, or how
    /// many these were if there are no more.
    fn clear_notes(
        &mut self,
        partition: PartitionId,
        from: &[u8],
        at_most: usize,
    ) -> ControlFlow<Vec<u8>, usize> {
        let (mut names, mut next) = (Vec::new(), None);
        self.notes_from(partition, from, |name, _| {
            if names.len() == at_most {
                next = Some(name.to_vec());
                return ControlFlow::Break(());
            }
            names.push(name.to_vec());
            ControlFlow::Continue(())
        });
        names.iter().for_each(|name| self.notes.remove(partition, name));
        next.map_or(ControlFlow::Continue(names.len()), ControlFlow::Break)
    }
}
