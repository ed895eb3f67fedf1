//! How a scan is to go, and what it is to show.

/// How a scan is to go through its interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) reverse: bool,
    /// Most entries wanted.
    pub(crate) limit: Option<usize>,
    pub(crate) shows: Shows,
}

/// What a scan is to say of the keys that have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Entries,
    /// Without their values.
    Keys,
    /// Only how many they are.
    Count,
}

impl Shows {
    pub(crate) fn keys_only(yes: bool) -> Self {
        if yes { Self::Keys } else { Self::Entries }
    }
}
