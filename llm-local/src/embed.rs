//! Texts as vectors; see [`Embedder`].

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use smol::channel::{Receiver, Sender, bounded};

use crate::backend::Backend;
use crate::error::{EmbedError, LoadError};
use crate::model::{Model, ModelOptions};

/// How an embedder is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderOptions {
    /// Threads that compute.
    pub threads: u32,
    /// Most tokens of one part of a text, special ones included; what the model was trained for
    /// is the limit if that is less. A decode needs memory for one part.
    pub max_tokens: u32,
    /// How the file is loaded.
    pub model: ModelOptions,
}

impl Default for EmbedderOptions {
    fn default() -> Self {
        Self { threads: 4, max_tokens: 512, model: ModelOptions::default() }
    }
}

/// Most texts of one decode. More don't make it faster.
const MAX_TEXTS: usize = 16;

/// Most requests that wait at once; further ones block their caller.
const MAX_WAITING: usize = 16;

/// A model that turns texts into vectors. Cloning makes another handle to the same one.
///
/// Its context lives on a thread of its own. Short texts are decoded several at a time; a text
/// longer than the window is cut at its tokens, and the vectors of its parts are averaged, weighted
/// by their tokens. Vectors have length 1, so a dot product is a cosine. A text without a single
/// token (empty, or only white space for most models) has the zero vector, which is similar to
/// nothing.
///
/// ```no_run
/// use garret_llm::{Backend, Embedder, EmbedderOptions};
///
/// let path = std::path::Path::new("embedder.gguf");
/// let embedder = Embedder::load(Backend::start()?, path, EmbedderOptions::default())?;
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
}

#[derive(Debug)]
struct Inner {
    model: Arc<Model>,
    frame: Frame,
    /// Most tokens of a part.
    window: usize,
    requests: Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The special tokens a model wants around a text.
#[derive(Debug, Default)]
struct Frame {
    before: Vec<LlamaToken>,
    after: Vec<LlamaToken>,
}

/// Parts to embed, each of 1 to window tokens, and where their raw vectors go, in order.
#[derive(Debug)]
struct Request {
    parts: Vec<Vec<LlamaToken>>,
    answer: Sender<Result<Vec<Vec<f32>>, EmbedError>>,
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
        options: EmbedderOptions,
    ) -> Result<Self, LoadError> {
        if options.threads == 0 {
            let (option, value) = ("threads", "0".to_owned());
            return Err(LoadError::BadOption { option, value, expected: "at least 1".into() });
        }
        let model = Model::load(backend, path, options.model)?;
        let pooling = pooling(&model)?;
        let frame = Frame::of(&model);
        let window = options.max_tokens.min(model.n_ctx_train());
        let least = u32::try_from(frame.len() + 1).unwrap_or(u32::MAX);
        if window < least {
            let (option, value) = ("max_tokens", options.max_tokens.to_string());
            let expected = format!("between {least} and {}", model.n_ctx_train());
            return Err(LoadError::BadOption { option, value, expected });
        }
        let (requests, waiting) = bounded(MAX_WAITING);
        let thread = spawn(Arc::clone(&model), window, options.threads, pooling, waiting)?;
        let thread = Mutex::new(Some(thread));
        let window = window as usize;
        Ok(Self { inner: Arc::new(Inner { model, frame, window, requests, thread }) })
    }

