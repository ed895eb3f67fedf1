//! Placement follows load: who does what when partitions are asked for unevenly.

use super::member::content_on;
use super::world::World;
use crate::{CommandError, Controller, KeyspaceSpec, MoveError, PlacementStatus, RemakeError};
use cluster::{
    Capabilities, KeyspaceKind, Member, NodeCount, NodeId, PartitionCount, PartitionId,
    RECORDS_PER_REQUEST,
};
use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Reads and writes per second, by partition.
pub(super) type Demand = BTreeMap<PartitionId, (u64, u64)>;

impl World {
    /// Lives for a while under a load that may change from second to second.
    fn serve(&mut self, time: Duration, demand: impl Fn(Duration) -> Demand) {
        self.serve_as_it_is(time, |_, since| demand(since));
    }

    /// The same under a load that may depend on where things are.
    pub(super) fn serve_as_it_is(
        &mut self,
        time: Duration,
        mut demand: impl FnMut(&mut Self, Duration) -> Demand,
    ) {
        let begin = self.now;
        let mut counted: BTreeMap<PartitionId, (u128, u128)> = BTreeMap::new();
        let known: BTreeMap<_, _> = self.switch_counts().into_iter().collect();
        while self.now.since(begin) < time {
            let before = self.now;
            self.step();
            let nanos = self.now.since(before).as_nanos();
            for (id, (reads, writes)) in demand(self, before.since(begin)) {
                let sum = counted.entry(id).or_default();
                sum.0 += u128::from(reads) * nanos;
                sum.1 += u128::from(writes) * nanos;
            }
            let whole = |nanos: u128| u64::try_from(nanos / 1_000_000_000).unwrap();
            let counts = counted.iter().map(|(id, (reads, writes))| {
                let (reads_before, writes_before) = known.get(id).copied().unwrap_or_default();
                let (reads, writes) =
                    (reads_before + whole(*reads), writes_before + whole(*writes));
                PartitionCount { partition: *id, reads, writes }
            });
            self.member(Member::Switch(0)).counts = counts.collect();
            self.settle();
        }
    }

    fn switch_counts(&self) -> Vec<(PartitionId, (u64, u64))> {
        let counts = self.members[&Member::Switch(0)].counts.iter();
        counts.map(|it| (it.partition, (it.reads, it.writes))).collect()
    }

    fn ids(&self) -> Vec<PartitionId> {
        self.map().partitions.iter().map(|it| it.id).collect()
    }

    /// What each node has to do under a load.
    pub(super) fn loads(&self, demand: &Demand) -> Vec<u64> {
        let map = self.map();
        let mut loads: BTreeMap<NodeId, u64> = map.nodes.iter().map(|it| (it.id, 0)).collect();
        for partition in &map.partitions {
            let (reads, writes) = demand.get(&partition.id).copied().unwrap_or_default();
            for node in partition.members() {
                let is_tail = partition.tail() == Some(*node);
                *loads.get_mut(node).unwrap() += writes + if is_tail { reads } else { 0 };
            }
        }
        loads.into_values().collect()
    }

    pub(super) fn worst_permille(&self, demand: &Demand) -> u64 {
        let loads = self.loads(demand);
        let mean = loads.iter().sum::<u64>() / u64::try_from(loads.len()).unwrap();
        loads.into_iter().max().unwrap() * 1_000 / mean
    }

    /// Chains of all partitions, as they follow each other in time.
    fn chains(&self) -> Vec<Vec<NodeId>> {
        self.map().partitions.iter().map(|it| it.members().to_vec()).collect()
    }

    /// What a node has counted of a partition.
    fn node_count(&mut self, node: NodeId, partition: PartitionId) -> &mut NodeCount {
        let counts = &mut self.member(Member::Node(node)).node_counts;
        let place = counts.iter().position(|it| it.partition == partition).unwrap_or_else(|| {
            counts.push(NodeCount::new(partition));
            counts.len() - 1
        });
        &mut counts[place]
    }
}

fn steady(demand: &Demand) -> impl Fn(Duration) -> Demand + use<> {
    let demand = demand.clone();
    move |_| demand.clone()
}

