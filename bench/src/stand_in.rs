//! A stand-in for an embedder: vectors from the words alone, so fast that no time goes into it.

use garret::embed::Embed;
use garret_core::model::PoolingError;
use garret_hal::kernels;
use garret_storage::Store;

use crate::synthetic::Random;

pub(crate) const DIMS: usize = 384;

/// The stand-in's fingerprint in a store.
const FINGERPRINT: [u8; 32] = *b"bench: signs drawn for each word";

/// The sum of a pattern of signs for each word, whatever its case and the marks around it. Texts
/// that share words are close.
pub(crate) fn embed(text: &str) -> Vec<f32> {
    let mut sum = vec![0.0; DIMS];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut random = Random::new(hash);
        for some in sum.chunks_mut(64) {
            let bits = random.next();
            let signs = (0..64).map(|bit| if bits >> bit & 1 == 0 { -1.0 } else { 1.0 });
            some.iter_mut().zip(signs).for_each(|(sum, sign)| *sum += sign);
        }
    }
    // A text without words has a direction too: vectors without one are refused.
    sum[0] += 0.5;
    sum
}

/// [`embed`] as an agent's embedder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandIn;

impl Embed for StandIn {
    fn fingerprint(&self) -> [u8; 32] {
        FINGERPRINT
    }

    fn dimensions(&self) -> usize {
        DIMS
    }

    fn embed_into(&self, texts: &[&str], vectors: &mut [f32]) -> Result<(), PoolingError> {
        for (text, unit) in texts.iter().zip(vectors.chunks_mut(DIMS)) {
            let vector = embed(text);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            unit.iter_mut().zip(vector).for_each(|(unit, x)| *unit = x / length);
        }
        Ok(())
    }
}

/// Tells the store about it.
pub(crate) fn set(store: &Store) -> Result<(), garret_storage::vectors::VectorError> {
    store.set_embedder(FINGERPRINT, DIMS, kernels::detect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::dot;

    #[test]
    fn texts_that_share_words_are_close() {
        let cosine = |a: &[f32], b: &[f32]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        let one = embed("Ada keeps bees, behind the library");
        assert!(cosine(&one, &embed("who keeps BEES behind the library?")) > 0.5);
        assert!(cosine(&one, &embed("Tom read a long letter")).abs() < 0.3);
        assert_eq!(one.len(), DIMS);
        assert!(dot(&embed(""), &embed("")) > 0.0);
    }
}
