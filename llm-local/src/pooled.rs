//! Context on a thread of its own that pools: one answer for each text.
//!
//! Requests are runs of tokens, each no longer than the window. Several are decoded at a time, as
//! sequences of their own.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use garret_core::model::PoolingError;
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::LlamaVocab;
use smol::channel::{Receiver, Sender, bounded};

use crate::error::LoadError;
use crate::model::{Model, ModelOptions};

/// Most texts of one decode. More don't make it faster.
const MAX_TEXTS: usize = 16;

/// Most requests that wait at once; further ones block their caller.
const MAX_WAITING: usize = 16;

/// A model that reads runs of tokens, and what pools them.
#[derive(Debug)]
pub(crate) struct PoolingContext {
    model: Arc<Model>,
    window: usize,
    requests: Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Options for loading a model that pools: an [`Embedder`](crate::Embedder) or a
/// [`Reranker`](crate::Reranker).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolingOptions {
    /// Threads that compute.
    pub threads: u32,
    /// Most tokens that are read as one, special ones included: of a part of a text, or of a query
    /// and a text together. What the model was trained for is the limit if that is less. A decode
    /// needs memory for so many.
    pub max_tokens: u32,
    /// Options for reading the file.
    pub model: ModelOptions,
}

impl Default for PoolingOptions {
    /// 512 tokens, on the four cores of a small machine.
    fn default() -> Self {
        Self { threads: 4, max_tokens: 512, model: ModelOptions::default() }
    }
}

/// Parameters of the context that pools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextParams {
    /// Name of the thread and of what is logged of it.
    pub(crate) name: &'static str,
    pub(crate) threads: u32,
    /// Most tokens of a run; what the model was trained for is the limit if that is less.
    pub(crate) max_tokens: u32,
    /// Fewest tokens that a window is of use with.
    pub(crate) least: u32,
    pub(crate) pooling: LlamaPoolingType,
}

/// Runs, each of 1 to window tokens, and where what came of them goes, in order.
#[derive(Debug)]
struct Request {
    runs: Vec<Vec<LlamaToken>>,
    answer: Sender<Answer>,
}

type Answer = Result<Vec<Vec<f32>>, PoolingError>;

impl PoolingContext {
    /// Makes the context.
    pub(crate) fn new(model: Arc<Model>, options: ContextParams) -> Result<Self, LoadError> {
        if options.threads == 0 {
            let option = "threads";
            let value = "0".to_owned();
            return Err(LoadError::BadOption { option, value, expected: "at least 1".into() });
        }
        let window = options.max_tokens.min(model.n_ctx_train());
        if window < options.least {
            let option = "max_tokens";
            let value = options.max_tokens.to_string();
            let expected = format!("between {} and {}", options.least, model.n_ctx_train());
            return Err(LoadError::BadOption { option, value, expected });
        }
        let (requests, waiting) = bounded(MAX_WAITING);
        let options = ContextParams { max_tokens: window, ..options };
        let thread = Mutex::new(Some(spawn(Arc::clone(&model), options, waiting)?));
        Ok(Self { model, window: window as usize, requests, thread })
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Returns the most tokens of a run.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// Returns what comes of each run, in order. Blocks until it is there.
    pub(crate) fn ask(&self, runs: Vec<Vec<LlamaToken>>) -> Answer {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = bounded(1);
        let request = Request { runs, answer };
        self.requests.send_blocking(request).map_err(|_| PoolingError::Stopped)?;
        answered.recv_blocking().unwrap_or(Err(PoolingError::Stopped))
    }
}

impl Drop for PoolingContext {
    fn drop(&mut self) {
        self.requests.close();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the thread of an embedder or a reranker panicked");
        }
    }
}

/// The special tokens a model wants around a text.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) before: Vec<LlamaToken>,
    pub(crate) after: Vec<LlamaToken>,
}

