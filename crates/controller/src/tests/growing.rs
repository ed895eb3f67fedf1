//! Partitions become more where load or bytes are, and fewer when nobody needs them.

use super::placement::Demand;
use super::world::{World, hash};
use crate::KeyspaceSpec;
use cluster::{KeyspaceKind, Match, Member, Partition, PartitionSample, Volume};
use std::ops::Range;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// How often it is looked at what is asked for, and how old that is when nodes tell.
const STEP: Duration = Duration::from_millis(250);
const OLD: Duration = Duration::from_millis(750);

/// Reads and writes per second, and bytes, of each of many equal pieces of the match space, in
/// order. Whatever is asked of a piece is asked of its first match value.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) reads: Vec<u64>,
    pub(super) writes: Vec<u64>,
    pub(super) bytes: Vec<u64>,
}

impl Field {
    pub(super) fn reads(reads: Vec<u64>) -> Self {
        let none = vec![0; reads.len()];
        Self { reads, writes: none.clone(), bytes: none }
    }

    /// By Zipf's law, the most popular first.
    pub(super) fn zipf(pieces: u64, theta: f64, rate: f64) -> Vec<u64> {
        let weights: Vec<f64> = (1..=pieces).map(|rank| (rank as f64).powf(-theta)).collect();
        let all: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / all * rate) as u64).collect()
    }

    fn at(&self, piece: usize) -> Match {
        Match(u128::MAX / self.reads.len() as u128 * piece as u128)
    }

    fn pieces(&self, partition: &Partition) -> Range<usize> {
        let width = u128::MAX / self.reads.len() as u128;
        let place = |at: u128| usize::try_from(at).unwrap().min(self.reads.len());
        let end = place(partition.last.0 / width + 1);
        place(partition.first.0.div_ceil(width)).min(end)..end
    }

    pub(super) fn sum(&self, of: &[u64], partition: &Partition) -> u64 {
        of[self.pieces(partition)].iter().sum()
    }

    /// Match values that cut what there is of a partition into 64 equal shares.
    fn points(&self, partition: &Partition, of: impl Fn(usize) -> u64) -> Vec<Match> {
        let all: u64 = self.pieces(partition).map(&of).sum();
        let (mut passed, mut points) = (0, Vec::new());
        for piece in self.pieces(partition) {
            passed += of(piece);
            while points.len() < 64 && (2 * points.len() as u64 + 1) * all < passed * 128 {
                points.push(self.at(piece));
            }
        }
        points
    }
}

impl World {
    pub(super) fn ranged(nodes: u16, replicas: u8) -> Self {
        let mut world = Self::settled(nodes, 1);
        let kind = KeyspaceKind::Range { prefix: Vec::new() };
        let spec = KeyspaceSpec { kind, ..hash("ranged", 1, replicas) };
        let now = world.now;
        world.controller.create_keyspace(now, spec).unwrap();
        world.copying = SECOND;
        world.live_for(3 * SECOND);
        world
    }

    pub(super) fn demand(&self, field: &Field) -> Demand {
        let partitions = self.map().partitions;
        let of = |it: &Partition| (field.sum(&field.reads, it), field.sum(&field.writes, it));
        partitions.iter().map(|it| (it.id, of(it))).collect()
    }

    /// Lives under a load that may move.
    pub(super) fn serve_field(&mut self, time: Duration, field: impl Fn(Duration) -> Field) {
        self.serve_field_from(Duration::ZERO, time, field);
    }

    /// Goes on for some time under a load that began so long ago.
    fn serve_field_from(
        &mut self,
        begun: Duration,
        time: Duration,
        field: impl Fn(Duration) -> Field,
    ) {
        let mut known: Option<(Duration, Demand)> = None;
        self.serve_as_it_is(time, |world, since| {
            let since = begun + since;
            if let Some((at, demand)) = &known
                && since < *at + STEP
            {
                return demand.clone();
            }
            let (then, map) = (field(since.saturating_sub(OLD)), world.map());
            let field = field(since);
            for node in &map.nodes {
                let mine = map.partitions.iter().filter(|it| it.tail() == Some(node.id));
                let sample = |it: &Partition| PartitionSample {
                    partition: it.id,
                    held: Some(Volume { keys: 1, bytes: field.sum(&field.bytes, it) }),
                    asked: then.points(it, |piece| then.reads[piece] + then.writes[piece]),
                    asked_age_ms: u64::try_from((OLD + STEP).as_millis()).unwrap(),
                    stored: field.points(it, |piece| field.bytes[piece]),
                };
                world.member(Member::Node(node.id)).samples = mine.map(sample).collect();
                world.fill(node.id, &field);
            }
            let demand = world.demand(&field);
            known = Some((since, demand.clone()));
            demand
        });
    }

