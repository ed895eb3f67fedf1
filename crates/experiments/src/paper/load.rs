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
    /// Share of reads of one key, in percent.
    pub reads_percent: u32,
    /// Reads of several keys, if there are any. What is neither is writes.
    pub scans: Option<Scans>,
    /// How popularity moves, if it does.
    pub shift: Option<Shift>,
    /// If so, no more than this many of the most popular keys are asked for.
    pub among: Option<u64>,
    /// Whether writes are of all keys alike, whatever reads are of.
    pub even_writes: bool,
    /// Whether writes are of keys that were not written yet instead, one after the other by rank,
    /// until there are no more.
    pub new_keys: bool,
}

/// Reads of keys that follow each other in the order of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scans {
    /// Share of all requests, in percent.
    pub percent: u32,
    /// How many keys at most; all numbers from 1 on are as frequent.
    pub keys_max: u64,
}

impl Load {
    /// Reads only, of keys whose popularity does not change.
    #[must_use]
    pub fn only_reads(skew: Skew) -> Self {
        Self {
            skew,
            reads_percent: 100,
            scans: None,
            shift: None,
            among: None,
            even_writes: false,
            new_keys: false,
        }
    }

    /// Scans only, of keys whose popularity does not change.
    #[must_use]
    pub fn only_scans(skew: Skew, keys_max: u64) -> Self {
        let scans = Some(Scans { percent: 100, keys_max });
        Self { reads_percent: 0, scans, ..Self::only_reads(skew) }
    }

    /// Writes of new keys only.
    #[must_use]
    pub fn only_new_keys() -> Self {
        Self { reads_percent: 0, new_keys: true, ..Self::only_reads(Skew::Uniform) }
    }

    /// Nodes that serve the average request, where writes go through chains of `replicas` nodes,
    /// and a scan has keys in so many partitions.
    #[must_use]
    pub fn visits(&self, replicas: u8, pieces: f64) -> f64 {
        self.reads() + self.writes() * f64::from(replicas) + self.scans() * pieces
    }

    /// Share of reads of one key.
    pub(crate) fn reads(&self) -> f64 {
        f64::from(self.reads_percent) / 100.0
    }

    /// Share of scans.
    pub(crate) fn scans(&self) -> f64 {
        self.scans.map_or(0.0, |scans| f64::from(scans.percent) / 100.0)
    }

    /// Share of writes.
    pub(crate) fn writes(&self) -> f64 {
        let others = self.reads_percent + self.scans.map_or(0, |scans| scans.percent);
        if others < 100 { 1.0 - self.reads() - self.scans() } else { 0.0 }
    }

    /// How writes spread over the keys.
    pub(crate) fn write_skew(&self) -> Skew {
        if self.even_writes { Skew::Uniform } else { self.skew }
    }

    /// How many of so many keys may be asked for.
    pub(crate) fn keys(&self, all: u64) -> u64 {
        self.among.map_or(all, |among| among.min(all))
    }

    /// Shares of the kinds of operation.
    pub(crate) fn mix(&self) -> Mix {
        let write = if self.new_keys { "insert" } else { "put" };
        let mut kinds = vec![("get".to_owned(), self.reads()), (write.to_owned(), self.writes())];
        if let Some(Scans { keys_max, .. }) = self.scans {
            kinds.push((format!("scan:{keys_max}"), self.scans()));
        }
        kinds.retain(|(_, share)| *share > 0.0);
        let mix: Vec<String> =
            kinds.iter().map(|(kind, share)| format!("{kind}={share}")).collect();
        mix.join(",").parse().expect("shares of kinds that exist")
    }

    /// As a generator of operations takes it.
    pub(crate) fn spec(&self, keys: u64) -> Spec {
        let mix = self.mix();
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
