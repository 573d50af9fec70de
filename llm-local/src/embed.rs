//! Texts as vectors; see [`Embedder`].

use std::path::Path;
use std::sync::Arc;

use garret_core::embed::Embed;
use garret_core::model::PoolingError;
use llama_cpp_2::context::params::LlamaPoolingType;
use llama_cpp_2::token::LlamaToken;

use crate::backend::Backend;
use crate::error::LoadError;
use crate::model::Model;
use crate::pooled::{ContextParams, Frame, PoolingContext, PoolingOptions, tokens};

/// A model that turns texts into vectors. Cloning makes another handle to the same one.
///
/// Its context lives on a thread of its own. Short texts are decoded several at a time; a text
/// longer than the window is cut at its tokens, and the vectors of its parts are averaged, weighted
/// by their tokens. Vectors have length 1, so a dot product is a cosine. A text without a single
/// token (empty, or only white space for most models) has the zero vector, which is similar to
/// nothing.
///
/// ```no_run
/// use garret_llm::{Backend, Embedder, PoolingOptions};
///
/// let path = std::path::Path::new("embedder.gguf");
/// let embedder = Embedder::load(Backend::start()?, path, PoolingOptions::default())?;
/// let vectors = embedder.embed(&["a lamp in the attic", "the light upstairs"])?;
/// let cosine: f32 = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum();
/// # assert!(cosine > 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Limits: text is tokenised by llama.cpp. Its WordPiece differs from the original on Korean (it
/// keeps the first letter of each syllable only), on the spacing marks of Indic scripts and Arabic,
/// and on words of more than 100 characters; such texts get vectors, if poorer ones.
#[derive(Clone, Debug)]
pub struct Embedder {
    inner: Arc<Inner>,
    fingerprint: [u8; 32],
}

#[derive(Debug)]
struct Inner {
    pooled: PoolingContext,
    frame: Frame,
}

impl Embedder {
    /// Loads the GGUF file at `path` and makes its context.
    ///
    /// # Errors
    /// As [`Model::load`]; also when the model ranks texts instead of giving vectors, an option
    /// can't work, or the context can't be made.
    pub fn load(
        backend: Arc<Backend>,
        path: &Path,
        options: PoolingOptions,
    ) -> Result<Self, LoadError> {
        let model = Model::load(backend, path, options.model)?;
        let frame = Frame::of(&model);
        let options = ContextParams {
            name: "garret-embedder",
            threads: options.threads,
            max_tokens: options.max_tokens,
            least: u32::try_from(frame.len() + 1).unwrap_or(u32::MAX),
            pooling: pooling(&model)?,
        };
        let pooled = PoolingContext::new(model, options)?;
        Ok(Self { inner: Arc::new(Inner { pooled, frame }), fingerprint: [0; 32] })
    }

    /// Gives this handle the SHA-256 of the model file, which it passes on as
    /// [`Embed::fingerprint`]. Without one the fingerprint is all zeros.
    #[must_use]
    pub fn with_fingerprint(self, fingerprint: [u8; 32]) -> Self {
        Self { fingerprint, ..self }
    }

    /// Returns the vectors of `texts`, in order, each of [`Embedder::dimensions`] numbers and
    /// length 1, or 0 for a text without tokens. Blocks until they are there.
    ///
    /// # Errors
    /// When llama.cpp fails or the weights give no numbers; never because of a text.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, PoolingError> {
        let mut parts = Vec::new();
        let mut weights = Vec::with_capacity(texts.len());
        for text in texts {
            weights.push(self.inner.cut(text, &mut parts));
        }
        let mut vectors = self.inner.pooled.ask(parts)?.into_iter();
        weights.iter().map(|weights| self.join(weights, &mut vectors)).collect()
    }

    /// Returns how many numbers a vector has.
    pub fn dimensions(&self) -> usize {
        usize::try_from(self.model().llama().n_embd_out()).unwrap_or(0)
    }

    /// Returns the most tokens of a text that is embedded in one part.
    pub fn max_tokens(&self) -> usize {
        self.inner.room()
    }

    /// Returns the model behind the embedder.
    pub fn model(&self) -> &Arc<Model> {
        self.inner.pooled.model()
    }

    /// Returns the vector of a text whose parts have these weights and these vectors.
    fn join(
        &self,
        weights: &[f32],
        vectors: &mut impl Iterator<Item = Vec<f32>>,
    ) -> Result<Vec<f32>, PoolingError> {
        let mut sum = vec![0.0; self.dimensions()];
        for (weight, vector) in weights.iter().zip(vectors) {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
        }
        if weights.is_empty() {
            return Ok(sum);
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(PoolingError::NotFinite);
        }
        sum.iter_mut().for_each(|value| *value /= length);
        Ok(sum)
    }
}

impl Embed for Embedder {
    fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    fn dimensions(&self) -> usize {
        Self::dimensions(self)
    }

    fn embed_into(&self, texts: &[&str], vectors: &mut [f32]) -> Result<(), PoolingError> {
        PoolingError::check_length(texts.len() * Self::dimensions(self), vectors.len())?;
        vectors.copy_from_slice(&self.embed(texts)?.concat());
        Ok(())
    }
}

impl Inner {
    /// Returns the tokens of text that a part has room for.
    fn room(&self) -> usize {
        self.pooled.window() - self.frame.len()
    }

    /// Appends the parts of `text` to `parts` and returns their weights.
    fn cut(&self, text: &str, parts: &mut Vec<Vec<LlamaToken>>) -> Vec<f32> {
        let tokens = tokens(&self.pooled.model().llama().vocab(), text);
        let part = |tokens: &[LlamaToken]| [&self.frame.before, tokens, &self.frame.after].concat();
        let chunks = tokens.chunks(self.room());
        // Divided by the whole, so that the sum of a long text stays small.
        let weights = chunks.clone().map(|chunk| chunk.len() as f32 / tokens.len() as f32);
        let weights = weights.collect();
        parts.extend(chunks.map(part));
        weights
    }
}

/// Returns the pooling of the model, by its metadata; mean when it doesn't say.
fn pooling(model: &Model) -> Result<LlamaPoolingType, LoadError> {
    let key = format!("{}.pooling_type", model.architecture());
    let value = model.metadata(&key).and_then(|value| value.parse::<i32>().ok());
    match value.map(LlamaPoolingType::from) {
        Some(pooling @ (LlamaPoolingType::Cls | LlamaPoolingType::Last)) => Ok(pooling),
        Some(LlamaPoolingType::Rank) => {
            Err(LoadError::NotAnEmbedder { reason: "it ranks texts".into() })
        }
        _ => Ok(LlamaPoolingType::Mean),
    }
}
