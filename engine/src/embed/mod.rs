//! The embedder's port: texts as vectors, on llama.cpp or on a script.

mod rotations;
mod work;

use std::fmt;

use garret_llm::{EmbedError, Embedder};

pub use work::{WorkError, attach, embed_all, embed_idle, query};

/// Turns texts into vectors of one length.
///
/// What is close in meaning is close in angle; vectors have length 1, but that of a text with
/// nothing in it, which has length 0. Vectors of different fingerprints can't be compared.
pub trait Embed: Send + Sync + fmt::Debug {
    /// SHA-256 of what decides the numbers: the model file.
    fn fingerprint(&self) -> [u8; 32];

    /// Numbers in a vector.
    fn dimensions(&self) -> usize;

    /// The vectors of `texts`, in order. Blocks until they are there.
    ///
    /// # Errors
    /// When the model fails; never because of a text.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedFailure>;
}

/// Why there are no vectors, in the embedder's words.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EmbedFailure(#[from] Box<dyn std::error::Error + Send + Sync>);

impl From<EmbedError> for EmbedFailure {
    fn from(error: EmbedError) -> Self {
        Self(Box::new(error))
    }
}

/// An embedder on llama.cpp.
#[derive(Clone, Debug)]
pub struct LocalEmbedder {
    embedder: Embedder,
    fingerprint: [u8; 32],
}

impl LocalEmbedder {
    /// A loaded embedder, from a file of this SHA-256.
    pub const fn new(embedder: Embedder, fingerprint: [u8; 32]) -> Self {
        Self { embedder, fingerprint }
    }
}

impl Embed for LocalEmbedder {
    fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedFailure> {
        Ok(self.embedder.embed(texts)?)
    }
}
