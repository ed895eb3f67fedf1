//! What the directory learns from a reply (rules 3 and 4 of section 8, rule 6 of section 9), before
//! it is sent on.

use crate::hot::HotTable;
use cluster::{KeyspaceId, NodeId, Plant};
use wire::{Code, Fields, HEADER_LEN, Op, hop_flag};

/// Whether a reply says something of one key that the switch understands.
pub(crate) fn is_about_one_key(op: Op) -> bool {
    matches!(
        op,
        Op::GetReply
            | Op::PutReply
            | Op::DelReply
            | Op::CasReply
            | Op::IncrReply
            | Op::HotCopied
            | Op::HotCover
    )
}

/// Whether the answer to a write is of a trip, and decided.
pub(crate) fn is_roamed(header: &[u8; HEADER_LEN]) -> bool {
    Code::says_decided(header.code()) && header.hop_flags() & hop_flag::ROAM != 0
}

/// Takes note of what a node says of a hot key.
pub(crate) fn from_reply(
    table: &HotTable,
    op: Op,
    sender: NodeId,
    header: &[u8; HEADER_LEN],
    plant: Option<Plant>,
) {
    if !is_about_one_key(op) {
        return;
    }
    let Some(row) = table.find(KeyspaceId(header.keyspace()), header.keyhash()) else { return };
    let version = header.object_version();
    match op {
        // What is below the floor is of no use, and would hide what the sender has taken since.
        Op::HotCopied if version < row.entry.floor().0 => return,
        Op::HotCopied => return table.mark(row, sender, Some(version)),
        Op::HotCover => return row.entry.raise(version),
        _ => {}
    }
    let is_get = op == Op::GetReply;
    let of_this_stay = header.stay() == row.entry.stay() || plant == Some(Plant::BelieveAnyProof);
    match Code::from_wire(header.code()) {
        Some(Code::NotHere) if is_get && header.stay() == row.entry.stay() => {
            if header.hop_flags() & hop_flag::NEWEST == 0 {
                table.mark(row, sender, None);
            } else {
                // From the home of a key on a trip.
                row.entry.raise(version);
                row.entry.prove();
            }
        }
        _ if !Code::says_decided(header.code()) => {}
        _ => {
            if is_get || plant != Some(Plant::FloorFromReads) {
                row.entry.raise(version);
            }
            if is_get && header.hop_flags() & hop_flag::NEWEST != 0 && of_this_stay {
                row.entry.prove();
            }
        }
    }
}
