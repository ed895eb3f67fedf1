//! Stores that go wrong by themselves: what is wrong is found and mended, and a comparison that
//! breaks its rules is seen to.

use cluster::Mutant;
use sim::{Options, Profile, run, with_mutant};

#[test]
fn what_rots_is_found_and_mended() {
    for seed in 1..=25 {
        let options = Options::draw(Profile::Rot, seed);
        let outcome = run(&options);
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn replicas_of_other_worlds_are_not_found_to_differ() {
    for profile in [Profile::Crashes, Profile::Hot, Profile::Big, Profile::Amnesia] {
        for seed in 1..=5 {
            let outcome = run(&Options::draw(profile, seed));
            assert_eq!(outcome.violations, Vec::<String>::new(), "{profile}, seed {seed}");
        }
    }
}

#[test]
fn a_comparison_that_breaks_its_rules_is_seen_to() {
    for mutant in [Mutant::VerifyIgnoresDeletes, Mutant::VerifyMendsMinority] {
        let caught = (1..=60).any(|seed| {
            let violations = run(&with_mutant(mutant, Profile::Rot, seed)).violations;
            !violations.is_empty()
        });
        assert!(caught, "{mutant:?}");
    }
}
