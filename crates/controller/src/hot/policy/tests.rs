//! Tests of what is worth what.

use super::*;
use proptest::prelude::*;

const COUNTED: Known = Known { pinned: false, counted: true };
const PINNED: Known = Known { pinned: true, counted: true };

fn rates(reads: u64, writes: u64) -> Rates {
    Rates { reads, writes }
}

fn asked(reads: u64, writes: u64) -> Asked {
    rates(reads, writes).into()
}

#[test]
fn as_many_keys_as_are_needed_and_no_more() {
    let keys = [0, 1, 2, 3, 4, 16, 1_024].map(|nodes| Policy::new(nodes, 0, None).keys_max());
    assert_eq!(keys, [0, 0, 16, 48, 64, 512, 65_536]);
}

#[test]
fn a_key_comes_in_by_its_share_of_a_nodes_load_and_stays_by_half_of_it() {
    let policy = Policy::new(4, 16_000, None);
    assert_eq!(policy.threshold(), 1_000);
    assert!(policy.is_hot(rates(1_000, 0)) && !policy.is_hot(rates(999, 0)));
    assert!(policy.is_cold(rates(499, 0)) && !policy.is_cold(rates(500, 0)));
    assert!(policy.is_hot(rates(4_000, 400)) && !policy.is_hot(rates(4_000, 401)));
    assert!(policy.is_cold(rates(4_000, 801)) && !policy.is_cold(rates(4_000, 800)));
}

#[test]
fn where_nodes_do_little_a_key_comes_in_by_its_part_of_that() {
    for (mean, capacity, threshold) in [
        (0, None, 25),
        (0, Some(10_000), 25),
        (0, Some(1_199), 24),
        (0, Some(300), 10),
        (263, Some(300), 10),
        (264, Some(300), 11),
        (480, Some(600), 20),
        (648, None, 27),
        (1_200, None, 50),
        (2_000, Some(2_000), 50),
        (2_040, None, 51),
        (8_000, Some(10_000), 200),
    ] {
        let policy = Policy::new(32, mean, capacity);
        assert_eq!(policy.threshold(), threshold, "{mean} of {capacity:?}");
    }
    let slow = Policy::new(32, 214, Some(300));
    assert!(slow.is_hot(rates(10, 0)) && !slow.is_hot(rates(9, 0)));
    assert!(slow.is_cold(rates(4, 0)) && !slow.is_cold(rates(5, 0)));
}

#[test]
fn a_copy_may_cost_more_where_one_node_could_not_do_the_reads() {
    let policy = Policy::new(32, 16_000, None);
    for (reads, writes, pays) in [
        (16_000, 1_000, 3),
        (16_000, 2_000, 2),
        (15_999, 2_000, 1),
        (32_000, 2_000, 4),
        (32_000, 5_333, 2),
        (32_000, 5_334, 1),
        (160_000, 8_000, 6),
        (160_000, 16_000, 3),
        (160_000, 1_000, 32),
    ] {
        assert_eq!(policy.pays(asked(reads, writes)), pays, "{reads} / {writes}");
    }
}

#[test]
fn a_key_is_worth_a_delegation_by_what_its_home_would_have_to_do_for_it() {
    for (reads, writes, work) in [
        (0, 0, 0),
        (9_000, 0, 0),
        (0, 100, 100),
        (100, 100, 200),
        (599, 100, 699),
        (600, 100, 300),
        (1_000, 100, 400),
        (9_000, 1_000, 4_000),
        (1_000_000, 1, 5),
    ] {
        assert_eq!(
            Policy::new(4, 0, None).work(rates(reads, writes), 1),
            work,
            "{reads} / {writes}"
        );
    }
    let policy = Policy::new(4, 2_000, None);
    assert!(policy.is_worth_delegation(rates(0, 250), 1, COUNTED));
    assert!(!policy.is_worth_delegation(rates(0, 249), 1, COUNTED));
    assert!(policy.is_worth_delegation(rates(125, 125), 1, COUNTED));
    assert!(policy.is_worth_delegation(rates(0, RATE_MIN), 1, PINNED));
    assert!(!policy.is_worth_delegation(rates(0, RATE_MIN - 1), 1, PINNED));
    assert!(policy.keeps_delegation(rates(0, 125), 1, COUNTED));
    assert!(!policy.keeps_delegation(rates(0, 124), 1, COUNTED));
    assert!(policy.is_worth_delegation(rates(0, 84), 3, COUNTED), "each write is three visits");
    assert!(!policy.is_worth_delegation(rates(0, 83), 3, COUNTED));
    let many = Policy::new(64, 0, None);
    assert!(many.is_worth_delegation(rates(9_999, DELEGATION_WRITES_MIN), 1, COUNTED));
    assert!(!many.is_worth_delegation(rates(9_999, DELEGATION_WRITES_MIN - 1), 1, COUNTED));
    let told = |writes| many.is_worth_delegation(rates(9_999, writes), 1, Known::default());
    assert!(told(DELEGATION_WRITES_TOLD_MIN) && !told(DELEGATION_WRITES_TOLD_MIN - 1));
    let idle = Policy::new(4, 0, None);
    for known in [COUNTED, PINNED] {
        assert!(idle.is_worth_delegation(rates(0, DELEGATION_WORK_MIN), 1, known));
        assert!(!idle.is_worth_delegation(rates(0, DELEGATION_WORK_MIN - 1), 1, known));
    }
}