    /// The vectors of `texts`, in order, each of [`Embedder::dimensions`] numbers and length 1,
    /// or 0 for a text without tokens. Blocks until they are there.
    ///
    /// # Errors
    /// When llama.cpp fails or the weights give no numbers; never because of a text.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut parts = Vec::new();
        let mut weights = Vec::with_capacity(texts.len());
        for text in texts {
            weights.push(self.inner.cut(text, &mut parts));
        }
        let mut vectors = self.ask(parts)?.into_iter();
        weights.iter().map(|weights| self.join(weights, &mut vectors)).collect()
    }

    /// Numbers in a vector.
    pub fn dimensions(&self) -> usize {
        usize::try_from(self.inner.model.llama().n_embd_out()).unwrap_or(0)
    }

    /// Most tokens of a text that is embedded in one part.
    pub fn max_tokens(&self) -> usize {
        self.inner.room()
    }

    /// The model behind it.
    pub fn model(&self) -> &Arc<Model> {
        &self.inner.model
    }

    fn ask(&self, parts: Vec<Vec<LlamaToken>>) -> Result<Vec<Vec<f32>>, EmbedError> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = bounded(1);
        let request = Request { parts, answer };
        self.inner.requests.send_blocking(request).map_err(|_| EmbedError::Stopped)?;
        answered.recv_blocking().unwrap_or(Err(EmbedError::Stopped))
    }

    /// The vector of a text whose parts have these weights and these vectors.
    fn join(
        &self,
        weights: &[f32],
        vectors: &mut impl Iterator<Item = Vec<f32>>,
    ) -> Result<Vec<f32>, EmbedError> {
        let mut sum = vec![0.0; self.dimensions()];
        for (weight, vector) in weights.iter().zip(vectors) {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value);
        }
        if weights.is_empty() {
            return Ok(sum);
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length == 0.0 {
            return Err(EmbedError::NotFinite);
        }
        sum.iter_mut().for_each(|value| *value /= length);
        Ok(sum)
    }
}

impl Inner {
    /// Tokens of text a part has room for.
    fn room(&self) -> usize {
        self.window - self.frame.len()
    }

    /// Appends the parts of `text` to `parts` and returns their weights.
    fn cut(&self, text: &str, parts: &mut Vec<Vec<LlamaToken>>) -> Vec<f32> {
        let vocab = self.model.llama().vocab();
        let mut tokens = Vec::new();
        for piece in pieces(text, LONGEST_PIECE) {
            tokens.extend(vocab.tokenize(piece.as_bytes(), false, false));
        }
        let part = |tokens: &[LlamaToken]| [&self.frame.before, tokens, &self.frame.after].concat();
        let chunks = tokens.chunks(self.room());
        // Divided by the whole, so that the sum of a long text stays small.
        let weights = chunks.clone().map(|chunk| chunk.len() as f32 / tokens.len() as f32);
        let weights = weights.collect();
        parts.extend(chunks.map(part));
        weights
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.requests.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the embedder's thread panicked");
        }
    }
}

impl Frame {
    /// Finds out what the tokenizer puts around a word.
    fn of(model: &Model) -> Self {
        let vocab = model.llama().vocab();
        let bare = vocab.tokenize(PROBE, false, false);
        let framed = vocab.tokenize(PROBE, true, false);
        let start = framed.windows(bare.len().max(1)).position(|window| window == bare);
        start.map_or_else(Self::default, |start| Self {
            before: framed[..start].to_vec(),
            after: framed[start + bare.len()..].to_vec(),
        })
    }

    fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

const PROBE: &[u8] = b"a";

/// Bytes given to the tokenizer at once: some tokenizers take quadratic time on hostile text.
const LONGEST_PIECE: usize = 8 << 10;

/// Cuts `text` into pieces of at most `longest` bytes, before white space where there is some.
fn pieces(text: &str, longest: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.floor_char_boundary(longest);
        let cut = match rest[..end].rfind(char::is_whitespace) {
            Some(space) if end < rest.len() && space > 0 => space,
            _ => end,
        };
        let (piece, after) = rest.split_at(cut);
        rest = after;
        Some(piece)
    })
}

/// How the model pools, by its metadata; by mean when it doesn't say.
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

