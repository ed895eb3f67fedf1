//! The stream of operations of one load generator.

use crate::text::SettingError;
use crate::{Chooser, Distribution, Mix, OpKind, Population, Ranking, Shift};
use machine::{Instant, Rng};

/// What the operations of a run are like.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Shares of the kinds of operation.
    pub mix: Mix,
    /// How they spread over the keys.
    pub distribution: Distribution,
    /// Keys loaded before the run.
    pub keys: u64,
    /// About how many keys the run will insert; see [`Chooser::new`].
    pub inserts_expected: u64,
    /// How popularity moves during the run, if it does.
    pub shift: Option<Shift>,
}

/// One operation, on keys by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read a key.
    Get {
        /// Which.
        key: u64,
    },
    /// Write a key that was loaded or inserted.
    Put {
        /// Which.
        key: u64,
    },
    /// Write a new key, and tell the [`Population`] when that has ended.
    Insert {
        /// Which.
        key: u64,
    },
    /// Delete a key.
    Del {
        /// Which.
        key: u64,
    },
    /// Read a key, then write it on the condition that nobody else has.
    Cas {
        /// Which.
        key: u64,
    },
    /// Add to a counter. Counters are numbered like keys and need names of their own, since the
    /// values of keys are no numbers.
    Incr {
        /// Which.
        counter: u64,
    },
    /// Read several keys, all different.
    Mget {
        /// Which.
        keys: Vec<u64>,
    },
    /// Read `length` keys in order.
    Scan {
        /// The first.
        from: u64,
        /// How many at most.
        length: u64,
    },
    /// Read a key, then write it.
    Rmw {
        /// Which.
        key: u64,
    },
}

impl Op {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OpKind {
        match self {
            Self::Get { .. } => OpKind::Get,
            Self::Put { .. } => OpKind::Put,
            Self::Insert { .. } => OpKind::Insert,
            Self::Del { .. } => OpKind::Del,
            Self::Cas { .. } => OpKind::Cas,
            Self::Incr { .. } => OpKind::Incr,
            Self::Mget { .. } => OpKind::Mget,
            Self::Scan { .. } => OpKind::Scan,
            Self::Rmw { .. } => OpKind::Rmw,
        }
    }
}

/// Draws operations, without end.
#[derive(Clone, Debug)]
pub struct Generator {
    mix: Mix,
    chooser: Chooser,
    ranking: Ranking,
    population: Population,
    rng: Rng,
}

impl Generator {
    /// Generator number `index` of a run that starts at `start`. All generators of a run share the
    /// population and the seed in `rng`, so that popularity shifts for all at once; their
    /// operations are independent.
    ///
    /// # Errors
    ///
    /// If the spec contradicts itself.
    pub fn new(
        spec: &Spec,
        population: Population,
        start: Instant,
        rng: &Rng,
        index: usize,
    ) -> Result<Self, SettingError> {
        if spec.keys == 0 {
            return Err(SettingError::new("there must be at least one key"));
        }
        if spec.mix.share(OpKind::Mget) > 0.0 && spec.mix.mget_keys.max() > spec.keys {
            let (asked, keys) = (spec.mix.mget_keys.max(), spec.keys);
            return Err(SettingError::new(format!("an mget of {asked} keys, but only {keys}")));
        }
        if spec.shift.is_some() && !spec.distribution.has_ranks() {
            let why = format!("a {} distribution has no ranks to shift", spec.distribution);
            return Err(SettingError::new(why));
        }
        Ok(Self {
            mix: spec.mix.clone(),
            chooser: Chooser::new(spec.distribution, spec.keys, spec.inserts_expected),
            ranking: Ranking::new(spec.keys, spec.shift, start, rng.fork("shift")),
            population,
            rng: rng.fork(&format!("generator {index}")),
        })
    }

    /// The next operation, as popularity is at `now`.
    pub fn next_op(&mut self, now: Instant) -> Op {
        self.ranking.advance(now);
        match self.mix.draw(&mut self.rng) {
            OpKind::Get => Op::Get { key: self.choose() },
            OpKind::Put => Op::Put { key: self.choose() },
            OpKind::Insert => Op::Insert { key: self.population.claim() },
            OpKind::Del => Op::Del { key: self.choose() },
            OpKind::Cas => Op::Cas { key: self.choose() },
            OpKind::Incr => Op::Incr { counter: self.choose() },
            OpKind::Mget => Op::Mget { keys: self.choose_several() },
            OpKind::Scan => {
                let length = 1 + self.rng.below(self.mix.scan_length_max);
                Op::Scan { from: self.choose(), length }
            }
            OpKind::Rmw => Op::Rmw { key: self.choose() },
        }
    }

    fn choose(&mut self) -> u64 {
        self.chooser.choose(self.population.count(), &self.ranking, &mut self.rng)
    }

    /// Different keys. A key that was drawn before is drawn again a few times, and then gives way
    /// to its next neighbour, so that a skewed law over few keys ends as well.
    fn choose_several(&mut self) -> Vec<u64> {
        let wanted = self.mix.mget_keys.draw(&mut self.rng);
        let wanted = usize::try_from(wanted).expect("bounded by the mix");
        let mut keys = Vec::with_capacity(wanted);
        while keys.len() < wanted {
            let mut key = self.choose();
            for _ in 0..REDRAWS_MAX {
                if !keys.contains(&key) {
                    break;
                }
                key = self.choose();
            }
            while keys.contains(&key) {
                key = (key + 1) % self.population.count();
            }
            keys.push(key);
        }
        keys
    }
}