#[test]
fn reads_turn_to_other_members_and_nothing_is_copied() {
    let mut world = World::with_keyspace(3, 1, 15, 3);
    let tail = world.partition(0).tail().unwrap();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail)).take(3);
    let demand: Demand = mine.map(|it| (it.id, (10_000, 0))).collect();
    let sets = |world: &World| -> Vec<BTreeSet<NodeId>> {
        world.chains().into_iter().map(|it| it.into_iter().collect()).collect()
    };
    let before = sets(&world);
    assert_eq!(world.worst_permille(&demand), 3_000);
    world.serve(30 * SECOND, steady(&demand));
    assert_eq!(world.worst_permille(&demand), 1_000, "{:?}", world.status().decisions);
    assert_eq!(sets(&world), before);
    assert!(world.status().replicated && world.status().covered);
}

/// Four partitions of one node are asked for as often as those of all others; but of two of them
/// long scans are asked for, each of which costs as much as nine requests.
#[test]
fn scans_weigh_what_they_cost() {
    let mut world = World::with_keyspace(4, 1, 16, 1);
    world.copying = SECOND;
    let tail = world.partition(0).tail().unwrap();
    let demand: Demand = world.map().partitions.iter().map(|it| (it.id, (1_000, 0))).collect();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail));
    let scanned: Vec<PartitionId> = mine.take(2).map(|it| it.id).collect();
    let of_scanned = scanned.clone();
    world.serve_as_it_is(40 * SECOND, move |world, _| {
        for id in &of_scanned {
            let found = world.map().partitions.into_iter().find(|it| it.id == *id).unwrap();
            // A step is a tenth of a second.
            let count = world.node_count(found.tail().unwrap(), *id);
            count.scanned += 100 * 8 * RECORDS_PER_REQUEST;
            count.bytes_out += 70_000;
        }
        demand.clone()
    });
    let tail_of = |id: &PartitionId| {
        world.map().partitions.into_iter().find(|it| it.id == *id).and_then(|it| it.tail())
    };
    let tails: BTreeSet<_> = scanned.iter().map(tail_of).collect();
    assert_eq!(tails.len(), 2, "they are read at one node: {:?}", world.status().decisions);
    let rates = world.status().placement.partitions;
    let rate = rates.iter().find(|it| it.partition == scanned[0]).unwrap();
    assert!((990..=1_010).contains(&rate.reads), "{rate:?}");
    assert!((8_900..=9_100).contains(&rate.reading()), "{rate:?}");
    assert!((690_000..=710_000).contains(&rate.bytes_out), "{rate:?}");
}

/// Nodes count what comes to them by the addresses of keys, where no switch does.
#[test]
fn load_that_no_switch_counts_moves_as_well_and_what_one_counts_is_not_counted_twice() {
    let (worst, counted) = by_address(Capabilities::ADDRESSES);
    assert_eq!((worst, counted), (1_000, 600 * 4 * 800), "they are in the status");
    let (worst, counted) = by_address(Capabilities { counts: true, ..Capabilities::ADDRESSES });
    assert_eq!((worst, counted), (4_000, 0), "the switch has counted nothing");
}

/// How much more than the mean the busiest node has to do in the end, in thousandths, and how many
/// reads are in the status, if all requests come by the addresses of keys, on such a plane.
fn by_address(capabilities: Capabilities) -> (u64, u64) {
    let mut world = World::with_keyspace(4, 1, 16, 1);
    world.copying = SECOND;
    let tail = world.partition(0).tail().unwrap();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail));
    let demand: Demand = mine.map(|it| (it.id, (8_000, 2_000))).collect();
    let nothing: Vec<PartitionCount> = world.ids().into_iter().map(none_of).collect();
    let switch = world.member(Member::Switch(0));
    switch.counts = nothing;
    switch.content = Some(content_on(capabilities));
    for _ in 0..600 {
        world.step();
        for (id, (reads, writes)) in &demand {
            let node = world.map().partitions.into_iter().find(|it| it.id == *id).unwrap().chain[0];
            let count = world.node_count(node, *id);
            count.reads += reads / 10;
            count.writes += writes / 10;
        }
        world.settle();
    }
    let keyspaces = world.status().keyspaces;
    let reads = keyspaces.iter().flat_map(|it| &it.partitions).map(|it| it.reads).sum();
    (world.worst_permille(&demand), reads)
}