    /// How long it takes until no node has more than a ninth more than it ought to.
    fn serve_until_even(&mut self, field: &Field) -> Duration {
        let begin = self.now;
        while self.worst_permille(&self.demand(field)) > 1_111 && self.now.since(begin) < MINUTE {
            self.serve_field(SECOND, |_| field.clone());
        }
        self.now.since(begin)
    }

    pub(super) fn count(&self) -> usize {
        self.map().partitions.len()
    }

    pub(super) fn changes(&self) -> [u64; 4] {
        let placement = self.status().placement;
        [placement.turns, placement.moves, placement.splits, placement.merges]
    }
}

#[test]
fn a_keyspace_of_one_partition_grows_until_its_load_is_shared_out_and_comes_to_rest() {
    for (nodes, replicas) in [(16, 1), (16, 3), (4, 3)] {
        let mut world = World::ranged(nodes, replicas);
        let mut field = Field::reads(Field::zipf(2_000, 0.99, 400_000.0));
        field.writes = Field::zipf(2_000, 0.99, 40_000.0);
        world.serve_field(3 * MINUTE, |_| field.clone());
        let demand = world.demand(&field);
        // A node has to answer all reads of the hottest key, and all of its writes.
        let hottest = field.reads[0] + field.writes[0];
        let all: u64 = field.reads.iter().sum::<u64>()
            + field.writes.iter().sum::<u64>() * u64::from(replicas);
        let possible = (hottest * u64::from(nodes) * 1_000 / all).max(1_000);
        let (worst, count) = (world.worst_permille(&demand), world.count());
        eprintln!("{nodes} nodes, {replicas} replicas: {count} partitions, {worst}, {possible}");
        assert!(worst * 9 <= possible * 10, "{:#?}", world.status().decisions);
        assert!(count <= 16 * usize::from(nodes), "{count}");
        let rested = world.changes();
        world.serve_field(5 * MINUTE, |_| field.clone());
        assert_eq!(world.changes(), rested, "{:#?}", world.status().decisions);
        assert!(world.status().replicated && world.status().covered);
    }
}

#[test]
fn what_one_key_is_asked_for_cannot_be_cut() {
    let mut world = World::ranged(4, 1);
    let mut reads = vec![0; 100];
    reads[40] = 50_000;
    world.serve_field(MINUTE, |_| Field::reads(reads.clone()));
    assert_eq!((world.count(), world.changes()), (1, [0; 4]));
}

#[test]
fn a_hot_range_that_moves_is_shared_out_again() {
    let mut world = World::ranged(8, 1);
    world.copying = SECOND / 5;
    let hot = |begin: usize| {
        let mut reads = vec![10; 1_000];
        reads[begin..begin + 100].fill(1_000);
        Field::reads(reads)
    };
    world.serve_field(2 * MINUTE, |_| hot(0));
    for begin in [500, 200, 800] {
        let time = world.serve_until_even(&hot(begin));
        eprintln!("{begin}: even after {time:?}, {} partitions", world.count());
        assert!(
            time < 30 * SECOND,
            "{begin}: {time:?} {:#?} {:?}",
            world.status().placement.decisions,
            world.loads(&world.demand(&hot(begin)))
        );
        world.serve_field(MINUTE - time, |_| hot(begin));
        let worst = world.worst_permille(&world.demand(&hot(begin)));
        assert!(
            worst <= 1_150,
            "{begin}: {worst} {} {:#?}",
            world.count(),
            world.status().placement.decisions
        );
    }
}

