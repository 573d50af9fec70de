//! SplitMix64: the small generator behind everything here that must be the same on every run.
//!
//! Reference: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).

/// A stream of 64-bit words decided by its seed alone. Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        scramble(self.0)
    }
}

fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of the reference implementation for seed 1234567.
    #[test]
    fn matches_the_reference() {
        let mut mix = SplitMix64::new(1_234_567);
        let words = [mix.next(), mix.next(), mix.next()];
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