fn none_of(partition: PartitionId) -> PartitionCount {
    PartitionCount { partition, reads: 0, writes: 0 }
}

#[test]
fn partitions_without_other_members_move() {
    let mut world = World::with_keyspace(4, 1, 16, 1);
    world.copying = SECOND;
    let tail = world.partition(0).tail().unwrap();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail));
    let demand: Demand = mine.map(|it| (it.id, (8_000, 2_000))).collect();
    assert_eq!(demand.len(), 4);
    world.serve(60 * SECOND, steady(&demand));
    assert_eq!(world.worst_permille(&demand), 1_000, "{:?}", world.status().decisions);
    assert!(world.status().replicated);
}

#[test]
fn a_little_load_or_a_little_more_than_others_moves_nothing() {
    for (reads, factor) in [(10, 10), (10_000, 1)] {
        let mut world = World::with_keyspace(4, 1, 16, 3);
        let ids = world.ids();
        let mut demand: Demand = ids.iter().map(|id| (*id, (reads, 0))).collect();
        demand.insert(ids[0], (reads * factor + reads / 2, 0));
        let before = world.chains();
        world.serve(60 * SECOND, steady(&demand));
        assert_eq!(world.chains(), before);
    }
}

#[test]
fn load_that_flips_at_the_controllers_own_periods_moves_no_more_than_steady_load() {
    // From a sample to twice as many as a rate is the mean of.
    for period_ms in [500_u64, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000] {
        let mut world = World::with_keyspace(4, 1, 16, 1);
        let chains = world.map().partitions;
        let of = |node: u16| -> Demand {
            let mine = chains.iter().filter(|it| it.tail() == Some(NodeId(node)));
            mine.map(|it| (it.id, (20_000, 0))).collect()
        };
        let (one, other) = (of(0), of(1));
        let flips = |time: Duration| {
            let turn = u64::try_from(time.as_millis()).unwrap() / period_ms;
            if turn.is_multiple_of(2) { one.clone() } else { other.clone() }
        };
        let changes = |world: &World| {
            let decisions = world.status().placement.decisions;
            decisions.iter().map(|it| it.changes.len()).sum::<usize>()
        };
        // Both are busier than the rest, and that can be helped: three of four partitions may leave
        // each of them before it is known that they take turns, and as many leave their next.
        world.serve(30 * SECOND, flips);
        let learned = changes(&world);
        assert!(learned <= 12, "{period_ms} ms: {:#?}", world.status().placement.decisions);
        // What flips cannot be helped.
        world.serve(120 * SECOND, flips);
        let more = changes(&world) - learned;
        assert!(more <= 2, "{period_ms} ms: {:#?}", world.status().placement.decisions);
    }
}

#[test]
fn under_a_steady_skewed_load_changes_come_to_an_end_and_nothing_goes_back() {
    for (nodes, replicas) in [(4, 1), (8, 3), (16, 3), (5, 2)] {
        let mut world = World::with_keyspace(nodes, 1, 64, replicas);
        world.copying = SECOND;
        let ids = world.ids();
        // Popularity falls as one over the rank, in the order of the partitions.
        let demand: Demand =
            (1_u64..).zip(&ids).map(|(rank, id)| (*id, (200_000 / rank, 20_000 / rank))).collect();
        let mut left: BTreeMap<(PartitionId, NodeId), Instant> = BTreeMap::new();
        let mut changes = 0;
        let mut chains = world.chains();
        for _ in 0..240 {
            world.serve(SECOND, steady(&demand));
            let now = world.chains();
            for (id, (before, after)) in ids.iter().zip(chains.iter().zip(&now)) {
                changes += usize::from(before != after);
                for node in before.iter().filter(|node| !after.contains(node)) {
                    left.insert((*id, *node), world.now);
                }
                for node in after.iter().filter(|node| !before.contains(node)) {
                    assert!(!left.contains_key(&(*id, *node)), "partition {id} went back");
                }
            }
            chains = now;
        }
        let settled = world.chains();
        world.serve(120 * SECOND, steady(&demand));
        assert_eq!(world.chains(), settled, "it has come to rest");
        // The hottest partition cannot be shared.
        let all: u64 = world.loads(&demand).iter().sum();
        let most = 200_000 + 20_000_u64;
        let mean = all / u64::from(nodes);
        let possible = most.max(mean) * 1_000 / mean;
        let worst = world.worst_permille(&demand);
        eprintln!("{nodes} nodes, {replicas} replicas: {worst}, possible {possible}, {changes}");
        assert!(worst <= (possible * 11 / 10).max(1_250), "{worst}, possible {possible}");
        assert!(changes <= 4 * 64, "{changes} changes");
    }
}

