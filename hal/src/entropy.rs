//! Random bytes: the kernel's, and a stream that is the same on every run.
//!
//! ```
//! use garret_core::time::Entropy;
//! use garret_hal::entropy::{SeededEntropy, SystemEntropy};
//!
//! let mut id = [0; 10];
//! SystemEntropy.fill(&mut id)?;
//!
//! let (mut one, mut two) = ([0; 10], [0; 10]);
//! SeededEntropy::new(7).fill(&mut one)?;
//! SeededEntropy::new(7).fill(&mut two)?;
//! assert_eq!(one, two);
//! # Ok::<(), garret_core::time::NoEntropy>(())
//! ```

use crate::mix::SplitMix64;
use garret_core::time::{Entropy, NoEntropy};
use std::sync::{Mutex, PoisonError};

/// The kernel's random bytes (`getrandom`), fit for secrets.
///
/// The first call after boot may wait until the kernel has gathered enough.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(bytes).map_err(|_| NoEntropy)
    }
}

/// Bytes decided by a seed alone (SplitMix64), for replay and tests. **Not for secrets**: eight
/// bytes of output tell all that follow.
///
/// Every call starts on a fresh 64-bit word, so the stream also depends on how it is divided into
/// calls.
#[derive(Debug)]
pub struct SeededEntropy {
    mix: Mutex<SplitMix64>,
}

impl SeededEntropy {
    /// The stream of `seed`, from its beginning.
    pub fn new(seed: u64) -> Self {
        Self { mix: Mutex::new(SplitMix64::new(seed)) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        let mut mix = self.mix.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&mix.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn filled(source: &dyn Entropy, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        source.fill(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_kernel_does_not_repeat_itself() {
        assert_ne!(filled(&SystemEntropy, 32), filled(&SystemEntropy, 32));
        assert!(filled(&SystemEntropy, 0).is_empty());
    }

    proptest! {
        #[test]
        fn a_seed_decides_the_stream(seed: u64, lens in vec(0..40_usize, 1..6)) {
            let one = SeededEntropy::new(seed);
            let two = SeededEntropy::new(seed);
            for len in lens {
                prop_assert_eq!(filled(&one, len), filled(&two, len));
            }
        }

        #[test]
        fn streams_move_on_and_differ_by_seed(seed: u64) {
            let source = SeededEntropy::new(seed);
            let first = filled(&source, 16);
            prop_assert_ne!(&first, &filled(&source, 16));
            prop_assert_ne!(&first, &filled(&SeededEntropy::new(!seed), 16));
        }

        /// The same on every machine: words in little-endian order, the last one cut.
        #[test]
        fn bytes_are_the_words_in_order(seed: u64, len in 0..40_usize) {
            let mut mix = SplitMix64::new(seed);
            let words: Vec<u8> = (0..5).flat_map(|_| mix.next().to_le_bytes()).collect();
            prop_assert_eq!(filled(&SeededEntropy::new(seed), len), &words[..len]);
        }
    }
}
