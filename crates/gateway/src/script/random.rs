//! The numbers of `math.random`: the generator of Redis, the same on every machine.

/// Numbers of 48 bits, each made from the one before, as by `lrand48`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

/// What the number before is multiplied with.
const FACTOR: u64 = 0x5_DEEC_E66D;
/// What is added to that.
const ADDEND: u64 = 0xB;
/// All bits of a number.
const MASK: u64 = (1 << 48) - 1;
/// The lowest bits of the first number.
const LOW: u64 = 0x330E;

impl Random {
    /// Begins at a seed.
    pub(super) fn new(seed: i32) -> Self {
        Self(u64::from(seed.cast_unsigned()) << 16 | LOW)
    }

    /// At least 0, and below 1.
    pub(super) fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(FACTOR).wrapping_add(ADDEND) & MASK;
        let most = u32::MAX >> 1;
        let upper = u32::try_from(self.0 >> 17).unwrap_or_default() % most;
        f64::from(upper) / f64::from(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Redis 7.0 gives for `math.random()` in a script.
    #[test]
    fn a_seed_gives_the_same_numbers_everywhere() {
        let mut random = Random::new(0);
        let drawn = [random.draw(), random.draw()].map(|it| format!("{it:.6}"));
        assert_eq!(drawn, ["0.170828", "0.749902"]);
        assert_eq!(Random::new(7).draw().to_bits(), Random::new(7).draw().to_bits());
    }
}
