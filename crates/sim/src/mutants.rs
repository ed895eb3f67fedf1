//! Bugs mutant on purpose: unless each of them is seen in some world, the worlds are too tame or
//! the checker is blind.

use crate::many::run_many;
use crate::{Options, Profile, run};
use cluster::Mutant;
use std::ops::ControlFlow;

/// Seeds of each profile in which a mutant is to be seen.
pub const HUNT_SEEDS: u64 = 5_000;

/// A mutant that was seen.
#[derive(Clone, Debug)]
pub struct Catch {
    /// Which bug.
    pub mutant: Mutant,
    /// In which kind of world.
    pub profile: Profile,
    /// In which of these.
    pub seed: u64,
    /// The first promise that was broken.
    pub violation: String,
}

/// Looks for a world in which this bug is seen, seed by seed over these profiles, until `seeds` of
/// each have been tried. Without the bug the same world must keep its promises.
#[must_use]
pub fn hunt(mutant: Mutant, profiles: &[Profile], seeds: u64) -> Option<Catch> {
    let of_seed = |seed| profiles.iter().map(move |it| with_mutant(mutant, *it, seed));
    let worlds: Vec<Options> = (1..=seeds).flat_map(of_seed).collect();
    let caught = run_many(&worlds, |options, outcome| {
        let Some(violation) = outcome.violations.into_iter().next() else {
            return ControlFlow::Continue(());
        };
        let sound = Options { mutant: None, ..options.clone() };
        if !run(&sound).violations.is_empty() {
            return ControlFlow::Continue(());
        }
        let (profile, seed) = (options.profile, options.seed);
        ControlFlow::Break(Catch { mutant, profile, seed, violation })
    });
    caught.break_value()
}

/// A world with a bug mutant in all of its machines.
#[must_use]
pub fn with_mutant(mutant: Mutant, profile: Profile, seed: u64) -> Options {
    Options { mutant: Some(mutant), ..Options::draw(profile, seed) }
}

/// The name of a mutant, as it is written on a command line.
#[must_use]
pub fn mutant_name(mutant: Mutant) -> String {
    let mut name = String::new();
    for letter in format!("{mutant:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// The mutant of this name.
///
/// # Errors
///
/// If there is none; the text names those that there are.
pub fn mutant_named(name: &str) -> Result<Mutant, String> {
    let known = Mutant::ALL.into_iter().find(|mutant| mutant_name(*mutant) == name);
    known.ok_or_else(|| {
        let names: Vec<String> = Mutant::ALL.into_iter().map(mutant_name).collect();
        format!("no mutant is called {name:?}; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for mutant in Mutant::ALL {
            assert_eq!(mutant_named(&mutant_name(mutant)), Ok(mutant));
        }
        assert_eq!(mutant_name(Mutant::ForgetRequests), "forget-requests");
        assert!(mutant_named("no-such").is_err());
    }
}