/// Draws for one key of an MGET before its neighbour is taken instead.
const REDRAWS_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const START: Instant = Instant(1_000_000_000);

    fn spec(mix: Mix, distribution: &str) -> Spec {
        Spec {
            mix,
            distribution: distribution.parse().unwrap(),
            keys: 1_000,
            inserts_expected: 1_000,
            shift: None,
        }
    }

    fn ops(spec: &Spec, seed: u64, index: usize, count: usize) -> Vec<Op> {
        let population = Population::new(spec.keys);
        let mut generator =
            Generator::new(spec, population.clone(), START, &Rng::new(seed), index).unwrap();
        let mut ops = Vec::new();
        for step in 0..count {
            let op = generator.next_op(START + std::time::Duration::from_millis(step as u64));
            if let Op::Insert { key } = op {
                population.ended(key);
            }
            ops.push(op);
        }
        ops
    }

    #[test]
    fn the_same_seed_gives_the_same_operations_and_another_does_not() {
        let mix =
            "get=0.3,put=0.1,insert=0.1,del=0.1,cas=0.1,incr=0.1,mget:4=0.1,scan=0.05,rmw=0.05";
        let mut spec = spec(mix.parse().unwrap(), "scrambled");
        spec.shift = Some("random:10:100/0.1".parse().unwrap());
        let first = ops(&spec, 1, 0, 5_000);
        assert_eq!(first, ops(&spec, 1, 0, 5_000));
        assert_ne!(first, ops(&spec, 1, 1, 5_000));
        assert_ne!(first, ops(&spec, 2, 0, 5_000));
    }

    #[test]
    fn workload_d_reads_what_was_inserted_last() {
        let ops = ops(&spec(Mix::ycsb('d').unwrap(), "latest"), 1, 0, 20_000);
        let mut count = 1_000;
        let (mut reads, mut recent) = (0, 0);
        for op in ops {
            match op {
                Op::Insert { key } => {
                    assert_eq!(key, count, "inserted keys follow one another");
                    count += 1;
                }
                Op::Get { key } => {
                    reads += 1;
                    recent += u32::from(key >= count - 10);
                }
                other => panic!("not in workload D: {other:?}"),
            }
        }
        let inserts = count - 1_000;
        assert!((900..1_100).contains(&inserts), "{inserts} inserts of 20000");
        // Zipf 0.99 over 1000 to 2000 keys gives its ten hottest 35 to 39 percent.
        let share = f64::from(recent) / f64::from(reads);
        assert!((0.34..0.42).contains(&share), "{share} of the reads are of the last ten");
    }

    #[test]
    fn workload_e_scans_uniformly_1_to_100_keys() {
        let ops = ops(&spec(Mix::ycsb('e').unwrap(), "scrambled"), 1, 0, 20_000);
        let mut lengths = BTreeMap::new();
        for op in &ops {
            if let Op::Scan { from, length } = op {
                assert!(*from < 3_000);
                *lengths.entry(*length).or_insert(0_u32) += 1;
            }
        }
        assert!(lengths.keys().copied().eq(1..=100));
        assert!(lengths.values().all(|&n| (120..260).contains(&n)), "{lengths:?}");
    }

    #[test]
    fn the_keys_of_an_mget_differ_even_under_extreme_skew() {
        let mut spec = spec("mget:32=1".parse().unwrap(), "zipf:5");
        spec.keys = 32;
        for op in ops(&spec, 1, 0, 200) {
            let Op::Mget { mut keys } = op else { panic!("only mgets") };
            keys.sort_unstable();
            assert!(keys.into_iter().eq(0..32));
        }
    }

    #[test]
    fn a_shift_moves_the_hottest_key_for_all_generators_at_once() {
        let mut spec = spec(Mix::ycsb('c').unwrap(), "zipf:1.2");
        spec.shift = Some("hot-in:1/1".parse().unwrap());
        for index in 0..2 {
            let ops = ops(&spec, 1, index, 2_000);
            let hottest = |ops: &[Op]| {
                let mut counts = BTreeMap::new();
                ops.iter().for_each(|op| match op {
                    Op::Get { key } => *counts.entry(*key).or_insert(0_u32) += 1,
                    other => panic!("not in workload C: {other:?}"),
                });
                counts.into_iter().max_by_key(|(_, n)| *n).map(|(key, _)| key)
            };
            assert_eq!(hottest(&ops[..1_000]), Some(0));
            assert_eq!(hottest(&ops[1_000..]), Some(999));
        }
    }

    #[test]
    fn contradictory_specs_are_refused() {
        let refused = |spec: &Spec| {
            let population = Population::new(spec.keys);
            Generator::new(spec, population, START, &Rng::new(1), 0).is_err()
        };
        let good = spec("mget:32=1".parse().unwrap(), "uniform");
        assert!(!refused(&good));
        assert!(refused(&Spec { keys: 31, ..good.clone() }));
        assert!(refused(&Spec { keys: 0, ..good.clone() }));
        assert!(refused(&Spec { shift: Some("hot-in:1/1".parse().unwrap()), ..good }));
    }
}
