//! What becomes of transactions whose keys cannot change together.

use std::fmt;
use std::str::FromStr;

/// What EXEC does with commands about keys of several partitions, or of more keys or bytes than
/// take effect together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Multi {
    /// Refuses them, and nothing is done.
    #[default]
    Atomic,
    /// Carries them out one after the other, as those of a pipeline: others may see some done and
    /// others not yet. If keys are watched, it refuses them all the same.
    Ordered,
}

impl fmt::Display for Multi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomic => "atomic",
            Self::Ordered => "ordered",
        })
    }
}

impl FromStr for Multi {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Atomic, Self::Ordered]
            .into_iter()
            .find(|it| it.to_string() == text)
            .ok_or_else(|| format!("{text:?} is none of atomic and ordered"))
    }
}
