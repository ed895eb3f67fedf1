//! What nodes say of where load and bytes lie.

use super::*;
use cluster::PartitionSample;

impl Chain {
    /// What a node says of partitions in the next of its reports that speaks of any; nothing if
    /// none of many does.
    fn samples(&mut self, index: usize) -> Vec<PartitionSample> {
        let mut reports = (0..100).map(|_| {
            self.pass(MS);
            self.nodes[index].report(self.now).samples
        });
        reports.find(|it| !it.is_empty()).unwrap_or_default()
    }
}

/// How many points lie in this share of the match space of two bytes after "k".
fn inside(points: &[Match], first: &[u8], last: &[u8]) -> usize {
    let at = |key: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..key.len()].copy_from_slice(key);
        Match(u128::from_be_bytes(bytes))
    };
    points.iter().filter(|point| at(first) <= **point && **point <= at(last)).count()
}

#[test]
fn the_tail_tells_where_its_load_and_its_bytes_lie() {
    let mut chain = Chain::new(3);
    // Half of the bytes are in ten of a hundred keys.
    for n in 0..100u64 {
        let value = vec![7; if n < 90 { 100 } else { 950 }];
        chain.put(format!("k{n:02}").as_bytes(), &value);
    }
    chain.settle();
    chain.replies.clear();
    // Half of the reads are of one key.
    for round in 0..1_000u64 {
        let n = if round.is_multiple_of(2) { 50 } else { round / 2 % 100 };
        chain.get(format!("k{n:02}").as_bytes()).unwrap();
        chain.pass(MS * 2);
    }
    let samples = chain.samples(2);
    let [sample] = &samples[..] else { panic!("{samples:?}") };
    assert_eq!(sample.partition, PartitionId(1));
    let held = sample.held.unwrap();
    assert_eq!((held.keys, held.bytes), (100, 100 * 3 + 90 * 100 + 10 * 950));
    assert_eq!(sample.asked.len(), PartitionSample::POINTS_MAX);
    let hot = inside(&sample.asked, b"k50", b"k50");
    assert!((24..=40).contains(&hot), "{hot}");
    let large = inside(&sample.stored, b"k90", b"k99");
    assert!((28..=36).contains(&large), "{large} of {}", sample.stored.len());
    for other in [0, 1] {
        assert_eq!(chain.samples(other), [], "others say nothing");
    }
}

#[test]
fn what_is_written_is_counted_where_it_is_committed_and_what_goes_is_left_out() {
    let mut chain = Chain::new(2);
    for round in 0..600u64 {
        chain.put(format!("k{:02}", round % 10).as_bytes(), b"v");
        chain.settle();
        chain.pass(MS * 5);
    }
    let asked = chain.samples(1)[0].asked.clone();
    assert!(inside(&asked, b"k00", b"k09") == asked.len() && !asked.is_empty());
    for n in 0..10 {
        chain.del(format!("k{n:02}").as_bytes());
    }
    chain.settle();
    let sample = &chain.samples(1)[0];
    assert_eq!(sample.held.unwrap().keys, 0);
    assert!(sample.stored.is_empty(), "{sample:?}");
}

#[test]
fn a_node_tells_of_all_its_partitions_in_turn() {
    let mut chain = Chain::new(1);
    let (whole, count) = (chain.map.partitions.remove(0), 200_u32);
    let width = u128::MAX / u128::from(count);
    chain.map.partitions = (0..count)
        .map(|index| Partition {
            id: PartitionId(2 + index),
            first: Match(width * u128::from(index)),
            last: if index == count - 1 {
                Match::MAX
            } else {
                Match(width * u128::from(index + 1) - 1)
            },
            ..whole.clone()
        })
        .collect();
    chain.map.revision = Revision::new(2);
    chain.install();
    let mut told = std::collections::BTreeSet::new();
    for _ in 0..100 {
        chain.pass(MS * 100);
        let samples = chain.samples(0);
        assert!(samples.len() < 50, "{} at once", samples.len());
        told.extend(samples.iter().map(|it| it.partition));
    }
    assert_eq!(told.len(), 200);
}
