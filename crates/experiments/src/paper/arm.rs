//! Ways to spread load over the nodes of a rack: what experiments compare.

use crate::paper::rack::Bounds;
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
    /// The same, and the writes of hot keys go anywhere as well: Pegasus.
    Anywhere,
    /// Each key has its home, but the values of hot keys lie in the switch, which answers their
    /// reads itself, as in NetCache.
    Cache,
    /// The same, but they lie in cache nodes, which borrow them, as in SwitchKV.
    CacheNodes,
}

impl Arm {
    /// Those of Pegasus' figures, in their order.
    pub const ALL: [Self; 4] = [Self::Hashing, Self::Copies, Self::Anywhere, Self::Cache];

    /// What tables and plots call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hashing => "consistent hashing",
            Self::Copies => "copies of hot keys",
            Self::Anywhere => "copies, writes anywhere",
            Self::Cache => "cache in the switch",
            Self::CacheNodes => "cache node",
        }
    }

    /// What users call it.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Hashing => "hashing",
            Self::Copies => "copies",
            Self::Anywhere => "anywhere",
            Self::Cache => "cache",
            Self::CacheNodes => "node",
        }
    }

    /// The keyspace that makes it so.
    pub(crate) fn keyspace(self, spec: KeyspaceSpec) -> KeyspaceSpec {
        match self {
            Self::Hashing | Self::Cache => spec,
            Self::CacheNodes => KeyspaceSpec { hot: HotPolicy::Cache, ..spec },
            Self::Copies => KeyspaceSpec { hot: HotPolicy::Reads, ..spec },
            Self::Anywhere => KeyspaceSpec { hot: HotPolicy::Replicate, ..spec },
        }
    }

    /// Whether the switch caches values.
    pub(crate) fn caches(self) -> bool {
        match self {
            Self::Hashing | Self::Copies | Self::Anywhere | Self::CacheNodes => false,
            Self::Cache => true,
        }
    }

    /// Whether a rack has cache nodes.
    pub(crate) fn has_cache_nodes(self) -> bool {
        self == Self::CacheNodes
    }

    /// How long a rack takes to get used to another rate of a load that it knows.
    pub(crate) fn warm_up(self) -> Duration {
        match self {
            Self::Hashing | Self::Cache | Self::CacheNodes => Duration::from_millis(100),
            // Hot keys have to be found and copied, or let go.
            Self::Copies | Self::Anywhere => Duration::from_millis(500),
        }
    }

    /// How long it takes, before that, to get used to a load that it does not know.
    pub(crate) fn settling(self) -> Duration {
        match self {
            // Caches are filled before, if at all.
            Self::Hashing | Self::Copies | Self::CacheNodes => Duration::ZERO,
            // Homes have to let keys go while they are full of requests for them.
            Self::Anywhere => Duration::from_secs(1),
            // It has thousands of keys to fetch, some of them from nodes that are full until then.
            Self::Cache => Duration::from_secs(3),
        }
    }

    /// Requests per second that it cannot get beyond.
    pub(crate) fn limit(self, bounds: &Bounds) -> f64 {
        match self {
            Self::Hashing => bounds.hashing,
            Self::Copies | Self::Anywhere => bounds.cap,
            Self::Cache => bounds.cached,
            Self::CacheNodes => bounds.lent,
        }
    }
}
