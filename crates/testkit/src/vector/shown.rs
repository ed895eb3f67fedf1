//! What vectors show that a switch can do: what it says of itself is held against that.

use crate::oracle::counts::Counts;
use crate::oracle::model::Sent;
use cluster::{Capabilities, SwitchTables};
use wire::{Fields as _, HEADER_LEN, Op, hop_flag};

/// What a switch has done with a datagram, given what it has sent and counted in all.
#[must_use]
pub fn capabilities(
    tables: Option<&SwitchTables>,
    came: &[u8],
    sent: &[Sent],
    counts: &Counts,
) -> Capabilities {
    let mut shown = Capabilities { counts: !counts.reads.is_empty(), ..Capabilities::default() };
    let Some(before) = came.first_chunk::<HEADER_LEN>() else { return shown };
    let op = Op::from_wire(before.op());
    shown.splits = matches!(op, Some(Op::Mget | Op::Range)) && sent.len() > 1;
    for (to, datagram) in sent {
        let Some(after) = datagram.first_chunk::<HEADER_LEN>() else { continue };
        let flagged = |flag| after.hop_flags() & !before.hop_flags() & flag != 0;
        shown.stamps |= before.chain_len() == 0 && after.chain_len() > 0;
        shown.directory |= op == Some(Op::Get) && flagged(hop_flag::HOT);
        shown.delegates |= op == Some(Op::Put) && flagged(hop_flag::GRANTED);
        let mut caches = tables.iter().flat_map(|it| &it.caches);
        shown.rules |= op == Some(Op::Get) && caches.any(|cache| cache.owns(*to));
    }
    shown
}
