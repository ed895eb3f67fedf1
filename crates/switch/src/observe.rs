//! What the directory observes from a reply (rules H4 to H9, D12 and D13 of `spec/protocol.md`),
//! before it is sent on; and what it says of its node.

use crate::hot::HotTable;
use crate::loads::LoadReport;
use cluster::{KeyspaceId, MaybeMutant, Mutant, NodeId};
use wire::{Code, Fields, HEADER_LEN, HotAnswer, NodeReply, Op, RATE_MAX, hop_flag};

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
            | Op::HotPublish
    )
}

/// Whether a reply answers a request, and does not say something of copies.
pub(crate) fn answers_a_request(op: Op) -> bool {
    op.is_reply() && !matches!(op, Op::HotCopied | Op::HotPublish)
}

/// What a reply says of the node that it comes from.
pub(crate) fn of_the_node(table: &HotTable, op: Op, header: &[u8; HEADER_LEN]) -> LoadReport {
    let rate = rate_of(header).unwrap_or(0);
    // Else requests are not counted, either.
    let answers = answers_a_request(op) && table.predicts();
    LoadReport { load: header.load(), rate, answers }
}

/// What a reply says that its node can serve, 0 for nothing; `None` if that cannot be.
pub(crate) fn rate_of(header: &[u8; HEADER_LEN]) -> Option<u32> {
    // A node that leaves the request's chain in its reply does not know of rates.
    let rate = if header.chain_len() == 0 { NodeReply::read(header).rate } else { 0 };
    (rate <= RATE_MAX as u32).then_some(rate)
}

/// Whether the answer to a write is of a delegation, and decided.
pub(crate) fn is_delegated(header: &[u8; HEADER_LEN]) -> bool {
    Code::says_decided(header.code()) && header.hop_flags() & hop_flag::GRANTED != 0
}

/// Takes note of what a node says of a hot key, and says whether that is to be believed.
pub(crate) fn from_reply(
    table: &HotTable,
    op: Op,
    sender: NodeId,
    header: &[u8; HEADER_LEN],
    mutant: MaybeMutant,
) -> bool {
    if !is_about_one_key(op) {
        return true;
    }
    let Some(row) = table.find(KeyspaceId(header.keyspace()), header.keyhash()) else {
        return true;
    };
    let HotAnswer { version, generation } = HotAnswer::read(header);
    // A HOT_PUBLISH is what a GET would be told.
    let of_read = matches!(op, Op::GetReply | Op::HotPublish);
    let own_generation = generation == row.entry.generation();
    let newest = of_read && header.hop_flags() & hop_flag::NEWEST != 0;
    let says = match op {
        // What is below the floor is of no use, and would hide what the sender has taken since.
        Op::HotCopied => version >= row.entry.floor().0,
        _ if header.code() == Code::NotHere as u8 && of_read && own_generation => {
            if !newest {
                table.holder(row, sender, None);
            }
            // Else it is from the home of a delegated key.
            newest
        }
        _ => Code::says_decided(header.code()),
    };
    if !says {
        return true;
    }
    if row.is_beyond(version) {
        return false;
    }
    if op == Op::HotCopied {
        table.holder(row, sender, Some(version));
        return true;
    }
    let deaf = if of_read { Mutant::FloorFromWrites } else { Mutant::FloorFromReads };
    if op == Op::HotPublish || !mutant.is(deaf) {
        row.entry.raise(version);
    }
    if newest && (own_generation || mutant.is(Mutant::BelieveAnyProof)) {
        row.entry.prove();
    }
    true
}
