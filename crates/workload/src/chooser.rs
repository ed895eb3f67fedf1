//! Which key comes next.

use crate::text::{self, SettingError};
use crate::{Ranking, Zipf};
use machine::Rng;
use std::fmt;
use std::str::FromStr;

/// How requests spread over the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every key alike.
    Uniform,
    /// By Zipf's law; the hottest keys are neighbours.
    Zipf {
        /// Exponent of the law.
        theta: f64,
    },
    /// YCSB's `zipfian`: by Zipf's law over 10^10 items, scattered over the keys by a hash.
    Scrambled {
        /// Exponent of the law.
        theta: f64,
    },
    /// By Zipf's law, the key inserted last being the hottest (YCSB's `latest`).
    Latest {
        /// Exponent of the law.
        theta: f64,
    },
    /// A share of the operations goes to a share of the keys, both uniformly (YCSB's `hotspot`).
    Hotspot {
        /// Share of the keys that is hot: the first ones.
        keys: f64,
        /// Share of the operations that goes to them.
        ops: f64,
    },
}

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// Items that YCSB's scrambled generator draws from before it hashes.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

impl Distribution {
    /// Whether keys have popularity ranks that could shift.
    #[must_use]
    pub fn has_ranks(&self) -> bool {
        match self {
            Self::Zipf { .. } | Self::Scrambled { .. } | Self::Hotspot { .. } => true,
            Self::Uniform | Self::Latest { .. } => false,
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::Scrambled { theta } => write!(f, "scrambled:{theta}"),
            Self::Latest { theta } => write!(f, "latest:{theta}"),
            Self::Hotspot { keys, ops } => write!(f, "hotspot:{keys}:{ops}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = SettingError;

    /// `uniform`, `zipf[:THETA]`, `scrambled[:THETA]`, `latest[:THETA]`, `hotspot[:KEYS:OPS]`.
    fn from_str(input: &str) -> Result<Self, SettingError> {
        let bad = || {
            SettingError::new(format!(
                "distribution {input:?}: expected uniform, zipf[:THETA], scrambled[:THETA], \
                 latest[:THETA] or hotspot[:KEYS:OPS]"
            ))
        };
        let (name, rest) = match input.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (input, None),
        };
        match (name, rest) {
            ("uniform", None) => Ok(Self::Uniform),
            ("zipf", theta) => Ok(Self::Zipf { theta: parse_theta(theta)? }),
            ("scrambled", theta) => Ok(Self::Scrambled { theta: parse_theta(theta)? }),
            ("latest", theta) => Ok(Self::Latest { theta: parse_theta(theta)? }),
            ("hotspot", None) => Ok(Self::Hotspot { keys: 0.2, ops: 0.8 }),
            ("hotspot", Some(shares)) => {
                let (keys, ops) = shares.split_once(':').ok_or_else(bad)?;
                let keys = text::share(keys, "hotspot's share of keys")?;
                let ops = text::share(ops, "hotspot's share of operations")?;
                Ok(Self::Hotspot { keys, ops })
            }
            _ => Err(bad()),
        }
    }
}

fn parse_theta(text: Option<&str>) -> Result<f64, SettingError> {
    let Some(text) = text else { return Ok(THETA) };
    let theta: f64 = text::number(text, "theta")?;
    if !(0.0..=THETA_MAX).contains(&theta) {
        return Err(SettingError::new(format!("theta {text} is not between 0 and {THETA_MAX}")));
    }
    Ok(theta)
}

/// Largest exponent taken: with 10, one key in a thousand draws is not the hottest.
const THETA_MAX: f64 = 10.0;

/// Draws keys by a [`Distribution`].
#[derive(Clone, Debug)]
pub struct Chooser {
    loaded: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    Scrambled { law: Zipf, keys: u64 },
    Latest(Zipf),
    Hotspot { hot: u64, ops: f64 },
}

impl Chooser {
    /// A chooser over `loaded` keys to which about `inserts_expected` will be added. (YCSB lets the
    /// scrambled generator cover keys to come, since a changed divisor would move every hot key.)
    ///
    /// # Panics
    ///
    /// If there are no keys.
    #[must_use]
    pub fn new(distribution: Distribution, loaded: u64, inserts_expected: u64) -> Self {
        assert!(loaded > 0, "a key to choose");
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf { theta } => Kind::Zipf(Zipf::new(loaded, theta)),
            Distribution::Scrambled { theta } => Kind::Scrambled {
                law: Zipf::new(SCRAMBLED_ITEMS, theta),
                keys: loaded.saturating_add(inserts_expected),
            },
            Distribution::Latest { theta } => Kind::Latest(Zipf::new(loaded, theta)),
            Distribution::Hotspot { keys, ops } => {
                let hot = (keys * loaded as f64) as u64;
                Kind::Hotspot { hot: hot.clamp(1, loaded), ops }
            }
        };
        Self { loaded, kind }
    }

    /// Draws a key below `count`, the number of keys there are now.
    pub fn choose(&mut self, count: u64, ranking: &Ranking, rng: &mut Rng) -> u64 {
        match &mut self.kind {
            Kind::Uniform => rng.below(count),
            Kind::Zipf(law) => {
                law.grow(count);
                ranking.key_at(law.draw(rng))
            }
            Kind::Scrambled { law, keys } => {
                for _ in 0..SCRAMBLE_ATTEMPTS_MAX {
                    let key = fnv_hash(ranking.key_at(law.draw(rng))) % *keys;
                    if key < count {
                        return key;
                    }
                }
                rng.below(count)
            }
            Kind::Latest(law) => {
                law.grow(count);
                count - 1 - law.draw(rng).min(count - 1)
            }
            Kind::Hotspot { hot, ops } => {
                let cold = self.loaded - *hot;
                let rank = if cold == 0 || rng.unit() < *ops {
                    rng.below(*hot)
                } else {
                    *hot + rng.below(cold)
                };
                ranking.key_at(rank)
            }
        }
    }
}

/// Draws before a scrambled choice settles for any key. YCSB goes on for ever; with at least half
/// of the expected keys there, 64 failures have a probability of 2^-64.
const SCRAMBLE_ATTEMPTS_MAX: u32 = 64;

/// YCSB's `Utils.fnvhash64`: FNV-1a over the eight bytes, low byte first, made positive.
fn fnv_hash(value: u64) -> u64 {
    let hash = value.to_le_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Instant;

    const DRAWS: u32 = 400_000;

    fn shares(distribution: &str, loaded: u64, count: u64) -> Vec<f64> {
        let mut chooser = Chooser::new(distribution.parse().unwrap(), loaded, count - loaded);
        let ranking = Ranking::new(loaded, None, Instant(0), Rng::new(1));
        let mut rng = Rng::new(2);
        let mut counts = vec![0_u32; usize::try_from(count).unwrap()];
        for _ in 0..DRAWS {
            let key = chooser.choose(count, &ranking, &mut rng);
            counts[usize::try_from(key).unwrap()] += 1;
        }
        counts.into_iter().map(|n| f64::from(n) / f64::from(DRAWS)).collect()
    }

    fn assert_near(share: f64, exact: f64, what: &str) {
        // Five standard errors of a binomial share.
        let error = 5.0 * (exact * (1.0 - exact) / f64::from(DRAWS)).sqrt();
        assert!((share - exact).abs() <= error, "{what}: {share} instead of {exact}");
    }

    #[test]
    fn uniform_gives_every_key_its_share() {
        for (key, share) in shares("uniform", 100, 100).into_iter().enumerate() {
            assert_near(share, 0.01, &format!("key {key}"));
        }
    }

    #[test]
    fn hotspot_splits_the_operations_as_told() {
        let shares = shares("hotspot:0.1:0.7", 100, 100);
        for (key, share) in shares.into_iter().enumerate() {
            let exact = if key < 10 { 0.07 } else { 0.3 / 90.0 };
            assert_near(share, exact, &format!("key {key}"));
        }
    }

    #[test]
    fn latest_prefers_the_key_inserted_last() {
        let law = Zipf::new(120, 1.2);
        let shares = shares("latest:1.2", 100, 120);
        for (rank, share) in (0..).zip(shares.into_iter().rev()) {
            assert_near(share, law.probability(rank), &format!("rank {rank}"));
        }
    }

    #[test]
    fn zipf_takes_inserted_keys_in_as_the_coldest() {
        let law = Zipf::new(120, 1.2);
        for (rank, share) in (0..).zip(shares("zipf:1.2", 100, 120)) {
            assert_near(share, law.probability(rank), &format!("rank {rank}"));
        }
    }

    #[test]
    fn scrambled_scatters_the_hot_ranks_to_where_ycsb_hashes_them() {
        let count = 1_000;
        let shares = shares("scrambled:0.99", count, count);
        let law = Zipf::new(SCRAMBLED_ITEMS, 0.99);
        for rank in 0..2 {
            let key = usize::try_from(fnv_hash(rank) % count).unwrap();
            // The ranks beyond a thousand spread evenly; a few of the others may collide.
            let share = shares[key] - 1.0 / count as f64;
            let exact = law.probability(rank);
            assert!((share - exact).abs() < 0.003, "rank {rank}: {share}, {exact}");
        }
        let hottest = shares.iter().copied().fold(0.0, f64::max);
        let first = usize::try_from(fnv_hash(0) % count).unwrap();
        assert!((shares[first] - hottest).abs() < f64::EPSILON, "rank 0 is the hottest");
        assert!(shares.iter().all(|share| *share > 0.0), "every key is reached");
    }

    #[test]
    fn the_hash_is_ycsbs() {
        // Computed from the published definition of FNV-1a, 64 bits, over eight zero bytes.
        assert_eq!(fnv_hash(0), 0xa8c7_f832_281a_39c5_u64.cast_signed().unsigned_abs());
        assert!((0..100_000).all(|n| fnv_hash(n) <= 1 << 63));
    }

    #[test]
    fn text_reads_back_and_nonsense_is_refused() {
        for text in ["uniform", "zipf:0.9", "scrambled:1.2", "latest:0.99", "hotspot:0.2:0.8"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Distribution::Zipf { theta: 0.99 }));
        for text in ["", "zip", "uniform:1", "zipf:", "zipf:-1", "zipf:nan", "hotspot:0.5:2"] {
            assert!(text.parse::<Distribution>().is_err(), "{text:?}");
        }
    }
}
