//! Several arms, measured in turn.

use super::figures::Rounds;
use super::options::Options;
use super::round::Round;

/// Rounds of all arms in turn, every other time backwards; a first one of each is not counted.
/// `once` measures an arm once; `None` if there is no such arm here.
pub(crate) fn alternate(
    options: &Options,
    arms: usize,
    mut once: impl FnMut(usize) -> Option<Round>,
) -> Vec<Rounds> {
    let mut rounds: Vec<Rounds> = (0..arms).map(|_| Rounds::default()).collect();
    for number in 0..=options.rounds {
        let mut pairs: Vec<_> = rounds.iter_mut().enumerate().collect();
        if number % 2 == 1 {
            pairs.reverse();
        }
        for (arm, rounds) in pairs {
            let result = once(arm);
            rounds.extend(result.filter(|_| number > 0));
        }
    }
    rounds
}
