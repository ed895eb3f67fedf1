//! What is known of replicas having been compared.

use super::{View, ms_between};
use cluster::{Difference, Partition, Verification};
use serde::{Deserialize, Serialize};

/// How far the comparison of replicas has come that was asked for last, summed over partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyStatus {
    /// Number of the wish.
    pub number: u64,
    /// Whether what is certainly wrong is made right.
    pub mend: bool,
    /// Partitions to compare.
    pub partitions: usize,
    /// Partitions that have been compared.
    pub done: usize,
    /// Thousandths of all that have been.
    pub permille: u16,
    /// Values that were compared.
    pub keys: u64,
    /// Keys of which members held different things.
    pub different: u64,
    /// Those of them that were made right.
    pub mended: u64,
    /// Keys that were written all the time, and could not be compared.
    pub moving: u64,
    /// Records with a version that nobody can have given out yet.
    pub absurd: u64,
    /// Partitions with one replica, which has nobody to be compared with.
    pub alone: usize,
    /// The first of the different keys of each partition.
    pub first: Vec<Difference>,
}

/// When the replicas of a partition were last compared, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionVerified {
    /// Milliseconds ago.
    pub ms_ago: u64,
    /// Replicas that were compared.
    pub members: u8,
    /// Keys of which they hold different things still.
    pub left: u64,
}

/// Of the wish that is known.
pub(super) fn verify(view: &View<'_>) -> Option<VerifyStatus> {
    let order = view.verifying.order?;
    let concerned = view.state.map.partitions.iter().filter(|it| order.concerns(it.id));
    let mut sum = VerifyStatus { number: order.number, mend: order.mend, ..Default::default() };
    let mut permille = 0;
    for partition in concerned {
        sum.partitions += 1;
        let said = view.verifying.newest(partition.id);
        let Some(said) = said.filter(|said| said.number == order.number) else { continue };
        let Verification { members, done, keys, different, mended, moving, absurd, .. } = *said;
        sum.done += usize::from(done);
        sum.alone += usize::from(done && members < 2);
        permille += usize::from(said.permille);
        sum.keys = sum.keys.saturating_add(keys);
        sum.different = sum.different.saturating_add(different);
        sum.mended = sum.mended.saturating_add(mended);
        sum.moving = sum.moving.saturating_add(moving);
        sum.absurd = sum.absurd.saturating_add(absurd);
        sum.first.extend(said.first.iter().cloned());
    }
    let whole = permille.checked_div(sum.partitions).unwrap_or(1_000);
    sum.permille = u16::try_from(whole).unwrap_or(1_000);
    Some(sum)
}

/// Of one partition; `None`: not since this controller began.
pub(super) fn verified(view: &View<'_>, partition: &Partition) -> Option<PartitionVerified> {
    let (said, heard) = view.verifying.last_done(partition.id)?;
    let ms_ago = ms_between(heard, view.now);
    Some(PartitionVerified { ms_ago, members: said.members, left: said.left() })
}
