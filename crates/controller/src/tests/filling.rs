//! What nodes hold goes to where there is room, before they are full.

use super::growing::Field;
use super::world::World;
use crate::{PlacementChange, Purpose};
use cluster::{Member, NodeId, Partition, PartitionId, Resources, Stored, Volume};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::Room;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// What a node may hold, of which the most is smaller than what is large.
const MOST: u64 = 64 << 20;

/// What a client's byte takes in memory, in tenths.
const TAKES: u64 = 15;

/// Pieces of the match space that become full one after the other.
const PIECES: usize = 1_000;

impl World {
    /// Four nodes which may hold so much, with a keyspace of one partition.
    fn limited(limits: [u64; 4], replicas: u8) -> Self {
        let mut world = Self::ranged(4, replicas);
        for (node, most) in (0..).zip(limits) {
            world.member(Member::Node(NodeId(node))).resources.memory_max = Some(most);
        }
        world
    }

    /// A node says what it holds of its partitions, if there is a limit to that; of what is copied
    /// to it as much as has come.
    pub(super) fn fill(&mut self, node: NodeId, field: &Field) {
        let (forgetting, now) = (self.forgetting, self.now);
        let map = self.map();
        let it = &self.members[&Member::Node(node)];
        let copied = |partition: &Partition| match partition.learner() {
            Some(learner) if learner == node => self.copied(partition, node).unwrap_or(0),
            _ => 1_000,
        };
        let here = map.partitions.iter().filter(|p| it.holds(p.id, now, forgetting));
        let bytes: u64 = here.map(|p| field.sum(&field.bytes, p) * copied(p) / 1_000).sum();
        let mine = map.partitions.iter().filter(|p| p.members().contains(&node));
        let stored = mine.map(|p| field.sum(&field.bytes, p)).sum();
        let held = Volume { keys: 1, bytes: stored };
        let Some(keyspace) = map.keyspaces.first().map(|it| it.id) else { return };
        let it = self.member(Member::Node(node));
        if it.resources.memory_max.is_some() {
            it.resources.memory = bytes * TAKES / 10;
            it.stored = vec![Stored { keyspace, held, as_tail: held, counted: true }];
        }
    }

    /// What nodes hold, in thousandths of what they may.
    fn filled(&self) -> Vec<u64> {
        let of = |it: &Resources| Some(it.memory * 1_000 / it.memory_max?);
        let nodes = self.map().nodes;
        nodes.iter().filter_map(|it| of(&self.members[&Member::Node(it.id)].resources)).collect()
    }

    fn moves_for_room(&self) -> usize {
        let decisions = self.status().placement.decisions;
        let room = decisions.iter().filter(|it| it.purpose == Purpose::Room);
        room.map(|it| it.changes.len()).sum()
    }
}

/// Nothing is asked for, and so many bytes lie in the first so many pieces.
fn appended(pieces: usize, bytes: u64) -> Field {
    let mut field = Field::reads(vec![0; PIECES]);
    field.bytes[..pieces].fill(bytes);
    field
}

/// Keys are appended for ten minutes, until so many thousandths of all room are used.
fn append(world: &mut World, room: u64, thousandths: u64) -> Field {
    let piece = room / 1_000 * thousandths * 10 / TAKES / PIECES as u64;
    let at = |time: Duration| usize::try_from(time.as_secs() * PIECES as u64 / 600).unwrap();
    let mut worst = 0;
    for minute in 0..10 {
        world.serve_field(MINUTE, |since| appended(at(minute * MINUTE + since), piece));
        worst = worst.max(world.filled().into_iter().max().unwrap());
    }
    eprintln!("{:?}, {worst} at most, {} partitions", world.filled(), world.count());
    appended(PIECES, piece)
}

/// Nothing changes any more, five minutes after all that was to be done could be done.
fn rests(world: &mut World, field: &Field) {
    world.serve_field(5 * MINUTE, |_| field.clone());
    let chains = |world: &World| -> Vec<Vec<NodeId>> {
        world.map().partitions.into_iter().map(|it| it.chain).collect()
    };
    let rested = (world.changes(), chains(world));
    world.serve_field(5 * MINUTE, |_| field.clone());
    let now = (world.changes(), chains(world));
    assert_eq!(now, rested, "{:#?}", world.status().placement.decisions);
    assert!(world.status().replicated && world.status().covered);
}

#[test]
fn keys_that_are_appended_go_to_where_there_is_room_before_any_node_is_full() {
    let mut world = World::limited([MOST; 4], 1);
    let field = append(&mut world, 4 * MOST, 600);
    let filled = world.filled();
    assert!(filled.iter().all(|it| *it < 900), "{filled:?}");
    assert!(filled.iter().all(|it| *it > 200), "everybody takes part: {filled:?}");
    assert!(world.moves_for_room() > 0);
    rests(&mut world, &field);
}

