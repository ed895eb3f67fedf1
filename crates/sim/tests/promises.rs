//! Goal: retries, loss, duplication, reordering and crashes never show through.
//! Method: many seeds, each another world; then the same worlds with a bug planted, to know that
//! it would have been seen.

use node::Plant;
use sim::{Options, run};

/// `SIM_SEED=17 cargo test -p keyway-sim` replays one world, `SIM_SEEDS=20000` runs as many;
/// without either there are 1,000.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
    };
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(1_000),
    }
}

#[test]
fn the_promises_hold_in_every_world() {
    let (mut done, mut unchecked) = (0, 0);
    for seed in seeds() {
        let options = Options::from_seed(seed);
        let outcome = run(&options);
        let violations = outcome.violations.join("\n");
        assert!(violations.is_empty(), "SIM_SEED={seed}\n{options}\n{violations}");
        done += outcome.stats.done;
        unchecked += outcome.stats.unchecked;
    }
    assert!(done > 0, "nothing was ever done");
    // A history that the search gave up on is no evidence: one in a thousand worlds may have one.
    let worlds = seeds().count();
    assert!(unchecked * 1_000 <= worlds, "{unchecked} keys of {worlds} worlds were unchecked");
}

#[test]
fn a_seed_is_the_whole_story() {
    for seed in 0..20 {
        let options = Options::from_seed(seed);
        assert_eq!(run(&options).fingerprint, run(&options).fingerprint, "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_caught() {
    for plant in Plant::ALL {
        let caught = (0..300).find(|&seed| {
            let options = Options { plant: Some(plant), ..Options::from_seed(seed) };
            !run(&options).violations.is_empty()
        });
        assert!(caught.is_some(), "{plant:?}: the faults are too tame or the checker is blind");
    }
}

/// Worlds that once broke a promise, by what went wrong in them.
#[test]
fn worlds_that_once_failed_hold() {
    let bugbase = [
        (17, "a node behind the switch refused a keyspace that it had not heard of, for good"),
        (
            104,
            "a restarted head did not know how far it was stable, and its writes waited for ever",
        ),
    ];
    for (seed, what) in bugbase {
        let outcome = run(&Options::from_seed(seed));
        assert!(outcome.violations.is_empty(), "seed {seed}: {what}: {:?}", outcome.violations);
    }
}
