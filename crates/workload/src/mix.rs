//! Which operation comes next: the core workloads of YCSB, or shares of one's own.

use crate::MgetSizes;
use crate::text::{self, SettingError};
use machine::Rng;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kind of operation, as mixes name it and recorders count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    /// Read one key (YCSB's read).
    Get,
    /// Write a key that exists (YCSB's update).
    Put,
    /// Write a key that does not exist yet.
    Insert,
    /// Delete a key.
    Del,
    /// Read a key, then write it if nobody else has.
    Cas,
    /// Add to a counter.
    Incr,
    /// Read several keys at once.
    Mget,
    /// Read keys in order from one on.
    Scan,
    /// Read a key, then write it (YCSB's read-modify-write).
    Rmw,
}

impl OpKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Put,
        Self::Insert,
        Self::Del,
        Self::Cas,
        Self::Incr,
        Self::Mget,
        Self::Scan,
        Self::Rmw,
    ];

    /// Its name in mixes and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Insert => "insert",
            Self::Del => "del",
            Self::Cas => "cas",
            Self::Incr => "incr",
            Self::Mget => "mget",
            Self::Scan => "scan",
            Self::Rmw => "rmw",
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Shares of the kinds of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    shares: Vec<(OpKind, f64)>,
    /// Keys of each MGET.
    pub mget_keys: MgetSizes,
    /// Longest scan, in keys; lengths are uniform from 1.
    pub scan_length_max: u64,
}

/// Longest scan of YCSB's workload E.
const SCAN_LENGTH: u64 = 100;

/// Longest scan that can be asked for: what a client holds in memory without noticing.
const SCAN_LENGTH_MAX: u64 = 100_000;

/// How far the sum of the shares may be from 1: people write 0.333.
const SUM_TOLERANCE: f64 = 0.002;

impl Mix {
    /// One of YCSB's core workloads, by its letter.
    #[must_use]
    pub fn ycsb(letter: char) -> Option<Self> {
        let shares = match letter.to_ascii_lowercase() {
            'a' => vec![(OpKind::Get, 0.5), (OpKind::Put, 0.5)],
            'b' => vec![(OpKind::Get, 0.95), (OpKind::Put, 0.05)],
            'c' => vec![(OpKind::Get, 1.0)],
            'd' => vec![(OpKind::Get, 0.95), (OpKind::Insert, 0.05)],
            'e' => vec![(OpKind::Scan, 0.95), (OpKind::Insert, 0.05)],
            'f' => vec![(OpKind::Get, 0.5), (OpKind::Rmw, 0.5)],
            _ => return None,
        };
        Some(Self { shares, mget_keys: MgetSizes::default(), scan_length_max: SCAN_LENGTH })
    }

    /// The share of one kind.
    #[must_use]
    pub fn share(&self, kind: OpKind) -> f64 {
        self.shares.iter().filter(|(k, _)| *k == kind).map(|(_, share)| share).sum()
    }

    /// Whether any of these operations needs a keyspace that keeps order.
    #[must_use]
    pub fn scans(&self) -> bool {
        self.share(OpKind::Scan) > 0.0
    }