#[test]
fn a_node_with_a_quarter_of_the_room_is_filled_no_more_than_the_others() {
    for small in 0..4 {
        let mut limits = [MOST; 4];
        limits[small] = MOST / 4;
        let mut world = World::limited(limits, 1);
        let field = append(&mut world, limits.iter().sum(), 600);
        let filled = world.filled();
        assert!(filled.iter().all(|it| *it < 900), "{filled:?}");
        rests(&mut world, &field);
        // If all of it began there, no part of it goes back at first.
        let filled = world.filled();
        let others = (0..).zip(&filled).filter(|(node, _)| *node != small);
        assert!(filled.iter().all(|it| *it < 900), "{filled:?}");
        assert!(others.clone().all(|(_, it)| *it > 200), "{filled:?}");
    }
}

#[test]
fn of_three_replicas_each_takes_its_room() {
    let mut world = World::limited([MOST; 4], 3);
    let field = append(&mut world, 4 * MOST / 3, 650);
    let filled = world.filled();
    assert!(filled.iter().all(|it| (200..900).contains(it)), "{filled:?}");
    rests(&mut world, &field);
}

#[test]
fn load_and_room_do_not_undo_what_the_other_has_done() {
    // What is hot lies where there is little room, which has much less to do than the others when
    // it holds no more than it should.
    let mut world = World::limited([MOST / 4, MOST, MOST, MOST], 1);
    let room = 13 * MOST / 4;
    let at = |time: Duration| {
        let mut field = Field::reads(Field::zipf(PIECES as u64, 0.6, 80_000.0));
        let thousandths = 300 + 300 * time.as_secs().min(600) / 600;
        let piece = room / 1_000 * thousandths * 10 / TAKES / PIECES as u64;
        field.bytes = vec![piece; PIECES];
        field
    };
    let mut left: BTreeMap<(PartitionId, NodeId), u64> = BTreeMap::new();
    let mut before: BTreeMap<PartitionId, BTreeSet<NodeId>> = BTreeMap::new();
    for second in 0..1_200 {
        world.serve_field(SECOND, |_| at(second * SECOND));
        for it in world.status().placement.decisions {
            let moves = it.changes.iter().filter_map(|change| match change {
                PlacementChange::Move { partition, from, .. } => Some((*partition, *from)),
                _ => None,
            });
            left.extend(moves.map(|gone| (gone, it.at_ms)));
        }
        for it in world.map().partitions {
            let members: BTreeSet<NodeId> = it.members().iter().copied().collect();
            let was = before.get(&it.id).unwrap_or(&members);
            for node in members.difference(was) {
                let left_at = left.get(&(it.id, *node)).copied().unwrap_or(0);
                let back = left_at > 0 && world.now.unix_ms() < left_at + 600_000;
                assert!(!back, "{}: back at node {node}, which it left at {left_at}", it.id);
            }
            before.insert(it.id, members);
        }
    }
    let field = at(20 * MINUTE);
    let [turns, moves, splits, _] = world.changes();
    let (filled, worst) = (world.filled(), world.worst_permille(&world.demand(&field)));
    eprintln!("{filled:?}, {turns} turns, {moves} moves, {splits} splits, {worst}");
    assert!(filled.iter().all(|it| *it < 850), "{filled:?}");
    let partitions = u64::try_from(world.count()).unwrap();
    assert!(moves <= 2 * partitions, "{moves} moves of {partitions} partitions");
    assert!(world.moves_for_room() > 0);
    rests(&mut world, &field);
}

/// What was said that nothing can be done about.
fn despaired(world: &World) -> Vec<String> {
    let decisions = world.status().decisions.into_iter();
    let told = decisions.filter(|it| it.trouble && it.did.contains("add nodes"));
    told.map(|it| it.saw).collect()
}

#[test]
fn when_all_nodes_are_full_nothing_moves_and_that_is_said_once() {
    let mut world = World::with_keyspace(4, 1, 16, 1);
    for node in 0..4 {
        world.member(Member::Node(NodeId(node))).resources.memory_max = Some(MOST);
    }
    let piece = 4 * MOST / 1_000 * 900 * 10 / TAKES / PIECES as u64;
    let full = appended(PIECES, piece);
    world.serve_field(3 * MINUTE, |_| full.clone());
    assert_eq!((world.changes(), world.count()), ([0; 4], 16));
    let told = despaired(&world);
    let [said] = &told[..] else { panic!("{told:?}") };
    assert!(said.contains("node 3 holds 8") || said.contains("node 3 holds 9"), "{said}");
    world.add_node(4);
    world.settle();
    world.member(Member::Node(NodeId(4))).resources.memory_max = Some(MOST);
    world.serve_field(5 * MINUTE, |_| full.clone());
    let filled = world.filled();
    eprintln!("{filled:?}");
    assert!((500..800).contains(&filled[4]), "{filled:?}");
    assert_eq!(despaired(&world).len(), 1);
}

