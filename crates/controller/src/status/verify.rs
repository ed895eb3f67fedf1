//! What is known of replicas having been compared.

use super::form::{PartitionVerified, VerifyStatus};
use super::view::{View, ms_between};
use cluster::{Partition, Verification};

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
        let Verification { members, done, .. } = *said;
        sum.done += usize::from(done);
        sum.alone += usize::from(done && members < 2);
        permille += usize::from(said.permille);
        sum.found.add(&said.found);
    }
    let whole = permille.checked_div(sum.partitions).unwrap_or(1_000);
    sum.permille = u16::try_from(whole).unwrap_or(1_000);
    Some(sum)
}

/// Of one partition; `None`: not since this controller began.
pub(super) fn verified(view: &View<'_>, partition: &Partition) -> Option<PartitionVerified> {
    let (said, heard) = view.verifying.last_done(partition.id)?;
    let ms_ago = ms_between(heard, view.now);
    Some(PartitionVerified { ms_ago, members: said.members, left: said.found.left() })
}
