//! Large tables, and requests for what lies near the bounds of their partitions.

use cluster::{Epoch, KeyspaceId, Match, NodeId, NodeSpec, Partition, PartitionId, SwitchTables};
use machine::Rng;
use testkit::draw::{HASH, endpoint};
use wire::{Endpoint, Header, Op, Revision};

/// A keyspace of so many partitions, half of them in a corner of it.
pub(crate) fn crowded(rng: &mut Rng, revision: u64, count: usize) -> SwitchTables {
    let mut firsts: Vec<u128> =
        (0..count).map(|index| if index % 2 == 0 { wide(rng) } else { wide(rng) >> 40 }).collect();
    firsts.push(0);
    firsts.sort_unstable();
    firsts.dedup();
    firsts.truncate(count);
    let nodes: Vec<NodeSpec> = (1..=20)
        .map(|id| NodeSpec { id: NodeId(id), endpoint: endpoint(id as u8, 9000), shards: 2 })
        .collect();
    let lasts = firsts.iter().skip(1).map(|next| next - 1).chain([u128::MAX]);
    let partitions = firsts.iter().zip(lasts).zip(1_u32..).map(|((first, last), id)| Partition {
        id: PartitionId(id),
        keyspace: KeyspaceId(HASH),
        first: Match(*first),
        last: Match(last),
        epoch: Epoch(id ^ 5),
        chain: (0..3).map(|place| NodeId(1 + ((id + place) % 20) as u16)).collect(),
        open: true,
        ..Partition::default()
    });
    SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(revision),
        active: true,
        partitions: partitions.collect(),
        nodes,
    }
}

/// A GET or a PUT of a value at a bound, beside it, or anywhere.
pub(crate) fn near_a_bound(rng: &mut Rng, tables: &SwitchTables) -> (Endpoint, Vec<u8>) {
    let place = rng.below(tables.partitions.len() as u64) as usize;
    let at = match rng.below(4) {
        0 => wide(rng),
        1 => tables.partitions[place].first.0,
        2 => tables.partitions[place].last.0,
        _ => tables.partitions[place].first.0.wrapping_sub(1),
    };
    let op = if rng.below(2) == 0 { Op::Get } else { Op::Put };
    let header = Header { op: op as u8, keyspace: HASH, match_value: at, ..Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &header, &[b"a payload"]);
    (endpoint(200, 4_000), bytes)
}

fn wide(rng: &mut Rng) -> u128 {
    u128::from(rng.below(u64::MAX)) << 64 | u128::from(rng.below(u64::MAX))
}
