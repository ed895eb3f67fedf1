//! Bugs planted on purpose: unless each of them is seen in some world, the worlds are too tame or
//! the checker is blind.

use crate::many::run_many;
use crate::{Options, Profile, run};
use cluster::Plant;
use std::ops::ControlFlow;

/// Seeds of each profile in which a planted bug is to be seen.
pub const HUNT_SEEDS: u64 = 1_500;

/// A planted bug that was seen.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Which bug.
    pub plant: Plant,
    /// In which kind of world.
    pub profile: Profile,
    /// In which of these.
    pub seed: u64,
    /// The first promise that was broken.
    pub violation: String,
}

/// Looks for a world in which this bug is seen, seed by seed over all profiles, until `seeds` of
/// each have been tried. Without the bug the same world must keep its promises.
#[must_use]
pub fn hunt(plant: Plant, seeds: u64) -> Option<Catch> {
    let worlds: Vec<Options> =
        (1..=seeds).flat_map(|seed| Profile::ALL.map(|it| planted(plant, it, seed))).collect();
    let caught = run_many(&worlds, |options, outcome| {
        let Some(violation) = outcome.violations.into_iter().next() else {
            return ControlFlow::Continue(());
        };
        let sound = Options { plant: None, ..options.clone() };
        if !run(&sound).violations.is_empty() {
            return ControlFlow::Continue(());
        }
        let (profile, seed) = (options.profile, options.seed);
        ControlFlow::Break(Catch { plant, profile, seed, violation })
    });
    caught.break_value()
}

/// A world with a bug planted in all of its machines.
#[must_use]
pub fn planted(plant: Plant, profile: Profile, seed: u64) -> Options {
    Options { plant: Some(plant), ..Options::draw(profile, seed) }
}

/// The name of a planted bug, as it is written on a command line.
#[must_use]
pub fn plant_name(plant: Plant) -> String {
    let mut name = String::new();
    for letter in format!("{plant:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// The planted bug of this name.
///
/// # Errors
///
/// If there is none; the text names those that there are.
pub fn plant_named(name: &str) -> Result<Plant, String> {
    let known = Plant::ALL.into_iter().find(|plant| plant_name(*plant) == name);
    known.ok_or_else(|| {
        let names: Vec<String> = Plant::ALL.into_iter().map(plant_name).collect();
        format!("no planted bug is called {name:?}; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for plant in Plant::ALL {
            assert_eq!(plant_named(&plant_name(plant)), Ok(plant));
        }
        assert_eq!(plant_name(Plant::ForgetRequests), "forget-requests");
        assert!(plant_named("no-such").is_err());
    }
}