fn spawn(
    model: Arc<Model>,
    window: u32,
    threads: u32,
    pooling: LlamaPoolingType,
    requests: Receiver<Request>,
) -> Result<JoinHandle<()>, LoadError> {
    let (sender, made) = bounded(1);
    let thread = std::thread::Builder::new().name("garret-embedder".into());
    let thread = thread.stack_size(STACK).spawn(move || {
        let context = match context(&model, window, threads, pooling) {
            Ok(context) => context,
            Err(error) => {
                let _ = sender.send_blocking(Err(error));
                return;
            }
        };
        let _ = sender.send_blocking(Ok(()));
        let capacity = window as usize;
        let batch = LlamaBatch::new(capacity, 1);
        let mut worker = Worker { context, batch, capacity };
        while let Ok(Request { parts, answer }) = requests.recv_blocking() {
            let vectors = catch_unwind(AssertUnwindSafe(|| worker.embed(&parts)));
            let _ = answer.try_send(vectors.unwrap_or(Err(EmbedError::Panicked)));
        }
    })?;
    match made.recv_blocking() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let reason = "the embedder's thread panicked".to_owned();
            Err(LoadError::Context { n_ctx: window, reason })
        }
    }
}

/// Bytes.
const STACK: usize = 8 << 20;

fn context(
    model: &Model,
    window: u32,
    threads: u32,
    pooling: LlamaPoolingType,
) -> Result<LlamaContext<'_>, LoadError> {
    let threads = i32::try_from(threads).unwrap_or(i32::MAX);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(window))
        .with_n_batch(window)
        // Without causal attention a batch must be one micro-batch.
        .with_n_ubatch(window)
        .with_n_seq_max(MAX_TEXTS as u32)
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_embeddings(true)
        .with_pooling_type(pooling)
        .with_no_perf(true);
    model.new_context(window, params)
}

struct Worker<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    /// Tokens of a batch.
    capacity: usize,
}

impl Worker<'_> {
    fn embed(&mut self, parts: &[Vec<LlamaToken>]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(parts.len());
        let mut rest = parts;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.fitting(rest));
            self.decode(now, &mut vectors)?;
            rest = later;
        }
        Ok(vectors)
    }

    /// How many of the first parts fit into one batch; at least one, since none is too long.
    fn fitting(&self, parts: &[Vec<LlamaToken>]) -> usize {
        let mut left = self.capacity;
        let fits = |part: &&Vec<LlamaToken>| {
            let enough = part.len() <= left;
            left = left.saturating_sub(part.len());
            enough
        };
        parts.iter().take(MAX_TEXTS).take_while(fits).count().max(1)
    }

    fn decode(
        &mut self,
        parts: &[Vec<LlamaToken>],
        vectors: &mut Vec<Vec<f32>>,
    ) -> Result<(), EmbedError> {
        self.context.clear_kv_cache();
        self.batch.clear();
        for (sequence, part) in (0..).zip(parts) {
            for (position, token) in (0..).zip(part) {
                let added = self.batch.add(*token, position, &[sequence], true);
                added.map_err(|_| EmbedError::Decode(TOO_LONG))?;
            }
        }
        self.context.decode(&mut self.batch).map_err(code)?;
        for (sequence, _) in (0..).zip(parts) {
            let vector = self.context.embeddings_seq_ith(sequence);
            let vector = vector.map_err(|_| EmbedError::NotFinite)?;
            if !vector.iter().all(|value| value.is_finite()) {
                return Err(EmbedError::NotFinite);
            }
            vectors.push(vector.to_vec());
        }
        Ok(())
    }
}

fn code(error: DecodeError) -> EmbedError {
    EmbedError::Decode(match error {
        DecodeError::NoKvCacheSlot => 1,
        DecodeError::NTokensZero => -1,
        DecodeError::Unknown(code) => code,
    })
}

/// Not llama.cpp's: the batch was longer than its buffer.
const TOO_LONG: i32 = -100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_join_to_the_text(
            text in "[a-z \\n\u{e9}\u{4e2d}\u{1f600}]{0,200}",
            longest in 4_usize..40,
        ) {
            let cut: Vec<&str> = pieces(&text, longest).collect();
            prop_assert_eq!(cut.concat(), text.as_str());
            prop_assert!(cut.iter().all(|piece| (1..=longest).contains(&piece.len())));
        }

        #[test]
        fn words_stay_whole_when_they_fit(words in prop::collection::vec("[a-z]{1,8}", 0..60)) {
            let text = words.join(" ");
            let cut = pieces(&text, 20).flat_map(str::split_whitespace);
            prop_assert!(cut.eq(words.iter().map(String::as_str)));
        }
    }
}