#[test]
fn one_key_that_fills_a_node_moves_nowhere_and_that_is_said_once() {
    let mut world = World::limited([MOST; 4], 1);
    let mut field = appended(0, 0);
    field.bytes[40] = MOST * 85 / 100 * 10 / TAKES;
    world.serve_field(3 * MINUTE, |_| field.clone());
    assert_eq!((world.changes(), world.count()), ([0; 4], 1));
    assert_eq!(despaired(&world).len(), 1, "{:#?}", world.status().decisions);
}

#[test]
fn a_store_that_frees_late_gives_away_no_more_than_it_has_to() {
    let mut world = World::with_keyspace(4, 1, 16, 1);
    world.forgetting = 2 * MINUTE;
    let piece = MOST / 1_000 * 215 * 16 * 10 / TAKES / PIECES as u64;
    for (node, most) in (0..).zip([MOST, 4 * MOST, 4 * MOST, 4 * MOST]) {
        world.member(Member::Node(NodeId(node))).resources.memory_max = Some(most);
    }
    let field = appended(PIECES, piece);
    for _ in 0..5 {
        world.serve_field(MINUTE, |_| field.clone());
        let now = (world.replicas_held()[0], world.moves_for_room());
        assert_eq!(now, (3, 1), "{:?} {:#?}", world.filled(), world.status().decisions);
    }
    assert!((600..700).contains(&world.filled()[0]), "{:?}", world.filled());
}

#[test]
fn what_is_missing_goes_to_nodes_with_room_and_else_to_those_without() {
    for limits in [[MOST / 8, MOST], [MOST / 8; 2]] {
        let mut world = World::with_keyspace(5, 1, 16, 2);
        let now = world.now;
        world.controller.pause_placement(now);
        let piece = MOST / 1_000 * 270 * 10 / TAKES / PIECES as u64;
        let field = appended(PIECES, piece);
        for (node, most) in (0..).zip([limits[0], limits[1], limits[1], limits[1]]) {
            world.member(Member::Node(NodeId(node))).resources.memory_max = Some(most);
        }
        world.serve_field(10 * SECOND, |_| field.clone());
        let before = world.replicas_held();
        world.kill(Member::Node(NodeId(4)));
        world.serve_field(MINUTE, |_| field.clone());
        let after = world.replicas_held();
        assert!(world.status().replicated, "{:?} {after:?}", world.filled());
        let all_are_short = limits[1] < MOST;
        assert_eq!(
            after[0] > before[0],
            all_are_short,
            "{before:?} {after:?} {:?}",
            world.filled()
        );
    }
}

#[test]
fn nothing_makes_room_while_placement_is_paused() {
    let mut world = World::limited([MOST; 4], 1);
    let now = world.now;
    world.controller.pause_placement(now);
    append(&mut world, 4 * MOST, 300);
    assert_eq!(world.changes(), [0; 4]);
    let placement = world.status().placement;
    assert!(!placement.planned.is_empty());
    let most = placement.nodes.iter().filter_map(|it| it.room_permille).max();
    assert!(most.is_some_and(|it| it > 1_000), "{placement:#?}");
}

/// While a node is given this copy, which takes ten seconds, it has little room.
fn tighten(world: &mut World) {
    world.live_until(|world| !world.status().copies.is_empty());
    for copy in world.status().copies {
        world.member(Member::Node(copy.to)).resources.room = Room::Tight;
    }
}

#[test]
fn a_copy_that_its_taker_has_no_room_for_is_given_up_unless_it_is_missing() {
    let mut world = World::with_keyspace(4, 1, 12, 1);
    world.copying = 10 * SECOND;
    let (now, map) = (world.now, world.map());
    let [from, to] = [0, 1].map(NodeId);
    let moved = map.partitions.iter().find(|it| it.chain == [from]).unwrap().id;
    world.controller.move_replica(now, moved, (from, to)).unwrap();
    tighten(&mut world);
    let took = world.live_until(|world| world.status().copies.is_empty());
    assert!(took < 2 * SECOND, "{took:?}");
    world.live_until_replicated();
    // It is not begun again, nor another one, so that nothing is closed.
    let map = world.map();
    world.live_for(5 * SECOND);
    assert_eq!(world.map(), map);
    assert_eq!(world.replicas_held(), [3; 4]);

    let mut world = World::with_keyspace(4, 1, 12, 3);
    world.copying = 10 * SECOND;
    world.kill(Member::Node(NodeId(1)));
    tighten(&mut world);
    world.live_for(5 * SECOND);
    assert!(!world.status().copies.is_empty(), "there may be room again");
}