#[test]
fn a_few_readers_may_have_much_to_do_where_nodes_are_slow() {
    let worth = |capacity, [reads, writes]: [u64; 2]| {
        Policy::new(32, 200, capacity).is_worth_delegation(rates(reads, writes), 1, COUNTED)
    };
    // Four readers, with 24 reads per second each.
    let key = [96, 4];
    assert!(worth(Some(400), key) && worth(Some(1_199), key));
    assert!(!worth(Some(1_200), key), "they do 25 without noticing");
    assert!(!worth(None, key));
}

#[test]
fn readers_go_by_reads_per_write() {
    let policy = Policy::new(6, 0, None);
    for (reads, writes, readers) in
        [(100, 0, 6), (100, 100, 2), (1_200, 100, 4), (1_700, 100, 4), (1_800, 100, 6), (0, 0, 6)]
    {
        assert_eq!(policy.readers(asked(reads, writes), 0), readers, "{reads} / {writes}");
    }
    for (reads, now, readers) in [
        (2_100, 4, 4),
        (2_400, 4, 6),
        (900, 4, 4),
        (899, 4, 2),
        (1_500, 6, 6),
        (1_499, 6, 4),
        (599, 2, 2),
        (1_199, 2, 2),
        (1_200, 2, 4),
    ] {
        assert_eq!(policy.readers(asked(reads, 100), now), readers, "{reads} with {now}");
    }
    assert_eq!(policy.readers(asked(100, 0), 4), 6, "there are more nodes now");
    assert_eq!(policy.readers(asked(100, 0), 8), 6, "there are fewer");
    assert_eq!(Policy::new(1_000, 0, None).readers(asked(100, 0), 0), 64);
}

#[test]
fn at_first_there_are_as_many_readers_as_are_needed_for_a_burst() {
    let policy = Policy::new(32, 240, Some(400));
    for (reads, writes, readers) in
        [(59, 0, 2), (160, 0, 4), (250, 0, 8), (1_000, 0, 32), (250, 10, 4), (250, 25, 2)]
    {
        let asked = policy.asked_at_first(rates(reads, writes));
        assert_eq!(policy.readers(asked, 0), readers, "{reads} / {writes}");
    }
    let fast = Policy::new(32, 1_000, None);
    assert_eq!(fast.readers(fast.asked_at_first(rates(320, 0)), 0), 2);
}

#[test]
fn all_nodes_are_readers_of_what_is_too_much_for_a_window() {
    let policy = Policy::new(512, 8_000, Some(10_000));
    for (reads, writes, now, readers) in [
        (16_063, 0, 0, 64),
        (16_064, 0, 0, 512),
        (16_063, 0, 512, 512),
        (8_064, 0, 512, 512),
        (8_063, 0, 512, 64),
        (160_000, 400, 0, 64),
        (160_000, 100, 0, 256),
    ] {
        let asked = asked(reads, writes);
        assert_eq!(policy.readers(asked, now), readers, "{reads} / {writes} with {now}");
    }
    assert_eq!(policy.holders(asked(160_000, 100), 0), 64, "of one version of a delegation");
}

proptest! {
    /// More keys than there is room for cannot all be over the threshold.
    #[test]
    fn the_room_is_enough_for_all_that_are_hot(
        nodes in 2usize..200, mean in 10_000u64..9_999_999,
    ) {
        let policy = Policy::new(nodes, mean, None);
        let all = mean * nodes as u64;
        // Rounding lets the threshold fall by less than one.
        prop_assert!(all / (policy.threshold() + 1) <= policy.keys_max() as u64);
    }

    /// So delegated keys need no room of their own.
    #[test]
    fn no_key_is_more_work_than_is_asked_of_it(
        nodes: u16, reads: u32, writes: u32, replicas in 1u8..=8,
    ) {
        let rates = rates(reads.into(), writes.into());
        let work = Policy::new(nodes.into(), 0, None).work(rates, replicas.into());
        prop_assert!(work <= rates.reads + rates.writes * u64::from(replicas));
    }

    #[test]
    fn what_was_chosen_stays_chosen(
        nodes in 2usize..200, reads in 0u64..9_999, writes in 0u64..999, now in 0u64..200,
    ) {
        let policy = Policy::new(nodes, 0, None);
        let chosen = policy.readers(asked(reads, writes), now);
        prop_assert!((2..=nodes as u64).contains(&chosen));
        prop_assert_eq!(policy.readers(asked(reads, writes), chosen), chosen);
    }
}
