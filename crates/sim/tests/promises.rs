//! Goal: nothing that goes wrong ever shows through: not loss, not a crash, not a chain that
//! changes. Method: many seeds of every profile, each another world.
//!
//! `SIM_PROFILE=crashes SIM_SEED=17 cargo test -p keyway-sim --test promises` replays one world,
//! `SIM_SEEDS=20000` runs as many of each profile; without either there are 300.

use sim::{Attacks, Options, Profile, Stats, run, run_many};
use std::ops::{ControlFlow, RangeInclusive};

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

fn seeds() -> RangeInclusive<u64> {
    match number("SIM_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("SIM_SEEDS").unwrap_or(300),
    }
}

fn profiles() -> Vec<Profile> {
    match std::env::var("SIM_PROFILE") {
        Ok(name) => vec![name.parse().unwrap_or_else(|why| panic!("{why}"))],
        Err(_) => Profile::ALL.to_vec(),
    }
}

#[test]
fn the_promises_hold_in_every_world() {
    let profiles = profiles();
    let of_seed = |seed| profiles.iter().map(move |profile| Options::draw(*profile, seed));
    let worlds: Vec<Options> = seeds().flat_map(of_seed).collect();
    let mut total = Stats::default();
    let broken = run_many(&worlds, |options, outcome| {
        total = total.plus(&outcome.stats);
        if outcome.violations.is_empty() {
            return ControlFlow::Continue(());
        }
        let Options { seed, profile, .. } = options;
        let violations = outcome.violations.join("\n");
        let replay = format!("keyway sim --seed {seed} --profile {profile}");
        ControlFlow::Break(format!("{options}{violations}\nreplay: {replay}"))
    });
    assert_eq!(broken.break_value(), None);
    assert!(total.done > 0, "nothing was ever done");
    // A history that the search gave up on is no evidence: one in a thousand worlds may have one.
    let (worlds, unchecked) = (worlds.len(), total.unchecked);
    assert!(unchecked * 1_000 <= worlds, "{unchecked} keys of {worlds} worlds were unchecked");
}

#[test]
fn a_seed_is_the_whole_story() {
    for profile in Profile::ALL {
        let first = run(&Options::draw(profile, 1)).fingerprint;
        for seed in 2..6 {
            let options = Options::draw(profile, seed);
            let (one, other) = (run(&options), run(&options));
            assert_eq!(one.fingerprint, other.fingerprint, "{options}");
            assert_eq!(one.stats, other.stats, "{options}");
            assert_ne!(one.fingerprint, first, "{options}");
        }
    }
}

/// What every profile is for does happen in its worlds.
#[test]
fn profiles_do_what_they_are_for() {
    for profile in Profile::ALL {
        // A switch that crashes while a key is delegated, and a deposed leader whose orders nobody
        // heeds, are rarer than one world in ten.
        let count = match profile {
            Profile::Hot => 300,
            Profile::Leaders => 60,
            _ => 20,
        };
        let worlds: Vec<Options> = (1..=count).map(|seed| Options::draw(profile, seed)).collect();
        let mut total = Stats::default();
        let all = run_many(&worlds, |_, outcome| {
            total = total.plus(&outcome.stats);
            ControlFlow::<()>::Continue(())
        });
        assert!(all.is_continue());
        let Stats { crashes, disks_lost, disturbances, interventions, epochs, .. } = total;
        let Stats { disks_aged, maps_aged, maps_rebuilt, .. } = total;
        let Stats {
            spread, delegations_begun, delegations_ended, crashes_under_delegations, ..
        } = total;
        let delegations = delegations_begun.min(delegations_ended);
        assert!(total.done > 2_000, "{profile}: {total:?}");
        let needs = match profile {
            Profile::Calm => crashes == 0 && disturbances == 0,
            Profile::Network => disturbances > 0,
            Profile::Partitions | Profile::Pauses => disturbances > 100 && epochs > 20,
            Profile::Crashes => crashes > 100 && epochs > 20,
            Profile::Amnesia => disks_lost > 20 && epochs > 100,
            Profile::Membership => interventions > 50 && epochs > 100,
            Profile::Switches => crashes > 100,
            Profile::Hot => {
                let meanwhile = crashes_under_delegations.iter().all(|crashes| *crashes > 5);
                spread > 30_000 && crashes > 300 && delegations > 1_500 && meanwhile
            }
            Profile::Everything => {
                crashes > 50 && disturbances > 50 && epochs > 50 && delegations > 10
            }
            Profile::Sessions => crashes > 50,
            Profile::Restores => {
                disks_aged > 20 && maps_aged > 3 && maps_rebuilt > 2 && epochs > 100
            }
            Profile::Full => total.filled > 200 && total.refused > 50 && crashes > 10,
            // No lease ends in them, so chains change by fences alone.
            Profile::Fences => disturbances > 100 && epochs > 100,
            Profile::Upgrades => disturbances > 100 && epochs > 100,
            Profile::Loaded => total.turns > 10 && total.moves > 10 && crashes > 10,
            Profile::Parts => total.splits > 50 && total.merges > 10 && crashes > 10,
            Profile::Replicas => total.alterations > 50 && epochs > 100 && crashes > 10,
            Profile::Leaders => total.takeovers > 40 && total.deposed > 5 && total.unheeded > 3,
            Profile::Caches => total.cached > 400 && crashes > 20 && epochs > 20,
            Profile::Either => {
                total.cached > 400 && spread > 400 && delegations > 5 && crashes > 20
            }
            Profile::Content => {
                let requests = u64::try_from(total.done).expect("it is small");
                total.by_address * 2 > requests && total.cached > 400 && crashes > 20 && epochs > 20
            }
            Profile::Hostile => {
                let Attacks { sent, refused, cookies } = total.attacks;
                sent.iter().chain(&refused).all(|count| *count > 100) && cookies > 100
            }
            Profile::Rot => crashes > 10 && total.rotten > 50,
            Profile::Many | Profile::Batches | Profile::Big | Profile::Tags | Profile::Clocks => {
                crashes > 10 && disturbances > 10
            }
        };
        assert!(needs, "{profile}: {total:?}");
    }
}