impl Frame {
    /// Finds out what the tokenizer puts around a word.
    pub(crate) fn of(model: &Model) -> Self {
        let vocab = model.llama().vocab();
        let bare = vocab.tokenize(PROBE, false, false);
        let framed = vocab.tokenize(PROBE, true, false);
        let start = framed.windows(bare.len().max(1)).position(|window| window == bare);
        start.map_or_else(Self::default, |start| Self {
            before: framed[..start].to_vec(),
            after: framed[start + bare.len()..].to_vec(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

const PROBE: &[u8] = b"a";

/// The tokens of a text, none of them special.
pub(crate) fn tokens(vocab: &LlamaVocab<'_>, text: &str) -> Vec<LlamaToken> {
    pieces(text, LONGEST_PIECE)
        .flat_map(|piece| vocab.tokenize(piece.as_bytes(), false, false))
        .collect()
}

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

fn spawn(
    model: Arc<Model>,
    options: ContextParams,
    requests: Receiver<Request>,
) -> Result<JoinHandle<()>, LoadError> {
    let window = options.max_tokens;
    let (sender, made) = bounded(1);
    let thread = std::thread::Builder::new().name(options.name.into());
    let thread = thread.stack_size(STACK).spawn(move || {
        let context = match context(&model, options) {
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
        while let Ok(Request { runs, answer }) = requests.recv_blocking() {
            let all = catch_unwind(AssertUnwindSafe(|| worker.all(&runs)));
            let _ = answer.try_send(all.unwrap_or(Err(PoolingError::Panicked)));
        }
    })?;
    match made.recv_blocking() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let reason = format!("the thread {} panicked", options.name);
            Err(LoadError::Context { n_ctx: window, reason })
        }
    }
}

/// Stack of the thread in bytes.
const STACK: usize = 8 << 20;

fn context(model: &Model, options: ContextParams) -> Result<LlamaContext<'_>, LoadError> {
    let window = options.max_tokens;
    let threads = options.threads;
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
        .with_pooling_type(options.pooling)
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
    /// Returns what comes of each run.
    fn all(&mut self, runs: &[Vec<LlamaToken>]) -> Answer {
        let mut all = Vec::with_capacity(runs.len());
        let mut rest = runs;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.fitting(rest));
            self.decode(now, &mut all)?;
            rest = later;
        }
        Ok(all)
    }

    /// Returns how many of the first runs fit into one batch; at least one, since none is too long.
    fn fitting(&self, runs: &[Vec<LlamaToken>]) -> usize {
        let mut left = self.capacity;
        let fits = |run: &&Vec<LlamaToken>| {
            let enough = run.len() <= left;
            left = left.saturating_sub(run.len());
            enough
        };
        runs.iter().take(MAX_TEXTS).take_while(fits).count().max(1)
    }

    fn decode(
        &mut self,
        runs: &[Vec<LlamaToken>],
        all: &mut Vec<Vec<f32>>,
    ) -> Result<(), PoolingError> {
        self.context.clear_kv_cache();
        self.batch.clear();
        for (sequence, run) in (0..).zip(runs) {
            for (position, token) in (0..).zip(run) {
                let added = self.batch.add(*token, position, &[sequence], true);
                added.map_err(|_| PoolingError::Decode(TOO_LONG))?;
            }
        }
        self.context.decode(&mut self.batch).map_err(code)?;
        for (sequence, _) in (0..).zip(runs) {
            let pooled = self.context.embeddings_seq_ith(sequence);
            let pooled = pooled.map_err(|_| PoolingError::NotFinite)?;
            if pooled.is_empty() || !pooled.iter().all(|value| value.is_finite()) {
                return Err(PoolingError::NotFinite);
            }
            all.push(pooled.to_vec());
        }
        Ok(())
    }
}

fn code(error: DecodeError) -> PoolingError {
    PoolingError::Decode(match error {
        DecodeError::NoKvCacheSlot => 1,
        DecodeError::NTokensZero => -1,
        DecodeError::Unknown(code) => code,
    })
}

/// Code of our own for a batch that is longer than its buffer.
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
