//! Multigets with hints (NetMC, algorithms 1 and 2): the splitter that goes by them against the one
//! that looks at every key.

use cluster::{Incarnation, KeyspaceId, NodeSpec, Partition, SwitchControl as _, SwitchTables};
use machine::{Instant, Outbox};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use switch::Pipeline;
use testkit::draw::{HASH, any_bounds, endpoint, partitions};
use testkit::oracle::compare::before_tables;
use wire::{
    Endpoint, Fields as _, GroupedMget, HEADER_LEN, Header, MGET_GROUPS_MAX, MgetKey, Op, Revision,
    flag,
};

const NOW: Instant = Instant::from_unix_ms(1_000);

/// A keyspace whole, over nodes of which all are there.
fn any_tables() -> impl Strategy<Value = SwitchTables> {
    (any_bounds(), vec(1u16..=3, 1..=8), 1u64..100).prop_map(|(bounds, shards, revision)| {
        let nodes: Vec<NodeSpec> =
            (0u16..).zip(shards).map(|(id, shards)| node(id, shards)).collect();
        let ids: Vec<_> = nodes.iter().map(|node| node.id).collect();
        let partitions = partitions(HASH, bounds, &ids);
        SwitchTables {
            fenced: Vec::new(),
            caches: Vec::new(),
            cluster: cluster::ClusterId(0),
            revision: Revision::new(revision),
            active: true,
            nodes,
            partitions,
        }
    })
}

fn node(id: u16, shards: u16) -> NodeSpec {
    let host = u8::try_from(id).expect("few nodes");
    NodeSpec { id: cluster::NodeId(id), endpoint: endpoint(host, 9000), shards }
}

/// Where reads of this match value go, and of which partition it is.
fn home(tables: &SwitchTables, at: u128) -> (Endpoint, &Partition) {
    let partition = tables.partitions.iter().find(|it| it.holds(cluster::Match(at)));
    let partition = partition.expect("partitions leave no gap");
    let node = tables.nodes.iter().find(|node| Some(node.id) == partition.tail());
    (node.expect("all nodes are there").endpoint_of(partition.id), partition)
}

/// Algorithm 1: the multiget of these keys by one who has these tables. Keys beyond the groups that
/// hints can name are left out.
fn hinted(tables: &SwitchTables, keys: &[u128], bitmap: u32) -> Vec<u8> {
    let mut groups: BTreeMap<Endpoint, Vec<u128>> = BTreeMap::new();
    for key in keys {
        groups.entry(home(tables, *key).0).or_default().push(*key);
    }
    let groups: Vec<Vec<u128>> = groups.into_values().take(MGET_GROUPS_MAX).collect();
    let (mut ends, mut partitions, mut count) = (0u32, [0; 2 * MGET_GROUPS_MAX], 0);
    for (place, group) in partitions.chunks_exact_mut(2).zip(&groups) {
        let (_, partition) = home(tables, group[0]);
        place.copy_from_slice(&u16::try_from(partition.id.0).unwrap().to_be_bytes());
        count += group.len();
        ends |= 1 << (count - 1);
    }
    let header = Header {
        op: Op::Mget as u8,
        flags: flag::GROUPED,
        keyspace: HASH,
        bitmap,
        client: 7,
        seq: 9,
        ..Header::default()
    };
    let keys =
        groups.iter().flatten().map(|at| MgetKey { match_value: *at, keyhash: 5, key: b"k" });
    let mut bytes = Vec::new();
    wire::emit_mget(&mut bytes, &header, keys);
    let header: &mut [u8; HEADER_LEN] = bytes.first_chunk_mut().unwrap();
    GroupedMget { ends, group: 0, partitions }.write(header);
    bytes
}

fn pipeline(tables: &SwitchTables, by_hints: bool) -> Pipeline {
    let mut pipeline = Pipeline::new(Incarnation(1));
    if by_hints {
        pipeline.split_by_hints();
    }
    pipeline.install(tables).unwrap();
    pipeline.renew(NOW, &before_tables(Incarnation(1), NOW));
    pipeline
}

/// What is sent, and what each partition was asked for.
fn split(pipeline: &mut Pipeline, datagram: &[u8]) -> Vec<(Endpoint, Vec<u8>)> {
    let mut out = Outbox::default();
    let outcome = pipeline.process(NOW, endpoint(200, 1), &mut datagram.to_vec(), &mut out);
    outcome.unwrap();
    let sent = std::iter::from_fn(|| out.pop().map(|it| (it.to, it.payload.to_vec())));
    let mut sent: Vec<_> = sent.collect();
    sent.sort();
    sent
}

fn bitmap(datagram: &[u8]) -> u32 {
    datagram.first_chunk::<HEADER_LEN>().unwrap().bitmap()
}