#[test]
fn the_most_popular_keys_are_shared_out_again_wherever_they_are_next() {
    let mut world = World::ranged(16, 1);
    world.copying = SECOND / 5;
    let zipf = Field::zipf(2_000, 0.99, 200_000.0);
    let first = [0, 500, 1_000, 1_500, 250, 1_250];
    let field = |since: Duration| {
        let place = usize::try_from(since.as_secs() / 60).unwrap();
        let mut reads = zipf.clone();
        reads.rotate_right(first[place]);
        Field::reads(reads)
    };
    // The node of the most popular key has no less.
    let possible = zipf[0] * 16 * 1_000 / zipf.iter().sum::<u64>();
    let mut late = vec![0; first.len()];
    for second in 0..60 * first.len() {
        let begun = SECOND * u32::try_from(second).unwrap();
        world.serve_field_from(begun, SECOND, field);
        let worst = world.worst_permille(&world.demand(&field(begun)));
        if worst * 9 > possible * 10 {
            late[second / 60] = second % 60 + 1;
        }
    }
    eprintln!("not even for {late:?} s, {} partitions", world.count());
    assert!(late.iter().all(|it| *it <= 20), "{late:?} {:#?}", world.status().placement.decisions);
}

#[test]
fn load_that_goes_on_with_every_key_that_is_written_is_not_cut_again_and_again() {
    let mut world = World::ranged(4, 1);
    // Every second the next piece, and no other ever again.
    let append = |since: Duration| {
        let mut field = Field::reads(vec![0; 2_000]);
        field.writes[usize::try_from(since.as_secs()).unwrap()] = 20_000;
        // Within a sample several pieces are seen.
        for before in 1..3 {
            if let Some(at) = usize::try_from(since.as_secs()).unwrap().checked_sub(before) {
                field.writes[at] = 10_000;
            }
        }
        field
    };
    world.serve_field(20 * MINUTE, append);
    let [_, moves, splits, _] = world.changes();
    assert!(splits <= 12, "{splits} splits: {:#?}", world.status().placement.decisions);
    assert!(moves <= 2 * splits, "{moves} moves: {:#?}", world.status().placement.decisions);
}

#[test]
fn what_is_large_is_cut_by_its_bytes() {
    let mut world = World::ranged(3, 3);
    let mut field = Field::reads(vec![0; 500]);
    field.bytes = (0..500).map(|piece| if piece < 400 { 1 << 20 } else { 10 << 20 }).collect();
    world.serve_field(2 * MINUTE, |_| field.clone());
    let parts = world.map().partitions;
    let bytes: Vec<u64> = parts.iter().map(|it| field.sum(&field.bytes, it)).collect();
    assert!(bytes.iter().all(|it| *it < crate::SPLIT_BYTES), "{bytes:?}");
    assert!(bytes.iter().all(|it| *it > crate::SPLIT_BYTES / 8), "{bytes:?}");
    assert!(parts.iter().skip(1).all(|it| it.grown) && !parts[0].grown);
}

#[test]
fn what_has_grown_and_is_cold_and_small_for_ten_minutes_becomes_one_again() {
    let mut world = World::ranged(4, 2);
    let now = world.now;
    let id = world.partition(0).id;
    world.controller.split(now, id, Some(&[0x80])).unwrap();
    world.live_for(3 * SECOND);
    assert_eq!(world.count(), 2);
    let busy = Field::reads(Field::zipf(500, 0.9, 100_000.0));
    world.serve_field(MINUTE, |_| busy.clone());
    let grown = world.count();
    assert!(grown > 4, "{grown}");
    let mut quiet = Field::reads(vec![0; 500]);
    quiet.bytes = vec![1_000; 500];
    world.serve_field(9 * MINUTE, |_| quiet.clone());
    assert_eq!(world.count(), grown, "{:#?}", world.status().decisions);
    world.serve_field(50 * MINUTE, |_| quiet.clone());
    let left = world.map().partitions;
    assert_eq!(left.len(), 2, "{left:#?} {:#?}", world.status().placement.decisions);
    assert_eq!(left[1].first, Match(0x80 << 120), "where an operator has cut it stays cut");
    let rested = world.changes();
    world.serve_field(20 * MINUTE, |_| quiet.clone());
    assert_eq!(world.changes(), rested);
    assert!(world.status().replicated && world.status().covered);
}
