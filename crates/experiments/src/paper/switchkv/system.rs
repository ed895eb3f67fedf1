//! What SwitchKV is compared with, and what Keyway has beside it.

use super::CACHE_TIMES;
use crate::paper::Arm;
use crate::paper::rack::{Bounds, Caches, Learning, Lookup, RackSpec};

/// A system that serves a rack's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Nodes alone.
    NoCache,
    /// A cache that clients ask first (section 2.2).
    LookAside,
    /// A cache on the way to the nodes.
    LookThrough,
    /// A cache that the switch sends reads of what it holds.
    SwitchKv,
    /// The same, but nodes report regularly alone.
    Periodic,
    /// The same, but nodes report at once alone.
    Instant,
    /// The same, but it takes whatever is read.
    Traditional,
    /// Nodes that keep copies of hot keys, and take their writes anywhere: Keyway without a cache.
    Delegated,
}

impl System {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoCache => "no cache",
            Self::LookAside => "look-aside",
            Self::LookThrough => "look-through",
            Self::SwitchKv => "cache node",
            Self::Periodic => "periodic reports alone",
            Self::Instant => "instant reports alone",
            Self::Traditional => "traditional updates",
            Self::Delegated => "copies, writes anywhere",
        }
    }

    /// A rack of it.
    pub(super) fn of(self, spec: RackSpec, items: u32) -> RackSpec {
        let usual = Caches { items, rate_times: CACHE_TIMES, ..Caches::SWITCHKV };
        let learning = |learning| (Arm::CacheNodes, Caches { learning, ..usual });
        let (arm, caches) = match self {
            Self::NoCache => (Arm::Hashing, usual),
            Self::Delegated => (Arm::Anywhere, usual),
            Self::SwitchKv => (Arm::CacheNodes, usual),
            Self::LookAside => (Arm::CacheNodes, Caches { lookup: Lookup::Aside, ..usual }),
            Self::LookThrough => (Arm::CacheNodes, Caches { lookup: Lookup::Through, ..usual }),
            Self::Periodic => learning(Learning::Periodic),
            Self::Instant => learning(Learning::Instant),
            Self::Traditional => learning(Learning::EveryRead),
        };
        RackSpec { arm, caches, ..spec }
    }

    /// Requests per second that it cannot get beyond if all nodes have as much to do: the least of
    /// what the cache serves over what it is asked for, and what nodes serve over what they are.
    pub(super) fn cap(self, spec: &RackSpec, bounds: &Bounds, reads: f64) -> f64 {
        match self {
            Self::NoCache | Self::Delegated => bounds.cap,
            Self::SwitchKv | Self::Periodic | Self::Instant | Self::Traditional => bounds.lent_cap,
            Self::LookAside | Self::LookThrough => {
                let rate = f64::from(spec.pace.node_rate()) * f64::from(spec.caches.rate_times);
                bounds.lent_cap.min(rate / reads)
            }
        }
    }
}
