//! What a node says of single partitions, for the controller to know which are busy or large, and
//! where to cut them.

use crate::engine::Engine;
use crate::node::Node;
use crate::replica::Replica;
use cluster::{PartitionId, PartitionSample, Volume};
use machine::{Instant, mix};
use std::cmp::Reverse;
use std::collections::BTreeMap;

impl<E: Engine> Node<E> {
    /// Of the busiest and the largest partitions whose tail it is all that is known of them; of
    /// others how much they hold, of a few at a time: which, differs with each millisecond. Nothing
    /// in most reports: they are many, and this is long.
    pub(crate) fn samples(&self, now: Instant) -> Vec<PartitionSample> {
        let drawn = mix(now.unix_ms());
        if !drawn.is_multiple_of(REPORTS) {
            return Vec::new();
        }
        let is_mine = |replica: &&Replica| {
            let member = &replica.member;
            member.is_tail() && member.partition.open
        };
        let mine: Vec<&Replica> = self.replicas.values().filter(is_mine).collect();
        let mut told: BTreeMap<PartitionId, PartitionSample> = BTreeMap::new();
        let begin = mix(drawn).checked_rem(mine.len() as u64).unwrap_or(0);
        let begin = usize::try_from(begin).unwrap_or(0);
        let others = mine.iter().cycle().skip(begin).take(mine.len().min(OTHERS));
        for replica in others {
            told.insert(replica.member.id(), sample::<E>(replica));
        }
        let busy = mine.iter().filter(|it| it.asked.rate() > 0).copied();
        for replica in first_by(busy, BUSIEST, |it| it.asked.rate()) {
            let entry = told.entry(replica.member.id()).or_insert_with(|| sample::<E>(replica));
            entry.asked = replica.asked.points();
            let age = replica.asked.age(now).as_millis();
            entry.asked_age_ms = u64::try_from(age).unwrap_or(u64::MAX);
        }
        let bytes = |it: &Replica| held::<E>(it).map_or(0, |it| it.bytes);
        let filled = mine.iter().filter(|it| bytes(it) > 0).copied();
        for replica in first_by(filled, LARGEST, bytes) {
            let entry = told.entry(replica.member.id()).or_insert_with(|| sample::<E>(replica));
            entry.stored = replica.totals.points();
        }
        told.into_values().collect()
    }
}

/// Those of which there is most, so many at most.
fn first_by<'a>(
    replicas: impl Iterator<Item = &'a Replica>,
    count: usize,
    much: impl Fn(&Replica) -> u64,
) -> Vec<&'a Replica> {
    let mut replicas: Vec<&Replica> = replicas.collect();
    replicas.sort_by_key(|it| (Reverse(much(it)), it.member.id()));
    replicas.truncate(count);
    replicas
}

fn sample<E: Engine>(replica: &Replica) -> PartitionSample {
    PartitionSample {
        partition: replica.member.id(),
        held: held::<E>(replica),
        ..PartitionSample::default()
    }
}

fn held<E: Engine>(replica: &Replica) -> Option<Volume> {
    replica.totals.volume().filter(|_| E::OWNS)
}

/// One report in so many speaks of partitions.
const REPORTS: u64 = 4;

/// Partitions that are told of in their turn.
const OTHERS: usize = 32;

/// Partitions that may be too busy: as many as are split of a node at once.
const BUSIEST: usize = 4;

/// Partitions that may be too large.
const LARGEST: usize = 2;
