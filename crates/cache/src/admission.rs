//! Which keys are worth a place (SwitchKV section 3.2.1): all, while there is room; else those that
//! are asked for more than most of those that are held, in the place of one that is asked for
//! little.

use crate::slots::{Key, Slots};
use machine::Rng;

/// Which of the keys that nodes report a full cache takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Those that are read more than some of those that it holds (SwitchKV section 3.2.1).
    ByLoad,
    /// All of them, as caches do traditionally: what SwitchKV is compared with.
    All,
}

/// The key that is to go for one that is read this often, by what some of those that are held are
/// worth; `None` if that one is not worth it.
pub(crate) fn whom_to_evict(
    slots: &Slots,
    rng: &mut Rng,
    (admission, rate): (Admission, u64),
) -> Option<Key> {
    let mut sample = slots.sample(rng, SAMPLE);
    sample.sort_unstable_by(|one, other| {
        one.load().cmp(&other.load()).then_with(|| one.key.bytes.cmp(&other.key.bytes))
    });
    let place = sample.len().saturating_sub(1) * PERCENTILE / 100;
    let threshold = sample.get(place)?.load();
    let least = sample.first()?;
    let is_worth_it = rate > threshold + threshold / MARGIN_PART && rate > least.load();
    (is_worth_it || admission == Admission::All).then(|| least.key.clone())
}

/// Keys that are looked at.
const SAMPLE: usize = 32;

/// Who is asked for more than so many of a hundred that are held is worth a place.
const PERCENTILE: usize = 10;

/// Rates are known to a fifth or so: one key must not replace another for chance alone.
const MARGIN_PART: u64 = 5;
