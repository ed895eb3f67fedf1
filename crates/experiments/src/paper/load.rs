//! What a rack is asked for.

use std::fmt;
use workload::{Distribution, Mix, Shift, Spec};

/// How requests spread over the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// Every key alike.
    Uniform,
    /// By Zipf's law with this exponent.
    Zipf(f64),
}

/// Which requests come, but not how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Of which keys.
    pub skew: Skew,
    /// Share of reads, in percent; the rest are writes of keys that exist.
    pub reads_percent: u32,
    /// How popularity moves, if it does.
    pub shift: Option<Shift>,
}

impl Load {
    /// Reads only, of keys whose popularity does not change.
    #[must_use]
    pub fn reads(skew: Skew) -> Self {
        Self { skew, reads_percent: 100, shift: None }
    }

    /// Nodes that serve the average request, where writes go through chains of `replicas` nodes.
    #[must_use]
    pub fn visits(&self, replicas: u8) -> f64 {
        let reads = f64::from(self.reads_percent) / 100.0;
        reads + (1.0 - reads) * f64::from(replicas)
    }

    /// As a generator of operations takes it.
    pub(crate) fn spec(&self, keys: u64) -> Spec {
        let mix = match self.reads_percent {
            100 => "get=1".to_owned(),
            0 => "put=1".to_owned(),
            reads => {
                let reads = f64::from(reads) / 100.0;
                format!("get={reads},put={}", 1.0 - reads)
            }
        };
        let mix: Mix = mix.parse().expect("shares of two kinds that exist");
        let distribution = match self.skew {
            Skew::Uniform => Distribution::Uniform,
            Skew::Zipf(theta) => Distribution::Zipf { theta },
        };
        Spec { mix, distribution, keys, inserts_expected: 0, shift: self.shift }
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(theta) => write!(f, "zipf {theta}"),
        }
    }
}