    /// Draws a kind.
    pub fn draw(&self, rng: &mut Rng) -> OpKind {
        let mut left = rng.unit();
        let mut drawn = OpKind::Get;
        for (kind, share) in &self.shares {
            drawn = *kind;
            left -= share;
            if left < 0.0 {
                break;
            }
        }
        drawn
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, share)) in self.shares.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match kind {
                OpKind::Mget => write!(f, "mget:{}={share}", self.mget_keys)?,
                OpKind::Scan => write!(f, "scan:{}={share}", self.scan_length_max)?,
                _ => write!(f, "{kind}={share}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Mix {
    type Err = SettingError;

    /// `get=0.9,put=0.1`; `mget:16=1` and `scan:50=1` say how many keys at most, `mget:~8.6=1` how
    /// many on average (see [`MgetSizes`]).
    fn from_str(input: &str) -> Result<Self, SettingError> {
        let mut mix = Self {
            shares: Vec::new(),
            mget_keys: MgetSizes::default(),
            scan_length_max: SCAN_LENGTH,
        };
        for part in input.split(',') {
            let Some((name, share)) = part.split_once('=') else {
                let form = "expected shares like get=0.9,put=0.1";
                return Err(SettingError::new(format!("mix {input:?}: {form}")));
            };
            let (name, size) = match name.split_once(':') {
                Some((name, size)) => (name.trim(), Some(size)),
                None => (name.trim(), None),
            };
            let kind = kind_of(name)?;
            match (kind, size) {
                (OpKind::Mget, Some(size)) => mix.mget_keys = size.parse()?,
                (OpKind::Scan, Some(size)) => {
                    mix.scan_length_max = text::bounded(size, "keys at once", SCAN_LENGTH_MAX)?;
                }
                (_, Some(_)) => return Err(SettingError::new(format!("{name} has no size"))),
                (_, None) => {}
            }
            if mix.shares.iter().any(|(k, _)| *k == kind) {
                return Err(SettingError::new(format!("mix {input:?} names {name} twice")));
            }
            mix.shares.push((kind, text::share(share.trim(), name)?));
        }
        let sum: f64 = mix.shares.iter().map(|(_, share)| share).sum();
        if (sum - 1.0).abs() > SUM_TOLERANCE {
            return Err(SettingError::new(format!(
                "the shares of mix {input:?} sum to {sum}, not 1"
            )));
        }
        mix.shares.iter_mut().for_each(|(_, share)| *share /= sum);
        Ok(mix)
    }
}

fn kind_of(name: &str) -> Result<OpKind, SettingError> {
    OpKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let known: Vec<&str> = OpKind::ALL.iter().map(|kind| kind.name()).collect();
        SettingError::new(format!("no operation {name:?}; there are {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(mix: &Mix, kind: OpKind) -> f64 {
        let mut rng = Rng::new(1);
        let draws = 200_000;
        f64::from((0..draws).map(|_| u32::from(mix.draw(&mut rng) == kind)).sum::<u32>())
            / f64::from(draws)
    }

    #[test]
    fn the_core_workloads_have_ycsbs_shares() {
        use OpKind::{Get, Insert, Put, Rmw, Scan};
        for (letter, shares) in [
            ('a', vec![(Get, 0.5), (Put, 0.5)]),
            ('B', vec![(Get, 0.95), (Put, 0.05)]),
            ('c', vec![(Get, 1.0)]),
            ('d', vec![(Get, 0.95), (Insert, 0.05)]),
            ('e', vec![(Scan, 0.95), (Insert, 0.05)]),
            ('F', vec![(Get, 0.5), (Rmw, 0.5)]),
        ] {
            let mix = Mix::ycsb(letter).unwrap();
            for (kind, share) in shares {
                let drawn = drawn(&mix, kind);
                assert!((drawn - share).abs() < 0.005, "{letter} {kind}: {drawn}");
            }
        }
        assert_eq!(Mix::ycsb('g'), None);
    }

    #[test]
    fn text_reads_back() {
        for text in ["get=0.9,put=0.1", "mget:16=1", "mget:~8.6=0.5,put=0.5", "scan:50=0.5,rmw=0.5"]
        {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), text);
        }
        let thirds: Mix = "get=0.333,put=0.333,del=0.333".parse().unwrap();
        assert!((thirds.share(OpKind::Del) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "expected shares"),
            ("get", "expected shares"),
            ("get=0.5,put=0.4", "sum to 0.9"),
            ("get=2,put=-1", "between 0 and 1"),
            ("fetch=1", "no operation"),
            ("get=0.5,get=0.5", "twice"),
            ("get:3=1", "no size"),
            ("mget:0=1", "not between"),
            ("mget:~0.5=1", "not between"),
            ("scan:many=1", "not a number"),
        ] {
            let error = text.parse::<Mix>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }
}
