//! What becomes of hot keys, as it is written on the command line.

use cluster::HotPolicy;

/// What becomes of hot keys.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Hot {
    /// Copies on other nodes answer reads, too, and what is written much goes anywhere (writes only
    /// in a hash keyspace).
    Replicate,
    /// Copies on other nodes answer reads; writes go through the chain.
    Reads,
    /// Caches hold them and answer reads; writes go through the chain.
    Cache,
    /// Caches hold those that they can help, and the others are replicated; each is one or the
    /// other.
    Either,
    /// Each key is read from the tail of its chain alone.
    Off,
}

impl From<Hot> for HotPolicy {
    fn from(hot: Hot) -> Self {
        match hot {
            Hot::Replicate => Self::Replicate,
            Hot::Reads => Self::Reads,
            Hot::Cache => Self::Cache,
            Hot::Either => Self::Either,
            Hot::Off => Self::Off,
        }
    }
}