#[test]
fn what_came_of_a_decision_is_as_it_was_predicted() {
    let mut world = World::with_keyspace(3, 1, 15, 3);
    let tail = world.partition(0).tail().unwrap();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail)).take(3);
    let demand: Demand = mine.map(|it| (it.id, (10_000, 0))).collect();
    world.serve(30 * SECOND, steady(&demand));
    let PlacementStatus { decisions, turns, moves, planned, under_way, .. } =
        world.status().placement;
    let [decision] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!((decision.saw_permille, decision.predicted_permille), (3_000, 1_000));
    let found = decision.found_permille.unwrap();
    assert!((990..=1_010).contains(&found), "{found}");
    assert_eq!((turns, moves, decision.changes.len()), (2, 0, 2));
    assert!(planned.is_empty() && under_way.is_empty());
}

#[test]
fn nothing_moves_while_placement_is_paused() {
    let mut world = World::with_keyspace(3, 1, 15, 3);
    let tail = world.partition(0).tail().unwrap();
    let mine = world.map().partitions.into_iter().filter(|it| it.tail() == Some(tail));
    let demand: Demand = mine.map(|it| (it.id, (10_000, 0))).collect();
    let (before, now) = (world.chains(), world.now);
    world.controller.pause_placement(now);
    world.serve(20 * SECOND, steady(&demand));
    assert_eq!(world.chains(), before);
    let status = world.status().placement;
    assert!(status.paused && !status.planned.is_empty(), "{status:?}");
    let config = world.config.clone();
    world.restart(config);
    world.settle();
    world.serve(20 * SECOND, steady(&demand));
    assert_eq!(world.chains(), before, "it is kept on record");
    let now = world.now;
    world.controller.resume_placement(now);
    world.serve(20 * SECOND, steady(&demand));
    assert_ne!(world.chains(), before);
}

#[test]
fn an_operator_moves_a_replica_and_it_stays_there() {
    let mut world = World::with_keyspace(4, 1, 8, 3);
    world.copying = SECOND;
    let partition = world.partition(0);
    let (id, tail) = (partition.id, partition.tail().unwrap());
    let other = (0..4).map(NodeId).find(|node| !partition.concerns(*node)).unwrap();
    let now = world.now;
    let controller = &mut world.controller;
    let refused = |controller: &mut Controller, id, from, to| {
        controller.move_replica(now, id, (from, to)).unwrap_err()
    };
    let unknown = PartitionId(999);
    assert_eq!(refused(controller, unknown, tail, other), CommandError::NoPartition(unknown));
    let not_there = CommandError::Move(id, MoveError::NotThere(other));
    assert_eq!(refused(controller, id, other, tail), not_there);
    let there = CommandError::Move(id, MoveError::ThereAlready(partition.chain[0]));
    assert_eq!(refused(controller, id, tail, partition.chain[0]), there);
    let nobody = NodeId(77);
    assert_eq!(refused(controller, id, tail, nobody), CommandError::UnknownNode(nobody));
    controller.move_replica(now, id, (tail, other)).unwrap();
    assert_eq!(refused(controller, id, tail, other), CommandError::Move(id, MoveError::Changing));
    world.live_for(5 * SECOND);
    let moved = world.partition(0);
    assert!(moved.members().contains(&other) && !moved.members().contains(&tail), "{moved:?}");
    assert_eq!(moved.tail(), Some(other), "it answers reads as the one before it did");
    assert!(world.status().replicated);
    world.live_for(60 * SECOND);
    assert!(world.partition(0).members().contains(&other), "numbers of replicas move nothing back");
}

