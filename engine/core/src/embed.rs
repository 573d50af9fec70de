//! Port for an embedder: texts as vectors, on llama.cpp in production, by a script in tests.
//!
//! ```
//! use garret_core::embed::Embed;
//! use garret_core::model::PoolingError;
//!
//! /// Embeds a text as the numbers of its vowels and of its other letters.
//! #[derive(Debug)]
//! struct Letters;
//!
//! impl Embed for Letters {
//!     fn fingerprint(&self) -> [u8; 32] {
//!         [1; 32]
//!     }
//!
//!     fn dimensions(&self) -> usize {
//!         2
//!     }
//!
//!     fn embed_into(&self, texts: &[&str], vectors: &mut [f32]) -> Result<(), PoolingError> {
//!         PoolingError::check_length(texts.len() * 2, vectors.len())?;
//!         for (text, vector) in texts.iter().zip(vectors.as_chunks_mut().0) {
//!             let vowels = text.chars().filter(|c| "aeiou".contains(*c)).count() as f32;
//!             let others = text.chars().filter(|c| c.is_alphabetic()).count() as f32 - vowels;
//!             let length = vowels.hypot(others).max(1.0);
//!             *vector = [vowels / length, others / length];
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut vectors = [0.0; 4];
//! Letters.embed_into(&["oak", "?!"], &mut vectors)?;
//! assert_eq!(vectors[2..], [0.0, 0.0], "a text without letters has no direction");
//! # Ok::<(), PoolingError>(())
//! ```
//!
//! Limits: a call blocks until all its vectors are there; who may be called off asks for a few
//! texts at a time.

use core::fmt;

use crate::model::PoolingError;

/// An embedder: a model that turns texts into vectors of one length.
///
/// Texts that are close in meaning have vectors that are close in angle. A vector has length 1, or
/// 0 where the text holds nothing that the model knows. Vectors of different fingerprints can't be
/// compared.
pub trait Embed: Send + Sync + fmt::Debug {
    /// Returns the SHA-256 of what decides the numbers: the model file.
    fn fingerprint(&self) -> [u8; 32];

    /// Returns how many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// Writes the vectors of `texts` to `vectors`, one after another in the order of the texts,
    /// each [`Embed::dimensions`] numbers long. Blocks until they are there.
    ///
    /// # Errors
    /// [`PoolingError::Length`] when `vectors` has room for more or fewer vectors than there are
    /// texts; another one when the model fails, and never because of a text. What `vectors` holds
    /// after an error means nothing.
    fn embed_into(&self, texts: &[&str], vectors: &mut [f32]) -> Result<(), PoolingError>;
}
