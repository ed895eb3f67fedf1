//! What holds whatever happens in whatever order.

use super::chaos::{Chaos, NODES, Step, play_all};
use crate::MemberState;
use crate::placement::NO_RETURN;
use cluster::{Map, Mutant, NodeId, Partition};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::collections::BTreeSet;
use std::time::Duration;

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    prop_oneof![
        2 => (1..6u32, 1..4u8).prop_map(|(parts, replicas)| Step::Create(parts, replicas)),
        24 => (1..400u64).prop_map(Step::Run),
        4 => (400..1_500u64).prop_map(Step::Run),
        1 => (2_500..4_000u64).prop_map(Step::Run),
        1 => (100..5_000u64).prop_map(Step::Stall),
        2 => Just(Step::SlowStore),
        3 => Just(Step::Save),
        2 => any::<bool>().prop_map(|saves| Step::Die { saves }),
        6 => (0..NODES + 2).prop_map(Step::Kill),
        6 => (0..NODES + 2).prop_map(Step::Revive),
        2 => (0..NODES + 2).prop_map(Step::Restart),
        1 => node.clone().prop_map(Step::Wipe),
        4 => (0..NODES + 2).prop_map(Step::CutOff),
        1 => node.clone().prop_map(Step::Stick),
        2 => node.clone().prop_map(Step::Ask),
        4 => (0..NODES + 2).prop_map(Step::Delay),
        4 => (0..20usize).prop_map(Step::Arrive),
        1 => (0..20usize).prop_map(Step::Lose),
        1 => node.clone().prop_map(Step::Drain),
        1 => node.prop_map(Step::Keep),
        1 => any::<bool>().prop_map(Step::Pause),
    ]
}

/// Whether nobody is left who has the memory of this partition.
fn is_lost(chaos: &Chaos, partition: &Partition) -> bool {
    !partition.members().iter().any(|node| chaos.remembers(*node))
}

fn replicas_held(map: &Map, node: NodeId) -> usize {
    map.partitions.iter().filter(|p| p.chain.contains(&node)).count()
}

/// Whether nobody has much more than others of those who may hold replicas.
fn is_even(chaos: &Chaos) -> bool {
    let map = chaos.world.map();
    let counts: BTreeSet<usize> =
        usable(chaos, &map).iter().map(|node| replicas_held(&map, *node)).collect();
    // Where nobody has to hold anything, all may leave.
    counts.last().unwrap_or(&0) - counts.first().unwrap_or(&0) <= 1
}

fn usable(chaos: &Chaos, map: &Map) -> Vec<NodeId> {
    let kept = |p: &NodeId| chaos.remembers(*p) && !chaos.is_departing(*p);
    map.nodes.iter().map(|n| n.id).filter(kept).collect()
}

/// After all is healed: what can be replicated is, nobody has much more than others, and nothing
/// changes any more.
fn check_rest(chaos: &mut Chaos) -> Result<(), TestCaseError> {
    chaos.heal();
    chaos.run(Duration::from_secs(120));
    if !is_even(chaos) {
        // All that could be moved has just left the node that has the least.
        chaos.run(NO_RETURN);
    }
    let (map, status) = (chaos.world.map(), chaos.world.status());
    let lost: Vec<&Partition> = map.partitions.iter().filter(|p| is_lost(chaos, p)).collect();
    let usable = usable(chaos, &map);
    for partition in map.partitions.iter().filter(|p| !lost.contains(p)) {
        let keyspace = map.keyspaces.iter().find(|k| k.id == partition.keyspace).unwrap();
        let most = usize::from(keyspace.replicas).min(usable.len());
        prop_assert!(partition.open && !partition.has_learner, "{partition:?} {status:#?}");
        prop_assert!(partition.chain.len() >= most, "{partition:?} {status:#?}");
    }
    if lost.is_empty() {
        let ready = status.members.iter().all(|m| m.state == MemberState::Ready);
        prop_assert!(ready && status.replicated && status.covered, "{status:#?}");
        prop_assert!(is_even(chaos), "{status:#?}");
        let gone = map.nodes.iter().map(|n| n.id).filter(|id| chaos.is_departing(*id));
        prop_assert!(gone.map(|id| replicas_held(&map, id)).sum::<usize>() == 0, "{status:#?}");
    }
    chaos.run(Duration::from_secs(10));
    prop_assert_eq!(&chaos.world.map(), &map, "it does not come to rest");
    // And a controller that comes back sees nothing to do either.
    chaos.world.restart(chaos.world.config.clone());
    chaos.run(Duration::from_secs(10));
    prop_assert_eq!(chaos.world.map(), map);
    Ok(())
}

/// Cases within which a mutant must be found.
const FOUND_WITHIN: u32 = 2_000;

#[test]
fn every_mutant_is_found() {
    let bugs = [
        (Mutant::OpenUnsettled, "has not settled"),
        (Mutant::ImpatientController, "serve"),
        (Mutant::FenceUnconfirmed, "serve"),
        (Mutant::HandOverEarly, "reaches"),
        (Mutant::TrustTheForgetful, "has forgotten"),
    ];
    for (mutant, complaint) in bugs {
        let config = ProptestConfig {
            cases: FOUND_WITHIN,
            max_shrink_iters: 0,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        };
        let steps = proptest::collection::vec(step(), 50..120);
        let found = TestRunner::new(config).run(&steps, |steps| {
            let mut chaos = Chaos::new(&[1_000; 7], 20, 50, 80);
            chaos.mutant(mutant);
            play_all(&mut chaos, &steps);
            Ok(())
        });
        let found = found.expect_err(&format!("{mutant:?}")).to_string();
        assert!(found.contains(complaint), "{mutant:?}: {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_change_of_a_chain_harms_and_in_the_end_everything_is_replicated(
        clocks in proptest::collection::vec(prop_oneof![Just(981), Just(1_000), Just(1_019)], 7),
        steps in proptest::collection::vec(step(), 1..120),
        (settling_ms, copying_ms) in (0..60u64, 0..400u64),
        forgetting_ms in 0..1_000u64,
    ) {
        let mut chaos = Chaos::new(&clocks, settling_ms, copying_ms, forgetting_ms);
        play_all(&mut chaos, &steps);
        check_rest(&mut chaos)?;
    }

    #[test]
    fn the_same_calls_give_the_same_orders(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let run = || {
            let mut chaos = Chaos::new(&[1_000; 7], 10, 50, 80);
            play_all(&mut chaos, &steps);
            (chaos.world.delivered.clone(), chaos.world.status())
        };
        prop_assert_eq!(run(), run());
    }
}