#[test]
fn a_partition_is_split_where_it_was_asked_for_and_its_parts_can_move() {
    let mut world = World::with_keyspace(4, 1, 3, 3);
    let whole = world.partition(1);
    let now = world.now;
    assert_eq!(
        world.controller.split(now, PartitionId(99), None),
        Err(CommandError::NoPartition(PartitionId(99)))
    );
    world.controller.split(now, whole.id, None).unwrap();
    world.live_until(|world| world.map().partitions.len() == 4);
    let map = world.map();
    let (first, second) = (&map.partitions[1], &map.partitions[2]);
    assert_eq!((first.first, second.last), (whole.first, whole.last));
    assert_eq!(first.last.0 + 1, second.first.0);
    let set = |it: &[NodeId]| it.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(set(first.members()), set(whole.members()));
    assert_eq!(set(second.members()), set(whole.members()));
    assert_ne!(first.tail(), second.tail(), "roles fall to others");
    // Nodes have two shards each.
    assert!([first.id, second.id].iter().all(|id| id.0 > 3 && id.0 % 2 == whole.id.0 % 2));
    world.live_for(SECOND);
    assert!(world.status().covered, "{:?}", world.status());
    // Now one node has more replicas than the others, and gives one of a part away.
    world.live_for(10 * SECOND);
    let held = world.replicas_held();
    assert_eq!(held, [3; 4], "{:?}", world.status().decisions);
    let moved =
        world.map().partitions.into_iter().find(|it| set(it.members()) != set(&whole.chain));
    assert!(moved.is_some() && world.status().replicated);
}

#[test]
fn a_split_that_cannot_be_is_refused_with_the_reason() {
    let mut world = World::with_keyspace(3, 1, 1, 3);
    let now = world.now;
    let spec = KeyspaceSpec {
        kind: KeyspaceKind::Range { prefix: b"u".to_vec() },
        ..super::world::hash("ranged", 1, 3)
    };
    world.controller.create_keyspace(now, spec).unwrap();
    world.live_for(3 * SECOND);
    let id = world.map().partitions[1].id;
    let mut split = |at: Option<&[u8]>| world.controller.split(now, id, at);
    assert_eq!(split(None), Err(CommandError::Remake(id, RemakeError::Where)));
    for outside in [&b"a"[..], b"u", b""] {
        assert_eq!(split(Some(outside)), Err(CommandError::Remake(id, RemakeError::Outside)));
    }
    split(Some(b"um")).unwrap();
    assert_eq!(split(Some(b"uz")), Err(CommandError::Remake(id, RemakeError::Changing)));
    world.live_for(3 * SECOND);
    assert_eq!(world.map().partitions.len(), 3);
}

#[test]
fn neighbours_with_the_same_nodes_become_one() {
    let mut world = World::with_keyspace(3, 1, 2, 3);
    let [one, other] = [0, 1].map(|index| world.partition(index).id);
    let now = world.now;
    let merge = |world: &mut World, one, other| world.controller.merge(now, (one, other));
    let refused = CommandError::Remake(one, RemakeError::OtherShards(other));
    assert_eq!(merge(&mut world, one, other), Err(refused), "nodes have two shards");
    world.controller.split(now, one, None).unwrap();
    world.live_until(|world| world.map().partitions.len() == 3);
    let parts = world.map().partitions;
    let apart = CommandError::Remake(parts[0].id, RemakeError::NotNeighbours(other));
    assert_eq!(merge(&mut world, parts[0].id, other), Err(apart));
    world.live_for(SECOND);
    let now = world.now;
    // In either order.
    world.controller.merge(now, (parts[1].id, parts[0].id)).unwrap();
    world.live_until(|world| world.map().partitions.len() == 2);
    let joint = world.partition(0);
    assert_eq!((joint.first, joint.last), (parts[0].first, parts[1].last));
    let origins: Vec<_> = joint.made.iter().flat_map(|it| &it.origins).collect();
    assert_eq!(
        origins.iter().map(|it| it.partition).collect::<Vec<_>>(),
        [parts[0].id, parts[1].id]
    );
    world.live_for(SECOND);
    assert!(world.status().covered && world.status().replicated, "{:?}", world.status());
}