proptest! {
    #[test]
    fn right_hints_make_the_same_requests_as_no_hints(
        tables in any_tables(), keys in vec(any::<u128>(), 1..=32), asked in any::<u32>(),
    ) {
        let datagram = hinted(&tables, &keys, asked | 1);
        let (mut by_hints, mut by_keys) = (pipeline(&tables, true), pipeline(&tables, false));
        let sent = split(&mut by_hints, &datagram);
        prop_assert_eq!(&sent, &split(&mut by_keys, &datagram));
        let reads = |it: &Pipeline| {
            let loads = it.counters_ref().partitions().iter();
            loads.map(|load| load.reads).sum::<u64>()
        };
        prop_assert_eq!(reads(&by_hints), reads(&by_keys));
        prop_assert!(by_hints.counters_ref().dropped().all(|(_, count)| count == 0));
    }

    #[test]
    fn old_hints_send_each_key_to_one_node_and_the_first_of_a_group_to_its_own(
        tables in any_tables(), keys in vec(any::<u128>(), 1..=32),
        chains in vec(any::<prop::sample::Index>(), 12),
    ) {
        let datagram = hinted(&tables, &keys, u32::MAX);
        // Since then every partition has been given to somebody.
        let mut now = tables.clone();
        now.revision = now.revision.next(0);
        for (partition, chain) in now.partitions.iter_mut().zip(&chains) {
            partition.has_learner = false;
            partition.chain = vec![chain.get(&now.nodes).id];
        }
        let sent = split(&mut pipeline(&now, true), &datagram);
        let mut seen = 0;
        for (to, request) in &sent {
            prop_assert_eq!(seen & bitmap(request), 0);
            seen |= bitmap(request);
            let first = bitmap(request).trailing_zeros() as usize;
            let slot = HEADER_LEN + 24 * first;
            let at = u128::from_be_bytes(*request[slot..].first_chunk().unwrap());
            prop_assert_eq!(home(&now, at).0, *to, "whoever has it today");
        }
        let count = datagram.first_chunk::<HEADER_LEN>().unwrap().count();
        prop_assert_eq!(seen, u32::MAX >> (32 - u32::from(count)));
        // Asked again, without hints, all keys reach their nodes.
        let mut again = datagram.clone();
        again.first_chunk_mut::<HEADER_LEN>().unwrap().set_flags(0);
        wire::seal(&mut again);
        let by_keys = split(&mut pipeline(&now, false), &again);
        prop_assert_eq!(split(&mut pipeline(&now, true), &again), by_keys);
    }

    #[test]
    fn a_switch_that_looks_at_keys_does_not_care_for_hints(
        tables in any_tables(), keys in vec(any::<u128>(), 1..=32), ends in any::<u32>(),
        group in any::<u8>(), partitions in any::<[u8; 2 * MGET_GROUPS_MAX]>(),
    ) {
        let right = hinted(&tables, &keys, u32::MAX);
        let mut wrong = right.clone();
        let header: &mut [u8; HEADER_LEN] = wrong.first_chunk_mut().unwrap();
        GroupedMget { ends, group, partitions }.write(header);
        let mut sent = split(&mut pipeline(&tables, false), &wrong);
        for (_, request) in &mut sent {
            // What nobody looks at stays as it came.
            let header: &mut [u8; HEADER_LEN] = request.first_chunk_mut().unwrap();
            let right: &[u8; HEADER_LEN] = right.first_chunk().unwrap();
            let GroupedMget { partitions, .. } = GroupedMget::read(right);
            GroupedMget { partitions, ..GroupedMget::read(header) }.write(header);
        }
        prop_assert_eq!(sent, split(&mut pipeline(&tables, false), &right));
    }
}

#[test]
fn hints_beyond_those_that_the_header_holds_name_nothing() {
    let tables = SwitchTables {
        fenced: Vec::new(),
        caches: Vec::new(),
        cluster: cluster::ClusterId(0),
        revision: Revision::new(1),
        active: true,
        nodes: vec![node(0, 1)],
        partitions: partitions(HASH, vec![(0, vec![], 1)], &[cluster::NodeId(0)])
            .into_iter()
            .map(|it| Partition { chain: vec![cluster::NodeId(0)], ..it })
            .collect(),
    };
    assert_eq!(tables.partitions[0].keyspace, KeyspaceId(HASH));
    let mut datagram = hinted(&tables, &[1; 32], u32::MAX);
    let header: &mut [u8; HEADER_LEN] = datagram.first_chunk_mut().unwrap();
    let GroupedMget { partitions: mut places, .. } = GroupedMget::read(header);
    let again = places.first_chunk::<2>().unwrap().repeat(MGET_GROUPS_MAX);
    places.copy_from_slice(&again);
    GroupedMget { ends: u32::MAX, group: 0, partitions: places }.write(header);
    let mut by_hints = pipeline(&tables, true);
    let sent = split(&mut by_hints, &datagram);
    assert_eq!(sent.len(), MGET_GROUPS_MAX, "a group for each key, as far as there are names");
    let dropped = by_hints.counters_ref().dropped().map(|(_, count)| count).sum::<u64>();
    assert_eq!(dropped, 32 - MGET_GROUPS_MAX as u64, "the others are asked for again");
}
