//! Ways to spread load over the nodes of a rack: what experiments compare.

use crate::rack::Bounds;
use cluster::HotPolicy;
use controller::KeyspaceSpec;
use std::time::Duration;

/// A way to spread load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Each key has its home by its hash, and every request goes there.
    Hashing,
    /// The same, but the reads of hot keys go to copies, too.
    Copies,
}

impl Arm {
    /// All of them, as figures show them.
    pub const ALL: [Self; 2] = [Self::Hashing, Self::Copies];

    /// What tables and plots call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hashing => "consistent hashing",
            Self::Copies => "copies of hot keys",
        }
    }

    /// The keyspace that makes it so.
    pub(crate) fn keyspace(self, spec: KeyspaceSpec) -> KeyspaceSpec {
        match self {
            Self::Hashing => spec,
            Self::Copies => KeyspaceSpec { hot: HotPolicy::Replicate, ..spec },
        }
    }

    /// How long a rack takes to get used to a load.
    pub(crate) fn warm_up(self) -> Duration {
        match self {
            Self::Hashing => Duration::from_millis(100),
            // Hot keys have to be found and copied.
            Self::Copies => Duration::from_millis(500),
        }
    }

    /// Requests per second that it cannot get beyond.
    pub(crate) fn limit(self, bounds: &Bounds) -> f64 {
        match self {
            Self::Hashing => bounds.hashing,
            Self::Copies => bounds.cap,
        }
    }
}
